"""Faults with special numbers: NaN and infinity swallowed or spread too far, −0 taken for another number, tiny and huge ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.dtypes import float_type
from conformance.faults.model import Fault
from conformance.faults.steps import attend, hide, mix, multi_head, softmax
from conformance.inputs import AttentionInputs, MultiHeadInputs

Array = np.ndarray
Change = Callable[[Array], Array]
NAN = ("ATT-NUM-001", "ATT-NUM-002", "ATT-NUM-003")
WHOLE_HEAD, WHOLE_BATCH_ROW, WHOLE_ROW = (-2, -1), (1, 2, 3), (-1,)


def _fault(
    name: str, sentence: str, requirements: tuple[str, ...], compute: Callable[[AttentionInputs], Array], *sources: str
) -> Fault:
    return Fault(id=name, sentence=sentence, requirements=requirements, sources=sources, compute=compute)


def _changed(name: str, change: Change) -> Callable[[AttentionInputs], AttentionInputs]:
    """The inputs with one of query, key and value changed."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        changed: dict[str, Any] = {name: change(getattr(inputs, name))}
        return inputs.but(**changed)

    return rewrite


def _without_nan(array: Array) -> Array:
    return np.where(np.isnan(array), array.dtype.type(0), array)


def _nonfinite(array: Array) -> Array:
    return np.logical_not(np.isfinite(array))


def _clipped(array: Array) -> Array:
    largest = array.dtype.type(float_type(array.dtype.name).largest)
    return np.where(np.isinf(array), np.copysign(largest, array), array)


def _spoiling(name: str, bad: Change, axes: tuple[int, ...]) -> Callable[[AttentionInputs], Array]:
    """NaN over ``axes`` of the output wherever something bad stands in a query or key over the same axes."""

    def compute(inputs: AttentionInputs) -> Array:
        output, array = attend(inputs), getattr(inputs, name)
        found = bad(array).any(axis=axes, keepdims=True)
        if found.shape[1] not in (1, output.shape[1]):
            found = np.repeat(found, output.shape[1] // found.shape[1], axis=1)
        return np.where(found, output.dtype.type(np.nan), output)

    return compute


def _nan_over(axes: tuple[int, ...]) -> Callable[[AttentionInputs], Array]:
    """A NaN in the output spreads over ``axes``."""

    def compute(inputs: AttentionInputs) -> Array:
        output = attend(inputs)
        return np.where(np.isnan(output).any(axis=axes, keepdims=True), output.dtype.type(np.nan), output)

    return compute


def _infinity_times_zero(inputs: AttentionInputs) -> Array:
    """As where a product with a matrix of zeros and ones gathers the channels."""
    output = attend(inputs)
    return np.where(np.isinf(output).any(-1, keepdims=True) & ~np.isinf(output), output.dtype.type(np.nan), output)


def _minus_zero(to: float) -> Change:
    return lambda array: np.where((array == 0) & np.signbit(array), array.dtype.type(to), array)


def _padding_where(padding: Callable[[Array], Array]) -> Callable[[AttentionInputs], Array]:
    """Hides the keys that are ``padding``, (…, d) → (…)."""

    def compute(inputs: AttentionInputs) -> Array:
        padded = padding(inputs.key.astype(np.float64))
        padded = np.repeat(padded, inputs.query.shape[1] // inputs.key.shape[1], axis=1)[:, :, None]
        return attend(inputs, hide=lambda scores, visible: hide(scores, visible & ~padded))

    return compute


def _scaled_to_fp8(inputs: AttentionInputs) -> Array:
    """V multiplied by 448 over its largest size, a factor in the dtype of the inputs, and the output divided by it."""
    factor = float((448.0 / np.abs(inputs.value.astype(np.float64)).max()).astype(inputs.value.dtype))
    return attend(inputs, mix=lambda weights, value: mix(weights, value * factor) / factor)


def _flushed_rows(array: Array) -> Array:
    """Rows in which something is subnormal are zeros."""
    size = np.abs(array.astype(np.float64))
    lost = ((size < float_type(array.dtype.name).tiny) & (size > 0)).any(-1, keepdims=True)
    return np.where(lost, array.dtype.type(0), array)


def _rewriting(name: str, sentence: str, requirement: str, changed: str, change: Change) -> Fault:
    return Fault(id=name, sentence=sentence, requirements=(requirement,), sources=(), rewrite=_changed(changed, change))


def _overflowing(name: str, sentence: str, change: Change) -> Fault:
    def compute(inputs: MultiHeadInputs) -> Array:
        return change(multi_head(inputs))

    return Fault(
        id=name, sentence=sentence, requirements=("ATT-NUM-011",), sources=(), operation="multi_head_attention",
        dtypes=("float16",), compute=compute,
    )  # fmt: skip


_PADDING = ("transformer (Kyubyong): https://github.com/Kyubyong/transformer/pull/69",)

FAULTS: tuple[Fault, ...] = (
    _rewriting("nan-in-query-as-zero", "takes NaN in the query for 0", "ATT-NUM-001", "query", _without_nan),
    _rewriting("nan-in-key-as-zero", "takes NaN in the key for 0", "ATT-NUM-002", "key", _without_nan),
    _rewriting("nan-in-value-as-zero", "takes NaN in the value for 0", "ATT-NUM-003", "value", _without_nan),
    _fault(
        "nan-scores-hidden",
        "hides keys whose score is NaN",
        NAN[:2],
        lambda inputs: attend(inputs, softmax=lambda scores: softmax(np.where(np.isnan(scores), -np.inf, scores))),
    ),
    _fault("nan-output-as-zero", "returns 0 for NaN", NAN, lambda inputs: _without_nan(attend(inputs))),
    _fault("nan-spreads-over-channels", "lets a NaN spread over the channels of its row", NAN[2:], _nan_over(WHOLE_ROW)),
    _fault("nan-spreads-over-head", "lets a NaN spread over the rows of its head", NAN[:1], _nan_over(WHOLE_HEAD)),
    _fault("nan-spreads-over-heads", "lets a NaN spread over the heads of its batch row", NAN, _nan_over(WHOLE_BATCH_ROW)),
    _fault(
        "infinity-in-query-spoils-head",
        "gives NaN for a whole head in which a query is infinite",
        ("ATT-NUM-004",),
        _spoiling("query", np.isinf, WHOLE_HEAD),
    ),
    _fault(
        "infinity-in-key-spoils-all",
        "gives NaN everywhere once a key is infinite",
        ("ATT-NUM-005",),
        _spoiling("key", np.isinf, (0, *WHOLE_BATCH_ROW)),
    ),
    *(
        _fault(
            f"nonfinite-{name}-spoils-other-batch-rows",
            f"gives NaN in all batch rows once a {name} is not finite, hidden or not",
            ("ATT-NUM-013",),
            _spoiling(name, _nonfinite, (0, *WHOLE_BATCH_ROW)),
        )
        for name in ("key", "value")
    ),
    _rewriting("infinite-value-clipped", "clips V to the largest finite number", "ATT-NUM-006", "value", _clipped),
    _fault(
        "infinite-value-spoils-channels",
        "gives NaN in the channels beside an infinite one",
        ("ATT-NUM-006",),
        _infinity_times_zero,
    ),
    *(
        _rewriting(f"minus-zero-in-{name}", f"reads −0 in the {name} as −1, by its sign", "ATT-NUM-007", name, _minus_zero(-1.0))
        for name in ("query", "key", "value")
    ),
    _fault(
        "zero-means-padding",
        "takes a key that begins with a zero for padding",
        ("ATT-NUM-007",),
        _padding_where(lambda key: key[..., 0] == 0),
        *_PADDING,
    ),
    _fault("zero-key-means-padding", "takes a key of zeros for padding", ("ATT-NUM-012",),
           _padding_where(lambda key: (key == 0).all(-1)), *_PADDING),
    _fault("zero-sum-means-padding", "takes a key whose channels add up to 0 for padding", ("ATT-NUM-012",),
           _padding_where(lambda key: key.sum(-1) == 0), *_PADDING),
    _fault("value-scale-overflows", "brings V to the range of fp8 by a factor that overflows where V is tiny", ("ATT-NUM-008",),
           _scaled_to_fp8),
    _rewriting("subnormal-query-row-lost", "takes a query with a subnormal entry for 0", "ATT-NUM-009", "query", _flushed_rows),
    _overflowing("multi-head-overflow-clipped", "clips an output beyond the largest number", _clipped),
    _overflowing("multi-head-overflow-nan", "gives NaN for an output beyond the largest number",
                 lambda output: np.where(np.isinf(output), output.dtype.type(np.nan), output)),
)  # fmt: skip

"""Faults with special numbers: NaN and infinity swallowed or spread too far, −0 taken for another number, tiny and huge ones."""

from collections.abc import Callable

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.grammar import NUM, Way, argument, computed, fault, layer_output, output, stages
from conformance.faults.steps import attend, hide, mix, softmax
from conformance.numerics.dtypes import float_type
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Change = Callable[[Array], Array]
NAN = NUM(1, 2, 3)
HEAD, BATCH_ROW, ROW, ALL = (-2, -1), (1, 2, 3), (-1,), (0, 1, 2, 3)  # axes
PADDING = ("transformer (Kyubyong): https://github.com/Kyubyong/transformer/pull/69",)


def _changed(name: str, change: Change) -> Way:
    """Query, key or value changed."""
    return argument(name, lambda array, _: change(array))


def _nan_where(wrong: Array, array: Array) -> Array:
    return np.where(wrong, array.dtype.type(np.nan), array)


def _without_nan(array: Array) -> Array:
    return np.where(np.isnan(array), array.dtype.type(0), array)


def _clipped(array: Array) -> Array:
    largest = array.dtype.type(float_type(array.dtype.name).largest)
    return np.where(np.isinf(array), np.copysign(largest, array), array)


def _spoiling(name: str, bad: Change, axes: tuple[int, ...]) -> Way:
    """NaN over ``axes`` of the output wherever something bad stands in a query or key over the same axes."""

    def change(inputs: AttentionInputs, right: Array) -> Array:
        found = np.asarray(bad(getattr(inputs, name)).any(axis=axes, keepdims=True))
        if found.shape[1] not in (1, right.shape[1]):
            found = np.repeat(found, right.shape[1] // found.shape[1], axis=1)
        return _nan_where(found, right)

    return output(change)


def _nan_over(axes: tuple[int, ...]) -> Way:
    """A NaN in the output spreads over ``axes``."""
    return output(lambda _, right: _nan_where(np.asarray(np.isnan(right).any(axis=axes, keepdims=True)), right))


def _minus_zero_as(number: float) -> Change:
    return lambda array: np.where((array == 0) & np.signbit(array), array.dtype.type(number), array)


def _padding_where(padding: Callable[[Array], Array]) -> Way:
    """Hides the keys that are ``padding``, (…, d) → (…)."""

    def compute(inputs: AttentionInputs) -> Array:
        padded = padding(inputs.key.astype(np.float64))
        padded = np.repeat(padded, inputs.query.shape[1] // inputs.key.shape[1], axis=1)[:, :, None]
        return attend(inputs, hide=lambda scores, visible: hide(scores, visible & ~padded))

    return computed(compute)


def _scaled_to_fp8(inputs: AttentionInputs) -> Array:
    """V multiplied by 448 over its largest size, a factor in the dtype of the inputs, and the output divided by it."""
    factor = float((448.0 / np.abs(inputs.value.astype(np.float64)).max()).astype(inputs.value.dtype))
    return attend(inputs, mix=lambda weights, value: mix(weights, value * factor) / factor)


def _flushed_rows(array: Array) -> Array:
    """Rows in which something is subnormal are zeros."""
    size = np.abs(array.astype(np.float64))
    lost = ((size < float_type(array.dtype.name).tiny) & (size > 0)).any(-1, keepdims=True)
    return np.where(lost, array.dtype.type(0), array)


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"nan-in-{name}-as-zero", f"takes NaN in the {name} for 0", _changed(name, _without_nan), NUM(number))
        for name, number in (("query", 1), ("key", 2), ("value", 3))
    ),
    fault("nan-scores-hidden", "hides keys whose score is NaN",
          stages(softmax=lambda scores: softmax(np.where(np.isnan(scores), -np.inf, scores))), NAN[:2]),
    fault("nan-output-as-zero", "returns 0 for NaN", output(lambda _, right: _without_nan(right)), NAN),
    fault("nan-spreads-over-channels", "lets a NaN spread over the channels of its row", _nan_over(ROW), NAN[2:]),
    fault("nan-spreads-over-head", "lets a NaN spread over the rows of its head", _nan_over(HEAD), NAN[:1]),
    fault("nan-spreads-over-heads", "lets a NaN spread over the heads of its batch row", _nan_over(BATCH_ROW), NAN),
    fault("infinity-in-query-spoils-head", "gives NaN for a whole head in which a query is infinite",
          _spoiling("query", np.isinf, HEAD), NUM(4)),
    fault("infinity-in-key-spoils-all", "gives NaN everywhere once a key is infinite", _spoiling("key", np.isinf, ALL), NUM(5)),
    *(
        fault(f"nonfinite-{name}-spoils-other-batch-rows",
              f"gives NaN in all batch rows once a {name} is not finite, hidden or not",
              _spoiling(name, lambda array: ~np.isfinite(array), ALL), NUM(13))
        for name in ("key", "value")
    ),
    fault("infinite-value-clipped", "clips V to the largest finite number", _changed("value", _clipped), NUM(6)),
    fault("infinite-value-spoils-channels", "gives NaN in the channels beside an infinite one",  # as 0 · ∞ does in a product
          output(lambda _, right: _nan_where(np.isinf(right).any(-1, keepdims=True) & ~np.isinf(right), right)), NUM(6)),
    *(
        fault(f"minus-zero-in-{name}", f"reads −0 in the {name} as −1, by its sign", _changed(name, _minus_zero_as(-1.0)), NUM(7))
        for name in ("query", "key", "value")
    ),
    *(
        fault(name, sentence, _padding_where(padding), requirements, PADDING)
        for name, sentence, requirements, padding in (
            ("zero-means-padding", "takes a key that begins with a zero for padding", NUM(7), lambda key: key[..., 0] == 0),
            ("zero-key-means-padding", "takes a key of zeros for padding", NUM(12), lambda key: (key == 0).all(-1)),
            ("zero-sum-means-padding", "takes a key whose channels add up to 0 for padding", NUM(12),
             lambda key: key.sum(-1) == 0),
        )
    ),
    fault("value-scale-overflows", "brings V to the range of fp8 by a factor that overflows where V is tiny",
          computed(_scaled_to_fp8), NUM(8)),
    fault("subnormal-query-row-lost", "takes a query with a subnormal entry for 0", _changed("query", _flushed_rows), NUM(9)),
    *(
        fault(f"multi-head-overflow-{name}", sentence, layer_output(change), NUM(11), dtypes=("float16",))
        for name, sentence, change in (
            ("clipped", "clips an output beyond the largest number", lambda _, right: _clipped(right)),
            ("nan", "gives NaN for an output beyond the largest number", lambda _, right: _nan_where(np.isinf(right), right)),
        )
    ),
)  # fmt: skip

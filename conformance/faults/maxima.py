"""Faults of the maximum that softmax takes off: none, another number, one shared by too much; and scores that are clipped.

Exponentials overflow or vanish in the precision that an implementation computes in: float64 for float64, float32 for the rest.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from conformance.faults.model import Fault
from conformance.faults.steps import attend, multi_head, products, softmax
from conformance.inputs import AttentionInputs, Inputs
from conformance.visibility import visible_pairs

Array = np.ndarray
Shift = Callable[[Array], Array]  # what is taken off the scores, from the scores, which are −inf where a pair is hidden
_FAR = ("ATT-SCALE-010", "ATT-SCALE-011", "ATT-OUT-007")
_IN_DTYPE = ("ATT-OUT-003", "ATT-OUT-004", "ATT-OUT-005", "ATT-OUT-006")
_LOUD_QUERY = ("ATT-OUT-021",)
_OVERFLOW = (
    "FasterTransformer: https://github.com/NVIDIA/FasterTransformer/issues/43",
    "executorch (Vulkan): https://github.com/pytorch/executorch/pull/18407",
)
_FROM_ZERO = ("flash-attention (CuTe sm90): https://github.com/Dao-AILab/flash-attention/issues/2082",)
_EXP_OF_SCORES = (*_OVERFLOW, "tutorials: NumPy self-attention that takes exp of the scores as they are")


def _precision(inputs: Inputs) -> type[np.floating]:
    """The type in which an implementation takes exponentials."""
    return np.float64 if inputs.arrays()["query"].dtype == np.float64 else np.float32


def _softmax_less(shift: Shift, scores: Array, dtype: type[np.floating]) -> Array:
    """exp(scores − shift) over its sum, in ``dtype``; a shift of −inf counts as 0."""
    taken = shift(scores)
    exponentials = np.exp((scores - np.where(taken == -np.inf, 0.0, taken)).astype(dtype))
    return (exponentials / exponentials.sum(-1, keepdims=True, dtype=dtype)).astype(np.float64)


def _less(identifier: str, sentence: str, shift: Shift, *requirements: str, **fields: Any) -> Fault:
    """Another number taken off the scores than the maximum of their row."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements,
        compute=lambda inputs: attend(inputs, softmax=lambda scores: _softmax_less(shift, scores, _precision(inputs))),
        **{"sources": (), **fields},
    )


def _maximum(scores: Array, axes: int | tuple[int, ...] = -1) -> Array:
    return np.max(scores, axis=axes, keepdims=True)


def _common(axes: int | tuple[int, ...]) -> Shift:
    return lambda scores: _maximum(scores, axes)


def _of_row_group(scores: Array) -> Array:
    """One maximum for four rows, which a kernel holds in one register."""
    tops = _maximum(scores)
    starts = np.arange(0, tops.shape[2], 4)
    return np.repeat(np.maximum.reduceat(tops, starts, axis=2), 4, axis=2)[:, :, : tops.shape[2]]


def _of_key_tile(scores: Array) -> Array:
    """A maximum of each 64 keys, as if partial sums needed no rescaling."""
    starts = np.arange(0, scores.shape[3], 64)
    return np.repeat(np.maximum.reduceat(scores, starts, axis=3), 64, axis=3)[..., : scores.shape[3]]


def _minimum(scores: Array) -> Array:
    return np.min(np.where(scores > -np.inf, scores, np.inf), axis=-1, keepdims=True)


def _with_hidden(inputs: AttentionInputs) -> Array:
    """The maximum is taken before the mask is applied: a loud hidden key makes the visible weights vanish."""
    visible = visible_pairs(inputs)

    def weights(scores: Array) -> Array:
        shifted = np.where(visible, scores - _maximum(scores), -np.inf)
        return _softmax_less(np.zeros_like, shifted, _precision(inputs))

    return attend(inputs, hide=lambda scores, _: scores, softmax=weights)


def _in_float16(inputs: AttentionInputs) -> Array:
    return attend(inputs, softmax=lambda scores: _softmax_less(np.zeros_like, scores, np.float16))


_TAKEN_OFF = (
    _less("maximum-not-subtracted", "takes exp of the scores as they are", np.zeros_like, *_FAR, sources=_EXP_OF_SCORES),
    Fault(
        id="multi-head-maximum-not-subtracted",
        sentence="takes exp of the scores of the heads as they are",
        operation="multi_head_attention",
        requirements=("ATT-HEAD-032",),
        sources=_EXP_OF_SCORES,
        compute=lambda inputs: multi_head(
            inputs,
            attention=lambda inner: attend(inner, softmax=lambda s: _softmax_less(np.zeros_like, s, _precision(inputs))),
        ),
    ),
    Fault(
        id="maximum-not-subtracted-in-float16",
        sentence="takes exp of the scores as they are, in float16",
        requirements=_FAR,
        sources=_OVERFLOW,
        dtypes=("float16",),
        compute=_in_float16,
    ),
    _less("maximum-replaced-by-minimum", "takes the smallest score off instead of the largest", _minimum, *_FAR),
    _less("maximum-replaced-by-mean", "takes the mean of the scores off", lambda s: np.mean(s, -1, keepdims=True), *_FAR),
    _less("maximum-replaced-by-first", "takes the score of the first key off", lambda s: s[..., :1], *_FAR),
    _less("maximum-replaced-by-last", "takes the score of the last key off", lambda s: s[..., -1:], *_FAR),
    _less(
        "maximum-from-zero",
        "starts the maximum of a row from 0 instead of −∞",
        lambda s: np.maximum(_maximum(s), 0.0),
        "ATT-SCALE-014",
        "ATT-SCALE-010",
        sources=_FROM_ZERO,
    ),
    _less(
        "maximum-of-magnitudes",
        "takes the largest magnitude off",
        lambda s: _maximum(np.where(s > -np.inf, np.abs(s), -np.inf)),
        "ATT-SCALE-014",
        "ATT-SCALE-010",
    ),
    Fault(
        id="maximum-with-hidden-keys",
        sentence="takes the maximum of a row over hidden keys too",
        requirements=("ATT-MASK-022",),
        sources=(),
        compute=_with_hidden,
    ),
)

_SHARED = (
    _less("maximum-over-queries", "takes the maximum over the queries", _common(-2), *_LOUD_QUERY, *_IN_DTYPE),
    _less("maximum-over-heads", "takes the maximum over the heads", _common(1), "ATT-OUT-020", *_IN_DTYPE),
    _less("maximum-over-batch", "takes the maximum over the batch", _common(0), "ATT-OUT-019", *_IN_DTYPE),
    _less("maximum-of-four-rows", "shares one maximum among four queries", _of_row_group, *_LOUD_QUERY),
    _less("maximum-of-head", "shares one maximum among the queries of a head", _common((2, 3)), *_LOUD_QUERY),
    _less("maximum-of-batch-row", "shares one maximum among all heads", _common((1, 2, 3)), *_LOUD_QUERY),
    _less("maximum-of-call", "shares one maximum in all of a call", _common((0, 1, 2, 3)), *_LOUD_QUERY),
    _less("maximum-of-key-tile", "adds up tiles of 64 keys that have maxima of their own", _of_key_tile, "ATT-OUT-036"),
)


def _clipped(low: float, high: float, scores: Array, visible: Array) -> Array:
    return np.where(visible, np.clip(scores, low, high), -np.inf)


def _bounded(name: str, low: float, high: float, *requirements: str, **fields: Any) -> Fault:
    return Fault(
        id=f"scores-clipped-{name}",
        sentence=f"clips the scaled scores to {low:g} … {high:g}",
        requirements=requirements,
        compute=lambda inputs: attend(inputs, hide=partial(_clipped, low, high)),
        **{"sources": (), **fields},
    )


def _differences_clipped(scores: Array) -> Array:
    """exp by a table that begins at −10."""
    shifted = np.maximum(scores - _maximum(scores), -10.0)
    return softmax(np.where(scores > -np.inf, shifted, -np.inf))


def _saturated(query: Array, key: Array, scale: float) -> Array:
    return np.clip(products(query, key, 1.0), -65504.0, 65504.0) * scale


_CLIPPED = (
    _bounded("to-50", -50.0, 50.0, *_FAR),
    _bounded("above-50", -np.inf, 50.0, *_FAR),
    _bounded("below-50", -50.0, np.inf, *_FAR),
    _bounded("to-88", -88.0, 88.0, *_FAR),
    _bounded("to-1e4", -1e4, 1e4, "ATT-SCALE-012", "ATT-SCALE-014"),
    _bounded("to-65504", -65504.0, 65504.0, "ATT-SCALE-012", "ATT-SCALE-014", dtypes=("float64", "float32", "bfloat16")),
    Fault(
        id="products-clipped-to-65504",
        sentence="clips the products to float16's largest number before they are scaled",
        requirements=("ATT-SCALE-013", "ATT-SCALE-012"),
        sources=(),
        compute=lambda inputs: attend(inputs, products=_saturated),
    ),
    Fault(
        id="exponents-clipped-at-minus-10",
        sentence="takes exp of no number below −10",
        requirements=("ATT-OUT-013", "ATT-OUT-003", "ATT-OUT-004"),
        sources=(),
        compute=lambda inputs: attend(inputs, softmax=_differences_clipped),
    ),
)

FAULTS: tuple[Fault, ...] = (*_TAKEN_OFF, *_SHARED, *_CLIPPED)

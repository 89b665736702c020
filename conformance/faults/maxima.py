"""Faults of the maximum that softmax takes off: none, another number, one shared by too much; and scores that are clipped.

Exponentials overflow or vanish in the precision that an implementation computes in: float64 for float64, float32 for the rest.
"""

from collections.abc import Callable

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, MULTI_HEAD, NOT_FLOAT16, OUT, SCALE, Way, computed, fault, stages
from conformance.faults.steps import add_bias, attend, multi_head, products, softmax
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
Shift = Callable[[Array], Array]  # what is taken off the scores, from the scores, which are −inf where a pair is hidden
FAR, LOUD_QUERY = SCALE(10, 11) + OUT(7), OUT(21)
DTYPES, WIDE_RANGE, LOW = OUT(3, 4, 5, 6), SCALE(12, 14), SCALE(14, 10)
OVERFLOW = (
    "FasterTransformer: https://github.com/NVIDIA/FasterTransformer/issues/43",
    "executorch (Vulkan): https://github.com/pytorch/executorch/pull/18407",
)
FROM_ZERO = ("flash-attention (CuTe sm90): https://github.com/Dao-AILab/flash-attention/issues/2082",)
EXP_OF_SCORES = (*OVERFLOW, "tutorials: NumPy self-attention that takes exp of the scores as they are")


def _precision(inputs: Inputs) -> type[np.floating]:
    """The type in which an implementation takes exponentials."""
    return np.float64 if inputs.arrays()["query"].dtype == np.float64 else np.float32


def _softmax_less(shift: Shift, scores: Array, dtype: type[np.floating]) -> Array:
    """exp(scores − shift) over its sum, in ``dtype``; a shift of −inf counts as 0."""
    taken = shift(scores)
    exponentials = np.exp((scores - np.where(taken == -np.inf, 0.0, taken)).astype(dtype))
    return (exponentials / exponentials.sum(-1, keepdims=True, dtype=dtype)).astype(np.float64)


def _less(shift: Shift) -> Way:
    """Another number taken off the scores than the maximum of their row."""
    return computed(lambda x: attend(x, softmax=lambda scores: _softmax_less(shift, scores, _precision(x))))


def _maximum(scores: Array, *axes: int) -> Array:
    return np.max(scores, axis=axes or -1, keepdims=True)


def _over(*axes: int) -> Shift:
    return lambda scores: _maximum(scores, *axes)


def _by_tile(array: Array, axis: int, size: int) -> Array:
    """The maximum of each ``size`` along an axis, for each of them."""
    tops = np.maximum.reduceat(array, np.arange(0, array.shape[axis], size), axis=axis)
    return np.take(np.repeat(tops, size, axis=axis), np.arange(array.shape[axis]), axis=axis)


def _minimum(scores: Array) -> Array:
    return np.min(np.where(scores > -np.inf, scores, np.inf), axis=-1, keepdims=True)


def _with_hidden(inputs: AttentionInputs) -> Array:
    """The maximum is taken before the mask is applied: a loud hidden key makes the visible weights vanish."""
    visible = visible_pairs(inputs)

    def weights(scores: Array) -> Array:
        shifted = np.where(visible, scores - _maximum(scores), -np.inf)
        return _softmax_less(np.zeros_like, shifted, _precision(inputs))

    return attend(inputs, bias=add_bias, hide=lambda scores, _: scores, softmax=weights)


def _in_layer(inputs: MultiHeadInputs) -> Array:
    """None is taken off, in the precision of the layer."""

    def heads(inner: AttentionInputs) -> Array:
        return attend(inner, softmax=lambda scores: _softmax_less(np.zeros_like, scores, _precision(inputs)))

    return multi_head(inputs, attention=heads)


def _clipped(low: float, high: float) -> Way:
    return stages(hide=lambda scores, visible: np.where(visible, np.clip(scores, low, high), -np.inf))


def _differences_clipped(scores: Array) -> Array:
    """exp by a table that begins at −10."""
    shifted = np.maximum(scores - _maximum(scores), -10.0)
    return softmax(np.where(scores > -np.inf, shifted, -np.inf))


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"maximum-{name}", sentence, _less(shift), requirements, sources)
        for name, sentence, requirements, sources, shift in (
            ("not-subtracted", "takes exp of the scores as they are", FAR, EXP_OF_SCORES, np.zeros_like),
            ("replaced-by-minimum", "takes the smallest score off instead of the largest", FAR, (), _minimum),
            ("replaced-by-mean", "takes the mean of the scores off", FAR, (), lambda s: np.mean(s, -1, keepdims=True)),
            ("replaced-by-first", "takes the score of the first key off", FAR, (), lambda s: s[..., :1]),
            ("replaced-by-last", "takes the score of the last key off", FAR, (), lambda s: s[..., -1:]),
            ("from-zero", "starts the maximum of a row from 0 instead of −∞", LOW, FROM_ZERO,
             lambda s: np.maximum(_maximum(s), 0.0)),
            ("of-magnitudes", "takes the largest magnitude off", LOW, (),
             lambda s: _maximum(np.where(s > -np.inf, np.abs(s), -np.inf))),
            ("over-queries", "takes the maximum over the queries", LOUD_QUERY + DTYPES, (), _over(-2)),
            ("over-heads", "takes the maximum over the heads", OUT(20) + DTYPES, (), _over(1)),
            ("over-batch", "takes the maximum over the batch", OUT(19) + DTYPES, (), _over(0)),
            ("of-four-rows", "shares one maximum among four queries", LOUD_QUERY, (), lambda s: _by_tile(_maximum(s), 2, 4)),
            ("of-head", "shares one maximum among the queries of a head", LOUD_QUERY, (), _over(2, 3)),
            ("of-batch-row", "shares one maximum among all heads", LOUD_QUERY, (), _over(1, 2, 3)),
            ("of-call", "shares one maximum in all of a call", LOUD_QUERY, (), _over(0, 1, 2, 3)),
            ("of-key-tile", "adds up tiles of 64 keys that have maxima of their own", OUT(36), (), lambda s: _by_tile(s, 3, 64)),
        )
    ),
    fault("multi-head-maximum-not-subtracted", "takes exp of the scores of the heads as they are",
          computed(_in_layer, operation=MULTI_HEAD), HEAD(32), EXP_OF_SCORES),
    fault("maximum-not-subtracted-in-float16", "takes exp of the scores as they are, in float16",
          stages(softmax=lambda scores: _softmax_less(np.zeros_like, scores, np.float16)), FAR, OVERFLOW, dtypes=("float16",)),
    fault("maximum-with-hidden-keys", "takes the maximum of a row over hidden keys too", computed(_with_hidden), MASK(22)),
    *(
        fault(f"scores-clipped-{name}", f"clips the scaled scores to {low:g} … {high:g}", _clipped(low, high), requirements)
        for name, low, high, requirements in (
            ("to-50", -50.0, 50.0, FAR), ("above-50", -np.inf, 50.0, FAR), ("below-50", -50.0, np.inf, FAR),
            ("to-88", -88.0, 88.0, FAR), ("to-1e4", -1e4, 1e4, WIDE_RANGE),
        )
    ),
    fault("scores-clipped-to-65504", "clips the scaled scores to -65504 … 65504", _clipped(-65504.0, 65504.0), WIDE_RANGE,
          dtypes=NOT_FLOAT16),
    fault("products-clipped-to-65504", "clips the products to float16's largest number before they are scaled",
          stages(products=lambda query, key, scale: np.clip(products(query, key, 1.0), -65504.0, 65504.0) * scale),
          SCALE(13, 12)),
    fault("exponents-clipped-at-minus-10", "takes exp of no number below −10", stages(softmax=_differences_clipped),
          OUT(13, 3, 4)),
)  # fmt: skip

"""What attention gives beside its output: the log-sum-exp of each row and the weights, each with a budget of its own.

Both are read off what has flowed through the stages; ``docs/budget.md`` derives the bounds. Arrays are (B, Hkv, G, rows, ·).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from conformance.numerics.dtypes import FloatType, float_type
from conformance.numerics.profiles import Roundoffs, roundoffs
from conformance.oracle import budget
from conformance.oracle.expected import Truth
from conformance.oracle.stages import Bounds, Flow
from conformance.problem.returned import LSE, WEIGHTS

Array = np.ndarray
_FAR = 300.0  # an error of a score, beyond which weights that have vanished may count


def log_sum_exp(flow: Flow) -> Array:
    """log Σ_j e^(s_j) = s_j − log w_j for any key, that of the largest weight; −∞ in a fully masked row. (…, 1)"""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = flow.scores.max(-1, keepdims=True) - np.log(flow.weights.max(-1, keepdims=True, initial=0.0))
    return np.where(np.isnan(found), -np.inf, found)


def error_of_log_sum_exp(flow: Flow, bounds: Bounds, returned: FloatType) -> Array:
    """log Σ P e^ε, and the roundings of the sum, of its logarithm, of the maximum that is added, and of the result, which is
    ``returned`` in some dtype."""
    unit, kind, weights = bounds.unit, flow.kind, flow.wide(flow.weights)
    lse, top = (np.where(np.isfinite(array), array, 0.0).astype(np.float64) for array in (log_sum_exp(flow), flow.top))
    farthest = _farthest(flow, bounds)
    spread = np.log1p((weights * np.expm1(np.minimum(bounds.scores, _FAR))).sum(-1, keepdims=True))
    error = np.where(farthest > _FAR, farthest, spread)
    keys = flow.scores.shape[-1]
    error += (budget.terms_of_sum(keys, kind, unit) + 2.0) * unit.accumulator
    error += unit.scores * (1.0 + np.abs(top) + np.abs(lse - top) + np.abs(lse)) + returned.unit_roundoff * np.abs(lse)
    count: Array | int = keys if flow.visible is None else budget.visible_count(flow.visible, keys)
    lost = 2.0**-25 if kind.name == "float16" and unit.probabilities >= kind.unit_roundoff else 0.0
    return np.asarray(error + count * (budget.flush(kind, unit) + lost) + budget.smallest(returned, unit))


def _farthest(flow: Flow, bounds: Bounds) -> Array:
    """The largest error of a score in each row. (…, 1)"""
    error = bounds.scores if flow.visible is None else np.where(flow.visible, bounds.scores, 0.0)
    return np.asarray(error.max(-1, keepdims=True, initial=0.0))


def weights_of(flow: Flow) -> Array:
    """The softmax of the scores; 0 where a pair is hidden. (…, Lk)"""
    return flow.weights[..., : flow.keys]


def error_of_weights(flow: Flow, bounds: Bounds, returned: FloatType) -> Array:
    """The budget of the output where V is the identity and nothing is summed: how far errors of the scores move a weight, no
    farther than to 0 or 1, and the roundings of the exponential, of the sum, of the division and of the result."""
    unit, kind, weights = bounds.unit, flow.kind, flow.wide(flow.weights)
    lift = weights * np.expm1(np.minimum(bounds.scores, _FAR))
    normaliser = (weights * np.exp(-bounds.scores)).sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = (lift * (1.0 - weights) + weights * (lift.sum(-1, keepdims=True) - lift)) / normaliser
    most = np.maximum(weights, 1.0 - weights)
    moved = np.where(_farthest(flow, bounds) > _FAR, most, np.fmin(moved, most))
    if flow.visible is not None:
        moved = np.where(flow.visible, moved, 0.0)
    error = (returned.unit_roundoff + unit.probabilities) * weights
    error += (budget.terms_of_sum(weights.shape[-1], kind, unit) + 2.0) * unit.accumulator * weights
    error += budget.normalisation_lift(weights, flow.finite, flow.wide(flow.top), unit)
    if kind.name == "float16" and unit.probabilities >= kind.unit_roundoff:
        small = weights < kind.tiny if flow.visible is None else (weights < kind.tiny) & flow.visible
        error += (unit.probabilities / kind.unit_roundoff) * np.where(small, weights if unit.flushes else 2.0**-25, 0.0)
    error += (1.0 + returned.unit_roundoff + 4.0 * unit.probabilities) * moved
    return np.asarray(error + budget.flush(kind, unit) + budget.smallest(returned, unit))[..., : flow.keys]


@dataclass(frozen=True)
class SecondOutput:
    """An output beside the first: its ``value``, (…, rows, ·), and what that may be off by where it is returned in a dtype.
    ``axis``: where the rows are once it is (B, H, rows) or (B, H, rows, Lk)."""

    value: Callable[[Flow], Array]
    error: Callable[[Flow, Bounds, FloatType], Array]
    axis: int


SECOND: dict[str, SecondOutput] = {
    LSE: SecondOutput(log_sum_exp, error_of_log_sum_exp, axis=-1),
    WEIGHTS: SecondOutput(weights_of, error_of_weights, axis=-2),
}


def error_of(name: str, flow: Flow, bounds: Bounds, returned: FloatType) -> Array:
    """What each element of the output of that name may be off by."""
    with np.errstate(over="ignore", invalid="ignore"):
        return SECOND[name].error(flow, bounds, returned)


def with_others(
    first: Truth,
    sizes: tuple[int, int, int, int],
    value: Callable[[str], tuple[Array, Array]],
    bound: Callable[[str, Roundoffs, FloatType], Array],
) -> Truth:
    """The truth of the output with those of the others. ``sizes`` B, H, Lq, Lk; ``value`` gives an output by name and where it is
    judged, ``bound`` its budget where it is returned in a dtype, all (B, H, rows, ·)."""

    def other(name: str, returned: str) -> Truth:
        legal, axis = legal_dtypes(first.dtype), SECOND[name].axis
        target = returned if returned in legal else first.dtype

        def shaped(array: Array) -> Array:
            return array[..., 0] if axis == -1 else array

        def of_profile(profile: str) -> Array:
            return shaped(bound(name, roundoffs(profile, first.dtype), float_type(target)))

        found, judged = map(shaped, value(name))
        shape = sizes[:3] if axis == -1 else sizes
        return Truth(found, judged, shape, target, of_profile, first.rows, first.kept, name, axis, legal)

    return replace(first, others={name: partial(other, name) for name in SECOND})


def legal_dtypes(dtype: str) -> tuple[str, ...]:
    """In which a further output may be returned beside inputs of ``dtype``: libraries keep it in float32 beside 16-bit ones."""
    return (dtype, "float32") if dtype in ("float16", "bfloat16") else (dtype,)

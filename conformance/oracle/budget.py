"""The error budget: how far each element of an attention output may be from the truth, derived from the case itself.

To first order, with s the scores, P = softmax(s), O = P V:  δO = Σ_j P_j δs_j (V_j − O) + roundings of P, of the sum and of
the result. The functions below hold the corrected form of it that ``docs/budget.md`` derives. Sources of the analysis:
Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021); Higham & Mary, SIAM J. Sci. Comput. 41 (2019). All in float64.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.numerics.dtypes import FloatType
from conformance.numerics.profiles import Roundoffs

Array = np.ndarray
_F32_TINY = 2.0**-126
_FAR = 300.0  # an error of a score, beyond which sums are taken of logarithms
_CHUNK = 1 << 21  # elements of the largest temporary array in ``_cap_by_hull``
EXACT = 1 << 18  # up to so many products of weights and values Σ_j w_j |V_j − O| is added up as it is


@dataclass(frozen=True, eq=False)
class KeyArray:
    """A key or value array (…, keys, width) in float64, with what is made of it once for all blocks of query rows."""

    array: Float[Array, "*h lk d"]

    @cached_property
    def size(self) -> Float[Array, "*h lk d"]:
        return np.abs(self.array)

    @cached_property
    def square(self) -> Float[Array, "*h lk d"]:
        return self.array * self.array

    @cached_property
    def centre(self) -> Float[Array, "*h 1 d"]:
        return self.array.mean(axis=-2, keepdims=True)

    @cached_property
    def centred(self) -> Float[Array, "*h lk d"]:
        return self.array - self.centre

    @cached_property
    def centred_square(self) -> Float[Array, "*h lk d"]:
        return self.centred * self.centred


def product(rows: Float[Array, "*h g lq n"], matrix: Float[Array, "*h #g n m"]) -> Float[Array, "*h g lq m"]:
    """Their matrix product; the rows of a group of heads that share the matrix meet it at once, so that it is read once."""
    if rows.ndim < 3 or rows.shape[-3] == 1 or matrix.shape[-3] != 1:
        return rows @ matrix
    folded = rows.reshape(*rows.shape[:-3], 1, rows.shape[-3] * rows.shape[-2], rows.shape[-1])
    return (folded @ matrix).reshape(*rows.shape[:-1], matrix.shape[-1])


def flush(kind: FloatType, unit: Roundoffs) -> float:
    """τ: the largest product that may flush to zero. A float16 accumulator loses halves of its smallest subnormal, or all that
    is below the smallest normal number."""
    if kind.name == "float64":
        return kind.tiny
    if kind.name == "float16" and unit.accumulator >= kind.unit_roundoff:
        return kind.tiny if unit.flushes else 2.0**-25
    return _F32_TINY


def smallest(kind: FloatType, unit: Roundoffs) -> float:
    """η: how far off a rounded number may be however small it is; the smallest subnormal number, where those are not flushed."""
    return kind.tiny if unit.flushes and kind.name == "float16" else kind.subnormal


def flushed_part(array: Float[Array, "*shape"], kind: FloatType, unit: Roundoffs) -> Float[Array, "*shape"] | None:
    """What counts as 0 of the absolute ``array``: its float16 subnormal numbers; None where nothing does."""
    if not unit.flushes or kind.name != "float16":
        return None
    part = np.where(array < kind.tiny, array, 0.0)
    return part if part.any() else None


def terms_of_sum(keys: int, kind: FloatType, unit: Roundoffs) -> float:
    """n_S, the error of a sum over S keys in unit roundoffs: 3√S + S/16 in 32 bits and more, S in a 16-bit accumulator."""
    if kind.is_16_bit and unit.accumulator >= kind.unit_roundoff:
        return float(keys)
    return 3.0 * np.sqrt(keys) + keys / 16.0


def score_error(
    query: Float[Array, "*h lq d"],
    key: KeyArray,
    products: Float[Array, "*h lq lk"],
    scale: float,
    kind: FloatType,
    unit: Roundoffs,
) -> Float[Array, "*h lq lk"]:
    """A bound of each score's error before anything is added to it. ``products`` are scale · q·k."""
    size = abs(scale)
    query_size = np.abs(query)
    key_size_t = key.size.swapaxes(-1, -2)
    magnitude = unit.scores * np.abs(products)
    magnitude += (3.0 * np.sqrt(query.shape[-1]) * unit.accumulator * size) * product(query_size, key_size_t)
    flushed = flush(kind, unit) * size
    if unit.scaled_query:
        magnitude += 3.0 * unit.scaled_query * size * np.sqrt(product(query * query, key.square.swapaxes(-1, -2)))
        if kind.name == "float16":
            flushed += smallest(kind, unit) * np.sqrt(size)
    lost_query, lost_key = (flushed_part(array, kind, unit) for array in (query_size, key.size))
    if lost_query is not None:
        magnitude += size * product(lost_query, key_size_t)
    if lost_key is not None:
        magnitude += size * product(query_size, lost_key.swapaxes(-1, -2))
    if unit.flushes and unit.scores >= kind.unit_roundoff and kind.name == "float16":
        magnitude += (1.0 + size) * kind.tiny  # the product, and the score
    if flushed * max(query.shape[-1], 1) > 1e-300:
        magnitude += flushed * (query_size.sum(-1, keepdims=True) + key.size.sum(-1, keepdims=True).swapaxes(-1, -2))
    return magnitude


def error_by_factors(
    query: Float[Array, "*h lq d"], key: Float[Array, "*h lk d"], of_query: Array, of_key: Array, scale: float
) -> Float[Array, "*h lq lk"]:
    """What errors of Q and K do to the scores: independent over channels, hence 3·√ of the sum of squares."""
    crossed = (of_query**2) @ (key**2).swapaxes(-1, -2) + (query**2) @ (of_key**2).swapaxes(-1, -2)
    error: Array = scale * (3.0 * np.sqrt(crossed) + of_query @ of_key.swapaxes(-1, -2))
    return error


def spread_of_scores(
    weights: Float[Array, "*h lq lk"],
    logits: Float[Array, "*h lq lk"],
    error: Float[Array, "*h lq lk"],
    value: KeyArray,
    output: Float[Array, "*h lq dv"],
    visible: Bool[Array, "*h lq lk"] | None,
) -> Float[Array, "*h lq dv"]:
    """X: how far errors ε of the scores can move the output. A hidden pair has weight 0; its ε does not count.

    Σ_j w_j |V_j − O| with w = P (e^ε − 1), divided by Z = Σ P e^{−ε}; where ε is large, no further than the farthest visible
    value. Of large problems the sum is bounded by Cauchy–Schwarz. ``logits`` are the scores less the largest of their row, −∞
    where hidden: logarithms of weights, which may have vanished, up to a constant of the row.
    """
    largest_seen = (error if visible is None else np.where(visible, error, 0.0)).max(-1, initial=0.0)
    lift = weights * np.expm1(np.minimum(error, _FAR))
    normaliser = (weights * np.exp(-error)).sum(-1, keepdims=True)
    far = largest_seen > _FAR
    if far.any():
        lift[far] = _lift_of_far(np.broadcast_to(logits, weights.shape)[far], error[far])
        normaliser[far] = 1.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if lift.size * output.shape[-1] <= EXACT:
            bound = _distances(lift, value.array, output) / normaliser
        else:
            bound = _bound_of_distances(lift, value, output) / normaliser
    uncertain = largest_seen > 0.1
    if uncertain.any():
        _cap_by_hull(bound, uncertain, value.array, output, visible)
    return bound


def _lift_of_far(logits: Float[Array, "rows lk"], error: Float[Array, "rows lk"]) -> Float[Array, "rows lk"]:
    """w / Z of rows in which some e^ε overflows, by sums of logarithms."""
    low = logits - error
    lowest = low.max(-1, keepdims=True)
    log_z = lowest + np.log(np.exp(low - lowest).sum(-1, keepdims=True))
    near: Array = np.exp(np.minimum(logits - log_z, _FAR)) * np.expm1(np.minimum(error, _FAR))
    return np.where(error > _FAR, np.exp(np.minimum(logits + error - log_z, 2.0 * _FAR)), near)


def _distances(
    lift: Float[Array, "*h lq lk"], value: Float[Array, "*h lk dv"], output: Float[Array, "*h lq dv"]
) -> Float[Array, "*h lq dv"]:
    """Σ_j w_j |V_j − O|."""
    distance = value[..., None, :, :] - output[..., :, None, :]
    np.abs(distance, out=distance)
    return (lift[..., None, :] @ distance)[..., 0, :]


def _bound_of_distances(
    lift: Float[Array, "*h lq lk"], value: KeyArray, output: Float[Array, "*h lq dv"]
) -> Float[Array, "*h lq dv"]:
    """√(Σ_j w_j · Σ_j w_j (V_j − O)²), no less than Σ_j w_j |V_j − O|, by matrix products.

    The column mean of V is taken off first, so that the expanded square keeps its digits.
    """
    total = lift.sum(-1, keepdims=True)
    o = output - value.centre
    second = product(lift, value.centred_square)
    o_square = o * o * total
    variance = np.maximum(0.0, second - 2.0 * o * product(lift, value.centred) + o_square)
    variance += 2.0**-46 * (second + o_square)
    bound: Array = np.sqrt(total * variance)
    return bound


def _cap_by_hull(bound: Array, rows: Array, value: Array, output: Array, visible: Array | None) -> None:
    """Lowers ``bound`` at ``rows`` to the distance of the farthest visible value, in place."""
    value = np.broadcast_to(value, (*output.shape[:-2], *value.shape[-2:]))
    if visible is None:
        high, low = value.max(-2, keepdims=True), value.min(-2, keepdims=True)
        capped = np.fmin(bound, np.maximum(high - output, output - low))
        bound[rows] = capped[rows]
        return
    visible = np.broadcast_to(visible, (*output.shape[:-1], value.shape[-2]))
    where = np.nonzero(rows)
    step = max(1, _CHUNK // (value.shape[-1] * value.shape[-2]))
    for start in range(0, len(where[0]), step):
        chunk = tuple(index[start : start + step] for index in where)
        seen = visible[chunk][:, :, None]
        v = value[chunk[:-1]]
        high = np.where(seen, v, -np.inf).max(1)
        low = np.where(seen, v, np.inf).min(1)
        o = output[chunk]
        bound[chunk] = np.fmin(bound[chunk], np.maximum(high - o, o - low))


def visible_count(visible: Bool[Array, "*h lq #lk"], keys: int) -> Int[Array, "*h lq 1"]:
    """How many keys each query sees; a mask of the form (B, H, Lq, 1) stands for all ``keys`` at once."""
    return visible.sum(-1, keepdims=True) * (keys // visible.shape[-1])


def value_error(
    weights: Float[Array, "*h lq lk"],
    value: KeyArray,
    output: Float[Array, "*h lq dv"],
    kind: FloatType,
    unit: Roundoffs,
) -> Float[Array, "*h lq dv"]:
    """The rest of the budget: roundings of P, of the sum over keys and of the result."""
    bound = (unit.output + unit.probabilities) * np.abs(output)
    bound += 3.0 * unit.probabilities * np.sqrt(product(weights * weights, value.square))
    bound += (terms_of_sum(weights.shape[-1], kind, unit) + 2.0) * unit.accumulator * product(weights, value.size)
    if kind.name == "float16" and unit.probabilities >= kind.unit_roundoff:
        lost = np.where(weights < kind.tiny, weights if unit.flushes else np.minimum(weights, 2.0**-25), 0.0)
        bound += (unit.probabilities / kind.unit_roundoff) * product(lost, value.size)
    lost_value = flushed_part(value.size, kind, unit)
    if lost_value is not None:
        bound += product(weights, lost_value)
    return bound


def normalisation_error(
    weights: Float[Array, "*h lq lk"],
    scores: Float[Array, "*h lq lk"],
    top: Float[Array, "*h lq 1"],
    value: KeyArray,
    unit: Roundoffs,
) -> Float[Array, "*h lq dv"] | float:
    """Σ P_j (e^λ_j − 1)|V_j|: what weights e^(s − lse) lose, by the roundings of lse, of s − lse and of the exponential, where
    nothing divides by their sum."""
    if not unit.log_sum_exp:
        return 0.0
    lift: Array = product(np.asarray(normalisation_lift(weights, scores, top, unit)), value.size)
    return lift


def normalisation_lift(
    weights: Float[Array, "*h lq lk"], scores: Float[Array, "*h lq lk"], top: Float[Array, "*h lq 1"], unit: Roundoffs
) -> Float[Array, "*h lq lk"] | float:
    """P_j (e^λ_j − 1): the same of each weight."""
    if not unit.log_sum_exp:
        return 0.0
    with np.errstate(divide="ignore"):
        lse = top - np.log(weights.max(-1, keepdims=True, initial=0.0))  # the largest weight is e^(top − lse)
    lse = np.where(np.isfinite(lse), lse, 0.0)
    error = unit.log_sum_exp * (2.0 * np.abs(lse) + np.abs(scores - lse)) + 4.0 * unit.accumulator
    lift: Array = weights * np.expm1(np.minimum(error, 300.0))
    return lift


def merging_error(
    visible: Bool[Array, "*h lq #lk"] | None, value: KeyArray, output: Float[Array, "*h lq dv"], unit: Roundoffs
) -> Float[Array, "*h lq dv"] | float:
    """8 u_m max |V_j| over the visible keys: what o − σ(Δ)(o − o₂) loses where o is large and weighs little in the end."""
    if not unit.merges:
        return 0.0
    size = np.broadcast_to(value.size, (*output.shape[:-2], *value.size.shape[-2:]))
    if visible is None:
        return np.broadcast_to(8.0 * unit.merges * size.max(-2, keepdims=True), output.shape)
    seen = np.broadcast_to(visible, (*output.shape[:-1], size.shape[-2]))
    rows = [np.where(seen[..., row, :, None], size, 0.0).max(-2) for row in range(output.shape[-2])]
    return 8.0 * unit.merges * np.stack(rows, axis=-2)


def underflow(visible_count: Float[Array, "*h lq 1"] | int, kind: FloatType, unit: Roundoffs) -> Float[Array, "*h lq 1"] | float:
    """What may flush to zero: a product per visible key, and the result itself, to the smallest subnormal (not normal) number."""
    return (visible_count + 1) * flush(kind, unit) + smallest(kind, unit)


def combine(rest: Array, spread: Array, unit: Roundoffs) -> Array:
    """B = rest + (1 + u_o + 4 u_p) · X."""
    return rest + (1.0 + unit.output + 4.0 * unit.probabilities) * spread

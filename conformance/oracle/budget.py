"""The error budget: how far each element of an attention output may be from the truth, derived from the case itself.

To first order, with s the scores, P = softmax(s), O = P V:  δO = Σ_j P_j δs_j (V_j − O) + roundings of P, of the sum and of
the result. The functions below hold the corrected form of it that ``docs/budget.md`` derives. Sources of the analysis:
Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021); Higham & Mary, SIAM J. Sci. Comput. 41 (2019). All in float64.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.dtypes import FloatType
from conformance.oracle.profiles import Roundoffs

Array = np.ndarray
_F32_TINY = 2.0**-126
_CHUNK = 1 << 21  # elements of the largest temporary array in ``_hull``


def flush(kind: FloatType, unit: Roundoffs) -> float:
    """τ: the largest product that may flush to zero. A float16 accumulator loses halves of its smallest subnormal."""
    if kind.name == "float64":
        return kind.tiny
    if kind.name == "float16" and unit.accumulator >= kind.unit_roundoff:
        return 2.0**-25
    return _F32_TINY


def terms_of_sum(keys: int, kind: FloatType, unit: Roundoffs) -> float:
    """n_S, the error of a sum over S keys in unit roundoffs: 3√S + S/16 in 32 bits and more, S in a 16-bit accumulator."""
    if kind.is_16_bit and unit.accumulator >= kind.unit_roundoff:
        return float(keys)
    return 3.0 * np.sqrt(keys) + keys / 16.0


def score_error(
    query: Float[Array, "*h lq d"],
    key: Float[Array, "*h lk d"],
    products: Float[Array, "*h lq lk"],
    scores: Float[Array, "*h lq lk"],
    top: Float[Array, "*h lq 1"],
    scale: float,
    has_bias: bool,
    kind: FloatType,
    unit: Roundoffs,
) -> Float[Array, "*h lq lk"]:
    """ε: a bound of each score's error. ``products`` are scale · q·k, ``scores`` have the bias added, ``top`` is the maximum."""
    size = abs(scale)
    query_size, key_size = np.abs(query), np.abs(key)
    key_size_t = key_size.swapaxes(-1, -2)
    magnitude = np.abs(products)
    if has_bias:
        magnitude += np.abs(scores)
    magnitude += np.abs(scores - top)
    magnitude *= unit.scores
    magnitude += (3.0 * np.sqrt(query.shape[-1]) * unit.accumulator * size) * (query_size @ key_size_t)
    flushed = flush(kind, unit) * size
    if unit.scaled_query:
        magnitude += 3.0 * unit.scaled_query * size * np.sqrt((query * query) @ (key * key).swapaxes(-1, -2))
        if kind.name == "float16":
            flushed += 2.0**-24 * np.sqrt(size)
    if flushed * max(query.shape[-1], 1) > 1e-300:
        magnitude += flushed * (query_size.sum(-1, keepdims=True) + key_size.sum(-1, keepdims=True).swapaxes(-1, -2))
    magnitude += 4.0 * unit.accumulator
    return magnitude


def spread_of_scores(
    weights: Float[Array, "*h lq lk"],
    error: Float[Array, "*h lq lk"],
    value: Float[Array, "*h lk dv"],
    output: Float[Array, "*h lq dv"],
    visible: Bool[Array, "*h lq lk"] | None,
) -> Float[Array, "*h lq dv"]:
    """X: how far errors ε of the scores can move the output. A hidden pair has weight 0; its ε does not count.

    By Cauchy–Schwarz from Σ_j w_j |V_j − O| with w = P (e^ε − 1), divided by Z = Σ P e^{−ε}; where ε is large, no further than
    the farthest visible value. The column mean of V is taken off first, so that the expanded square keeps its digits.
    """
    lift = weights * np.expm1(np.minimum(error, 300.0))
    total = lift.sum(-1, keepdims=True)
    normaliser = (weights * np.exp(-error)).sum(-1, keepdims=True)
    centre = value.mean(axis=-2, keepdims=True)
    v, o = value - centre, output - centre
    second = lift @ (v * v)
    o_square = o * o * total
    variance = np.maximum(0.0, second - 2.0 * o * (lift @ v) + o_square)
    variance += 2.0**-46 * (second + o_square)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = np.sqrt(total * variance) / normaliser
    error_seen = error if visible is None else np.where(visible, error, 0.0)
    if error_seen.max(initial=0.0) > 0.1:
        _cap_by_hull(bound, error_seen.max(-1) > 0.1, value, output, visible)
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
    value: Float[Array, "*h lk dv"],
    output: Float[Array, "*h lq dv"],
    kind: FloatType,
    unit: Roundoffs,
) -> Float[Array, "*h lq dv"]:
    """The rest of the budget: roundings of P, of the sum over keys and of the result."""
    value_size = np.abs(value)
    bound = (unit.output + unit.probabilities) * np.abs(output)
    bound += 3.0 * unit.probabilities * np.sqrt((weights * weights) @ (value * value))
    bound += (terms_of_sum(value.shape[-2], kind, unit) + 2.0) * unit.accumulator * (weights @ value_size)
    if kind.name == "float16" and unit.probabilities >= kind.unit_roundoff:
        lost = np.where(weights < kind.tiny, np.minimum(weights, 2.0**-25), 0.0)
        bound += (unit.probabilities / kind.unit_roundoff) * (lost @ value_size)
    return bound


def underflow(visible_count: Float[Array, "*h lq 1"] | int, kind: FloatType, unit: Roundoffs) -> Float[Array, "*h lq 1"] | float:
    """What may flush to zero: a product per visible key, and the result itself, to the smallest subnormal (not normal) number."""
    return (visible_count + 1) * flush(kind, unit) + kind.subnormal


def combine(rest: Array, spread: Array, unit: Roundoffs) -> Array:
    """B = rest + (1 + u_o + 4 u_p) · X."""
    return rest + (1.0 + unit.output + 4.0 * unit.probabilities) * spread

"""The second oracle: attention, multi-head attention and the sinusoidal encoding in mpmath, with 50 digits.

Written from the formulas, without a look at the first oracle and without its code, so that the two can certify each other; of
features it asks the twins that are written so (``hide_exactly``, ``score_exactly``, ``added_exactly``), in the order of the
stages. NumPy only carries arrays in and out. Every intermediate is kept to 50 digits; results are rounded once, to the nearest
float64. It takes about a microsecond per product and is meant for small problems. Scores may be large: with scores up to
10²⁰ in size the weights still have thirty correct digits.

Sources: Vaswani et al. 2017, sections 3.2 (attention, multi-head attention) and 3.5 (sinusoidal encoding).
"""

import math

import mpmath
import numpy as np
from jaxtyping import Bool, Float

from conformance.errors import UsageError
from conformance.features import ScoreIndex, in_order
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, SinusoidalInputs

DIGITS = 50
_MP = mpmath.MPContext()  # a context of its own: the precision of mpmath's global one is left alone
_MP.dps = DIGITS

Numbers = np.ndarray  # of dtype object, holding mpf
Steps = dict[str, np.ndarray]


def attention(inputs: AttentionInputs) -> Float[np.ndarray, "b hq lq dv"]:
    """softmax(scale · Q Kᵀ + bias, over the visible keys) · V; fully masked rows are 0.

    Raises UsageError for NaN or infinity (−inf in the bias apart), and for shapes or options that describe no attention.
    """
    return attention_steps(inputs)["output"]


def attention_steps(inputs: AttentionInputs) -> Steps:
    """Every intermediate by name, in float64.

    ``scores`` Q Kᵀ, ``scaled_scores`` scale · Q Kᵀ, ``weights`` the softmax of scaled_scores + bias over the visible keys,
    all (B, Hq, Lq, Lk), and 0 where hidden for the weights; ``lse`` (B, Hq, Lq) the logarithm of what they are divided by, 0 in
    fully masked rows; ``output`` (B, Hq, Lq, dv); ``visible`` the boolean pairs.
    """
    query, key, value = _read(inputs.query, "query"), _read(inputs.key, "key"), _read(inputs.value, "value")
    if query.shape[1] % key.shape[1]:
        raise UsageError(f"{query.shape[1]} query heads cannot be shared out over {key.shape[1]} key heads.")
    visible = _visible((*query.shape[:3], key.shape[2]), inputs)
    scale = 1 / _MP.sqrt(query.shape[3]) if inputs.scale is None else _number(inputs.scale, "scale")
    steps = _attend(inputs, query, key, value, visible, scale)
    return {name: _to_float64(numbers) for name, numbers in steps.items()} | {"visible": visible}


def multi_head_attention(inputs: MultiHeadInputs) -> Float[np.ndarray, "b lq out"]:
    """Project, split into heads, attend, merge, project: (B, Lq, model), or the merged heads without an output projection.

    Fully masked rows in a head get 0 from that head. Raises UsageError as ``attention`` does.
    """
    return multi_head_steps(inputs)["output"]


def multi_head_steps(inputs: MultiHeadInputs) -> Steps:
    """Every intermediate by name, in float64.

    ``projected_query``, ``projected_key``, ``projected_value`` (B, L, inner), before the split into heads; ``scores``,
    ``scaled_scores``, ``weights``, ``visible`` (B, H, Lq, Lk) and ``lse`` as in ``attention_steps``; ``merged_heads`` (B, Lq,
    value inner), the heads side by side; ``output``.
    """
    weights, heads = inputs.weights, inputs.num_heads
    if weights.query.shape[1] % heads or weights.value.shape[1] % heads:
        raise UsageError(f"{heads} heads do not divide the inner widths {weights.query.shape[1]} and {weights.value.shape[1]}.")
    query = _project(inputs.query, weights.query, weights.query_bias, "query")
    key = _project(inputs.key, weights.key, weights.key_bias, "key")
    value = _project(inputs.value, weights.value, weights.value_bias, "value")
    visible = _visible((query.shape[0], heads, query.shape[1], key.shape[1]), inputs)
    scale = 1 / _MP.sqrt(query.shape[2] // heads) if inputs.scale is None else _number(inputs.scale, "scale")
    inner = _attend(inputs, _split(query, heads), _split(key, heads), _split(value, heads), visible, scale)
    merged = inner.pop("output").swapaxes(1, 2).reshape(*query.shape[:2], value.shape[2])
    output = merged
    if weights.output is not None:
        output = _times(merged, _read(weights.output, "weights.output"), _optional(weights.output_bias, "weights.output_bias"))
    projected = {"projected_query": query, "projected_key": key, "projected_value": value}
    steps = projected | inner | {"merged_heads": merged, "output": output}
    return {name: _to_float64(numbers) for name, numbers in steps.items()} | {"visible": visible}


def sinusoidal_encoding(inputs: SinusoidalInputs) -> Float[np.ndarray, "*b rows width"]:
    """The table of sin(p · ω_i) and cos(p · ω_i), added to x where there is one.

    The frequencies d are ω_i = 10000^(−2i/width); d/2-1 are those of tensor2tensor, which fall from 1 to 1/10000 by equal
    factors. Only the positions of ``inputs.rows``, if given. What is left open is as in the paper: interleaved, d.
    """
    pairs = (inputs.width + 1) // 2
    if inputs.frequencies == "d/2-1":
        factor = _MP.power(10000, _MP.mpf(-1) / (pairs - 1)) if pairs > 1 else _MP.one
        frequencies = [factor**i for i in range(pairs)]
    else:
        frequencies = [_MP.power(10000, _MP.mpf(-2 * i) / inputs.width) for i in range(pairs)]
    if inputs.arrangement == "concatenated":
        columns = [(_MP.sin, f) for f in frequencies] + [(_MP.cos, f) for f in frequencies]
    else:
        columns = [(wave, f) for f in frequencies for wave in (_MP.sin, _MP.cos)]
    positions = range(inputs.length) if inputs.rows is None else inputs.rows
    table = np.array([[wave(p * f) for wave, f in columns[: inputs.width]] for p in positions], dtype=object)
    if inputs.x is not None:
        table = _read(inputs.x, "x")[:, list(positions)] + table
    return _to_float64(table)


def _attend(
    inputs: AttentionInputs | MultiHeadInputs, query: Numbers, key: Numbers, value: Numbers,
    visible: Bool[np.ndarray, "b hq lq lk"], scale: mpmath.mpf,
) -> dict[str, Numbers]:  # fmt: skip
    """The formula itself, row by row; no maximum is subtracted, since exponents are unbounded here."""
    batch, heads, query_length, key_length = visible.shape
    group = heads // key.shape[1]
    scores, scaled, weights = (np.full(visible.shape, _MP.zero, dtype=object) for _ in range(3))
    output = np.full((batch, heads, query_length, value.shape[3]), _MP.zero, dtype=object)
    lse = np.full(visible.shape[:3], _MP.zero, dtype=object)
    for b, h, i in np.ndindex(batch, heads, query_length):
        keys, values = key[b, h // group], value[b, h // group]
        for j in range(key_length):
            scores[b, h, i, j] = _MP.fdot(query[b, h, i], keys[j])
            scaled[b, h, i, j] = scale * scores[b, h, i, j]
        seen = np.flatnonzero(visible[b, h, i]).tolist()
        others = [logit for one in in_order(inputs.operation) for logit in one.added_exactly(_MP, inputs, h)]
        if not seen and not others:
            continue
        exponentials = [_MP.exp(_scored(scaled[b, h, i, j], inputs, ScoreIndex(b, h, i, j))) for j in seen]
        total = _MP.fsum([*exponentials, *map(_MP.exp, others)])
        weights[b, h, i, seen] = [e / total for e in exponentials]
        lse[b, h, i] = _MP.log(total)
        output[b, h, i] = [_MP.fdot(exponentials, values[seen, c]) / total for c in range(value.shape[3])]
    return {"scores": scores, "scaled_scores": scaled, "weights": weights, "lse": lse, "output": output}


def _scored(score: mpmath.mpf, inputs: AttentionInputs | MultiHeadInputs, place: ScoreIndex) -> mpmath.mpf:
    """What features make of a scaled product."""
    for feature in in_order(inputs.operation):
        score = feature.score_exactly(_MP, score, inputs, place)
        if not _MP.isfinite(score):
            raise UsageError(f"{feature.argument} makes a score {float(score)}: the exact oracle takes finite numbers only.")
    return score


def _visible(shape: tuple[int, ...], inputs: AttentionInputs | MultiHeadInputs) -> Bool[np.ndarray, "b h lq lk"]:
    """Pairs that all features show."""
    visible = np.ones(shape, dtype=bool)
    for feature in in_order(inputs.operation):
        feature.hide_exactly(visible, inputs)
    return visible


def _project(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray | None, name: str) -> Numbers:
    return _times(_read(x, name), _read(matrix, f"weights.{name}"), _optional(bias, f"weights.{name}_bias"))


def _times(x: Numbers, matrix: Numbers, bias: Numbers | None) -> Numbers:
    """x W + b over the last axis of x."""
    result = np.empty((*x.shape[:-1], matrix.shape[1]), dtype=object)
    for index in np.ndindex(x.shape[:-1]):
        result[index] = [_MP.fdot(x[index], matrix[:, c]) for c in range(matrix.shape[1])]
    return result if bias is None else result + bias


def _split(x: Numbers, heads: int) -> Numbers:
    """(B, L, heads · d) as (B, heads, L, d): a head is a contiguous slice of the width."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def _read(array: np.ndarray, name: str) -> Numbers:
    """The very numbers of an array of any float dtype, as mpf; float64 holds each of them exactly."""
    numbers = np.empty(array.shape, dtype=object)
    numbers.flat[:] = [_number(x, name) for x in array.astype(np.float64).flat]
    return numbers


def _optional(array: np.ndarray | None, name: str) -> Numbers | None:
    return None if array is None else _read(array, name)


def _number(x: float, name: str) -> mpmath.mpf:
    if not math.isfinite(x):
        raise UsageError(f"{name} holds {float(x)}: the exact oracle takes finite numbers only.")
    return _MP.mpf(float(x))


def _to_float64(numbers: Numbers) -> Float[np.ndarray, "..."]:
    rounded = np.empty(numbers.shape, dtype=np.float64)
    rounded.flat[:] = [_nearest(x) for x in numbers.flat]
    return rounded


def _nearest(x: mpmath.mpf) -> float:
    """The nearest float64, subnormals included: Python divides whole numbers with one correct rounding.

    mpmath's own conversion rounds a subnormal result twice.
    """
    mantissa, exponent = int(x.man), int(x.exp)
    mantissa, sign = abs(mantissa), -1 if x < 0 else 1
    if mantissa == 0 or exponent + mantissa.bit_length() < -1100:
        return 0.0
    if exponent + mantissa.bit_length() > 1024:
        return sign * math.inf
    return sign * (mantissa / (1 << -exponent) if exponent < 0 else float(mantissa << exponent))

"""Correct computations that use up the terms of projections, of the way through the last one, and of sinusoidal encodings."""

import numpy as np

from conformance.oracle import budget, truth_of
from conformance.problem.inputs import MultiHeadInputs, SinusoidalInputs, Weights
from tests.support.used_up import HALF, Row, U, Use, bound, dot_error, moved
from tests.support.used_up_scores import _but

LN = np.log(10000.0)


def _layer(query, key, value, matrices, dtype: str = "float32", heads: int = 1, **biases) -> MultiHeadInputs:
    """One batch row: tokens (L, model), matrices of query, key, value and, where there are four, output."""
    names = ("query", "key", "value", "output")
    made = {name: np.asarray(matrix, dtype) for name, matrix in zip(names, matrices, strict=False)}
    made |= {name: np.asarray(array, dtype) for name, array in biases.items()}
    tokens = [np.asarray(array, dtype)[None] for array in (query, key, value)]
    return MultiHeadInputs(query=tokens[0], key=tokens[1], value=tokens[2], weights=Weights(**made), num_heads=heads)


def _of_values(tokens, matrix, dtype: str = "float32", **biases) -> MultiHeadInputs:
    """A layer in which all scores are 0, so that outputs are the mean of the projected values."""
    nothing = np.zeros_like(np.asarray(matrix, np.float64))
    return _layer(tokens[:1], tokens, tokens, (nothing, nothing, matrix), dtype, **biases)


def _projection_rounded() -> Use:
    x = np.float32(1.0 + 2.0**-12)
    inputs = _of_values([[x]], [[x]])
    return Use(abs(float(x * x) - float(x) ** 2), bound(inputs, _but(projections=U)).item(), U * float(x) ** 2)


def _with_bias(bias: float, error: float, term: float) -> Use:
    zeros = {f"{name}_bias": np.zeros(1) for name in ("query", "key")}
    inputs = _of_values([[1.0]], [[1.0]], value_bias=np.array([bias]), **zeros)
    return Use(error * U, bound(inputs, _but(projections=U)).item(), term * U)


def _projection_added_up() -> Use:
    inputs = _of_values(np.ones((1, 16)), np.ones((16, 1)))
    return Use(dot_error(np.ones(16), U), bound(inputs, _but(accumulator=U)).item(), 12.0 * U * 16.0)


def _shortened_factors() -> Use:
    inputs = _of_values(np.ones((1, 4)), np.ones((4, 1)))
    unit = _but(scaled_query=U, splits=True)
    return Use(4.0 * U, bound(inputs, unit).item(), 6.0 * U)


def _subnormal_projection() -> Use:
    """Two values in units of 2⁻²⁴, 1.5 and 0.51: 2 and 1 in float16, of which the mean, 1.5, is rounded to 2."""
    x, matrix = np.array([[1.5 * 2.0**-12], [0.51 * 2.0**-12]]).astype(np.float16), np.float16(2.0**-12)
    exact = x.astype(np.float64) * float(matrix)
    rounded = exact.astype(np.float16).astype(np.float64)
    error = abs(float(np.float16(rounded.mean())) - exact.mean())
    inputs = _of_values(x, [[matrix]], "float16")
    return Use(error, bound(inputs, _but(projections=HALF)).item(), 2.0**-24)


def _factors_rounded() -> Use:
    """q = (32, 32), keys (±32, ∓32): all scores are 0; each entry is rounded in the direction that hurts."""
    one, big = np.eye(2), 32.0
    inputs = _layer([[big, big]], [[big, -big], [-big, big]], [[1.0, 0.0], [-1.0, 0.0]], (one, one, one))
    off = 4.0 * U * big * big / np.sqrt(2.0)
    error = moved([0.0, 0.0], [off, -off], [1.0, -1.0])
    return Use(error, bound(inputs, _but(projections=U))[0, 0, 0], 6.0 * U * big * big / np.sqrt(2.0))


def _factors_of_nothing() -> Use:
    none, off = np.zeros((1, 1)), np.full((1, 1), 0.5)
    whole = budget.error_by_factors(none, none, off, off, 0.5).item()
    return Use(0.5 * 0.25, whole, 0.5 * 0.25)


def _through(tokens, value_matrix, output_matrix, heads: int = 1, **biases) -> MultiHeadInputs:
    nothing = np.zeros((np.shape(tokens)[1], heads))
    return _layer(tokens[:1], tokens, tokens, (nothing, nothing, value_matrix, output_matrix), heads=heads, **biases)


def _heads_through_the_last_projection() -> Use:
    inputs = _through([[1.0]], np.ones((1, 4)), np.ones((4, 1)))
    return Use(8.0 * U, bound(inputs, _but(projections=U)).item(), 12.0 * U)


def _weights_through_the_last_projection() -> Use:
    """9 keys and 9 channels: the sign of a value is that of its key, whose weight is rounded in that direction."""
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0])
    inputs = _through(signs[:, None], np.ones((1, 9)), np.ones((9, 1)))
    error = U * 9.0 * np.abs(signs).mean()
    return Use(error, bound(inputs, _but(probabilities=U)).item(), 9.0 * U * np.sqrt(9.0 * 8.0 / 81.0))


def _scores_through_the_last_projection() -> Use:
    one = np.eye(2)
    inputs = _layer(
        [[10.0, 10.0]], [[10.0, 10.0]] * 2, [[1.0, 1.0], [-1.0, -1.0]], (one, one, one, np.ones((2, 2))), heads=2
    )  # fmt: skip
    error = 2.0 * moved([100.0, 100.0], [100.0 * U, -100.0 * U], [1.0, -1.0])
    return Use(error, bound(inputs, _but(scores=U))[0, 0, 0], 200.0 * U)


def _last_projection_added_up() -> Use:
    inputs = _through([[1.0]], np.ones((1, 16)), np.ones((16, 1)))
    return Use(dot_error(np.ones(16), U), bound(inputs, _but(accumulator=U)).item(), 12.0 * U * 16.0)


def _last_product_rounded_before_its_bias() -> Use:
    zeros = {f"{name}_bias": np.zeros(1) for name in ("query", "key")}
    inputs = _through([[1.0]], np.ones((1, 16)), np.ones((16, 1)), value_bias=np.zeros(16), output_bias=np.zeros(1), **zeros)
    return Use(16.0 * U, bound(inputs, _but(projections=U)).item(), 16.0 * U)


def _last_result_rounded() -> Use:
    x = np.float32(1.0 + 2.0**-12)
    inputs = _through([[x]], [[1.0]], [[x]])
    return Use(abs(float(x * x) - float(x) ** 2), bound(inputs, _but(output=U)).item(), U * float(x) ** 2)


def _table(length: int, width: int, dtype: str = "float32", **more) -> SinusoidalInputs:
    return SinusoidalInputs(length=length, width=width, dtype=dtype, arrangement="interleaved", **more)


def _cosine() -> Use:
    return Use(U, bound(_table(1, 2), _but())[0, 1], 2.0 * U)


def _angle(width: int, pair: int, rows: range, dtype: str, relative: float, term: float) -> Use:
    """The sine in the steepest of ``rows`` where the angle is off by ``relative``; ``term`` per position and frequency."""
    u = {"float32": U, "float64": 2.0**-53}[dtype]
    omega = 10000.0 ** (-2.0 * pair / width)
    row = max(rows, key=lambda position: abs(np.cos(position * omega)))
    whole = bound(_table(row + 1, width, dtype, rows=(row,)), _but())[0, 2 * pair]
    return Use(abs(np.cos(row * omega)) * row * omega * relative, whole, row * omega * term * u)


def _frequency_and_angle() -> Use:
    return _angle(1024, 1, range(90_000, 90_100), "float32", 3.0 * U, 3.0)


def _exponent(dtype: str, u: float, constant: float) -> Use:
    size = LN * 62 / 64
    return _angle(64, 31, range(1_000_000, 1_020_000, 97), dtype, constant * u * size, constant * size)


def _rounded_to_16_bits() -> Use:
    inputs = _table(64, 64, "float16")
    table = truth_of(inputs).output.astype(np.float64)
    error, whole = np.abs(table.astype(np.float16).astype(np.float64) - table), bound(inputs, _but())
    place = np.unravel_index((error / whole).argmax(), whole.shape)
    return Use(float(error[place]), float(whole[place]), HALF * abs(table[place]))


def _subnormal_entry() -> Use:
    entry = float(np.sin(355.0))
    return Use(abs(float(np.float16(entry)) - entry), 2.0**-24, 2.0**-24)


def _added_to_x() -> Use:
    x = np.full((1, 1, 2), 1024.0, np.float32)
    inputs = _table(1, 2, x=x)
    return Use(U * 1024.0, bound(inputs, _but())[0, 0, 0], U * 1024.0)


ROWS = (
    Row("1·u_π·|…xW…|, as Σ P e_v", "one rounding", "(1 + 2⁻¹²)² in float32", _projection_rounded),
    Row(
        "1·u_π·|…xW…| beside a bias", "one rounding", "the product rounded before a bias of 0", lambda: _with_bias(0.0, 1.0, 1.0)
    ),
    Row("1·u_π·|…xW + b…|", "one rounding", "1 + 3, the sum rounded", lambda: _with_bias(3.0, 4.0, 4.0)),
    Row(
        "3√d_model·u_a·|…x…||…W…|",
        "√ of d_model roundings, with room",
        "16 products, each product and sum rounded up",
        _projection_added_up,
    ),
    Row(
        "3·u_q·√(Σ x²W²) of shortened factors",
        "√ of d_model roundings, with room",
        "4 products, each off by u_q",
        _shortened_factors,
    ),
    Row("η of a projection", "a subnormal step", "1.5·2⁻²⁴ and 0.51·2⁻²⁴ in float16, and their mean", _subnormal_projection),
    Row(
        "3·√(Σ e_q²k² + q²e_k²)", "√ of 2d errors, with room", "2 channels of q and of k, each rounded as hurts", _factors_rounded
    ),
    Row("1·Σ e_q e_k", "the product of both errors", "q = k = 0, both off", _factors_of_nothing),
    Row(
        "3·√(Σ B²W_o²)",
        "√ of the channels' errors, with room",
        "4 values and 4 merged entries rounded up",
        _heads_through_the_last_projection,
    ),
    Row(
        "3·3·u_p·√(Σ P²V²W_o²), what becomes of u_p there",
        "weights are rounded for all channels at once",
        "9 keys, 9 channels that agree in sign, weights rounded in that direction",
        _weights_through_the_last_projection,
    ),
    Row("1·X of each head", "heads are added up", "2 heads, scores rounded as hurts", _scores_through_the_last_projection),
    Row(
        "3√d_inner·u_a·|…O…||…W_o…|",
        "√ of d_inner roundings, with room",
        "16 products, each product and sum rounded up",
        _last_projection_added_up,
    ),
    Row(
        "1·u_π·|…O W_o…| beside a bias",
        "one rounding",
        "the product rounded before a bias of 0, 16 channels",
        _last_product_rounded_before_its_bias,
    ),
    Row("1·u_o·|…O W_o + b…|", "one rounding", "(1 + 2⁻¹²)² in float32", _last_result_rounded),
    Row("2·u of an encoding", "a unit in the last place of the function", "cos 0 off by one", _cosine),
    Row(
        "3·u·p·ω",
        "ω off by a unit in the last place, the angle rounded",
        "width 1024, position near 90,000",
        _frequency_and_angle,
    ),
    Row(
        "(0.23 + 2)·u·p·ω·|…ln ω…|",
        "ln 10000 in float32, a division, a product",
        "width 64, position near 10⁶, both rounded as hurts",
        lambda: _exponent("float32", U, 2.0 + abs(float(np.float32(LN)) / LN - 1.0) / U),
    ),
    Row(
        "(0.85 + 2)·u·p·ω·|…ln ω…| in float64",
        "ln 10000 in float64, a division, a product",
        "the same",
        lambda: _exponent("float64", 2.0**-53, 2.0 + 0.85),
    ),
    Row("1·u·|…PE…| in 16 bits", "one rounding", "a table of 64 positions in float16", _rounded_to_16_bits),
    Row(
        "η of an entry",
        "a subnormal step",
        "sin 355 in float16; the other terms are always larger",
        _subnormal_entry,
        unseen=True,
    ),
    Row("1·u·|…PE + x…|", "one rounding", "0 + 1024, rounded up", _added_to_x),
)

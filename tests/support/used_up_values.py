"""Correct computations that use up the terms of roundings of weights, of sums over keys and of the result."""

import numpy as np

from tests.support.used_up import HALF, NOTHING, Row, U, Use, bound, growing, one_head, weights_of
from tests.support.used_up_scores import OPPOSITE, TAU, TINY, _but

FLAT_KEYS = 4094  # 1 / so many is rounded to float16 by nearly as much as can be
DRIFTING = 1 << 16  # keys
CONSTANT = 1.49  # their value, with which most sums of a binade are rounded in one direction


def _flat(value: np.ndarray, dtype: str = "float32"):
    """Equal scores."""
    return one_head([[0.0]], np.zeros((len(value), 1)), value, dtype)


def _output_rounded() -> Use:
    inputs = _flat(np.array([[1.0], [1.0 + 2.0 * U]]))
    return Use(abs(float(np.float32(1.0 + U)) - (1.0 + U)), bound(inputs, _but(output=U)).item(), U)


def _equal_weights_rounded() -> Use:
    rounded = float(np.float16(1.0 / FLAT_KEYS)) * FLAT_KEYS
    whole = bound(_flat(np.ones((FLAT_KEYS, 1)), "float16"), _but(probabilities=HALF)).item()
    return Use(abs(rounded - 1.0), whole, HALF)


def _weights_rounded() -> Use:
    inputs = _flat(np.tile(OPPOSITE, (4, 1)))
    return Use(U, bound(inputs, _but(probabilities=U)).item(), 3.0 * U / np.sqrt(8.0))


def _sum_in_blocks() -> Use:
    terms = np.full(64, 1.0 / 64.0)
    error = growing(terms, U, blocks=8) / growing(terms, -U, blocks=8) * (1.0 + U) - 1.0
    return Use(error, bound(_flat(np.ones((64, 1))), _but(accumulator=U)).item(), 24.0 * U)


def _long_sum() -> Use:
    value = np.float32(CONSTANT)
    term = np.float32(value / np.float32(DRIFTING))
    total = np.add.accumulate(np.full(DRIFTING, term), dtype=np.float32)[-1]
    inputs = _flat(np.full((DRIFTING, 1), value))
    error = abs(float(total) - float(value))
    return Use(error, bound(inputs, _but(accumulator=U)).item(), DRIFTING / 16.0 * U * float(value))


def _one_key() -> Use:
    return Use((1.0 + U) ** 2 - 1.0, bound(_flat(np.ones((1, 1))), _but(accumulator=U)).item(), 2.0 * U)


def _sum_in_float16() -> Use:
    terms = np.full(64, 1.0 / 64.0)
    error = growing(terms, HALF) - 1.0
    return Use(error, bound(_flat(np.ones((64, 1)), "float16"), _but(accumulator=HALF)).item(), 64.0 * HALF)


def _little_weights(score: float, keys: int, value: float) -> tuple[np.ndarray, object]:
    """``keys`` keys at ``score`` beside one at 0 whose V is 0: their weights, and the inputs."""
    scores = np.concatenate([[0.0], np.full(keys, score)])
    values = np.concatenate([[0.0], np.full(keys, value)])
    return weights_of(scores)[1:].astype(np.float64), one_head([[1.0]], scores[:, None], values[:, None], "float16", scale=1.0)


def _subnormal_weights() -> Use:
    weights, inputs = _little_weights(-13.7890625, 1024, 1.0)
    error = abs(float((weights.astype(np.float16).astype(np.float64) - weights).sum()))
    return Use(error, bound(inputs, _but(probabilities=HALF)).item(), 1024 * 2.0**-25)


def _flushed_weights() -> Use:
    weights, inputs = _little_weights(-9.8125, 8, 1000.0)
    assert (weights < TINY).all()
    lost = 1000.0 * float(weights.sum())
    return Use(lost, bound(inputs, _but(probabilities=HALF, flushes=True)).item(), lost)


def _flushed_values() -> Use:
    value = TINY * 31 / 32
    return Use(value, bound(_flat(np.full((2, 1), value), "float16"), _but(flushes=True)).item(), value)


def _flushed_products() -> Use:
    value = 2.0**-120 * (1.0 - 2.0**-7)  # times 1/64 just below τ
    return Use(value, bound(_flat(np.full((64, 1), value)), NOTHING).item(), 64 * TAU)


def _flushed_result() -> Use:
    value = TAU * (1.0 - 2.0**-7)
    return Use(value, bound(_flat(np.full((1, 1), value)), NOTHING).item(), TAU)


def _products_below_float16() -> Use:
    value = 31 * 2.0**-24
    product = np.float16(1.0 / 64.0) * np.float16(value)
    error = abs(64.0 * float(product) - value)
    return Use(error, bound(_flat(np.full((64, 1), value), "float16"), _but(accumulator=HALF)).item(), 64 * 2.0**-25)


def _subnormal_result() -> Use:
    inputs = _flat(np.array([[2.0**-24], [0.0]]), "float16")
    return Use(abs(float(np.float16(2.0**-25)) - 2.0**-25), bound(inputs, NOTHING).item(), 2.0**-24)


def _flushed_float16_result() -> Use:
    value = TINY * 31 / 16
    return Use(value / 2.0, bound(_flat(np.array([[value], [0.0]]), "float16"), _but(flushes=True)).item(), TINY)


def _log_sum_exp_twice() -> Use:
    inputs = one_head([[1.0]], [[1000.0]], [[1.0]], scale=1.0)
    return Use(float(np.expm1(2000.0 * U)), bound(inputs, _but(log_sum_exp=U)).item(), 2000.0 * U)


def _difference_from_log_sum_exp() -> Use:
    inputs = one_head([[1.0]], [[0.0], [-20.0]], [[0.0], [1.0]], scale=1.0)
    weight = float(weights_of([0.0, -20.0])[1])
    return Use(weight * float(np.expm1(20.0 * U)), bound(inputs, _but(log_sum_exp=U)).item(), weight * 20.0 * U)


def _exponential_that_nothing_divides() -> Use:
    inputs = one_head([[0.0]], [[0.0]], [[1.0]])
    unit = _but(log_sum_exp=2.0**-60, accumulator=U)
    return Use((1.0 + 2.0 * U) * (1.0 + U) - 1.0, bound(inputs, unit).item(), 4.0 * U)


def _one_merge() -> Use:
    """o = 1 moved to o₂ = −1, which has all but e⁻³⁰ of the weight: the difference, σ and their product are rounded."""
    inputs = one_head([[1.0]], [[-30.0], [0.0]], OPPOSITE, scale=1.0)
    share = float(weights_of([-30.0, 0.0])[1])
    error = share * (1.0 + U) * (2.0 * (1.0 + U)) * (1.0 + U) - share * 2.0
    return Use(error, bound(inputs, _but(log_sum_exp=2.0**-60, merges=U)).item(), 8.0 * U)


ROWS = (
    Row("1·u_o·|…O…|", "one rounding", "an output half-way between two numbers of float32", _output_rounded),
    Row("1·u_p·|…O…|", "equal weights are rounded alike", f"1/{FLAT_KEYS} in float16, {FLAT_KEYS} times", _equal_weights_rounded),
    Row("3·u_p·√(Σ P²V²)", "√ of S roundings, with room", "8 weights rounded in the direction of their values", _weights_rounded),
    Row(
        "3√S·u_a·Σ P|…V…|",
        "√ of S roundings, with room",
        "64 terms in blocks of 8, sums rounded up, the normaliser down",
        _sum_in_blocks,
    ),
    Row(
        "S/16·u_a·Σ P|…V…|",
        "like-signed terms are rounded alike",
        f"{DRIFTING} equal terms added one by one in float32",
        _long_sum,
    ),
    Row("2·u_a·Σ P|…V…|", "a product and the division", "one key: both rounded up", _one_key),
    Row("S·u_a·Σ P|…V…| in 16 bits", "each sum is rounded", "64 terms one by one, sums rounded up", _sum_in_float16),
    Row("1·(u_p/u)·Σ min(P, 2⁻²⁵)|…V…|", "half a subnormal step", "1024 equal weights near 10⁻⁶ in float16", _subnormal_weights),
    Row("[flushes] (u_p/u)·Σ P|…V…| where P < 2⁻¹⁴", "what counts as 0", "8 such weights count as 0", _flushed_weights),
    Row("[flushes] Σ P|…V₀…|", "what counts as 0", "values just below 2⁻¹⁴ count as 0", _flushed_values),
    Row("n·τ", "each product may be lost", "64 products just below τ count as 0", _flushed_products),
    Row("1·τ beside it", "the result may be lost", "one just below τ counts as 0", _flushed_result),
    Row(
        "n·2⁻²⁵ with a float16 accumulator",
        "half a subnormal step each",
        "64 products of float16 below it",
        _products_below_float16,
    ),
    Row("η", "a subnormal step", "2⁻²⁵ in float16", _subnormal_result),
    Row("[flushes] 2⁻¹⁴ for η", "what counts as 0", "a result just below it counts as 0", _flushed_float16_result),
    Row("[+lse] 2·u_s·|…lse…|", "two roundings", "lse rounded, and again times log₂ e", _log_sum_exp_twice),
    Row("[+lse] 1·u_s·|…s − lse…|", "one rounding", "the difference rounded", _difference_from_log_sum_exp),
    Row(
        "[+lse] 4·u_a",
        "a few units in the last place",
        "an exponential off by one, its product with V rounded",
        _exponential_that_nothing_divides,
    ),
    Row(
        "[+merges] 8·u_a·max |…V…|",
        "(3 + 1) roundings of 2·max |…V…|",
        "one merge that moves 1 to −1, three roundings up",
        _one_merge,
    ),
)

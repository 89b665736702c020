"""Correct computations that use up the terms of a score's error, and what that does to the output."""

import numpy as np

from conformance.numerics.dtypes import float_type
from conformance.numerics.profiles import Roundoffs
from conformance.oracle import budget
from tests.support.used_up import HALF, NOTHING, Row, U, Use, bound, dot_error, moved, one_head, weights_of

TAU = 2.0**-126
TINY = 2.0**-14  # the smallest normal float16
OPPOSITE = np.array([[1.0], [-1.0]])  # two values, the output half-way: an error of the scores moves it as far as it is


def _but(**changed: object) -> Roundoffs:
    return Roundoffs(**vars(NOTHING) | changed)


def _products_rounded() -> Use:
    whole = bound(one_head([[100.0]], [[1.0], [1.0]], OPPOSITE, scale=1.0), _but(scores=U)).item()
    return Use(moved([100.0, 100.0], [100.0 * U, -100.0 * U], [1.0, -1.0]), whole, 100.0 * U)


def _biased_scores_rounded() -> Use:
    inputs = one_head([[0.0]], [[0.0], [0.0]], OPPOSITE, bias=np.full((1, 1, 1, 2), 100.0, np.float32))
    return Use(moved([100.0, 100.0], [200.0 * U, -200.0 * U], [1.0, -1.0]), bound(inputs, _but(scores=U)).item(), 200.0 * U)


def _differences_rounded() -> Use:
    inputs = one_head([[1.0]], [[20.0], [0.0]], [[0.0], [1.0]], scale=1.0)
    term = float(weights_of([20.0, 0.0])[1]) * 20.0 * U
    return Use(moved([20.0, 0.0], [0.0, 20.0 * U], [0.0, 1.0]), bound(inputs, _but(scores=U)).item(), term)


def _products_added_up() -> Use:
    channels, whole = np.full(16, 10.0), 1600.0
    inputs = one_head([channels], [channels, channels], OPPOSITE, scale=1.0)
    off = dot_error(channels * channels, U)
    return Use(moved([whole] * 2, [off, -off], [1.0, -1.0]), bound(inputs, _but(accumulator=U)).item(), 12.0 * U * whole)


def _exponentials() -> Use:
    """e⁰ is 1 ± 2u where it is off by one unit in the last place; the products with V are rounded by u each."""
    inputs = one_head([[0.0]], [[0.0], [0.0]], OPPOSITE)
    up, down = 1.0 + 2.0 * U, 1.0 - 2.0 * U
    error = (up * (1.0 + U) - down * (1.0 - U)) / (up + down)
    return Use(error, bound(inputs, _but(accumulator=U)).item(), 4.0 * U)


def _scaled_query_rounded() -> Use:
    channels = np.full(4, 10.0)
    inputs = one_head([channels], [channels, channels], OPPOSITE, scale=1.0)
    off = U * 400.0
    return Use(moved([400.0] * 2, [off, -off], [1.0, -1.0]), bound(inputs, _but(scaled_query=U)).item(), 3.0 * U * 200.0)


def _query_flushed() -> Use:
    query = TAU * (1.0 - 2.0**-7)
    inputs = one_head([[query]], [[1e30], [-1e30]], OPPOSITE, scale=1.0)
    off = query * float(np.float32(1e30))
    return Use(moved([off, -off], [-off, off], [1.0, -1.0]), bound(inputs, NOTHING).item(), TAU * float(np.float32(1e30)))


def _product_below_float16() -> Use:
    query, key = np.float16(1.5), np.float16(3 * 2.0**-24)
    off = abs(float(query * key) - float(query) * float(key))
    rows = np.array([[float(query)]])
    keys = budget.KeyArray(np.array([[float(key)]]))
    kind, unit = float_type("float16"), _but(accumulator=HALF)
    whole = budget.score_error(rows, keys, rows @ keys.array.T, 1.0, kind, unit).item()
    return Use(off, whole, 2.0**-25 * (1.5 + float(key)))


def _scaled_query_below_float16() -> Use:
    query, key, scale = 3 * 2.0**-24, 1000.0, 0.25
    rounded = float(np.float16(query * np.sqrt(scale)))
    off = abs(rounded * key * np.sqrt(scale) - query * key * scale)
    inputs = one_head([[query]], [[key], [-key]], OPPOSITE, "float16", scale=scale)
    error = moved([query * key * scale, -query * key * scale], [off, -off], [1.0, -1.0])
    return Use(error, bound(inputs, _but(scaled_query=HALF)).item(), 2.0**-24 * 0.5 * (query + key))


def _subnormal(query: float, key: float) -> Use:
    """One of them counts as 0."""
    inputs = one_head([[query]], [[key], [-key]], 1000.0 * OPPOSITE, "float16", scale=1.0)
    off = query * key
    return Use(1000.0 * moved([off, -off], [-off, off], [1.0, -1.0]), bound(inputs, _but(flushes=True)).item(), 1000.0 * off)


def _flushed_score(key: float, scale: float, term: float) -> Use:
    """A product of float16 numbers, or that times the scale, is below the smallest normal one and counts as 0."""
    query = 2.0**-7
    inputs = one_head([[query]], [[key], [-key]], 1000.0 * OPPOSITE, "float16", scale=scale)
    off = query * key * scale
    error = 1000.0 * moved([off, -off], [-off, off], [1.0, -1.0])
    return Use(error, bound(inputs, _but(flushes=True, scores=HALF)).item(), 1000.0 * term * TINY)


def _output_rounded_where_it_was_moved() -> Use:
    inputs = one_head([[1000.0]], [[1.0], [1.0]], OPPOSITE, scale=1.0)
    rough, u_s = 2.0**-6, 2.0**-13
    spread = bound(inputs, _but(scores=u_s)).item()
    whole = bound(inputs, _but(scores=u_s, output=rough)).item() - spread
    return Use(rough * moved([0.0, 0.0], [1000.0 * u_s, -1000.0 * u_s], [1.0, -1.0]), whole, rough * spread)


def _weights_rounded_where_they_were_moved() -> Use:
    """64 keys of little weight, of which half have V = 1 and half −1, beside one of V = 0: errors of 2 raise their weights by e²,
    and each weight is then rounded in the direction of its value."""
    value = np.concatenate([[0.0], np.tile([1.0, -1.0], 32)])
    inputs = one_head([[1.0]], np.concatenate([[0.0], np.full(64, -14.0)])[:, None], value[:, None], scale=1.0)
    raised = weights_of(np.concatenate([[0.0], np.full(64, -12.0)]))
    u_s, u_p = 1.0 / 14.0, 2.0**-8
    spread = bound(inputs, _but(scores=u_s)).item()
    whole = bound(inputs, _but(scores=u_s, probabilities=u_p)).item() - spread
    return Use(u_p * float(raised @ np.abs(value)), whole, 4.0 * u_p * spread)


ROWS = (
    Row("1·u_s·|…a…|", "one rounding", "both products rounded, one up, one down", _products_rounded),
    Row(
        "2·u_s·|…s…| with a bias",
        "the sum, and what is made of it",
        "rounded as a sum and again times log₂ e",
        _biased_scores_rounded,
    ),
    Row("1·u_s·|…s − m…|", "one rounding", "the difference alone is rounded", _differences_rounded),
    Row(
        "3√d·u_a·A", "√ of d roundings, with room", "16 products of one sign, each product and sum rounded up", _products_added_up
    ),
    Row("4·u_a", "a few units in the last place", "exponentials off by one of them, products with V rounded", _exponentials),
    Row("3·u_q·N", "√ of d roundings, with room", "4 channels of the scaled query rounded up", _scaled_query_rounded),
    Row("1·τ·|…scale…|·(‖q‖₁ + ‖k‖₁)", "at most τ is lost", "a query just below τ counts as 0", _query_flushed),
    Row(
        "the same with a float16 accumulator, τ = 2⁻²⁵",
        "half a subnormal step",
        "1.5 · 3·2⁻²⁴ in float16; 4·u_a is always larger",
        _product_below_float16,
        unseen=True,
    ),
    Row(
        "1·2⁻²⁴·√|…scale…|·(‖q‖₁ + ‖k‖₁)",
        "a subnormal step",
        "3·2⁻²⁴ · √scale rounded to float16, beside a key of 1000",
        _scaled_query_below_float16,
    ),
    Row(
        "[flushes] |…scale…|·|…q₀…||…k…|", "what counts as 0", "a subnormal query counts as 0", lambda: _subnormal(2.0**-15, 1.0)
    ),
    Row("[flushes] |…scale…|·|…q…||…k₀…|", "what counts as 0", "a subnormal key counts as 0", lambda: _subnormal(1.0, 2.0**-15)),
    Row(
        "[flushes] |…scale…|·2⁻¹⁴ of the product",
        "what counts as 0",
        "a product just below 2⁻¹⁴ counts as 0, the scale is 4",
        lambda: _flushed_score(2.0**-7 * 31 / 32, 4.0, 4.0),
    ),
    Row(
        "[flushes] 1·2⁻¹⁴ of the score",
        "what counts as 0",
        "a score just below 2⁻¹⁴ counts as 0, the scale is ½",
        lambda: _flushed_score(2.0**-7 * 31 / 16, 0.5, 1.0),
    ),
    Row("1·u_o·X", "the moved output is rounded", "that", _output_rounded_where_it_was_moved),
    Row(
        "4·u_p·X",
        "u_p·\\|O\\| and 3·u_p·√(Σ P²V²) of moved weights",
        "64 weights raised by e² are rounded in the direction of their values",
        _weights_rounded_where_they_were_moved,
    ),
)

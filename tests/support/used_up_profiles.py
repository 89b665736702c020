"""Correct computations that use up the unit roundoffs of profiles that are multiples of those of a dtype."""

import ml_dtypes
import numpy as np

from conformance.numerics.profiles import roundoffs
from tests.support.used_up import HALF, Row, Use, bound, moved, one_head
from tests.support.used_up_scores import OPPOSITE, _but

LONG = np.float32(1.0 + np.arange(1 << 16) * 2.0**-16 + 64 * 2.0**-23)  # factors whose last digits are left out


def _scores_twice() -> Use:
    inputs = one_head([[1.0]], [[1.0], [1.0]], OPPOSITE, "float16", scale=1.0)
    off = (1.0 + HALF) ** 2 - 1.0
    whole = bound(inputs, _but(scores=roundoffs("unfused", "float16").scores)).item()
    return Use(moved([1.0, 1.0], [off, -off], [1.0, -1.0]), whole, 2.0 * HALF)


def _weights_twice() -> Use:
    inputs = one_head([[0.0]], np.zeros((8, 1)), np.tile(OPPOSITE, (4, 1)), "float16")
    whole = bound(inputs, _but(probabilities=roundoffs("unfused", "float16").probabilities)).item()
    return Use((1.0 + HALF) ** 2 - 1.0, whole, 6.0 * HALF / np.sqrt(8.0))


def _both_factors() -> Use:
    channels = np.full(4, 0.5)
    inputs = one_head([channels], [channels, channels], OPPOSITE, "float16", scale=1.0)
    off = (1.0 + HALF) ** 2 - 1.0
    whole = bound(inputs, _but(scaled_query=roundoffs("fused_qk", "float16").scaled_query)).item()
    return Use(moved([1.0, 1.0], [off, -off], [1.0, -1.0]), whole, 3.0 * HALF)


def _product_of(profile: str, errors: np.ndarray) -> Use:
    """The worst of the squares of ``LONG`` numbers."""
    place = int(np.abs(errors / LONG**2).argmax())
    x, off = float(LONG[place]), abs(float(errors[place]))
    inputs = one_head([[x]], [[x], [x]], OPPOSITE, scale=1.0)
    u = roundoffs(profile, "float32").scaled_query
    return Use(moved([0.0, 0.0], [off, -off], [1.0, -1.0]), bound(inputs, _but(scaled_query=u)).item(), 3.0 * u * x * x)


def _three_products() -> Use:
    high = LONG.astype(ml_dtypes.bfloat16).astype(np.float64)
    low = (LONG - high).astype(ml_dtypes.bfloat16).astype(np.float64)
    return _product_of("bf16x3", high * high + 2.0 * high * low - LONG.astype(np.float64) ** 2)


def _short_products() -> Use:
    cut = (LONG.view(np.uint32) & ~np.uint32((1 << 13) - 1)).view(np.float32).astype(np.float64)
    return _product_of("tf32", cut * cut - LONG.astype(np.float64) ** 2)


ROWS = (
    Row("u_s = 2u of `unfused`, `low` and `fused_qk`", "product and scaled product", "both rounded up, or down", _scores_twice),
    Row(
        "u_p = 2u of `unfused` and `low`",
        "exponential and quotient",
        "8 weights rounded twice as their values hurt",
        _weights_twice,
    ),
    Row("u_q = 2u of `fused_qk`", "√scale in the query and in the key", "4 channels, both factors rounded up", _both_factors),
    Row(
        "u_q = 2·2⁻¹⁶ of `bf16x3`",
        "what each factor leaves out, and the fourth product",
        "squares of numbers of 24 bits",
        _three_products,
    ),
    Row("u_q = 2·2⁻¹¹ of `tf32`", "factors cut off, not rounded", "squares of numbers of 24 bits", _short_products),
)

"""Roundings for faults: to a narrower type, to some bits of significand, to levels; and sums that are rounded on the way.

All take and return float64. A sum is rounded after each term, as an accumulator of that type would be.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray
Rounding = Callable[[Array], Array]

BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # of significand

_TYPES: dict[str, Any] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8": ml_dtypes.float8_e4m3fn,
}


def rounding_to(name: str) -> Rounding:
    """Rounding to nearest of a narrower type; beyond its range lie infinities (NaN in float8)."""
    return lambda array: array.astype(_TYPES[name]).astype(np.float64)


def significand(bits: int, whole: Callable[[Array], Array] = np.rint) -> Rounding:
    """Rounding to ``bits`` of significand by ``whole`` (np.trunc: toward zero), exponents unlimited."""

    def rounded(array: Array) -> Array:
        fraction, exponent = np.frexp(array)
        return np.ldexp(whole(np.ldexp(fraction, bits)), exponent - bits)

    return rounded


def levels(count: int) -> Rounding:
    """Rounding to ``count`` levels on each side of 0, up to the largest magnitude of the head (of the last two axes)."""

    def rounded(array: Array) -> Array:
        step = np.abs(array).max((-2, -1), keepdims=True) / count
        return np.rint(array / np.where(step == 0.0, 1.0, step)) * step

    return rounded


def running_sum(terms: Array, rounding: Rounding) -> Array:
    """The sum over the last axis, kept."""
    total = np.zeros_like(terms[..., :1])
    for index in range(terms.shape[-1]):
        total = rounding(total + terms[..., index : index + 1])
    return total


def running_product(left: Array, right: Array, rounding: Rounding) -> Array:
    """The matrix product, (…, m, n) by (…, n, p)."""
    total = np.zeros((*left.shape[:-1], right.shape[-1]))
    for index in range(right.shape[-2]):
        total = rounding(total + left[..., index : index + 1] * right[..., index : index + 1, :])
    return total

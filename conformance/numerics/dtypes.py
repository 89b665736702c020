"""The floating-point types of the suite and their constants.

Unit roundoff u = 2⁻ᵖ for a significand of p bits; ``tiny`` is the smallest normal, ``subnormal`` the smallest
positive number. Source: IEEE 754-2019; bfloat16 as in ml_dtypes (8 significant bits, exponent of float32).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from conformance.errors import ProblemError, quoted


@dataclass(frozen=True)
class FloatType:
    """One floating-point format: its NumPy dtype and the constants of rounding analysis."""

    name: str
    numpy: np.dtype
    unit_roundoff: float
    tiny: float
    subnormal: float
    largest: float

    @property
    def is_16_bit(self) -> bool:
        return self.numpy.itemsize == 2


FLOAT_TYPES: dict[str, FloatType] = {
    "float64": FloatType("float64", np.dtype(np.float64), 2.0**-53, 2.0**-1022, 2.0**-1074, float(np.finfo(np.float64).max)),
    "float32": FloatType("float32", np.dtype(np.float32), 2.0**-24, 2.0**-126, 2.0**-149, float(np.finfo(np.float32).max)),
    "float16": FloatType("float16", np.dtype(np.float16), 2.0**-11, 2.0**-14, 2.0**-24, 65504.0),
    "bfloat16": FloatType(
        "bfloat16", np.dtype(ml_dtypes.bfloat16), 2.0**-8, 2.0**-126, 2.0**-133, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    ),
}
DTYPES: tuple[str, ...] = tuple(FLOAT_TYPES)


def float_type(name: str) -> FloatType:
    """The format called ``name``; raises ProblemError, with the names there are, if there is none."""
    try:
        return FLOAT_TYPES[name]
    except KeyError:
        raise ProblemError(f"Unknown dtype {quoted(name)}: use one of {', '.join(DTYPES)}.") from None


def round_to(array: np.ndarray, name: str) -> np.ndarray:
    """``array`` rounded to nearest-even into the format ``name`` (overflow gives infinity, silently)."""
    target = float_type(name).numpy
    if array.dtype == target:
        return array
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return array.astype(target)

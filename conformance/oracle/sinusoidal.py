"""The oracle of the sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

import numpy as np

from conformance.numerics.dtypes import float_type
from conformance.oracle.attention import EXTENDED
from conformance.oracle.expected import Truth
from conformance.problem.inputs import SinusoidalInputs

_U32 = 2.0**-24
# Error of the exponent i·ln(10000)/d, in unit roundoffs per |ln ω|: that of the rounded constant ln 10000 (0.23 in float32,
# 0.85 in float64, both to be had by hand) and 1 each for the division and the product. They do not average out: the quotient is
# the same for all columns of a table, and for some widths, 138 in float32, both come near their worst.
_EXPONENT_ERROR = {"float32": 0.23 + 2.0, "float64": 0.85 + 2.0}


def truth_of_sinusoidal(inputs: SinusoidalInputs) -> Truth:
    """The expected table (rows, width), or x + table (B, rows, width). A profile makes no difference to its budget.

    Budget with ω the frequency of the column and u that of float64 or float32 (16-bit tables are made in float32 and
    rounded): u·(2 + p·ω·(3 + c·|ln ω|)): the angle's error grows with p·ω and with the exponent that ω comes from.
    """
    kind = float_type(inputs.dtype)
    positions = np.arange(inputs.length) if inputs.rows is None else np.array(inputs.rows)
    columns = np.arange(inputs.width)
    if inputs.arrangement == "concatenated":
        half = (inputs.width + 1) // 2
        pair, cosine = columns % half, columns >= half
    else:
        pair, cosine = columns // 2, columns % 2 == 1
    frequency = np.power(np.longdouble(10000), -_exponent(pair.astype(np.longdouble), inputs))
    angle = positions[:, None] * frequency[None, :]
    table = np.where(cosine, np.cos(angle), np.sin(angle))

    omega = frequency.astype(np.float64)
    exponent_error = _EXPONENT_ERROR["float64" if inputs.dtype == "float64" else "float32"]
    reach = positions[:, None] * (omega * (3.0 + exponent_error * np.abs(np.log(omega))))[None, :]
    bound = min(_U32, kind.unit_roundoff) * (2.0 + reach)
    if kind.is_16_bit:
        bound = bound + kind.unit_roundoff * np.abs(table).astype(np.float64) + kind.subnormal
    if inputs.dtype == "float64" and not EXTENDED:
        from conformance.oracle.exact import sinusoidal_encoding  # mpmath is slow to import

        table = sinusoidal_encoding(inputs.but(x=None))
    shape: tuple[int, ...] = (inputs.length, inputs.width)
    if inputs.x is not None:
        x = inputs.x if inputs.rows is None else inputs.x[:, positions]
        table = table + x.astype(np.longdouble)
        bound = bound + kind.unit_roundoff * np.abs(table).astype(np.float64)
        shape = inputs.x.shape
    rows = None if inputs.rows is None else positions
    return Truth(table, np.ones(table.shape, dtype=bool), shape, inputs.dtype, lambda profile: bound, rows, bound.nbytes)


def _exponent(pair: np.ndarray, inputs: SinusoidalInputs) -> np.ndarray:
    """−log ω to the base 10000: 2i/d, or i/(n − 1) for n pairs, and 0 for the only one."""
    if inputs.frequencies == "d/2-1":
        return pair / max((inputs.width + 1) // 2 - 1, 1)
    return 2 * pair / inputs.width

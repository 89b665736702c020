"""Faults of the sinusoidal encoding in its positions, and in the precision of its numbers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from conformance.faults.model import ALL_DTYPES, Compute, Fault
from conformance.faults.sinusoids import FIRST, added, arranged, fault, table, with_table
from conformance.faults.steps import frequencies_asked
from conformance.inputs import SinusoidalInputs

Array = np.ndarray
_LARGE = ("ATT-POS-012", "ATT-POS-005", "ATT-POS-013")
_LOW = (
    "transformers Llama/Gemma: https://github.com/huggingface/transformers/pull/29285",
    "sglang-jax: https://github.com/sgl-project/sglang-jax/issues/1472",
)


def _at(positions: Callable[[Array, SinusoidalInputs], Array]) -> Compute:
    """Other positions than 0, 1, 2 …"""

    def compute(inputs: SinusoidalInputs) -> Array:
        return added(inputs, table(inputs, positions=positions(np.arange(inputs.length, dtype=np.float64), inputs)))

    return compute


def _limited(size: int, way: Callable[[Array, int], Array]) -> Compute:
    return _at(lambda p, inputs: np.where(p < size, p, way(p, size)))


def _zero_columns(inputs: SinusoidalInputs) -> Array:
    encoding = table(inputs)
    encoding[:, 64:] = 0
    return added(inputs, encoding)


def _zero_beyond(size: int) -> Compute:
    def compute(inputs: SinusoidalInputs) -> Array:
        encoding = table(inputs)
        encoding[size:] = 0
        return added(inputs, encoding)

    return compute


def _with_sign(bits: int) -> Compute:
    count = 2.0**bits
    return _at(lambda p, inputs: (p + count / 2) % count - count / 2)


_SIZES = ((512, ("ATT-POS-012", "ATT-POS-005", "ATT-POS-013")), (5000, ("ATT-POS-012",)))
_POSITIONS = (
    fault("positions-from-one", "counts positions from 1", _at(lambda p, i: p + 1), "ATT-POS-002", "ATT-POS-001"),
    fault("positions-from-minus-one", "counts positions from −1", _at(lambda p, i: p - 1), "ATT-POS-002", "ATT-POS-001"),
    fault("positions-reversed", "counts positions from the end", _at(lambda p, i: p[::-1]), "ATT-POS-001", "ATT-POS-006"),
    fault("positions-relative", "divides positions by the length", _at(lambda p, i: p / i.length), "ATT-POS-001", "ATT-POS-006"),
    fault("positions-doubled", "counts positions by two", _at(lambda p, i: 2 * p)),
    *(
        fault(
            f"positions-in-{bits}-bits",
            f"counts positions in {bits} bits with a sign",
            _with_sign(bits),
            *(_LARGE if bits == 8 else ("ATT-POS-012",)),
        )
        for bits in (8, 16)
    ),
    fault("positions-in-8-bits-unsigned", "counts positions in 8 bits", _at(lambda p, i: p % 256), *_LARGE),
    *(
        fault(f"{word}-beyond-{size}", f"{verb} beyond {size} positions", compute, *requirements)
        for size, requirements in _SIZES
        for word, verb, compute in (
            ("repeats", "begins the table anew", _limited(size, lambda p, n: p % n)),
            ("stays", "repeats the last row", _limited(size, lambda p, n: np.full_like(p, n - 1))),
            ("zero", "gives zeros", _zero_beyond(size)),
        )
    ),
    fault(
        "zero-beyond-64-columns",
        "gives zeros in the columns beyond the 64th",
        _zero_columns,
        "ATT-POS-023",
        "ATT-POS-001",
        dtypes=("float32",),
    ),
)


def _rounded(array: Array, kind: Any) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(kind).astype(np.float64)


def _stepped(inputs: SinusoidalInputs) -> Array:
    """The angle of each position is that of the one before plus the frequency, in the precision of the table's arithmetic."""
    kind = np.float64 if inputs.dtype == "float64" else np.float32
    steps = np.broadcast_to(frequencies_asked(inputs).astype(kind), (inputs.length, (inputs.width + 1) // 2)).copy()
    steps[0] = 0
    angles = np.cumsum(steps, axis=0, dtype=kind).astype(np.float64)
    return added(inputs, arranged(inputs, np.sin(angles), np.cos(angles)[:, : inputs.width // 2]))


def _table_in(kind: Any) -> Compute:
    return lambda inputs: added(inputs, _rounded(table(inputs), kind))


def _angle_in(kind: Any) -> Compute:
    return with_table(angle=lambda angles: _rounded(angles, kind))


def _frequency_in(kind: Any) -> Compute:
    return lambda inputs: added(inputs, table(inputs, sines=lambda _: _rounded(frequencies_asked(inputs), kind)))


def _positions_in(kind: Any) -> Compute:
    return _at(lambda p, inputs: _rounded(p, kind))


_F32, _F16, _BF16 = np.float32, np.float16, ml_dtypes.bfloat16
_WIDE, _F64 = ("float64", "float32"), ("float64",)
_PRECISION = (
    *(
        fault(
            f"{what}-in-{np.dtype(kind).name}",
            f"rounds the {what} to {np.dtype(kind).name}",
            compute(kind),
            *requirements,
            dtypes=dtypes,
            sources=_LOW if kind is _BF16 else (),
        )
        for what, compute, kind, dtypes, requirements in (
            ("table", _table_in, _F32, _F64, FIRST),
            ("table", _table_in, _F16, _WIDE, FIRST),
            ("table", _table_in, _BF16, (*_WIDE, "float16"), FIRST),
            ("angle", _angle_in, _F32, _F64, _LARGE),
            ("angle", _angle_in, _F16, ALL_DTYPES, _LARGE),
            ("angle", _angle_in, _BF16, ALL_DTYPES, _LARGE),
            ("frequency", _frequency_in, _F32, _F64, _LARGE),
            ("frequency", _frequency_in, _F16, ALL_DTYPES, _LARGE),
            ("frequency", _frequency_in, _BF16, ALL_DTYPES, _LARGE),
            ("positions", _positions_in, _F16, ALL_DTYPES, _LARGE),
            ("positions", _positions_in, _BF16, ALL_DTYPES, _LARGE),
        )
    ),
    fault("angle-by-steps", "adds the frequency up from position to position", _stepped, "ATT-POS-012", dtypes=_WIDE),
)

FAULTS: tuple[Fault, ...] = (*_POSITIONS, *_PRECISION)

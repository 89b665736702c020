"""How the process computes with floats: what an implementation has set for itself, kept apart from what the suite has."""

import ctypes
from functools import cache
from typing import Any

import numpy as np

# Operands that no compiler folds: each result tells one setting.
_ONE, _HALF_STEP_UP, _HALF_STEP_DOWN = float("1"), 2.0 ** float("-53"), 2.0 ** float("-54")
_SUBNORMAL = float("5e-324")
_SIZE = 512  # bytes, many times those of any fenv_t


class FloatingPoint:
    """A context for code of one implementation, when it is loaded and when it is called: NumPy's handling of errors, the
    direction of rounding and the treatment of subnormal numbers are as it left them the last time; outside, the suite's."""

    def __init__(self) -> None:
        self._errors: Any = None
        self._environment: Any = None
        self._ours: Any = np.geterr()

    def __enter__(self) -> None:
        self._ours = np.geterr()
        if self._errors is not None:
            np.seterr(**self._errors)
        if self._environment is not None:
            _library().fesetenv(self._environment)

    def __exit__(self, *exception: object) -> None:
        errors = np.geterr()
        self._errors = None if errors == self._ours else errors
        if self._errors is not None:
            np.seterr(**self._ours)
        self._environment = None if is_plain() else _leave()


def is_plain() -> bool:
    """Rounding to nearest, subnormal numbers kept."""
    return _ONE + _HALF_STEP_UP == _ONE and _ONE - _HALF_STEP_DOWN == _ONE and _SUBNORMAL * _ONE != 0.0


def _leave() -> Any:
    """The settings at hand, in place of which the default ones are set; None where the C library cannot be had."""
    library = _library()
    if library is None:
        return None
    found = ctypes.create_string_buffer(_SIZE)
    library.fegetenv(found)
    library.fesetenv(_default(library))
    return found


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "fesetenv") else None
    except (OSError, TypeError):
        return None


def _default(library: Any) -> Any:
    """FE_DFL_ENV: a variable on macOS, the pointer −1 in the GNU C library and musl."""
    try:
        return ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    except ValueError:
        return ctypes.c_void_p(-1)

"""A parameter for the frequencies of the sinusoidal encoding that is not obeyed."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.faults.model import Fault

Array = np.ndarray


def _ignoring(function: Callable[..., Array]) -> Callable[..., Array]:
    """``function``, with a parameter for frequencies that does nothing."""

    def encoding(
        length: int,
        d_model: int,
        *,
        dtype: Any = np.float32,
        arrangement: str = "interleaved",
        frequencies: str = "d",
        x: Any = None,
    ) -> Array:
        return function(length, d_model, dtype=dtype, arrangement=arrangement, x=x)

    return encoding


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="sinusoid-frequencies-ignored",
        sentence="gives the paper's frequencies, whichever are asked for",
        operation="sinusoidal_encoding",
        requirements=("ATT-POS-021",),
        sources=(),
        behaviour=_ignoring,
    ),
)

"""The verbs of the sinusoidal encoding: the table with other frequencies, positions or angles, and what is added to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.faults.fault import Compute
from conformance.faults.grammar import POS, SINUSOIDAL, Way
from conformance.faults.steps import frequencies_asked, sinusoidal
from conformance.numerics.dtypes import float_type
from conformance.problem.inputs import SinusoidalInputs

Array = np.ndarray
Frequencies = Callable[[int], Float[Array, " pairs"]]
FIRST = POS(1)


def encoded(compute: Compute) -> Way:
    """Another computation of the encoding."""
    return Way(compute=compute, operation=SINUSOIDAL)


def table(
    inputs: SinusoidalInputs,
    sines: Frequencies | None = None,
    cosines: Frequencies | None = None,
    positions: Array | None = None,
    angle: Callable[[Array], Array] = lambda angles: angles,
) -> Float[Array, "length width"]:
    """The table in float64, sine and cosine with frequencies of their own or those asked for, at other positions, of changed
    angles."""
    place = np.arange(inputs.length, dtype=np.float64) if positions is None else positions
    with np.errstate(invalid="ignore"):  # an angle that is rounded to infinity
        sine = np.sin(angle(place[:, None] * _rates(inputs, sines)))
        cosine = np.cos(angle(place[:, None] * _rates(inputs, cosines or sines)))
    return arranged(inputs, sine, cosine[:, : inputs.width // 2])


def _rates(inputs: SinusoidalInputs, function: Frequencies | None) -> Float[Array, " pairs"]:
    return frequencies_asked(inputs) if function is None else function(inputs.width)


def arranged(inputs: SinusoidalInputs, first: Array, second: Array) -> Float[Array, "length width"]:
    """The two halves interleaved, or one after the other."""
    if inputs.arrangement == "concatenated":
        return np.concatenate([first, second], axis=1)
    both = np.empty((len(first), inputs.width))
    both[:, 0::2], both[:, 1::2] = first, second
    return both


def added(inputs: SinusoidalInputs, encoding: Array) -> Array:
    """The encoding, or x with it, in the dtype asked for."""
    total = encoding if inputs.x is None else inputs.x.astype(np.float64) + encoding
    return total.astype(float_type(inputs.dtype).numpy)


def with_table(**changes: Any) -> Way:
    """Another table (see ``table``)."""
    return encoded(lambda inputs: added(inputs, table(inputs, **changes)))


def changed_table(change: Callable[[SinusoidalInputs, Array], Array]) -> Way:
    """The right table, changed."""
    return encoded(lambda inputs: added(inputs, change(inputs, table(inputs))))


def summed(change: Callable[[Array, Array], Array]) -> Way:
    """``change`` of x (b, length, width) and the table, where there is an x."""

    def compute(inputs: SinusoidalInputs) -> Array:
        if inputs.x is None:
            return sinusoidal(inputs)
        return np.asarray(change(inputs.x.astype(np.float64), table(inputs))).astype(float_type(inputs.dtype).numpy)

    return encoded(compute)

"""What faults of the sinusoidal encoding are made of: the table with other frequencies, positions or angles."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.dtypes import float_type
from conformance.faults.model import Compute, Fault
from conformance.faults.steps import frequencies_asked
from conformance.inputs import SinusoidalInputs

Array = np.ndarray
Frequencies = Callable[[int], Float[Array, " pairs"]]

FIRST = ("ATT-POS-001",)


def fault(
    identifier: str, sentence: str, compute: Compute, *requirements: str, sources: tuple[str, ...] = (), **fields: Any
) -> Fault:
    return Fault(
        id=f"sinusoid-{identifier}",
        sentence=sentence,
        operation="sinusoidal_encoding",
        requirements=requirements or FIRST,
        sources=sources,
        compute=compute,
        **fields,
    )


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


def with_table(**changes: Any) -> Compute:
    return lambda inputs: added(inputs, table(inputs, **changes))

"""Where in a sinusoidal encoding it is wrong: at which positions, in sines or cosines, at which frequencies."""

import numpy as np

from conformance.diagnosis.slices import one_of
from conformance.inputs import SinusoidalInputs

Array = np.ndarray


def columns_of(inputs: SinusoidalInputs) -> tuple[Array, Array]:
    """Of each column the number of its frequency, and whether it is a cosine."""
    columns = np.arange(inputs.width)
    if inputs.arrangement == "concatenated":
        half = (inputs.width + 1) // 2
        return columns % half, columns >= half
    return columns // 2, columns % 2 == 1


def element(index: tuple[int, ...], inputs: SinusoidalInputs) -> str:
    """One element in words; ``index``: (batch row,) position, column."""
    *batch, position, column = index
    frequency, cosine = (int(of[column]) for of in columns_of(inputs))
    row = f"batch row {batch[0]}, " if batch else ""
    return f"{row}position {position}, column {column} (the {'cosine' if cosine else 'sine'} of frequency {frequency})"


def pattern(wrong: Array, inputs: SinusoidalInputs, positions: Array) -> str:
    """The narrowest pattern that holds all ``wrong`` elements (batch rows, positions, columns), of the ``positions`` judged."""
    frequency, cosine = columns_of(inputs)
    rows, at, columns = (np.asarray(wrong.any(axes)) for axes in ((1, 2), (0, 2), (0, 1)))
    at_frequency = np.array([columns[frequency == number].any() for number in range(frequency.max() + 1)])
    parts = [
        one_of(rows, "batch row", "batch rows"),
        _positions(at, positions),
        "only sines" if not columns[cosine].any() and cosine.any() else "only cosines" if not columns[~cosine].any() else "",
        one_of(at_frequency, "frequency", "frequencies"),
    ]
    told = ", ".join(filter(None, parts))
    everywhere = f"at all positions, in all columns{'' if inputs.x is None else ' and batch rows'}"
    return f"wrong are {told}" if told else f"wrong elements are {everywhere}"


def _positions(marks: Array, positions: Array) -> str:
    """As of other slices, by their numbers in the whole table where only some positions are judged."""
    if len(marks) == int(positions[-1]) + 1:
        return one_of(marks, "position", "positions")
    wrong = np.flatnonzero(marks)
    if len(wrong) == len(marks):
        return ""
    return f"only positions from {positions[wrong[0]]} on" if marks[wrong[0] :].all() else "only some positions"

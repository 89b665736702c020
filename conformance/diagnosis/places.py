"""Where in the output an implementation is wrong, and how: which rows, heads and batch rows, or positions and frequencies, and
what the error is like."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from conformance.diagnosis.evidence import Evidence
from conformance.operations import operation_of
from conformance.problem.inputs import SinusoidalInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
TILES = (128, 64, 32, 16)
CLOSE = 0.05  # relative deviation up to which a number counts as the same for all elements


def described(failing: Sequence[Evidence]) -> list[str]:
    """The first wrong index, the pattern of wrong elements that most failing problems have, and the nature of the error."""
    compared = [evidence for evidence in failing if evidence.output is not None and "values" in evidence.symptoms]
    if not compared:
        return []
    lines = [_first(compared[0])]
    for found in (Counter(_pattern(e) for e in compared), Counter(_nature(e) for e in compared)):
        words, count = found.most_common(1)[0]
        lines.append(words if count == len(compared) else f"{words} (in {count} of {len(compared)} problems)")
    return lines


def _wrong(evidence: Evidence) -> Array:
    """Wrong elements as (batch, heads, rows, columns); the output of multi-head attention has one head, a table one batch row."""
    wrong = np.asarray(evidence.excess() > 1.0)
    wrong = wrong[None] if wrong.ndim == 2 else wrong
    return wrong[:, None] if wrong.ndim == 3 else wrong


def _first(evidence: Evidence) -> str:
    index = np.argwhere(evidence.excess() > 1.0)[0]
    if evidence.expected.rows is not None:
        index[-2] = evidence.expected.rows[index[-2]]
    place = tuple(int(i) for i in index)
    told = operation_of(evidence.problem).element(place, evidence.inputs)
    return f"the first wrong element is at {told} of {evidence.problem.text}"


def _pattern(evidence: Evidence) -> str:
    """The narrowest pattern that holds all wrong elements."""
    wrong, rows = _wrong(evidence), evidence.expected.rows
    judged = np.arange(wrong.shape[-2]) if rows is None else rows
    told = operation_of(evidence.problem).pattern(wrong[:, 0], evidence.inputs, judged)
    if told:
        return told
    parts = [words for axis in (_batch_rows, _heads, _rows, _columns) if (words := axis(wrong, evidence))]
    everywhere = "all rows, heads and batch rows" if evidence.inputs.plain is not None else "all rows and batch rows"
    return f"wrong are {', '.join(parts)}" if parts else f"wrong elements are in {everywhere}"


def _batch_rows(wrong: Array, evidence: Evidence) -> str:
    return one_of(np.asarray(wrong.any((1, 2, 3))), "batch row", "batch rows")


def _heads(wrong: Array, evidence: Evidence) -> str:
    return one_of(np.asarray(wrong.any((0, 2, 3))), "head", "heads")


def _columns(wrong: Array, evidence: Evidence) -> str:
    return one_of(np.asarray(wrong.any((0, 1, 2))), "column", "columns")


def _rows(wrong: Array, evidence: Evidence) -> str:
    rows = np.asarray(wrong.any((0, 1, 3)))
    if rows.all():
        return ""
    if len(rows) == 1 or evidence.expected.rows is not None:
        return ""
    first = int(np.flatnonzero(rows)[0])
    for tile in TILES:
        if first and first % tile == 0 and rows[first:].mean() > 0.5:
            return f"only rows of the {'last tile' if len(rows) - first <= tile else 'tiles'} of {tile} from {first} on"
    return _rows_by_visibility(wrong, evidence) or one_of(rows, "row", "rows")


def _rows_by_visibility(wrong: Array, evidence: Evidence) -> str:
    """Whether rows that see all keys are right, and the others wrong."""
    if not evidence.inputs.attends:
        return ""
    hidden: Array = np.asarray(~visible_pairs(evidence.inputs).all(-1))
    if wrong.shape[1] == 1:
        hidden = np.asarray(hidden.any(1, keepdims=True))
    in_rows = wrong.any(-1)
    if in_rows.shape != hidden.shape or not hidden.any() or hidden.all():
        return ""
    return "only rows from which a key is hidden" if not (in_rows & ~hidden).any() else ""


def _nature(evidence: Evidence) -> str:
    """Not finite, zero, proportional to what is expected, a constant away from it, or neither."""
    assert evidence.output is not None
    expected = evidence.expected
    output = expected.rows_of(evidence.output)
    wrong = evidence.excess() > 1.0
    got, want = output.astype(np.float64)[wrong], expected.output.astype(np.float64)[wrong]
    if not np.isfinite(got).all():
        return "outputs are NaN" if np.isnan(got).any() else "outputs are infinite"
    if not got.any():
        return "outputs are 0"
    return next(_relations(got, want), "the error is neither proportional to what is expected nor constant")


def _relations(got: Array, want: Array) -> Iterator[str]:
    if len(got) < 3 or not np.isfinite(want).all():
        return
    factor = float(got @ want / (want @ want)) if want.any() else 0.0
    error = got - want
    if np.linalg.norm(got - factor * want) <= CLOSE * np.linalg.norm(error):
        yield f"outputs are {factor:.4g} times what is expected"
    if np.ptp(error) <= CLOSE * np.abs(error).max():
        yield f"outputs are {error.mean():.4g} more than what is expected"


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


def one_of(marks: np.ndarray, one: str, many: str) -> str:
    """The wrong ones of all; nothing where all are wrong."""
    count, places = len(marks), np.flatnonzero(marks)
    if count == 1 or len(places) == count:
        return ""
    if len(places) == 1:
        return f"only {one} {places[0]} of {count}" if 0 < places[0] < count - 1 else f"only the {_end(places[0])} {one}"
    if places[0] > 0 and len(places) == count - places[0]:
        return f"only {many} from {places[0]} on"
    if len(places) == places[-1] + 1:
        return f"only the first {len(places)} {many} of {count}" if count > 3 else f"only the first {many}"
    if (places % 2 == 1).all():
        return f"only {many} of odd number"
    return f"only some {many}"


def _end(place: int) -> str:
    return "first" if place == 0 else "last"

"""The picture of a failure that its record holds: the worst head, small, with what its queries may see."""

from math import prod
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from conformance.judging.verdict import Verdict, overflowed
from conformance.oracle import Expected
from conformance.problem.inputs import Inputs
from conformance.problem.visibility import visible_pairs
from conformance.records.picture import Cells, Picture

SIDE = 24  # rows and columns at most
PAIRS = 1 << 22  # query-key pairs of a head; visibility is left out where there are more

Matrix = Float[np.ndarray, "rows columns"]
Starts = np.ndarray


def picture(output: np.ndarray, expected: Expected, inputs: Inputs, verdict: Verdict) -> Picture | None:
    """The head of the worst element, or None where the output is not of the expected shape or is empty."""
    if output.shape != expected.shape or not expected.output.size:
        return None
    got = expected.rows_of(output).astype(np.float64)
    want = overflowed(expected.output, expected.dtype).astype(np.float64)
    r = _ratios(got, want, expected)
    worst = np.unravel_index(int(np.where(np.isnan(r), -1.0, r).argmax()), r.shape) if verdict.index is None else verdict.index
    head = tuple(int(i) for i in worst[:-2])
    rows, columns = _starts(r.shape[-2]), _starts(r.shape[-1])
    blocks = [_worst_of_blocks(matrix[head], r[head], rows, columns) for matrix in (got, want, r)]
    positions, places = _positions(expected)
    keys, visible = _visible(inputs, head, positions, rows) if expected.axis == -2 else ((), ())
    return Picture(
        head=head,
        size=(r.shape[-2], r.shape[-1]),
        rows=tuple(int(positions[start]) for start in rows),
        columns=tuple(int(places[start]) for start in columns),
        got=blocks[0],
        want=blocks[1],
        r=blocks[2],
        keys=keys,
        visible=visible,
    )


def _positions(expected: Expected) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows and columns of the last two axes stand in the whole; of a log-sum-exp, query rows are columns."""
    whole = [np.arange(length) for length in expected.shape[-2:]]
    if expected.rows is not None:
        whole[expected.axis] = np.asarray(expected.rows)
    return whole[0], whole[1]


def _ratios(got: np.ndarray, want: np.ndarray, expected: Expected) -> np.ndarray:
    """error / budget; NaN where nothing is judged, infinite where the patterns of what is not finite differ."""
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(over="ignore", invalid="ignore"):
        r = np.where(same, 0.0, np.abs(got - want) / expected.budget)
    return np.where(expected.judged, np.where(np.isnan(r), np.inf, r), np.nan)


def _starts(length: int) -> Starts:
    """Where the blocks begin that cut ``length`` into SIDE pieces, or into single positions where there are no more."""
    pieces = min(length, SIDE)
    return np.arange(pieces) * length // max(pieces, 1)


def _worst_of_blocks(matrix: Matrix, r: Matrix, rows: Starts, columns: Starts) -> Cells:
    """Of each block the entry where r is largest."""
    order = np.where(np.isnan(r), -1.0, r)

    def entry(i: int, j: int) -> float:
        block = np.s_[rows[i] : _end(rows, i, r.shape[0]), columns[j] : _end(columns, j, r.shape[1])]
        return _short(matrix[block].reshape(-1)[order[block].argmax()])

    return tuple(tuple(entry(i, j) for j in range(len(columns))) for i in range(len(rows)))


def _end(starts: Starts, i: int, length: int) -> int:
    return int(starts[i + 1]) if i + 1 < len(starts) else length


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _visible(
    inputs: Inputs, head: tuple[int, ...], positions: np.ndarray, rows: Starts
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Starts of blocks of keys, and for each block of rows a mark a block of keys; nothing where no pair is hidden."""
    if not inputs.attends:
        return (), ()
    pairs = _pairs_of_head(inputs, head)
    if pairs is None or pairs.all():
        return (), ()
    pairs = pairs[positions]
    keys = _starts(pairs.shape[1])

    def mark(i: int, j: int) -> str:
        block = pairs[rows[i] : _end(rows, i, len(pairs)), keys[j] : _end(keys, j, pairs.shape[1])]
        return "#" if block.all() else "+" if block.any() else "."

    marks = tuple("".join(mark(i, j) for j in range(len(keys))) for i in range(len(rows)))
    return tuple(int(key) for key in keys), marks


def _pairs_of_head(inputs: Any, head: tuple[int, ...]) -> Bool[np.ndarray, "lq lk"] | None:
    """The visible pairs of one head; of multi-head attention, whose output mixes the heads, those visible in any head."""
    if prod(inputs.pairs) > PAIRS:
        return None
    pairs = visible_pairs(inputs)[head]
    return pairs.any(axis=0) if pairs.ndim == 3 else pairs

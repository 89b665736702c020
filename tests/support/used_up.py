"""How much of each term of a budget a correct computation uses up: what a row says, and the table of docs/budget.md.

``python -m tests.support.used_up`` writes the table anew.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from conformance.numerics.profiles import Roundoffs
from conformance.oracle import attention, multihead, truth_of
from conformance.problem.inputs import AttentionInputs, Inputs

Array = np.ndarray
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "budget.md"
BEGIN, END = "<!-- constants: made by python -m tests.support.used_up -->\n", "<!-- constants end -->\n"
U = 2.0**-24  # of float32, in which a row is where it says nothing else
HALF = 2.0**-11  # of float16
NOTHING = Roundoffs(0.0, 0.0, 0.0, 0.0)  # exact: each row lets be rounded what it is about, and nothing else
A_QUARTER = 0.25


@dataclass(frozen=True)
class Use:
    """``error`` of a computation in which each operation is within its unit roundoff; the ``whole`` budget of the element, and
    the ``term`` of it that the row is about, both under Roundoffs that let nothing else be rounded."""

    error: float
    whole: float
    term: float

    @property
    def fraction(self) -> float:
        return self.error / self.whole


@dataclass(frozen=True)
class Row:
    """``unseen``: the term is small beside another one of the same budget whatever the inputs are, and ``use`` is of it alone."""

    term: str
    source: str
    computation: str
    use: Callable[[], Use]
    unseen: bool = False


def bound(inputs: Inputs, unit: Roundoffs) -> Array:
    """The budget of each element where roundings are as ``unit`` says."""
    with patch.object(attention, "roundoffs", lambda *_: unit), patch.object(multihead, "roundoffs", lambda *_: unit):
        return truth_of(inputs).bound("strict")


def one_head(query: Array, key: Array, value: Array, dtype: str = "float32", **more: object) -> AttentionInputs:
    """Inputs of one head from (Lq, d), (Lk, d) and (Lk, dv)."""
    arrays = [np.asarray(array, dtype)[None, None] for array in (query, key, value)]
    return AttentionInputs(**dict(zip(("query", "key", "value"), arrays, strict=True)), **more)


def weights_of(scores: Array) -> Array:
    exponentials = np.exp(np.asarray(scores, np.longdouble) - np.max(scores))
    return exponentials / exponentials.sum()


def moved(scores: Array, errors: Array, value: Array) -> float:
    """How far errors of the scores move an output of one channel."""
    right, wrong = (weights_of(which) @ np.asarray(value, np.longdouble) for which in (scores, np.add(scores, errors)))
    return float(abs(wrong - right))


def growing(terms: Array, u: float, blocks: int = 1) -> float:
    """Σ terms (all positive), added up one by one in ``blocks`` of equal length, each result rounded up by u."""
    sums = []
    for block in np.split(np.asarray(terms, np.float64), blocks):
        total = block[0]
        for term in block[1:]:
            total = (total + term) * (1.0 + u)
        sums.append(total)
    return sums[0] if blocks == 1 else growing(np.array(sums), u)


def dot_error(terms: Array, u: float) -> float:
    """How far Σ terms is off where each product is rounded up, and each sum."""
    terms = np.asarray(terms, np.float64)
    return growing(terms * (1.0 + u), u) - float(terms.sum())


def rows() -> tuple[Row, ...]:
    from tests.support import used_up_layers, used_up_profiles, used_up_scores, used_up_values

    return (*used_up_scores.ROWS, *used_up_values.ROWS, *used_up_layers.ROWS, *used_up_profiles.ROWS)


def table() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| term | where its constant comes from | a correct computation | of the budget |"
    yield "|---|---|---|---:|"
    for row in rows():
        use = row.use()
        share = f"({use.error / use.term:.2f})" if row.unseen else f"{use.fraction:.2f}"
        yield f"| {row.term} | {row.source} | {row.computation} | {share} |".replace("|…", "\\|").replace("…|", "\\|")


def documented() -> str:
    """What stands in the document."""
    return _parts()[1]


def _parts() -> tuple[str, str, str]:
    """The document before the table, the table, and the rest."""
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    made, after = rest.split(END)
    return before + BEGIN, made, END + after


if __name__ == "__main__":
    before, _, after = _parts()
    DOCUMENT.write_text(before + table() + after, encoding="utf-8")

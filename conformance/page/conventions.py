"""Conventions side by side: what each implementation declares and was observed to do."""

from collections import Counter
from dataclasses import dataclass

from conformance.records import Convention, Run


@dataclass(frozen=True)
class Answer:
    """``rank`` 0 is the commonest answer of the column, 1 the next …; ``state``: agrees, differs, undeclared or unobserved."""

    text: str
    state: str
    rank: int
    message: str


@dataclass(frozen=True)
class ConventionMatrix:
    operation: str
    identifiers: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Answer, ...], ...]], ...]


def matrices(run: Run) -> list[ConventionMatrix]:
    """A matrix for each operation of which conventions were observed."""
    grouped: dict[str, list[Convention]] = {}
    for convention in run.conventions:
        grouped.setdefault(run.implementations[convention.implementation].operation, []).append(convention)
    return [_matrix(operation, conventions) for operation, conventions in grouped.items()]


def _matrix(operation: str, conventions: list[Convention]) -> ConventionMatrix:
    identifiers = tuple(sorted({convention.id for convention in conventions}))
    ranks = {identifier: _ranks([c for c in conventions if c.id == identifier]) for identifier in identifiers}
    cells: dict[str, dict[str, list[Answer]]] = {}
    for convention in conventions:  # shards on several machines may give several answers
        own = cells.setdefault(convention.implementation, {}).setdefault(convention.id, [])
        own.append(_answer(convention, ranks[convention.id]))
    rows = tuple((name, tuple(tuple(own.get(identifier, ())) for identifier in identifiers)) for name, own in cells.items())
    return ConventionMatrix(operation, identifiers, rows)


def _ranks(conventions: list[Convention]) -> dict[str, int]:
    counted = Counter(convention.observed for convention in conventions if convention.observed is not None)
    return {answer: rank for rank, (answer, _) in enumerate(counted.most_common())}


def _answer(convention: Convention, ranks: dict[str, int]) -> Answer:
    declared, observed = convention.declared, convention.observed
    if observed is None:
        return Answer("–" if declared is None else f"{declared}?", "unobserved", 0, convention.message)
    if convention.agrees is False:
        return Answer(f"{declared} ≠ {observed}", "differs", ranks[observed], convention.message)
    return Answer(observed, "undeclared" if declared is None else "agrees", ranks[observed], convention.message)

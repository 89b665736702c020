"""Conventions side by side: what each implementation declares and was observed to do."""

from collections import Counter
from dataclasses import dataclass

from conformance.records import ConventionResult, Run
from conformance.reports.tallies import answer, conventions_by_operation


@dataclass(frozen=True)
class AnswerCell:
    """``rank`` 0 is the commonest answer of the column, 1 the next …; ``state``: agrees, differs (unexpected), known, undeclared
    or unobserved; ``message`` says what it means, and in which places which answer was seen where it is mixed."""

    text: str
    state: str
    rank: int
    message: str


@dataclass(frozen=True)
class ConventionMatrix:
    operation: str
    identifiers: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[AnswerCell, ...], ...]], ...]


def matrices(run: Run) -> list[ConventionMatrix]:
    """A matrix for each operation of which conventions were observed."""
    return [_matrix(operation, conventions) for operation, conventions in conventions_by_operation(run).items()]


def _matrix(operation: str, conventions: list[ConventionResult]) -> ConventionMatrix:
    identifiers = tuple(sorted({convention.id for convention in conventions}))
    ranks = {identifier: _ranks([c for c in conventions if c.id == identifier]) for identifier in identifiers}
    cells: dict[str, dict[str, list[AnswerCell]]] = {}
    for convention in conventions:  # shards on several machines may give several answers
        own = cells.setdefault(convention.implementation, {}).setdefault(convention.id, [])
        own.append(_answer(convention, ranks[convention.id]))
    rows = tuple((name, tuple(tuple(own.get(identifier, ())) for identifier in identifiers)) for name, own in cells.items())
    return ConventionMatrix(operation, identifiers, rows)


def _ranks(conventions: list[ConventionResult]) -> dict[str, int]:
    counted = Counter(convention.observed for convention in conventions if convention.observed is not None)
    return {observed: rank for rank, (observed, _) in enumerate(counted.most_common())}


def _answer(convention: ConventionResult, ranks: dict[str, int]) -> AnswerCell:
    rank = 0 if convention.observed is None else ranks[convention.observed]
    return AnswerCell(answer(convention), _state(convention), rank, _message(convention))


def _message(convention: ConventionResult) -> str:
    places = "; ".join(f"{answer}: {', '.join(words)}" for answer, words in convention.where.items())
    several = f"({places})" if len(convention.where) > 1 and convention.status == "expected" else ""
    return " ".join(filter(None, (convention.message, several, convention.reason)))


def _state(convention: ConventionResult) -> str:
    if convention.status == "unexpected":
        return "differs"
    if convention.observed is None:
        return "unobserved"
    if convention.reason:
        return "known"
    return "undeclared" if convention.declared is None else "agrees"

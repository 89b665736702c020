"""How much of a run there is, of all that was expected: requirements and conventions, each on each implementation that is asked
it.

Pairs are compared, not numbers: a surplus of one implementation does not hide what lacks of another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.errors import UsageError, quoted
from conformance.problem.returned import OUTPUT
from conformance.records.record_types import Header, ImplementationEntry
from conformance.records.shard import Shard

Pair = tuple[str, str]  # of a requirement or convention, and an implementation


@dataclass(frozen=True)
class Extent:
    """Pairs of requirement and implementation, and of convention and implementation: those that the run has, and those of all
    that the suite asks."""

    requirements: int
    requirements_expected: int
    conventions: int
    conventions_expected: int

    @property
    def is_whole(self) -> bool:
        return self.has_all_requirements and self.conventions >= self.conventions_expected

    @property
    def has_all_requirements(self) -> bool:
        return self.requirements >= self.requirements_expected


def requirement_pairs(header: Header) -> frozenset[Pair]:
    """All that the suite asks of the implementations of the header."""
    return frozenset(
        (one.id, entry.name)
        for one in header.requirements
        for entry in header.implementations
        if entry.operation == one.operation and (one.output or OUTPUT) in entry.outputs
    )


def convention_pairs(header: Header) -> frozenset[Pair]:
    """All that the suite asks; an older header does not say it. What cannot run here is not asked."""
    outputs = header.outputs or {}
    return frozenset(
        (identifier, entry.name)
        for identifier, operations in header.conventions.items()
        for entry in header.implementations
        if _is_asked(entry) and entry.operation in operations and outputs.get(identifier, OUTPUT) in entry.outputs
    )


def extent(headers: Iterable[Header], requirements: Iterable[Pair], conventions: Iterable[Pair]) -> Extent:
    """Of pairs that have a result."""
    headers = tuple(headers)
    expected = frozenset[Pair]().union(*map(requirement_pairs, headers))
    asked = frozenset[Pair]().union(*map(convention_pairs, headers))
    answered = frozenset(conventions)
    return Extent(
        len(expected & frozenset(requirements)), len(expected), len(asked & answered) if asked else len(answered), len(asked)
    )


def selected(headers: Sequence[Header]) -> frozenset[Pair]:
    """The pairs that the runs of the headers had to bring. Of a header without ``expected``: all, or none where it is of a
    part."""
    parts = Counter(_parts(header) for header in headers)
    found: set[Pair] = set()
    for header in headers:
        unable = {entry.name for entry in header.implementations if not _is_asked(entry)}
        if header.expected is not None:
            pairs = ((identifier, name) for name, identifiers in header.expected.items() for identifier in identifiers)
            found |= {pair for pair in pairs if not (pair[0] in header.conventions and pair[1] in unable)}
        elif not header.selection and parts[_parts(header)] >= _parts(header):
            found |= requirement_pairs(header) | convention_pairs(header)
    return frozenset(found)


def _parts(header: Header) -> int:
    return Shard.parse(header.shard).count if header.shard else 1


def by_implementation(pairs: Iterable[Pair]) -> dict[str, tuple[str, ...]]:
    """The ids of each implementation, in their order."""
    found: dict[str, list[str]] = {}
    for identifier, name in sorted(pairs):
        found.setdefault(name, []).append(identifier)
    return {name: tuple(identifiers) for name, identifiers in found.items()}


def expected_of(header: Header, pairs: Iterable[Pair]) -> Mapping[str, tuple[str, ...]] | None:
    """What a header has as ``expected`` where these pairs, of those that it lists, are selected: None where they are all."""
    whole = requirement_pairs(header) | convention_pairs(header)
    chosen = whole & frozenset(pairs)
    return None if chosen == whole else by_implementation(chosen)


def demand_listed(header: Header) -> None:
    """Raises UsageError where something is expected that the header does not list."""
    strange = selected((header,)) - requirement_pairs(header) - convention_pairs(header)
    if strange:
        identifier, name = min(strange)
        raise UsageError(f"{quoted(identifier)} is expected of {quoted(name)}, and is not listed as asked of it")


def _is_asked(entry: ImplementationEntry) -> bool:
    return entry.missing is None

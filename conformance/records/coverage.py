"""What of a run was judged and what was not offered, by implementation and area, from the records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.judging.verdict import Outcome
from conformance.records.record_types import ImplementationEntry, Item


@dataclass
class AreaCoverage:
    """The items of one implementation in one area, or in all: how many were ``judged``, how many are ``unsupported``, and, of
    each of those, the features for lack of which it was not asked."""

    judged: int = 0
    unsupported: int = 0
    lacking: list[frozenset[str]] = field(default_factory=list)

    def note(self, item: Item) -> None:
        if item.outcome is Outcome.UNSUPPORTED:
            self.unsupported += 1
            self.lacking.append(frozenset(item.without))
        self.judged += item.outcome.was_run

    @property
    def nothing_was_asked(self) -> bool:
        """Whether there were items, and none could be judged; what is skipped by request says nothing."""
        return self.unsupported > 0 and not self.judged


@dataclass(frozen=True)
class Undeclared:
    """An area of which nothing could be asked, for lack of ``features`` that the implementation nowhere says it lacks."""

    implementation: str
    area: str
    features: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return (
            f"{self.area} of {self.implementation} was not judged at all: nothing could be asked that needs "
            f"{', '.join(self.features)}, and no declaration says so. Offer it, by a parameter, or declare it, in Support.lacks "
            "or by --lacks."
        )


Coverages = dict[tuple[str, str], AreaCoverage]


def coverages(items: Iterable[Item], areas: Mapping[str, str]) -> Coverages:
    """Coverage by implementation and area; ``areas`` maps requirements to theirs."""
    found: Coverages = {}
    for item in items:
        found.setdefault((item.implementation, areas[item.requirement]), AreaCoverage()).note(item)
    return found


def undeclared(found: Coverages, implementations: Mapping[str, ImplementationEntry]) -> tuple[Undeclared, ...]:
    """The areas of which nothing was asked, without a declaration that says so.

    Requirements are counted: an area is accused of features that are nowhere said to lack where at least half of it needs any of
    them. Where fewer do, it is what is declared that keeps the area from being asked.
    """
    oversights = []
    for (name, area), coverage in found.items():
        entry = implementations[name]
        wanting = [_wanting(one, frozenset(entry.features)) for one in coverage.lacking]
        silent = [features for features in (one - set(entry.lacks) for one in wanting) if features]
        if coverage.nothing_was_asked and silent and 2 * len(silent) >= coverage.unsupported:
            oversights.append(Undeclared(name, area, tuple(sorted(frozenset[str]().union(*silent)))))
    return tuple(oversights)


def _wanting(without: frozenset[str], offered: frozenset[str]) -> frozenset[str]:
    """What kept an item from being asked: features that are not offered, or, where all are, those that were declined."""
    return without - offered or without

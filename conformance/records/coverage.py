"""What of a run was judged and what was not offered, by implementation and area, from the records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.records.model import ImplementationEntry, Item
from conformance.verdict import Outcome


@dataclass
class Coverage:
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


Coverages = dict[tuple[str, str], Coverage]


def coverages(items: Iterable[Item], areas: Mapping[str, str]) -> Coverages:
    """Coverage by implementation and area; ``areas`` maps requirements to theirs."""
    found: Coverages = {}
    for item in items:
        found.setdefault((item.implementation, areas[item.requirement]), Coverage()).note(item)
    return found


def undeclared(found: Coverages, implementations: Mapping[str, ImplementationEntry]) -> tuple[Undeclared, ...]:
    """The areas of which nothing was asked, without a declaration that says so."""
    oversights = []
    for (name, area), coverage in found.items():
        entry = implementations[name]
        features = frozenset[str]().union(*(_wanting(one, frozenset(entry.features)) for one in coverage.lacking))
        silent = tuple(sorted(features - set(entry.lacks)))
        if coverage.nothing_was_asked and silent:
            oversights.append(Undeclared(name, area, silent))
    return tuple(oversights)


def _wanting(without: frozenset[str], offered: frozenset[str]) -> frozenset[str]:
    """What kept an item from being asked: features that are not offered, or, where all are, those that were declined."""
    return without - offered or without

"""How much of a run there is, of all that was due: requirements and conventions, each on each implementation that is asked it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.records.model import ImplementationEntry


@dataclass(frozen=True)
class Extent:
    """Pairs of requirement and implementation, and of convention and implementation: those that the run has, and those due."""

    requirements: int
    requirements_due: int
    conventions: int
    conventions_due: int

    @property
    def is_whole(self) -> bool:
        return self.has_all_requirements and self.conventions >= self.conventions_due

    @property
    def has_all_requirements(self) -> bool:
        return self.requirements >= self.requirements_due


def requirements_due(implementations: Iterable[str], requirements: Iterable[str]) -> int:
    """How many pairs there are, given the operation of each implementation and of each requirement."""
    operations = Counter(implementations)
    return sum(operations[operation] for operation in requirements)


def conventions_due(implementations: Iterable[ImplementationEntry], conventions: Mapping[str, tuple[str, ...]]) -> int:
    """How many pairs there are; what cannot run here is not asked."""
    able = Counter(entry.operation for entry in implementations if entry.missing is None)
    return sum(able[operation] for operations in conventions.values() for operation in operations)

"""What a comparison of two runs consists of."""

import enum
from collections import Counter
from dataclasses import dataclass


class ChangeKind(enum.StrEnum):
    """In which way something changed; in the order in which a reader wants to know."""

    NEWLY_FAILING = "newly failing"
    FAILS_WORSE = "failing worse"
    MORE_DTYPES = "failing in more dtypes"
    MORE_FAILING = "failing in more cases"
    UNEXPECTED = "newly unexpected"
    NO_LONGER_RUN = "passed, no longer run"
    NOT_AS_EXPECTED = "convention no longer as expected"
    LESS_ACCURATE = "less accurate"
    SLOWER = "slower"
    NO_LONGER_TIMED = "fails where it was timed"
    NEWLY_KNOWN = "newly failing, stated as known"
    CONVENTION = "changed convention"
    FAILS_OTHERWISE = "failing otherwise"
    FIXED = "fixed"
    FEWER_FAILING = "failing in fewer cases"
    NEWLY_RUN = "newly run, passing"
    MORE_ACCURATE = "more accurate"
    FASTER = "faster"
    FAILURE_NOT_RUN = "failed, no longer run"
    ADDED = "added"
    REMOVED = "removed"

    @property
    def is_worse(self) -> bool:
        """Whether a change of this kind makes the comparison fail."""
        return self in WORSE


WORSE = frozenset(
    {
        ChangeKind.NEWLY_FAILING,
        ChangeKind.FAILS_WORSE,
        ChangeKind.MORE_DTYPES,
        ChangeKind.MORE_FAILING,
        ChangeKind.UNEXPECTED,
        ChangeKind.NO_LONGER_RUN,
        ChangeKind.NOT_AS_EXPECTED,
        ChangeKind.LESS_ACCURATE,
        ChangeKind.SLOWER,
        ChangeKind.NO_LONGER_TIMED,
    }
)


@dataclass(frozen=True)
class Change:
    """One difference: of an implementation, in a requirement, a convention, a dtype or a timing."""

    kind: ChangeKind
    implementation: str
    subject: str
    before: str = ""
    after: str = ""
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """``compared`` pairs of requirement and implementation, and ``timings``; the ``changes``, the ``differences`` in what was run
    and where, and what was ``not_compared``, in sentences that say why."""

    compared: int
    timings: int
    changes: tuple[Change, ...]
    differences: tuple[str, ...]
    not_compared: tuple[str, ...]

    @property
    def worse(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind.is_worse)

    def of(self, kind: ChangeKind) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind is kind)

    @property
    def verdict(self) -> str:
        """The comparison in one sentence."""
        counts = Counter(change.kind for change in self.changes)
        told = ", ".join(f"{counts[kind]} {kind}" for kind in ChangeKind if counts[kind])
        start = "Something is worse" if self.worse else "Nothing is worse"
        compared = f"{self.compared} results" + (f" and {self.timings} timings" if self.timings else "")
        return f"{start}: {told or 'no change'} ({compared} compared)."

"""What the expectations make of outcomes."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from conformance.errors import UsageError
from conformance.expectations.model import Expected, file_stem
from conformance.records.model import Environment, StatusWord
from conformance.verdict import Outcome

# Both say "the values are wrong"; which of them a random case shows depends on what was drawn.
_WRONG_VALUES = frozenset({Outcome.WRONG_VALUE, Outcome.NONFINITE})


@dataclass(frozen=True)
class Status:
    """Whether an outcome is expected, and why it is or is not where an expectation has a say."""

    expected: bool
    reason: str = ""

    @property
    def word(self) -> StatusWord:
        return "expected" if self.expected else "unexpected"


@dataclass
class _Entry:
    """An expectation and what it has met so far."""

    number: int
    expected: Expected
    seen: set[str] = field(default_factory=set)

    @property
    def stale(self) -> list[str]:
        """What it names that was not there."""
        if self.expected.cases == "all":
            return [] if self.seen else ["it"]
        return [f"the case {digest}" for digest in self.expected.cases if digest not in self.seen]


class ImplementationExpectations:
    """The expectations that hold for one implementation, numbered as in the file ``where``, and which cases they have met."""

    def __init__(self, where: str, expected: Iterable[tuple[int, Expected]]) -> None:
        self.where = where
        self._judged: set[str] = set()
        self._entries: dict[str, list[_Entry]] = {}
        for number, one in expected:
            self._entries.setdefault(one.requirement, []).append(_Entry(number, one))

    def judge(self, requirement: str, stratum: str, digest: str, dtype: str, outcome: Outcome) -> Status:
        """What to make of a case's outcome.

        A golden or designed case that an expectation selects must have exactly that outcome. A random one may pass, or fail as an
        expectation for its dtype says (WRONG_VALUE and NONFINITE count as one).
        """
        entries = [entry for entry in self._entries.get(requirement, ()) if entry.expected.covers(dtype)]
        if stratum == "random":
            return self._judge_random(entries, outcome)
        self._judged.add(requirement)
        entry = _selecting(entries, digest)
        if entry is None:
            return Status(not outcome.is_failure)
        entry.seen.add(digest)
        return self._compare(entry, outcome)

    def judge_item(self, requirement: str, outcome: Outcome) -> Status:
        """What to make of an item that has no case to judge: it crashed, ran out of time, or was not run."""
        for entry in self._entries.get(requirement, ()):
            if entry.expected.outcome == outcome:
                return Status(True, entry.expected.reason)
        return Status(not outcome.is_failure)

    def entries(self) -> Iterator[Expected]:
        """All that hold."""
        yield from (entry.expected for entries in self._entries.values() for entry in entries)

    def unmatched(self, requirement: str | None = None) -> list[str]:
        """A sentence for each thing that an expectation names and that was not among the golden and designed cases judged so far.

        To be asked once all cases of ``requirement`` were judged; without one, of all requirements of which a case was.
        """
        return [
            f"{self.where}, entry {entry.number}: {what} matches no case of {name} that ran; remove it."
            for name in ([requirement] if requirement else sorted(self._judged))
            if name in self._judged
            for entry in self._entries.get(name, ())
            for what in entry.stale
        ]

    def _judge_random(self, entries: list[_Entry], outcome: Outcome) -> Status:
        for entry in entries:
            if entry.expected.random and alike(entry.expected.outcome, outcome):
                return Status(True, entry.expected.reason)
        return Status(not outcome.is_failure)

    def _compare(self, entry: _Entry, outcome: Outcome) -> Status:
        expected = entry.expected
        if not outcome.was_run:
            return Status(True)
        if outcome == expected.outcome:
            return Status(True, expected.reason)
        known = f"{expected.outcome} is expected ({expected.reason})"
        if outcome is Outcome.PASS:
            return Status(False, f"Passed, where {known}: remove entry {entry.number} of {self.where}, or this case from it.")
        return Status(False, f"{outcome}, where {known}.")


def _selecting(entries: list[_Entry], digest: str) -> _Entry | None:
    """The entry that selects a case: one that names it goes before one that says "all"."""
    named = [entry for entry in entries if entry.expected.cases != "all" and digest in entry.expected.cases]
    general = [entry for entry in entries if entry.expected.cases == "all"]
    return next(iter(named + general), None)


def alike(expected: Outcome, outcome: Outcome) -> bool:
    return outcome == expected or {outcome, expected} <= _WRONG_VALUES


class Expectations:
    """Expectations by implementation, as files hold them, in one environment.

    ``files`` maps an implementation's file stem, or "" for a file that holds for all, to where the file is and its entries.
    Raises UsageError where two entries that hold contradict each other.
    """

    def __init__(self, files: Mapping[str, tuple[str, tuple[Expected, ...]]], environment: Environment) -> None:
        self._files = {
            stem: (where, [(number, one) for number, one in enumerate(entries, start=1) if one.holds_in(environment)])
            for stem, (where, entries) in files.items()
        }
        for where, entries in self._files.values():
            _demand_agreement(where, entries)
        self._made: dict[str, ImplementationExpectations] = {}

    def for_(self, implementation: str) -> ImplementationExpectations:
        """Those of an implementation; the same object each time."""
        if implementation not in self._made:
            where, entries = self._files.get("") or self._files.get(file_stem(implementation), ("", []))
            self._made[implementation] = ImplementationExpectations(where, entries)
        return self._made[implementation]


def _demand_agreement(where: str, entries: Iterable[tuple[int, Expected]]) -> None:
    for (number, first), (other, second) in itertools.combinations(entries, 2):
        if first.requirement == second.requirement and first.outcome != second.outcome and _overlap(first, second):
            raise UsageError(
                f"{where}: entries {number} and {other} expect different outcomes of the same cases of {first.requirement}: "
                "narrow one of them by cases, dtypes or when."
            )


def _overlap(first: Expected, second: Expected) -> bool:
    """Whether both select the same cases with equal right."""
    if first.dtypes and second.dtypes and set(first.dtypes).isdisjoint(second.dtypes):
        return False
    if first.cases == "all" or second.cases == "all":
        return first.cases == second.cases
    return not set(first.cases).isdisjoint(second.cases)

"""What the expectations make of outcomes."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.errors import UsageError, cut
from conformance.expectations.expectation import Entry, Expectation, ExpectedAnswer, file_stem, unmet
from conformance.judging.verdict import Outcome
from conformance.problem import Problem
from conformance.records.record_types import Environment, ImplementationEntry, StatusWord
from conformance.specification import conventions, requirements

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
class _MetExpectation:
    """An expectation and what it has met so far."""

    number: int
    expected: Expectation
    seen: set[str] = field(default_factory=set)

    @property
    def stale(self) -> list[str]:
        """What it names that was not there."""
        if self.expected.cases == "all":
            return [] if self.seen else ["it"]
        return [f"the case {digest}" for digest in self.expected.cases if digest not in self.seen]


class ImplementationExpectations:
    """The expectations that hold for one implementation, numbered as in the file ``where``, and which cases they have met.

    ``elsewhere``: those that hold in other environments alone, with the condition that is not met here.
    """

    def __init__(
        self, where: str, expected: Iterable[tuple[int, Entry]], elsewhere: Iterable[tuple[int, Entry, str]] = ()
    ) -> None:
        self.where = where
        self._elsewhere = tuple(elsewhere)
        self._judged: set[str] = set()
        self._entries: dict[str, list[_MetExpectation]] = {}
        self._stated: dict[str, tuple[int, ExpectedAnswer]] = {}
        for number, one in expected:
            if isinstance(one, ExpectedAnswer):
                self._stated[one.convention] = number, one
            else:
                self._entries.setdefault(one.requirement, []).append(_MetExpectation(number, one))

    def judge(self, requirement: str, stratum: str, digest: str, dtype: str, outcome: Outcome) -> Status:
        """What to make of a case's outcome.

        A golden or designed case that an expectation selects must have exactly that outcome. A random one may pass, or fail as an
        expectation for its dtype says (WRONG_VALUE and NONFINITE count as one).
        """
        entries = [entry for entry in self._entries.get(requirement, ()) if entry.expected.covers(dtype)]
        if stratum == "random":
            return self._judge_random(requirement, entries, outcome)
        self._judged.add(requirement)
        entry = _selecting(entries, digest)
        if entry is None:
            return self._unknown(requirement, outcome)
        entry.seen.add(digest)
        return self._compare(entry, outcome)

    def judge_item(self, requirement: str, outcome: Outcome) -> Status:
        """What to make of an item that has no case to judge: it crashed, ran out of time, or was not run."""
        for entry in self._entries.get(requirement, ()):
            if entry.expected.outcome == outcome:
                return Status(True, entry.expected.reason)
        return self._unknown(requirement, outcome)

    def unasked(self, requirement: str, lack: str) -> list[str]:
        """A sentence for each expectation of ``requirement``, which could not be asked, ``lack`` being what it lacks."""
        return [
            f"{self.where}, entry {entry.number}: {entry.expected.outcome} is expected of {requirement}, which is not asked, "
            f"since {lack or 'what it needs'} is not offered; remove it."
            for entry in self._entries.get(requirement, ())
        ]

    def judge_answer(self, convention: str, answer: str | None, *, sound: bool) -> Status:
        """What to make of the answer to a convention, None where its question is unsupported. ``sound``: it is as it should be.

        An answer that is stated must be observed.
        """
        if convention not in self._stated:
            return Status(sound)
        number, expected = self._stated[convention]
        if answer == expected.answer:
            return Status(True, expected.reason)
        seen = "The question is not supported" if answer is None else f"The answer is {answer!r}"
        known = f"{expected.answer!r} is expected ({expected.reason})"
        return Status(False, f"{seen}, where {known}: correct or remove entry {number} of {self.where}.")

    def entries(self) -> Iterator[Expectation]:
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

    def _judge_random(self, requirement: str, entries: list[_MetExpectation], outcome: Outcome) -> Status:
        for entry in entries:
            if entry.expected.random and alike(entry.expected.outcome, outcome):
                return Status(True, entry.expected.reason)
        return self._unknown(requirement, outcome)

    def _unknown(self, requirement: str, outcome: Outcome) -> Status:
        """What to make of an outcome of which no expectation speaks that holds here."""
        if not outcome.is_failure:
            return Status(True)
        for number, one, condition in self._elsewhere:
            if isinstance(one, Expectation) and one.requirement == requirement and alike(one.outcome, outcome):
                return Status(False, f"Entry {number} of {self.where} expects it elsewhere: with {condition}.")
        return Status(False)

    def _compare(self, entry: _MetExpectation, outcome: Outcome) -> Status:
        expected = entry.expected
        if not outcome.was_run:
            return Status(True)
        if outcome == expected.outcome:
            return Status(True, expected.reason)
        known = f"{expected.outcome} is expected ({expected.reason})"
        if outcome is Outcome.PASS:
            return Status(False, f"Passed, where {known}: remove entry {entry.number} of {self.where}, or this case from it.")
        return Status(False, f"{outcome}, where {known}.")


def _selecting(entries: list[_MetExpectation], digest: str) -> _MetExpectation | None:
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

    def __init__(self, files: Mapping[str, tuple[str, tuple[Entry, ...]]], environment: Environment) -> None:
        self.environment = environment
        self._files = {
            stem: (where, [(number, one) for number, one in enumerate(entries, start=1) if one.holds_in(environment)])
            for stem, (where, entries) in files.items()
        }
        self._elsewhere = {
            stem: [(number, one, lack) for number, one in enumerate(entries, start=1) if (lack := unmet(one.when, environment))]
            for stem, (_, entries) in files.items()
        }
        for where, entries in self._files.values():
            _demand_agreement(where, entries)
        self._made: dict[str, ImplementationExpectations] = {}

    def demand_askable(self, implementations: Iterable[ImplementationEntry], operations: Mapping[str, str]) -> None:
        """Raises UsageError for an entry that can never match, since it speaks of what is asked of none of ``implementations``
        for which its file holds; ``operations`` maps requirements to theirs."""
        implementations = tuple(implementations)
        for stem, (where, entries) in self._files.items():
            meant = [one for one in implementations if stem in ("", file_stem(one.name))]
            for number, expected in entries if meant else ():
                problem = _never_asked(expected, meant, operations)
                if problem:
                    raise UsageError(f"{where}, entry {number}: {problem}; correct or remove the entry.")

    def inapplicable(self, implementations: Iterable[str]) -> str:
        """A sentence where the files are of other implementations alone, which is no mistake where several runs share a folder;
        empty where there are no files, or one is meant for any of these."""
        names = tuple(implementations)
        target = {f"{file_stem(name)}.toml" for name in names}
        there = {f"{stem}.toml" for stem in self._files}
        if not names or not there or "" in self._files or target & there:
            return ""
        called, others = cut(", ".join(sorted(target))), cut(", ".join(sorted(there)))
        return f"No expectation is of {cut(', '.join(names))}, which would stand in {called}; what is there is {others}."

    def for_(self, implementation: str) -> ImplementationExpectations:
        """Those of an implementation; the same object each time."""
        if implementation not in self._made:
            stem = "" if "" in self._files else file_stem(implementation)
            where, entries = self._files.get(stem, ("", []))
            self._made[implementation] = ImplementationExpectations(where, entries, self._elsewhere.get(stem, ()))
        return self._made[implementation]


def _never_asked(expected: Entry, implementations: Sequence[ImplementationEntry], operations: Mapping[str, str]) -> str:
    """Why ``expected`` can match nothing on any of ``implementations``, of which there is one at least; empty where it can."""
    names = ", ".join(one.name for one in implementations)
    if isinstance(expected, ExpectedAnswer):
        subject, about = expected.convention, conventions()[expected.convention].operations
        further = conventions()[expected.convention].output
    else:
        subject, about = expected.requirement, (operations[expected.requirement],)
        further = requirements()[expected.requirement].output
    asked = [one for one in implementations if one.operation in about]
    if asked and not any(further in one.outputs for one in asked):
        return f"{subject} is about {further}, which {names} does not return"
    if not asked:
        others = " and ".join(sorted({one.operation for one in implementations}))
        return f"{subject} is about {' and '.join(about)}, and {names} offers {others}"
    dtypes = () if isinstance(expected, ExpectedAnswer) else expected.dtypes
    strangers = [dtype for dtype in dtypes if not any(dtype in one.dtypes for one in asked)]
    return f"{names} does not declare the dtype {strangers[0]}" if strangers else ""


def _demand_agreement(where: str, entries: Iterable[tuple[int, Entry]]) -> None:
    for (number, first), (other, second) in itertools.combinations(entries, 2):
        if isinstance(first, ExpectedAnswer) and isinstance(second, ExpectedAnswer):
            if first.convention == second.convention:
                raise UsageError(f"{where}: entries {number} and {other} both state an answer to {first.convention}: remove one.")
        elif isinstance(first, ExpectedAnswer) or isinstance(second, ExpectedAnswer):
            continue
        elif first.requirement == second.requirement and first.outcome != second.outcome and _overlap(first, second):
            raise UsageError(
                f"{where}: entries {number} and {other} expect different outcomes of the same cases of {first.requirement}: "
                "narrow one of them by cases, dtypes or when."
            )


def _overlap(first: Expectation, second: Expectation) -> bool:
    """Whether both select the same cases with equal right."""
    if first.dtypes and second.dtypes and set(first.dtypes).isdisjoint(second.dtypes):
        return False
    if first.cases == "all" or second.cases == "all":
        return first.cases == second.cases
    return not set(first.cases).isdisjoint(second.cases)


def judge_timed(expectations: ImplementationExpectations, problem: Problem, outcome: Outcome) -> Status:
    """A failure is known where an expectation for its dtype and outcome is of cases that ask for no more than the call does.

    What is known to fail on special contents, or with a mask, says nothing of a plain call.
    """
    if not outcome.is_failure:
        return Status(True)
    for expected in expectations.entries():
        if expected.covers(problem.dtype) and alike(expected.outcome, outcome) and _asks_for_no_more(expected, problem):
            return Status(True, expected.reason)
    return Status(False)


def _asks_for_no_more(expected: Expectation, problem: Problem) -> bool:
    """Whether a designed case of the expectation has only features that the problem has, and ordinary contents."""
    requirement = requirements().get(expected.requirement)
    if requirement is None or requirement.operation != problem.operation:
        return False
    return any(
        case.dtype == problem.dtype and case.features <= problem.features and not case.transformations
        for case in requirement.designed()
        if expected.cases == "all" or case.digest in expected.cases
    )

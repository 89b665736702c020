"""The kill matrix: every fault goes through the real checks as an implementation, and must be caught in the quick tier.

A fault is killed in a dtype when a requirement that it names fails on it unexpectedly. Golden and designed cases are tried before
random ones, since they depend on nothing that is drawn. What only another requirement catches is *caught elsewhere*: the report
that a user would get then speaks of the wrong thing. What nothing catches *survives*.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, partial

import numpy as np

from conformance.checks.items import ItemRun
from conformance.checks.run_options import DEFAULT_SEED, TIERS, Effort
from conformance.errors import UsageError, quoted
from conformance.expectations import ImplementationExpectations
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.faults.functions import implementation_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.records.record_types import Case
from conformance.specification import requirements
from conformance.specification.requirement import Requirement, nothing
from conformance.system.threads import in_processes

FIXED = Effort(examples=0, free=False, seed=DEFAULT_SEED)  # golden and designed cases alone
QUICK = replace(FIXED, examples=TIERS["quick"])
CHUNK, MATRIX_CHUNK = 8, 64  # trials that a process takes at once
ENOUGH = 2  # cases that catch a fault, of which one may change


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A requirement that fails on a fault. ``r`` is the largest of the cases whose values are wrong, None where there are none;
    ``seconds`` of checks on the fault in this dtype had it taken by then; ``random`` where only a random case fails."""

    requirement: str
    named: bool
    outcome: str
    r: float | None
    seconds: float
    random: bool


@dataclass(frozen=True, kw_only=True)
class FaultTrial:
    """What became of one fault in one dtype: the kills in the order in which they were found.

    ``cases`` counts the different problems that catch it, as far as they were looked for; where it is one, ``only`` is its id.
    """

    fault: str
    dtype: str
    kills: tuple[Kill, ...]
    seconds: float
    cases: int = 0
    only: str = ""

    @property
    def kill(self) -> Kill | None:
        """The first by a requirement that the fault names."""
        return next((kill for kill in self.kills if kill.named), None)

    @property
    def elsewhere(self) -> Kill | None:
        """What catches it where none of its own requirements does."""
        return self.kills[0] if self.kills and self.kill is None else None

    @property
    def survived(self) -> bool:
        return not self.kills

    @property
    def thin(self) -> bool:
        """Whether it hangs by a thread: one single case of all requirements catches it."""
        return self.cases == 1


def margins(trials: Iterable[FaultTrial]) -> dict[str, float]:
    """By fault, the smallest r of its kills over its dtypes; without those that no r has killed."""
    smallest: dict[str, float] = {}
    for trial in trials:
        if trial.kill is not None and trial.kill.r is not None:
            smallest[trial.fault] = min(smallest.get(trial.fault, trial.kill.r), trial.kill.r)
    return smallest


@dataclass
class _Attempts:
    """The checks on one fault in one dtype so far."""

    fault: Fault
    dtype: str
    judge: Judge
    kills: list[Kill] = field(default_factory=list)
    seconds: float = 0.0
    cases: dict[str, str] = field(default_factory=dict)  # that catch it: ids by the texts of problems

    def attempt(self, requirement: Requirement, effort: Effort) -> None:
        """Runs a requirement, unless it has killed already. The implementation is made anew each time: what it remembers of
        earlier calls must not help to catch it."""
        if any(kill.requirement == requirement.id for kill in self.kills):
            return
        start = time.perf_counter()
        subject = Subject(implementation_of(self.fault, None if self.fault.among_dtypes else self.dtype))
        posed = requirement if effort is FIXED else replace(requirement, designed=nothing)  # those were tried before
        if self.fault.among_dtypes:
            posed = _of_dtype(posed, self.dtype)
        with np.errstate(all="ignore"):  # faults overflow where they like
            unexpected = ItemRun(posed, subject, self.judge, ImplementationExpectations("", ()), effort).run().unexpected
        self.seconds += time.perf_counter() - start
        if unexpected:
            self.kills.append(self._kill(requirement, unexpected, effort))
            for case in unexpected:
                self.cases.setdefault(case.text, case.id)

    def _kill(self, requirement: Requirement, unexpected: Sequence[Case], effort: Effort) -> Kill:
        return Kill(
            requirement=requirement.id,
            named=requirement.id in self.fault.requirements,
            outcome=max((case.outcome for case in unexpected), key=lambda outcome: outcome.severity),
            r=max((case.r for case in unexpected if case.r is not None and case.outcome is Outcome.WRONG_VALUE), default=None),
            seconds=self.seconds,
            random=effort is not FIXED,
        )

    @property
    def trial(self) -> FaultTrial:
        only = next(iter(self.cases.values())) if len(self.cases) == 1 else ""
        return FaultTrial(
            fault=self.fault.id,
            dtype=self.dtype,
            kills=tuple(self.kills),
            seconds=self.seconds,
            cases=len(self.cases),
            only=only,
        )


def _of_dtype(requirement: Requirement, dtype: str) -> Requirement:
    """``requirement`` with its designed problems in ``dtype`` alone, and none at random."""
    problems = tuple(problem for problem in requirement.designed() if problem.dtype == dtype)
    return replace(requirement, designed=lambda: problems, random=None)


def try_fault(fault: Fault, dtype: str, judge: Judge, thin: bool = False) -> FaultTrial:
    """Runs the checks on ``fault`` in ``dtype`` until the first kill, those that it names before the others; all of them where it
    is said to be equivalent. Where that kill is by a single case, and it is asked what is ``thin``, golden and designed cases are
    tried until another catches it."""
    attempts, known = _Attempts(fault, dtype, judge), requirements()
    named = [known[identifier] for identifier in fault.requirements]
    others = [one for one in known.values() if one.is_asked_of(fault.operation, fault.returns) and one not in named]
    for requirement, effort in (*_both_efforts(named), *_both_efforts(others)):
        if attempts.kills and not fault.equivalent and (not thin or effort is not FIXED or len(attempts.cases) >= ENOUGH):
            continue
        attempts.attempt(requirement, effort)
    return attempts.trial


def try_everything(pairs: Iterable[tuple[Fault, str]], judge: Judge) -> list[FaultTrial]:
    """Runs all the checks on faults in a dtype each, requirement by requirement, so that each draws its random cases once."""
    everybody = [_Attempts(fault, dtype, judge) for fault, dtype in pairs]
    for requirement, effort in _both_efforts(requirements().values()):
        for attempts in everybody:
            if requirement.is_asked_of(attempts.fault.operation, attempts.fault.returns):
                attempts.attempt(requirement, effort)
    return [attempts.trial for attempts in everybody]


def _both_efforts(asked: Iterable[Requirement]) -> Iterator[tuple[Requirement, Effort]]:
    """Golden and designed cases of all of them, then the random ones."""
    asked = list(asked)
    yield from ((requirement, FIXED) for requirement in asked)
    yield from ((requirement, QUICK) for requirement in asked if requirement.random is not None)


@dataclass(frozen=True)
class KillMatrix:
    """All trials, fault by fault as in the catalogue."""

    trials: tuple[FaultTrial, ...]
    faults: dict[str, Fault]
    complete: bool  # whether all requirements were run on all faults
    counted: bool = False  # whether a second case was looked for, so that it is known what is thin

    @property
    def judged(self) -> list[FaultTrial]:
        """Those of faults that must be caught."""
        return [trial for trial in self.trials if not self.faults[trial.fault].equivalent]

    @property
    def elsewhere(self) -> list[FaultTrial]:
        return [trial for trial in self.judged if trial.elsewhere]

    @property
    def survivors(self) -> list[FaultTrial]:
        return [trial for trial in self.judged if trial.survived]

    @property
    def thin(self) -> list[FaultTrial]:
        """Those that one single case catches; none where that is not known."""
        return [trial for trial in self.judged if trial.thin] if self.complete or self.counted else []

    @property
    def unlike(self) -> list[FaultTrial]:
        """Trials of faults said to be equivalent that are caught, so that they are not."""
        return [trial for trial in self.trials if self.faults[trial.fault].equivalent and trial.kills]

    @property
    def in_order(self) -> bool:
        """Whether every fault is caught by a requirement that it names, and none that is said to be equivalent is."""
        return not (self.elsewhere or self.survivors or self.unlike)

    def margins(self) -> dict[str, float]:
        """Those of the faults that must be caught, the weakest first."""
        return dict(sorted(margins(self.judged).items(), key=lambda pair: pair[1]))

    def victims(self) -> dict[str, tuple[str, ...]]:
        """By requirement, the faults that it kills in some dtype. Says little of requirements unless the matrix is complete."""
        killed: dict[str, dict[str, None]] = {identifier: {} for identifier in requirements()}
        for trial in self.judged:
            for kill in trial.kills:
                killed[kill.requirement][trial.fault] = None
        return {identifier: tuple(faults) for identifier, faults in killed.items()}

    def idle(self) -> tuple[str, ...]:
        """Requirements that kill nothing."""
        return tuple(identifier for identifier, faults in self.victims().items() if not faults)


def chosen(pattern: str) -> list[Fault]:
    """The faults whose id matches ``pattern`` as file names do. Raises UsageError where none does."""
    found = [fault for fault in catalogue().values() if fnmatchcase(fault.id, pattern)]
    if not found:
        raise UsageError(f"No fault matches {quoted(pattern)}: docs/faults.md lists them all.")
    return found


def run(
    faults: Sequence[Fault],
    matrix: bool = False,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
    thin: bool = False,
) -> KillMatrix:
    """Tries faults of the catalogue in all their dtypes, in so many processes, one a core if None. ``progress`` hears how many
    more trials are done. ``thin``: a second case is looked for where one alone catches a fault.

    Trials that begin with the same requirement go to the same process one after the other, where the oracle's answers are kept.
    """
    work = sorted(
        ((fault.id, dtype) for fault in faults for dtype in fault.dtypes),
        key=lambda pair: (catalogue()[pair[0]].requirements[:1], pair[1]),
    )
    trials: list[FaultTrial] = []
    size = MATRIX_CHUNK if matrix else CHUNK
    chunks = [work[start : start + size] for start in range(0, len(work), size)]
    for chunk, found in in_processes(partial(_chunk, matrix=matrix, thin=thin), chunks, processes):
        trials += found
        progress(len(chunk))
    return collect(trials, faults, matrix, thin)


def collect(trials: Iterable[FaultTrial], faults: Sequence[Fault], matrix: bool, thin: bool = False) -> KillMatrix:
    """The trials in the order of ``faults`` and their dtypes."""
    place = {pair: number for number, pair in enumerate((fault.id, dtype) for fault in faults for dtype in fault.dtypes)}
    ordered = sorted(trials, key=lambda trial: place[trial.fault, trial.dtype])
    return KillMatrix(tuple(ordered), {fault.id: fault for fault in faults}, matrix, thin)


def _chunk(pairs: Sequence[tuple[str, str]], matrix: bool, thin: bool) -> list[FaultTrial]:
    faults = [(catalogue()[identifier], dtype) for identifier, dtype in pairs]
    if matrix:
        return try_everything(faults, judge_of_process())
    return [try_fault(fault, dtype, judge_of_process(), thin) for fault, dtype in faults]


@cache
def judge_of_process() -> Judge:
    """The one with which this process does all its jobs, so that it keeps the oracle's answers."""
    return Judge()

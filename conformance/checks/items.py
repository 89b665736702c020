"""Runs an item, that is, one requirement on one implementation: its golden, designed and random cases, in this order."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from msgspec import UNSET

from conformance.adapter.known import reproduce_command
from conformance.adapter.limits import largest_score
from conformance.adapter.own_code import facts_of
from conformance.adapter.parameters import parameter_features
from conformance.cases.random import corpus, shrink
from conformance.cases.strategies import VARIANTS, Example
from conformance.checks.pictures import picture
from conformance.checks.procedures import PROCEDURES
from conformance.checks.run_options import Effort
from conformance.errors import Declined, LeftOut, ProblemError, Unsupported
from conformance.expectations import ImplementationExpectations, Status
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge, Judgement, worst
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES
from conformance.problem import Problem
from conformance.problem.returned import OUTPUT
from conformance.records.accuracy import Accuracy
from conformance.records.picture import Picture
from conformance.records.record_types import Case, Counts, DtypeResult, Item, StatusWord, Stratum
from conformance.specification.few import few
from conformance.specification.palette import LARGEST
from conformance.specification.requirement import Requirement
from conformance.values.golden import load_cases

UNEXPECTED_RANDOM_FAILURES = 3  # after so many, the rest of the random cases is left out and the first is shrunk
SHRINK_ATTEMPTS = 200
RANDOM_FAILURES_RECORDED = 8  # per item; more are counted only
LACKING_RECORDED = 5  # reasons why problems of an item were not asked
STRATA: tuple[Stratum, ...] = ("golden", "designed", "random")
PICTURES = 2  # per item, of its first failures; the shrunk one has its own


@dataclass
class ItemResult:
    """The records of an item, and the judgements that are worth printing."""

    item: Item
    cases: list[Case]
    unexpected: list[Case]


@dataclass
class _OfDtype:
    """What an item adds up in one dtype while it runs."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)
    status: StatusWord = "expected"

    @property
    def result(self) -> DtypeResult:
        ran = any(self.counts[stratum] for stratum in STRATA)
        worst_failure = max(self.failures, key=lambda outcome: outcome.severity, default=Outcome.PASS)
        return DtypeResult(outcome=worst_failure if ran else Outcome.UNSUPPORTED, status=self.status, counts=_counts(self.counts))


@dataclass
class _Tally:
    """What an item adds up while it runs."""

    counts: Counter[str] = field(default_factory=Counter)
    dtypes: dict[str, _OfDtype] = field(default_factory=dict)
    accuracy: Accuracy = field(default_factory=Accuracy)
    cases: list[Case] = field(default_factory=list)
    lacking: Counter[str] = field(default_factory=Counter)
    features: set[str] = field(default_factory=set)  # that were lacking
    inside: float = 0.0
    bitwise: list[bool] = field(default_factory=list)
    pictures: int = 0


class ItemRun:
    """One requirement on one implementation, under one set of expectations."""

    def __init__(
        self, requirement: Requirement, subject: Subject, judge: Judge, expectations: ImplementationExpectations, effort: Effort
    ) -> None:
        self.requirement = requirement
        self.subject = subject
        self.judge = judge
        self.expectations = expectations
        self.effort = effort
        self.tally = _Tally()

    def run(self) -> ItemResult:
        """All cases; what the implementation raises is an outcome, what the suite raises is the suite's fault."""
        start = time.perf_counter()
        self.called = self.subject.calls, self.subject.compiled or 0
        for stratum, problem in self._fixed_cases():
            self._case(stratum, problem)
        examples = self._random_cases()
        return self._result(time.perf_counter() - start, examples)

    def _fixed_cases(self) -> Iterator[tuple[Stratum, Problem]]:
        for case in load_cases():
            if case.requirement == self.requirement.id:
                yield "golden", case.problem
        # each shape costs a compilation; what adapts to that asks few problems in every tier
        dear = self.subject.implementation.support.compiles and (not self.effort.free or self.requirement.adapted is not None)
        for problem in few(self.requirement) if dear else self.requirement.designed():
            yield "designed", problem
        if self.requirement.adapted is not None:
            for problem in self.requirement.adapted(facts_of(self.subject.implementation, thorough=self.effort.free)):
                yield "designed", problem

    def _random_cases(self) -> int:
        """The number of examples run; stops early once unexpected failures have shown what is wrong."""
        if self.requirement.random is None or self.effort.examples == 0:
            return 0
        free = self.effort.free and not self.subject.implementation.support.compiles
        examples = corpus(self.requirement, examples=self.effort.examples, seed=self.effort.seed, free=free)
        unexpected = 0
        done = 0
        for example in examples:
            done += 1
            for problem in self._affordable(example):
                unexpected += self._case("random", problem)
            if unexpected >= UNEXPECTED_RANDOM_FAILURES:
                break
        if unexpected:
            self._shrink(free)
        return done

    def _affordable(self, example: Example) -> tuple[Problem, ...]:
        """The problems of an example, fewer where limits of shapes make them large, so that a run takes no longer."""
        try:
            size = self._fitted("random", example.problems[0]).work
        except Unsupported:
            return example.problems
        return example.problems[: max(1, len(example.problems) * LARGEST // max(size, LARGEST))]

    def _fitted(self, stratum: Stratum, problem: Problem) -> Problem:
        """The problem that is put in place of ``problem``: itself, or the nearest within the limits of shapes.

        Golden problems are frozen. Raises LeftOut where there is none.
        """
        if stratum == "golden":
            return problem
        return self.subject.fitted(problem, turn=problem.values.seed // VARIANTS if stratum == "random" else 0)

    def _judgements(self, stratum: Stratum, problem: Problem) -> tuple[Problem, list[Judgement]]:
        """The problem as it was put, and what became of it. Raises Unsupported."""
        put = self._fitted(stratum, problem)
        try:
            if put != problem:
                self._demand_alike(problem, put)
            self.subject.demand_affordable(put)
            return put, PROCEDURES[self.requirement.check](self.judge, self.subject, put)
        except ProblemError as error:
            if put == problem:
                raise
            raise LeftOut(f"no such problem within the limits: {error}") from None

    def _demand_alike(self, problem: Problem, put: Problem) -> None:
        """Raises LeftOut where float16 cannot hold the scores of the fitted problem before the scale, those of ``problem`` can:
        values are made for the width that they were designed at."""
        if problem.dtype == "float16":
            largest = float(np.finfo(np.float16).max)
            if largest_score(self.judge.inputs(put)) > largest >= largest_score(self.judge.inputs(problem)):
                raise LeftOut("scores that float16 holds at a smaller width alone")

    def _case(self, stratum: Stratum, problem: Problem) -> bool:
        """Judges one problem and notes the outcome; True for an unexpected failure."""
        tally = self.tally
        of_dtype = tally.dtypes.setdefault(problem.dtype, _OfDtype())
        try:
            put, judgements = self._judgements(stratum, problem)
        except Unsupported as lacking:
            tally.lacking[str(lacking)] += 1
            tally.features.update(_asked_in_vain(problem) if isinstance(lacking, Declined) else filter(None, [lacking.feature]))
            tally.counts["unsupported"] += 1
            tally.counts["left_out"] += isinstance(lacking, LeftOut)
            of_dtype.counts["unsupported"] += 1
            of_dtype.counts["left_out"] += isinstance(lacking, LeftOut)
            return False
        for counts in (tally.counts, of_dtype.counts):
            counts[stratum] += 1
            counts["fitted"] += put != problem
        problem = put
        for judgement in judgements:
            tally.inside += judgement.seconds
            if judgement.verdict.r is not None:
                tally.accuracy.add(problem.dtype, judgement.profile, judgement.verdict.r)
            if stratum != "random":
                for profile, r in self.judge.r_under_other_profiles(self.subject, judgement).items():
                    tally.accuracy.add(problem.dtype, profile, r)
            if judgement.bitwise is not None:
                tally.bitwise.append(judgement.bitwise)
        counting = worst(judgements)
        return self._note(stratum, problem, counting)

    def _note(self, stratum: Stratum, problem: Problem, judgement: Judgement) -> bool:
        outcome = judgement.verdict.outcome
        status = self.expectations.judge(self.requirement.id, stratum, problem.digest, problem.dtype, outcome)
        of_dtype = self.tally.dtypes[problem.dtype]
        if outcome.is_failure:
            self.tally.counts["failed"] += 1
            of_dtype.counts["failed"] += 1
            of_dtype.failures.append(outcome)
        if not status.expected:
            of_dtype.status = status.word
        unexpected = stratum == "random" and outcome.is_failure and not status.expected
        if stratum != "random" or (outcome.is_failure and self._worth_recording(unexpected)):
            self.tally.cases.append(self._record(stratum, problem, judgement, status))
        return unexpected

    def _worth_recording(self, unexpected: bool) -> bool:
        """Whether a random failure goes into the records: all that are unexpected, the first few that are known."""
        self.tally.counts["random failures"] += 1
        return unexpected or self.tally.counts["random failures"] <= RANDOM_FAILURES_RECORDED

    def _record(self, stratum: Stratum, problem: Problem, judgement: Judgement, status: Status) -> Case:
        verdict = judgement.verdict
        return Case(
            id=f"{self.requirement.id}/{problem.digest}",
            requirement=self.requirement.id,
            implementation=self.subject.implementation.name,
            stratum=stratum,
            dtype=problem.dtype,
            text=problem.text,
            route=judgement.route,
            outcome=verdict.outcome,
            message=verdict.message,
            r=verdict.r,
            index=verdict.index,
            got=verdict.got,
            want=verdict.want,
            budget=verdict.budget,
            status=status.word,
            reason=status.reason,
            repro=self._reproduced(problem) if verdict.outcome.is_failure else "",
            picture=self._picture(judgement) if verdict.outcome.is_failure else None,
            output=UNSET if verdict.output == OUTPUT or not verdict.outcome.is_failure else verdict.output,
        )

    def _reproduced(self, problem: Problem) -> str:
        return reproduce_command(problem.text, self.subject.implementation, self.requirement.check)

    def _picture(self, judgement: Judgement) -> Picture | None:
        """For the first failures only: records stay small."""
        name, problem = judgement.verdict.output, judgement.problem
        array = judgement.outputs.get(name)
        if array is None or self.tally.pictures >= PICTURES:
            return None
        expected = self.judge.expected_output(name, array.dtype.name, self.subject, problem, judgement.profile)
        drawn = picture(array, expected, self.judge.inputs(problem), judgement.verdict)
        self.tally.pictures += drawn is not None
        return drawn

    def _shrink(self, free: bool) -> None:
        """Adds the smallest random problem that fails as the first one did, in front of the others."""
        first = next(c for c in self.tally.cases if c.stratum == "random" and c.status == "unexpected")

        def fails(problem: Problem) -> bool:
            try:
                _, judgements = self._judgements("random", problem)
            except Unsupported:
                return False
            return worst(judgements).verdict.outcome is first.outcome

        smallest = shrink(
            self.requirement, fails, examples=self.effort.examples, seed=self.effort.seed, free=free, limit=SHRINK_ATTEMPTS
        )
        if smallest is None or any(self._fitted("random", smallest).text == case.text for case in self.tally.cases):
            return
        before = len(self.tally.cases)
        self.tally.pictures = 0
        self._case("random", smallest)
        self.tally.cases[:] = self.tally.cases[before:] + self.tally.cases[:before]

    def _result(self, seconds: float, examples: int) -> ItemResult:
        tally = self.tally
        ran = sum(tally.counts[stratum] for stratum in STRATA)
        unexpected = [case for case in tally.cases if case.status == "unexpected"]
        failing = [case for case in tally.cases if case.outcome.is_failure]
        reason = next((case.reason for case in failing if case.reason), "")
        status: StatusWord = "unexpected" if unexpected else "expected"
        if failing:
            outcome = max((case.outcome for case in failing), key=lambda outcome: outcome.severity)
        elif ran:
            outcome = Outcome.PASS
        elif tally.counts["unsupported"]:
            outcome, reason = Outcome.UNSUPPORTED, ", ".join(lack for lack, _ in tally.lacking.most_common(3))
        elif self.requirement.adapted is not None:
            outcome, reason = Outcome.UNSUPPORTED, f"it depends on {self.requirement.adapts_to}, and there are none"
        else:
            outcome, status, reason = Outcome.ERROR, "unexpected", "The requirement has no case at this tier."
        complaints = [*self._unmatched(), *self._too_few(examples)]
        if outcome is Outcome.UNSUPPORTED:
            complaints += self.expectations.unasked(self.requirement.id, reason)
        if complaints and not unexpected:
            status, reason = "unexpected", " ".join(complaints)
        observations: dict[str, str | bool | int | float] = {}
        if tally.bitwise:
            observations["repeats_bitwise"] = all(tally.bitwise)
        item = Item(
            requirement=self.requirement.id,
            implementation=self.subject.implementation.name,
            outcome=outcome,
            status=status,
            reason=reason,
            counts=_counts(tally.counts),
            dtypes={dtype: tally.dtypes[dtype].result for dtype in sorted(tally.dtypes, key=DTYPES.index)},
            calls=self.subject.calls - self.called[0],
            compiled=None if self.subject.compiled is None else self.subject.compiled - self.called[1],
            lacking=dict(tally.lacking.most_common(LACKING_RECORDED)),
            examples=examples,
            seconds=seconds,
            implementation_seconds=tally.inside,
            accuracy=tally.accuracy.entries(),
            without=tuple(sorted(tally.features)),
            observations=observations,
        )
        return ItemResult(item, tally.cases, unexpected)

    def _unmatched(self) -> list[str]:
        """Of expectations that match no case; not where a lower tier leaves out cases that they may name."""
        if self.requirement.adapted is not None and not self.effort.free:
            return []
        return self.expectations.unmatched(self.requirement.id)

    def _too_few(self, examples: int) -> list[str]:
        """Why the random part counts as not run: Hypothesis gave less than half of the examples asked for."""
        if self.requirement.random is None or self.tally.counts["failed"] or 2 * examples >= self.effort.examples:
            return []
        return [f"Only {examples} of {self.effort.examples} random examples were run: too few to count as a pass."]


def _asked_in_vain(problem: Problem) -> frozenset[str]:
    """The features that a declined call asked for by a parameter."""
    return problem.features & frozenset(parameter_features(problem.operation).values())


def _counts(counter: Counter[str]) -> Counts:
    return Counts(**{name: counter[name] for name in Counts.__struct_fields__})

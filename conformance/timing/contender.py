"""One implementation at one shape: prepared, judged before the timing, called in turns, judged again after it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from conformance.adapter import Clock
from conformance.adapter.routes import Route
from conformance.errors import Unsupported, end_if_forked
from conformance.harness.prepared import PreparedCall
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, verdict_of_exception
from conformance.judging.verdict import Outcome, Verdict
from conformance.judging.verdict import judge as compare
from conformance.problem import Problem
from conformance.problem.returned import OUTPUT
from conformance.records import Passes
from conformance.timing import gradients
from conformance.timing.shapes import as_offered

SECONDS_OF_A_TURN = 0.006
LEAST_IN_A_TURN, MOST_IN_A_TURN = 3, 50
LONG_SECONDS = 0.02  # a call of which one is enough for a turn


def with_seed(problem: Problem, seed: int) -> Problem:
    """``problem`` with other values."""
    return problem.but(values=replace(problem.values, seed=seed))


@dataclass
class _Placed:
    """Inputs of one problem somewhere in memory: the call that is timed, and the one that can read its output."""

    call: Callable[[], Any]
    prepared: PreparedCall


@dataclass(eq=False)
class Contender:
    """``problems`` differ in their values and are put alternately, so that an answer kept from the call before shows.

    ``rounds`` has the times of single calls by round, ``failure`` what keeps it from being timed, ``r`` the largest
    error / budget that was judged, ``output`` the first output.
    """

    subject: Subject
    clock: Clock
    passes: Passes = "forward"
    failure: Verdict | None = None
    route: Route = field(default_factory=Route)
    problems: list[Problem] = field(default_factory=list)
    first_seconds: float = 0.0
    rounds: dict[int, list[float]] = field(default_factory=dict)
    r: float | None = None
    output: np.ndarray | None = None
    _placed: list[_Placed] = field(default_factory=list)
    _both: gradients.Both | None = None
    _last: tuple[int, Any] | None = None

    @property
    def name(self) -> str:
        return self.subject.implementation.name

    @property
    def seconds(self) -> list[float]:
        """The times of all timed calls."""
        return [seconds for turn in self.rounds.values() for seconds in turn]

    @property
    def medians(self) -> dict[int, float]:
        """The median of each round."""
        return {number: median(times) for number, times in self.rounds.items()}

    def enter(self, judge: Judge, problems: list[Problem]) -> None:
        """Puts each problem once, which compiles where there is something to compile, and judges the outputs."""
        missing = self.subject.implementation.missing()
        if missing is not None:
            self.failure = Verdict(Outcome.SKIPPED, missing)
            return
        for problem in (as_offered(problem, self.subject.implementation.features) for problem in problems):
            if not self._judged(judge, problem):
                return
            self.problems.append(problem)

    def place(self, judge: Judge) -> None:
        """Puts the inputs elsewhere in memory: where arrays lie makes calls a few percent faster or slower, for as long as
        they lie there, so each round has places of its own. What compiles when it is bound stays as it is."""
        support = self.subject.implementation.support
        if self.failure is not None or (self._placed and support.binds and support.compiles):
            return
        try:
            self._placed = [self._prepared(judge, problem) for problem in self.problems]
        except BaseException as error:
            self.failure = verdict_of_exception(error)

    def turn(self, number: int) -> None:
        """The calls of round ``number``. The first ones are not counted: they find the inputs out of the caches and, where
        there are several threads, the cores taken by those of the contender before, which go on looking for work."""
        if self.failure is not None:
            return
        times: list[float] = []
        try:
            if self._call(0) < LONG_SECONDS:
                self._call(1)
                while len(times) < LEAST_IN_A_TURN or (sum(times) < SECONDS_OF_A_TURN and len(times) < MOST_IN_A_TURN):
                    times.append(self._call(len(times)))
            else:
                times.append(self._call(1))
        except BaseException as error:  # whatever an implementation raises is its own outcome
            self.failure = verdict_of_exception(error)
            return
        self.rounds[number] = times

    def peak(self) -> int | None:
        """Bytes that a call needs beyond its inputs and what it returns."""
        if self.failure is not None or self.output is None:
            return None
        grown = self.clock.peak_bytes(self._placed[0].call)
        returned = self.output.nbytes
        if self.passes == "forward+backward":
            returned += sum(self._placed[0].prepared.inputs()[name].nbytes for name in ("query", "key", "value"))
        return None if grown is None else max(0, grown - returned)

    def leave(self, judge: Judge, fresh: Problem) -> None:
        """Judges the output of the last timed call, then a call on fresh inputs."""
        if self.failure is not None or self._last is None:
            return
        which, raw = self._last
        self._last = None
        try:
            prepared = self._placed[which].prepared
            output = prepared.read(prepared.parts(raw)[OUTPUT] if self._both is None else raw[0])
        except BaseException as error:
            self.failure = verdict_of_exception(error)
            return
        self._note(judge, self.problems[which], output)
        self._placed.clear()
        if self.failure is None:
            self._judged(judge, as_offered(fresh, self.subject.implementation.features))

    def _call(self, count: int) -> float:
        which = count % len(self._placed)
        seconds, raw = self.clock.seconds(self._placed[which].call)
        end_if_forked()
        self._last = which, raw
        return seconds

    def _judged(self, judge: Judge, problem: Problem) -> bool:
        """Puts ``problem`` once; whether its output is within the budget. If not, the failure is noted."""
        try:
            problem = self.subject.resolve(problem)
            self.route = self.subject.route(problem)
            if self.passes == "forward":
                run = judge.run(self.subject, problem, self.route)
                seconds, output = run.seconds, run.output
            else:
                placed = self._prepared(judge, problem)
                seconds, raw = self.clock.seconds(placed.call)
                output = placed.prepared.read(raw[0])
        except Unsupported as lacking:
            self.failure = Verdict(Outcome.UNSUPPORTED, str(lacking))
            return False
        except Failed as failed:
            self.failure = failed.verdict
            return False
        except BaseException as error:
            self.failure = verdict_of_exception(error)
            return False
        self.first_seconds = self.first_seconds or seconds
        self.output = output if self.output is None else self.output
        self._note(judge, problem, output)
        return self.failure is None

    def _prepared(self, judge: Judge, problem: Problem) -> _Placed:
        problem = self.subject.resolve(problem)
        implementation = self.subject.implementation
        prepared = self.subject.prepare(judge.inputs(problem), self.route)
        if self.passes == "forward":
            return _Placed(prepared.run, prepared)
        self._both = self._both or gradients.differentiated(implementation, prepared)
        if self.output is None:
            self.output = prepared.read(prepared.parts(prepared.run())[OUTPUT])
        native = self.output.swapaxes(1, 2) if prepared.swap else self.output
        cotangent = gradients.cotangent_like(implementation, native, problem.values.seed)
        return _Placed(gradients.one_call(self._both, prepared, cotangent), prepared)

    def _note(self, judge: Judge, problem: Problem, output: np.ndarray) -> None:
        problem = self.subject.resolve(problem)
        support = self.subject.implementation.support
        verdict = compare(output, judge.expected(problem, judge.profile(self.subject, problem), support))
        if verdict.r is not None:
            self.r = max(self.r or 0.0, verdict.r)
        if verdict.outcome.is_failure:
            self.failure = verdict

"""One implementation at one shape: prepared, judged before the timing, called, judged again after it."""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from conformance.errors import Unsupported
from conformance.harness import PreparedCall, Subject
from conformance.judging import Failed, Judge, verdict_of_exception
from conformance.problem import Problem
from conformance.routes import Route
from conformance.verdict import Outcome, Verdict
from conformance.verdict import judge as compare

LEAST_CALLS, MOST_CALLS = 15, 400
LEAST_SECONDS, MOST_SECONDS = 0.3, 1.0  # the first with LEAST_CALLS, the second with however many there were
LEAST_IN_A_TURN, MOST_IN_A_TURN = 3, 50
SECONDS_OF_A_TURN = 0.02


def with_seed(problem: Problem, seed: int) -> Problem:
    """``problem`` with other values."""
    return problem.but(values=replace(problem.values, seed=seed))


@dataclass(eq=False)
class Contender:
    """``calls`` hold inputs of different values, taken alternately, so that an answer kept from the call before shows.

    ``rounds`` has the times of single calls by round, ``failure`` what keeps it from being timed, ``r`` the largest
    error / budget that was judged.
    """

    subject: Subject
    failure: Verdict | None = None
    route: Route = field(default_factory=Route)
    calls: list[PreparedCall] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    first_seconds: float = 0.0
    rounds: dict[int, list[float]] = field(default_factory=dict)
    r: float | None = None
    _last: tuple[int, object] | None = None

    @property
    def name(self) -> str:
        return self.subject.implementation.name

    @property
    def seconds(self) -> list[float]:
        """The times of all timed calls."""
        return [seconds for turn in self.rounds.values() for seconds in turn]

    @property
    def is_done(self) -> bool:
        """Whether there were calls enough, or no more are to come."""
        count, spent = len(self.seconds), sum(self.seconds)
        enough = (count >= LEAST_CALLS and spent >= LEAST_SECONDS) or count >= MOST_CALLS or spent >= MOST_SECONDS
        return self.failure is not None or enough

    def enter(self, judge: Judge, problems: list[Problem]) -> None:
        """Prepares a call for each problem, runs it once, which compiles where there is something to compile, and judges it."""
        missing = self.subject.implementation.missing()
        if missing is not None:
            self.failure = Verdict(Outcome.SKIPPED, missing)
            return
        for problem in problems:
            prepared = self._judged(judge, problem)
            if prepared is None:
                return
            self.calls.append(prepared)
            self.problems.append(problem)

    def turn(self, number: int) -> None:
        """The calls of round ``number``. The first one is not counted: it finds the cores taken by the threads of the contender
        before it, which go on looking for work for some milliseconds, and its own threads asleep."""
        times = self.rounds[number] = []
        for count in range(1 + MOST_IN_A_TURN):
            which = count % len(self.calls)
            prepared = self.calls[which]
            try:
                start = time.perf_counter()
                raw = prepared.run()
                seconds = time.perf_counter() - start
            except BaseException as error:
                self.failure = verdict_of_exception(error)
                return
            self._last = which, raw
            if count:
                times.append(seconds)
            if len(times) >= LEAST_IN_A_TURN and sum(times) >= SECONDS_OF_A_TURN:
                return

    def leave(self, judge: Judge, fresh: Problem) -> None:
        """Judges the output of the last timed call, then a call on fresh inputs."""
        if self.failure is not None or self._last is None:
            return
        which, raw = self._last
        self._last = None
        try:
            output = self.calls[which].read(raw)
        except BaseException as error:
            self.failure = verdict_of_exception(error)
            return
        self._note(judge, self.problems[which], output)
        self.calls.clear()
        if self.failure is None:
            self._judged(judge, fresh)

    def _judged(self, judge: Judge, problem: Problem) -> PreparedCall | None:
        """The call prepared for ``problem``, run once and within its budget; None, with the failure noted, if it is not."""
        try:
            problem = self.subject.resolve(problem)
            self.route = self.subject.route(problem)
            run = judge.run(self.subject, problem, self.route)
        except Unsupported as lacking:
            self.failure = Verdict(Outcome.UNSUPPORTED, str(lacking))
            return None
        except Failed as failed:
            self.failure = failed.verdict
            return None
        self.first_seconds = self.first_seconds or run.seconds
        self._note(judge, problem, run.output)
        return run.prepared if self.failure is None else None

    def _note(self, judge: Judge, problem: Problem, output: np.ndarray) -> None:
        problem = self.subject.resolve(problem)
        verdict = compare(output, judge.expected(problem, judge.profile(self.subject, problem)))
        if verdict.r is not None:
            self.r = max(self.r or 0.0, verdict.r)
        if verdict.outcome.is_failure:
            self.failure = verdict

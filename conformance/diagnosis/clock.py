"""The time that a diagnosis may take, and how much of it the implementation's calls do."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from conformance.harness.prepared import PreparedCall
from conformance.harness.subject import Subject
from conformance.judging.judge import CompletedCall, Judge

STRETCH = 4.0  # how much longer by the wall clock, where other processes have the processor


class TimeBudget:
    """Counts from when it is made: the processor time of this thread, so that what is found does not depend on what else runs,
    and what calls of the implementation take beyond that, in other threads or asleep; and up to ``stretch`` times as much by the
    wall clock."""

    def __init__(self, seconds: float, stretch: float = STRETCH) -> None:
        self.seconds, self.stretch = seconds, stretch
        self._start, self._processor = time.perf_counter(), time.thread_time()
        self._waited = 0.0

    @property
    def spent(self) -> float:
        """By the wall clock."""
        return time.perf_counter() - self._start

    @property
    def busy(self) -> float:
        """What it would be by the wall clock if nothing else ran."""
        return time.thread_time() - self._processor + self._waited

    def left(self, share: float = 1.0) -> bool:
        """Whether less than ``share`` of the time is spent."""
        return self.busy < share * self.seconds and self.spent < share * self.stretch * self.seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Counts by the wall clock what happens meanwhile."""
        start, processor = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self._waited += max(0.0, time.perf_counter() - start - (time.thread_time() - processor))


class OutOfTime(Exception):
    """A call was not made, since there is no time for it."""


class TimedJudge(Judge):
    """A judge whose calls of the implementation move ``clock`` on, as long as they take. What ``judge`` has kept is shared."""

    def __init__(self, judge: Judge, clock: TimeBudget) -> None:
        super().__init__(shares=judge)
        self._clock, self._until = clock, float("inf")

    def run_prepared(self, prepared: PreparedCall, subject: Subject) -> CompletedCall:
        if not self._clock.left(self._until):
            raise OutOfTime
        with self._clock.waiting():
            return super().run_prepared(prepared, subject)

    @contextmanager
    def until(self, share: float) -> Iterator[None]:
        """Calls beyond this share of the time raise OutOfTime meanwhile."""
        self._until = share
        try:
            yield
        finally:
            self._until = float("inf")

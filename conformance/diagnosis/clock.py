"""The time that a diagnosis may take."""

import time

STRETCH = 3.0  # how much longer by the wall clock, where other processes have the processor


class Clock:
    """Counts from when it is made: the processor time of this thread, so that what is found does not depend on what else runs,
    and up to STRETCH times as much by the wall clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start, self._busy = time.perf_counter(), time.thread_time()

    @property
    def spent(self) -> float:
        """By the wall clock."""
        return time.perf_counter() - self._start

    def left(self, share: float = 1.0) -> bool:
        """Whether less than ``share`` of the time is spent."""
        busy = time.thread_time() - self._busy
        return busy < share * self.seconds and self.spent < share * STRETCH * self.seconds

"""How long the threads of this process have waited for a core, as Linux's scheduler counts it."""

import os
import time
from pathlib import Path

_TASKS = Path("/proc/self/task")
LIST_SECONDS = 0.05  # between looks at which threads there are


class Waiting:
    """The sum over the threads of this process; 0 where the system does not count it."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._listed = float("-inf")

    def look_for_threads(self) -> None:
        """Counts those too that have begun since; rarely, because it takes longer than a short call."""
        if time.monotonic() - self._listed < LIST_SECONDS:
            return
        self._listed = time.monotonic()
        try:
            now = set(os.listdir(_TASKS))
        except OSError:
            return
        for thread in self._files.keys() - now:
            os.close(self._files.pop(thread))
        for thread in now - self._files.keys():
            try:
                self._files[thread] = os.open(_TASKS / thread / "schedstat", os.O_RDONLY)
            except OSError:  # it has ended, or the kernel keeps no statistics
                continue

    def seconds(self) -> float:
        return sum(map(_run_delay, self._files.values())) / 1e9

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _run_delay(file: int) -> int:
    """Nanoseconds on a run queue: the second number of schedstat (Documentation/scheduler/sched-stats.rst)."""
    try:
        return int(os.pread(file, 64, 0).split()[1])
    except (OSError, IndexError):
        return 0

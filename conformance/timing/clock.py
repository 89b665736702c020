"""The clock of the host, and how much memory a call needs at its peak."""

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

from conformance.adapter import Clock, Implementation, KeepsTime
from conformance.timing.waiting import Waiting

# Of malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD.
_STEADY = {-8: 1, -3: 32 << 20, -1: 256 << 20}


class HostClock:
    """Wall time; memory as the peak of what the process has resident, where the system lets that be reset (Linux).

    ``alone``: implementations have one thread each, so that it can be told what a call lost to other work of the machine, and be
    taken off: the time that its threads were ready to run and had no core (Linux), down to the processor time that it took. With
    some fifteen other processes on two cores, wall time made an implementation up to 18 % faster than itself; this, 1 %.
    """

    def __init__(self, alone: bool) -> None:
        self._waiting = Waiting() if alone else None
        self.wall = self.lost = 0.0

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        if self._waiting is None:
            start = time.perf_counter()
            result = call()
            return time.perf_counter() - start, result
        self._waiting.look_for_threads()
        waited, used, start = self._waiting.seconds(), time.process_time(), time.perf_counter()
        result = call()
        elapsed = time.perf_counter() - start
        used, waited = time.process_time() - used, self._waiting.seconds() - waited
        seconds = min(elapsed, max(elapsed - waited, used))
        self.wall += elapsed
        self.lost += elapsed - seconds
        return seconds, result

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()

    def peak_bytes(self, call: Callable[[], Any]) -> int | None:
        """Free memory is given back to the system first: what the allocator had kept would otherwise be used again unseen.

        Correct to some pages for each thread, which is how Linux counts. A process of its own for each call would tell
        the same, and costs the imports of a framework each time.
        """
        if not _give_back_free_memory() or not _reset_peak():
            return None
        before = _peak()
        result = call()
        after = _peak()
        del result
        return None if before is None or after is None else max(0, after - before)


def clock_of(implementation: Implementation, alone: bool) -> Clock:
    """The clock that the framework has for the implementation's device, else the host's; ``alone``: see there."""
    framework = implementation.framework
    own = framework.clock(implementation.support.device) if isinstance(framework, KeepsTime) else None
    return own or HostClock(alone)


def steady_heap() -> None:
    """Brings glibc's allocator into the state of a process that has run for long, for this process and for good.

    Its thresholds grow with what is freed, to 32 MiB at most, below which memory stays in the heap when it is freed. Until then,
    the place of the inputs decides whether the end of the heap is given back and fetched again in each call: the same call then
    takes 0.13 or 1.8 ms. One heap for all threads, since of the others' no free memory can be given back when peaks are measured.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for setting, value in _STEADY.items():
            mallopt(setting, value)


def _give_back_free_memory() -> bool:
    """False where the allocator is not glibc's."""
    if sys.platform != "linux":
        return False
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return False
    trim(0)
    return True


def _reset_peak() -> bool:
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # proc(5): resets the peak resident set size
    except OSError:
        return False
    return True


def _peak() -> int | None:
    """The peak resident set size in bytes, since it was last reset."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return None

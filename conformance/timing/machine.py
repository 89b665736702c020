"""What the machine has while it is timed: how many threads there are, what else it does."""

import os

from threadpoolctl import threadpool_info


def threads() -> str:
    """The thread pools of the numerical libraries loaded by now, such as ``openblas 2, openmp 2``."""
    pools = {f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()}
    return ", ".join(sorted(pools)) or "unknown"


def load() -> str:
    """The load average of the last minute beside the number of cores; "unknown" where the system keeps none."""
    average = _load_average()
    return "unknown" if average is None else f"{average:.1f} on {os.cpu_count()} cores"


def is_busy() -> bool:
    """Whether other work takes a core: threads that wait for each other then wait for it, milliseconds at a time."""
    average = _load_average()
    return average is not None and average > 0.75


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows
        return None

"""NumPy with a clock of the test's own, so that no test looks at how long anything takes."""

from typing import Any

from conformance.adapter import Clock, registry

NUMPY = registry.frameworks()["numpy"]


class Clocked:
    """NumPy, its time kept by a given clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(NUMPY, name)

    def clock(self, device: str) -> Clock:
        return self._clock

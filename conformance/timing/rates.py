"""The rate of the machine's own matrix product, which no attention can exceed for long."""

import numpy as np

from conformance.timing.contender import Contender

# Large enough for the full rate; on a CPU a product takes a few milliseconds, short enough to escape what else the machine does.
SIZES = {"cpu": 512}
SIZE_OF_OTHERS = 8192
REPETITIONS = 10


class Rates:
    """The best rate so far, by device: a reference that was disturbed, or a library that does not use all instructions of the
    processor, must not make an implementation look faster than the machine."""

    def __init__(self) -> None:
        self._best: dict[str, float] = {}

    def of(self, device: str) -> float:
        """Floating-point operations a second; 0 where none was measured."""
        return self._best.get(device, 0.0)

    def again(self, contenders: list[Contender]) -> None:
        """Measures the product of two large float32 matrices, ``@``, in each framework of the contenders."""
        for contender in {c.subject.implementation.framework.name: c for c in contenders}.values():
            device = contender.subject.implementation.support.device
            self._best[device] = max(self.of(device), _rate(contender, SIZES.get(device, SIZE_OF_OTHERS)))


def _rate(contender: Contender, size: int) -> float:
    implementation = contender.subject.implementation
    framework = implementation.framework
    matrix = framework.from_numpy(np.ones((size, size), np.float32), implementation.support.device)
    best = min(contender.clock.seconds(lambda: framework.wait(matrix @ matrix))[0] for _ in range(REPETITIONS))
    return 2.0 * size**3 / best

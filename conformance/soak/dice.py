"""Choices made from a seed and a number, so that each problem of a soak test can be drawn alone."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

_T = TypeVar("_T")


class Dice:
    """Philox4x64 keyed by the soak test's seed and the problem's number."""

    def __init__(self, seed: int, number: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(key=np.array([seed, number], dtype=np.uint64)))

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.between(0, len(choices) - 1)]

    def often(self, probability: float) -> bool:
        return bool(self._generator.random() < probability)

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self._generator.integers(low, high + 1))

    def size(self, low: int, high: int) -> int:
        """A whole number, each octave as likely as the others."""
        return min(high, int(low * ((high + 1) / low) ** self._generator.random()))

    def seed(self) -> int:
        return self.between(0, 2**31 - 1)

"""Random numbers that are the same bits on every machine and NumPy version.

NumPy keeps the raw output of its bit generators stable, not its distributions; so numbers are made here from Philox words
by integer operations, + − × ÷ √ and ldexp, which IEEE 754 defines to the last bit.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.random.bit_generator import ISeedSequence

_SQRT_3 = np.sqrt(3.0)
_SECOND_QUARTERS, _LOW_HALF = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00000000FFFFFFFF)
_FIRST = ("query", "key", "value", "mask", "bias", "edit", "weights", "lengths")  # others are numbered by their names
_TAGS = {name: number for number, name in enumerate(_FIRST, 1)}


class _Key(ISeedSequence):
    """A key as it is. Philox given it by name would draw entropy from the system first, which takes longer than most problems'
    words."""

    def __init__(self, *words: int) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> np.ndarray:
        return self._words


class Stream:
    """Philox4x64 keyed by a seed and the name of the tensor that it fills."""

    def __init__(self, seed: int, tag: str) -> None:
        key: Any = _Key(
            seed, _TAGS.get(tag) or int.from_bytes(tag.encode()[:8], "little")
        )  # NumPy's stubs know of its own subclass alone
        self._philox = np.random.Philox(key)

    def words(self, shape: tuple[int, ...]) -> Int[np.ndarray, "..."]:
        """64-bit words."""
        count = math.prod(shape)
        return self._philox.random_raw(count).reshape(shape)

    def uniform(self, *shape: int) -> Float[np.ndarray, "..."]:
        """Odd multiples of 2⁻³³ in (0, 1)."""
        return np.ldexp((self.words(shape) >> np.uint64(32)).astype(np.float64) + 0.5, -32)

    def below(self, bound: int, *shape: int) -> Int[np.ndarray, "..."]:
        """Whole numbers 0 … bound − 1 (bias below bound · 2⁻³²)."""
        return ((self.words(shape) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)

    def normal(self, *shape: int) -> Float[np.ndarray, "..."]:
        """Mean 0, variance 1, bell-shaped: four uniform 16-bit numbers of one word added (Irwin–Hall), |x| < 2·√3."""
        words = self.words(shape)
        pairs = (words & _SECOND_QUARTERS) + (words >> np.uint64(16) & _SECOND_QUARTERS)
        total = ((pairs & _LOW_HALF) + (pairs >> np.uint64(32))).astype(np.int64)
        return np.ldexp((total - 131070).astype(np.float64), -16) * _SQRT_3

    def signs(self, *shape: int) -> Float[np.ndarray, "..."]:
        """−1 or 1."""
        return np.where(self.words(shape) >> np.uint64(63), 1.0, -1.0)

    def permutation(self, count: int) -> Int[np.ndarray, " count"]:
        """A permutation of ``range(count)``, never the identity for count > 1."""
        order = np.argsort(self.words((count,)), kind="stable")
        return np.roll(order, 1) if count > 1 and (order == np.arange(count)).all() else order

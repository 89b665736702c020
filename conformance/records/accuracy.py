"""The distribution of r = error / budget per dtype and numerics profile, in bins, so that runs can be merged.

A bin is an eighth of an octave: the median that it gives is within 4.5 % of the true one, and memory does not grow.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from conformance.records.data import Count, Data, Number, Word
from conformance.renamed import profile_of_today

ZERO, INFINITE = "zero", "inf"
BINS_PER_OCTAVE = 8
LARGEST_EXPONENT = 1024  # of a power of two beyond which no float is

Bin = Annotated[str, Meta(pattern=r"^(zero|inf|-?[0-9]{1,4})$(?!\n)")]


class AccuracyEntry(Data, frozen=True, kw_only=True):
    """How r = error / budget is distributed in one dtype under one numerics profile. The bin of r is ⌊8·log2 r⌋, "zero" for
    r = 0, "inf" where no number is large enough."""

    NUMBERS = ("max",)

    dtype: Word
    profile: Word
    count: Count
    max: Number
    histogram: dict[Bin, Count]

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "profile", profile_of_today(self.profile))
        if sum(self.histogram.values()) != self.count:
            raise ValueError("the histogram of an accuracy does not count every r")


def bin_of(r: float) -> str:
    """The bin of r ≥ 0: ⌊8·log2 r⌋ as text, "zero" for 0, "inf" for infinity and NaN."""
    if r == 0:
        return ZERO
    if not r < math.inf:
        return INFINITE
    return str(math.floor(BINS_PER_OCTAVE * math.log2(r)))


def middle_of(name: str) -> float:
    """The geometric middle of a bin."""
    if name == ZERO:
        return 0.0
    if name == INFINITE:
        return math.inf
    exponent = (int(name) + 0.5) / BINS_PER_OCTAVE
    return math.exp2(exponent) if exponent < LARGEST_EXPONENT else math.inf


@dataclass
class Distribution:
    """How many r there were, the largest, and how many in each bin."""

    count: int = 0
    max: float = 0.0
    histogram: Counter[str] = field(default_factory=Counter)

    def add(self, r: float) -> None:
        self.count += 1
        self.max = max(self.max, math.inf if math.isnan(r) else r)
        self.histogram[bin_of(r)] += 1

    def merge(self, count: int, largest: float, histogram: Mapping[str, int]) -> None:
        self.count += count
        self.max = max(self.max, largest)
        self.histogram.update(histogram)

    @property
    def median(self) -> float:
        """The lower median, as the middle of its bin, never above the maximum; NaN where there is no r."""
        if not self.count:
            return math.nan
        seen = 0
        for name in sorted(self.histogram, key=middle_of):
            seen += self.histogram[name]
            if 2 * seen >= self.count:
                return min(middle_of(name), self.max)
        raise AssertionError("a histogram counts every r")


class Accuracy:
    """Distributions by (dtype, profile). ``entries`` gives what a record holds, ``Accuracy.of`` the way back and the merging."""

    def __init__(self) -> None:
        self.distributions: dict[tuple[str, str], Distribution] = {}

    def add(self, dtype: str, profile: str, r: float) -> None:
        """Counts one judged output."""
        self._of(dtype, profile).add(r)

    def merge(self, entries: Iterable[AccuracyEntry]) -> None:
        """Adds what a record counted."""
        for entry in entries:
            self._of(entry.dtype, entry.profile).merge(entry.count, entry.max, entry.histogram)

    def entries(self) -> tuple[AccuracyEntry, ...]:
        """As a record has it, ordered by dtype and profile."""
        return tuple(
            AccuracyEntry(dtype=dtype, profile=profile, count=d.count, max=d.max, histogram=dict(d.histogram))
            for (dtype, profile), d in sorted(self.distributions.items())
        )

    @classmethod
    def of(cls, *several: Iterable[AccuracyEntry]) -> "Accuracy":
        """All that the given records counted, together."""
        accuracy = cls()
        for entries in several:
            accuracy.merge(entries)
        return accuracy

    def _of(self, dtype: str, profile: str) -> Distribution:
        key = (dtype, profile)
        if key not in self.distributions:
            self.distributions[key] = Distribution()
        return self.distributions[key]

"""The arithmetic of measurements: paired ratios with their interval, and the exponents of power laws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
TOLERANCE = 0.03  # of a run against itself


@dataclass(frozen=True)
class Ratio:
    """A median of paired ratios and the ends of its bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def paired_ratio(own: Mapping[int, float], other: Mapping[int, float]) -> Ratio | None:
    """The median, over the rounds that both took part in, of own time / other time; None where there is no such round."""
    ratios = [own[number] / other[number] for number in own if number in other]
    if not ratios:
        return None
    return Ratio(float(np.median(ratios)), *median_interval(ratios))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The percentile bootstrap interval of the median (Efron & Tibshirani 1993, section 13.3), CONFIDENCE wide.

    ``scipy.stats.bootstrap`` does the same; SciPy would be a heavy dependency for these three lines.
    """
    resampled = np.random.default_rng(0).choice(np.asarray(values, np.float64), (RESAMPLES, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.median(resampled, axis=1), (tail, 1 - tail))
    return float(low), float(high)


def exponent(lengths: Sequence[int], amounts: Sequence[float | None]) -> float | None:
    """The p of amount ∝ length^p, by least squares of the logarithms; None where fewer than three amounts are above 0."""
    pairs = [(n, amount) for n, amount in zip(lengths, amounts, strict=True) if amount is not None and amount > 0]
    if len(pairs) < 3:
        return None
    x, y = np.log(np.array(pairs, np.float64)).T
    x -= x.mean()
    return float((x @ y) / (x @ x))

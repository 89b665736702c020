"""The distribution of r: its median from bins, and the merging of distributions."""

import math
import random
import statistics

import pytest

from conformance.records.accuracy import Accuracy, Distribution


def distribution(*values: float) -> Distribution:
    made = Distribution()
    for value in values:
        made.add(value)
    return made


@pytest.mark.parametrize("seed", range(5))
def test_median_is_near_the_true_one(seed: int) -> None:
    values = [random.Random(seed).lognormvariate(-2.0, 1.5) for _ in range(1001)]
    made = distribution(*values)
    assert made.median == pytest.approx(statistics.median(values), rel=0.045)
    assert made.max == max(values)
    assert made.count == 1001


def test_median_of_exact_values() -> None:
    assert distribution(0.0, 0.0, 0.7).median == 0.0
    assert distribution(0.9, 0.9).median <= 0.9
    assert distribution(0.5, math.inf, math.inf).median == math.inf
    assert math.isnan(Distribution().median)


def test_nan_counts_as_infinite() -> None:
    made = distribution(0.5, math.nan)
    assert made.max == math.inf
    assert made.count == 2


def test_subnormal_and_huge_values_have_bins() -> None:
    made = distribution(5e-324, 1e308)
    assert made.max == 1e308
    assert sum(made.histogram.values()) == 2


def test_merged_parts_equal_the_whole() -> None:
    values = [random.Random(3).uniform(0, 2) for _ in range(200)]
    whole, first, second = Accuracy(), Accuracy(), Accuracy()
    for place, value in enumerate(values):
        whole.add("float32", "strict", value)
        (first if place % 3 else second).add("float32", "strict", value)
    second.add("float16", "unfused", 0.5)
    whole.add("float16", "unfused", 0.5)
    assert Accuracy.of(first.entries(), second.entries()).entries() == whole.entries()


def test_profiles_and_dtypes_are_kept_apart() -> None:
    accuracy = Accuracy()
    accuracy.add("float16", "fused", 0.25)
    accuracy.add("float16", "unfused", 0.125)
    accuracy.add("bfloat16", "unfused", 0.75)
    assert [(entry.dtype, entry.profile, entry.max) for entry in accuracy.entries()] == [
        ("bfloat16", "unfused", 0.75),
        ("float16", "fused", 0.25),
        ("float16", "unfused", 0.125),
    ]

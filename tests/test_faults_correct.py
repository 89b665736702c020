"""No false positive: what is right is right however it is computed, and what is not is reported."""

from pathlib import Path

import numpy as np
import pytest

from conformance.adapter.registry import resolve
from conformance.evaluation import false_positives
from conformance.evaluation.correct_list import specs, variants
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES
from conformance.problem import parse

PROBLEMS = [
    "attention batch=2 heads=6/2 length=7/13 width=8/11 dtype={} values=spread.1#5 mask=random.1:b1qk#3 bias=gaussian.1:qk#4",
    "attention batch=1 heads=2/2 length=13/13 width=8/8 dtype={} values=peaked.1#5 causal=top-left",
    "attention batch=2 heads=3/3 length=1/13 width=8/8 dtype={} values=all-low.1*-1000.0#5 lengths=13,2 scale=0.5",
    "attention batch=1 heads=1/1 length=65/67 width=8/8 dtype={} values=flat.1#5 causal=bottom-right",
]


@pytest.mark.parametrize("name", variants())
def test_variants_are_right_in_every_dtype_that_they_offer(name):
    judge, subject = Judge(), Subject(variants()[name])
    for dtype in subject.implementation.support.dtypes:
        for text in PROBLEMS:
            judgement = judge.values(subject, parse(text.format(dtype)))
            assert judgement.verdict.outcome is Outcome.PASS, judgement.verdict.message


def test_variants_cover_all_dtypes_and_several_profiles():
    assert len(variants()) >= 6
    supports = [implementation.support for implementation in variants().values()]
    assert {dtype for support in supports for dtype in support.dtypes} == set(DTYPES)
    assert {support.profile_for("float16") for support in supports} == {
        "inner32",
        "inner32+lse",
        "inner32+merges",
        "fused",
        "fused_q",
        None,
    }


def test_variants_are_different_computations():
    judge, outputs = Judge(), []
    problem = parse("attention batch=1 heads=1/1 length=65/67 width=8/8 dtype=float32 values=spread.1#5")
    for implementation in variants().values():
        if "float32" in implementation.support.dtypes:
            outputs.append(judge.values(Subject(implementation), problem).output.tobytes())
    assert len(set(outputs)) == len(outputs) >= 6


def test_rows_without_keys_stay_finite():
    problem = parse("attention batch=1 heads=1/1 length=13/13 width=8/8 dtype=float32 values=spread.1#5 mask=empty-rows.1:b1qk#1")
    subject = Subject(variants()["correct-odd-tiles"])
    assert np.isfinite(Judge().values(subject, problem).output).all()


@pytest.fixture(scope="module")
def found():
    return false_positives.run_seed(("correct-odd-tiles", "correct-rounded-weights", "numpy-sinusoidal"), seed=5, fixed=False)


def test_a_seed_judges_random_cases_and_finds_nothing(found):
    assert found.cases > 500 and not found.found
    text = false_positives.render(found, 1)
    assert "False positives: 0." in text and "fused" in text and "slack" not in text


def test_designed_cases_are_judged_with_the_first_seed_only():
    first, later = (false_positives.run_seed(("numpy-sinusoidal",), seed=5, fixed=fixed) for fixed in (True, False))
    assert first.cases > later.cases


def test_a_false_false_positive_is_named_and_slack_is_warned_of(found):
    wrong = false_positives.FalsePositives(
        1, [false_positives.FalsePositive("correct-odd-tiles", "ATT-OUT-004", Outcome.WRONG_VALUE, 1.5, "some problem")]
    )
    wrong.merge(found)
    text = false_positives.render(wrong, 1)
    assert "correct-odd-tiles, ATT-OUT-004: WRONG_VALUE, r = 1.5: some problem" in text and "False positives: 1." in text
    entry = next(entry for entry in found.accuracy["correct-odd-tiles"] if entry.dtype == "float32")
    small = type(entry)(dtype="float32", profile="strict", count=1, max=0.01, histogram={"-54": 1})
    assert "slack" in false_positives.render(false_positives.FalsePositives(1, accuracy={"one": (small,)}), 1)


def test_what_cannot_run_is_named():
    elsewhere = false_positives.FalsePositives(missing={"torch-sdpa-math": "PyTorch is not installed."})
    assert "torch-sdpa-math did not run: PyTorch is not installed." in false_positives.render(elsewhere, 1)


def test_the_document_names_the_profile_of_each_way_to_be_right():
    document = (Path(__file__).parent.parent / "docs" / "budget.md").read_text(encoding="utf-8")
    section = document.split("### Ways to be right")[1].split("An adapter declares")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    for name, implementation in variants().items():
        (row,) = [row for row in rows if f"`{name.removeprefix('correct-')}`" in row]
        _, _, full, half, _ = row.split("|")
        for dtype in implementation.support.dtypes:
            profile = implementation.support.profile_for(dtype)
            assert f"`{profile}`" in (half if dtype in ("float16", "bfloat16") else full), (name, dtype)


def test_each_way_to_be_right_can_be_named_for_the_soak():
    assert [resolve(spec).name for spec in specs()] == list(variants())

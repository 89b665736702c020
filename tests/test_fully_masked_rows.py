"""Fully masked rows: which answers are known, whatever hides the keys, and that nothing else passes."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.checks.fully_masked_rows import judge_fully_masked_rows
from conformance.checks.procedures import PROCEDURES
from conformance.faults.steps import compute
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.oracle import expect
from conformance.problem import parse
from conformance.problem.visibility import visible_pairs
from conformance.records import read_records
from conformance.values import materialise
from tests import fake_conventions as fakes
from tests.support.commands import run_command

PROBLEMS = [
    "attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=spread.1#1 mask=empty-rows.1:b1qk#1",
    "attention batch=2 heads=4/2 length=7/13 width=8 dtype=bfloat16 values=spread.1#1 bias=empty-rows.1:bhqk#1",
    "attention batch=2 heads=3 length=13/7 width=8 dtype=float16 values=spread.1#1 causal=bottom-right",
    "attention batch=2 heads=3 length=7/13 width=8 dtype=float64 values=spread.1#1 lengths=0,7",
    "attention batch=2 heads=3 length=7 width=8 dtype=float32 values=spread.1#1 mask=left-padding.1:b11k#46 causal=top-left",
]
MULTI_HEAD = (
    "multi_head_attention batch=2 heads=3 length=7 model=15 inner=15 dtype=float32 values=gaussian.1#1 source=self "
    "projection=bias output=bias mask=empty-rows.1:b1qk#1"
)


def filled(text, given):
    """The inputs, and the right output with ``given`` in the fully masked rows."""
    inputs = materialise(parse(text))
    output = compute(inputs)
    empty = ~visible_pairs(inputs).any(-1)
    assert empty.any() and not empty.all()
    output[empty] = np.broadcast_to(given, output.shape)[empty]
    return inputs, output


def mean_of_all(text):
    inputs = materialise(parse(text))
    mean = inputs.value.astype(np.float64).mean(axis=2, keepdims=True)
    return np.repeat(mean, inputs.query.shape[1] // inputs.value.shape[1], axis=1)


@pytest.mark.parametrize("text", PROBLEMS)
def test_zeros_nan_and_the_mean_are_known(text):
    for given in (0.0, -0.0, np.nan, mean_of_all(text)):
        inputs, output = filled(text, given)
        assert judge_fully_masked_rows(output, inputs).outcome is Outcome.PASS


@pytest.mark.parametrize("text", PROBLEMS)
def test_nothing_else_is(text):
    half = mean_of_all(text) / 2
    torn = np.where(np.arange(8) == 3, np.nan, 0.0)
    noise = np.random.default_rng(1).normal(size=filled(text, 0.0)[1].shape)
    for given, outcome in ((half, "WRONG_VALUE"), (noise, "WRONG_VALUE"), (torn, "NONFINITE"), (np.inf, "NONFINITE")):
        inputs, output = filled(text, given)
        verdict = judge_fully_masked_rows(output, inputs)
        assert verdict.outcome == outcome
        assert "is fully masked" in verdict.message


def test_a_mean_is_also_of_the_keys_that_one_of_two_leaves():
    """Causal hides by −∞, the mask by a finite fill: the row that both leave empty is the mean of what causal leaves."""
    inputs, output = filled(PROBLEMS[4], 0.0)
    seen = np.tri(7) / np.tri(7).sum(1, keepdims=True)
    empty = ~visible_pairs(inputs).any(-1)
    output[empty] = (seen @ inputs.value.astype(np.float64))[empty]
    assert judge_fully_masked_rows(output, inputs).outcome is Outcome.PASS


def test_through_projections_it_is_what_they_make_of_the_known_answers():
    inputs = materialise(parse(MULTI_HEAD))
    rows = np.s_[:, ::3]
    output = compute(inputs)
    everything = expect(inputs.but(mask=None, weights=replace(inputs.weights, query=0 * inputs.weights.query)), "strict")
    equal = replace(inputs.weights, query=0 * inputs.weights.query, query_bias=0 * inputs.weights.query_bias)
    mean = expect(inputs.but(mask=None, weights=equal), "strict").output.astype(np.float32)
    assert not np.allclose(everything.output, mean)
    for given, outcome in (
        (mean, "PASS"),
        (inputs.weights.output_bias, "PASS"),
        (np.nan, "PASS"),
        (0.0, "PASS"),
        (1.0, "WRONG_VALUE"),
    ):
        output[rows] = np.broadcast_to(given, output.shape)[rows]
        assert judge_fully_masked_rows(output, inputs).outcome == outcome


def test_what_is_no_answer_by_one_way_alone_fails_the_requirement_and_the_run(tmp_path):
    completed = run_command(
        "run", "--implementation", f"{fakes.FILE}:noise_where_a_bias_hides_all", "--tier", "quick", "--no-timing", "-n", "0",
        "-k", "MASK-043 or MASK-008", "--reports", str(tmp_path),
    )  # fmt: skip
    assert completed.returncode == 1
    assert "UNEXPECTED WRONG_VALUE" in completed.stdout
    assert "Fully masked rows give none of the known answers: ATT-MASK-043." in completed.stdout
    outcomes = {item.requirement: item.outcome for item in read_records(tmp_path / "records.jsonl").items}
    assert outcomes == {"ATT-MASK-008": "PASS", "ATT-MASK-043": "WRONG_VALUE"}


def test_where_the_other_rows_are_wrong_too_their_requirements_say_so():
    noise = Subject(Implementation("noise", fakes.all_is_noise, Support(), frameworks()["numpy"]))
    (judgement,) = PROCEDURES["empty-rows"](Judge(), noise, parse(PROBLEMS[0]))
    assert judgement.verdict.outcome is Outcome.PASS
    assert "which other requirements judge" in judgement.verdict.message

"""The bias probe sees what no element's budget shows, and leaves honest rounding alone."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.bias import GATES, bias, derivative_by_scale
from conformance.checks.procedures import PROCEDURES
from conformance.faults import rules
from conformance.faults.functions import CONVENTIONS, attention, implementation_of
from conformance.faults.honest_variants import variants
from conformance.faults.model import Fault
from conformance.faults.steps import default_scale
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.oracle import expect
from conformance.problem import parse
from conformance.registry import frameworks, resolve
from conformance.specification import requirements
from conformance.values import materialise
from conformance.verdict import Outcome

REQUIREMENT = requirements()["ATT-OUT-039"]
DESIGNED = list(REQUIREMENT.designed())


def verdict_of(implementation, problem):
    (judgement,) = PROCEDURES["unbiased"](Judge(), Subject(implementation), problem)
    return judgement.verdict


def off(factor):
    fault = Fault(
        id="off",
        sentence="",
        requirements=("ATT-OUT-039",),
        sources=(),
        rewrite=lambda inputs: replace(inputs, scale=float(default_scale(inputs) * factor)),
    )
    return implementation_of(fault)


def test_every_designed_case_has_rows_enough_and_can_tell():
    for problem in DESIGNED:
        assert problem.batch * problem.heads * problem.query_length >= 64
        inputs = materialise(problem)
        for profile in ("strict",) if problem.dtype == "float32" else ("inner32", "fused", "fused_q", "eager"):
            expected = expect(inputs, profile)
            output = expected.output.astype(inputs.query.dtype)
            assert bias(output, expected, derivative_by_scale(inputs, profile)).telling, f"{profile}: {problem.text}"


def test_the_derivative_is_that_of_the_formula():
    inputs = materialise(DESIGNED[0])
    query, key, value = (array.astype(np.float64) for array in (inputs.query, inputs.key, inputs.value))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    formula = (weights * scores) @ value - (weights * scores).sum(-1, keepdims=True) * (weights @ value)
    assert np.abs(derivative_by_scale(inputs, "strict") - formula).max() < 1e-5 * np.abs(formula).max()


@pytest.mark.parametrize("name", [*variants(), "numpy-direct", "numpy-blocked", "numpy-einsum"])
def test_honest_implementations_have_no_bias(name):
    implementation = variants().get(name) or resolve(name)
    for problem in DESIGNED:
        if problem.dtype in implementation.support.dtypes:
            found = verdict_of(implementation, problem)
            assert found.outcome is Outcome.PASS and found.r <= 1.0, found.message


@pytest.mark.parametrize("error", [2e-6, -2e-6])
def test_a_bias_within_every_budget_is_seen(error):
    problem = next(problem for problem in DESIGNED if problem.dtype == "float32")
    assert Judge().values(Subject(off(1.0 + error)), problem).verdict.outcome is Outcome.PASS
    found = verdict_of(off(1.0 + error), problem)
    assert found.outcome is Outcome.WRONG_VALUE
    assert found.r < 1.0, "r is error over budget, and of no element above 1"
    assert f"{error:.0e}".replace("e", ".00e") in found.message


@pytest.mark.parametrize("dtype", GATES)
def test_a_scale_off_by_a_five_hundredth_fails(dtype):
    for problem in (problem for problem in DESIGNED if problem.dtype == dtype):
        assert verdict_of(off(1.002), problem).outcome is Outcome.WRONG_VALUE


def test_a_scale_in_bfloat16_hides_in_the_eager_budget_and_not_from_the_probe():
    def eager(inputs):
        scale = float(np.array(default_scale(inputs)).astype(ml_dtypes.bfloat16))
        return rules.eager(replace(inputs, scale=scale))

    support = Support(dtypes=("bfloat16",), profile="eager", conventions=CONVENTIONS)
    implementation = Implementation("scale-in-bfloat16", attention(eager), support, frameworks()["numpy"])
    problem = next(problem for problem in DESIGNED if problem.dtype == "bfloat16")
    assert Judge().values(Subject(implementation), problem).verdict.outcome is Outcome.PASS
    found = verdict_of(implementation, problem)
    assert found.outcome is Outcome.WRONG_VALUE and "scale off by" in found.message


def test_where_a_budget_is_too_wide_values_alone_count():
    problem = next(problem for problem in DESIGNED if problem.dtype == "float16")
    inputs = materialise(problem)
    expected = expect(inputs, "low")
    output = expected.output.astype(np.float16)
    assert not bias(output, expected, derivative_by_scale(inputs, "low")).telling
    assert verdict_of(resolve("numpy-einsum"), problem).outcome is Outcome.PASS


def test_float64_and_rows_without_keys_are_no_obstacle():
    text = "attention batch=1 heads=2/2 length=13/13 width=8/8 dtype={} values=gaussian.1#1 mask=empty-rows.1:b1qk#1"
    honest = variants()["honest-in-float32"]
    for dtype in ("float64", "float32"):
        assert verdict_of(honest, parse(text.format(dtype))).outcome is Outcome.PASS


def test_wrong_values_are_told_as_such():
    found = verdict_of(off(4.0), DESIGNED[0])
    assert found.outcome is Outcome.WRONG_VALUE and found.index is not None

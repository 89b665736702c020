"""The bias probe sees what no element's budget shows, and leaves correct rounding alone."""

import ml_dtypes
import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks, resolve
from conformance.checks.procedures import PROCEDURES
from conformance.evaluation import rules
from conformance.evaluation.correct_list import variants
from conformance.faults.fault import Fault
from conformance.faults.functions import CONVENTIONS, implementation_of
from conformance.faults.steps import default_scale
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.systematic_error import OF_SCALE, biases, derivative_by_scale, directions
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import round_to
from conformance.operations import operation_of
from conformance.oracle import expect
from conformance.problem import parse
from conformance.specification import requirements
from conformance.values import materialise

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
        rewrite=lambda inputs: inputs.but(scale=float(default_scale(inputs) * factor)),
    )
    return implementation_of(fault)


def test_every_designed_case_has_rows_enough_and_can_tell():
    for problem in DESIGNED:
        assert problem.batch * problem.heads * problem.query_length >= 64
        inputs = materialise(problem)
        exact = problem.dtype in ("float32", "float64")
        for profile in ("strict",) if exact else ("inner32", "fused", "fused_q", "unfused"):
            expected = expect(inputs, profile)
            tried = list(directions(inputs, expected, profile))
            words = " ".join(direction.words for direction in tried)
            assert "sum to 1" in words and "rounded upwards" in words and "the later half of the keys" in words, problem.text
            if problem.key_length <= 31 and problem.causal == "none" and problem.bias is None:
                assert "scale off" in words, f"{profile}: {problem.text}"
            output = expected.output.astype(inputs.query.dtype)
            assert all(found.excess <= 0.2 for found in biases(output, expected, tried)), "rounding has no direction"


def test_the_derivative_is_that_of_the_formula():
    inputs = materialise(DESIGNED[0])
    query, key, value = (array.astype(np.float64) for array in (inputs.query, inputs.key, inputs.value))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    formula = (weights * scores) @ value - (weights * scores).sum(-1, keepdims=True) * (weights @ value)
    assert np.abs(derivative_by_scale(inputs) - formula).max() < 1e-5 * np.abs(formula).max()


@pytest.mark.parametrize("name", [*variants(), "numpy-direct", "numpy-blocked", "numpy-einsum"])
def test_correct_implementations_have_no_bias(name):
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


@pytest.mark.parametrize("dtype", OF_SCALE)
def test_a_scale_off_by_a_five_hundredth_fails(dtype):
    for problem in (problem for problem in DESIGNED if problem.dtype == dtype):
        assert verdict_of(off(1.002), problem).outcome is Outcome.WRONG_VALUE


def test_a_scale_in_bfloat16_hides_in_the_unfused_budget_and_not_from_the_probe():
    def unfused(inputs):
        scale = float(np.array(default_scale(inputs)).astype(ml_dtypes.bfloat16))
        return rules.unfused(inputs.but(scale=scale))

    support = Support(dtypes=("bfloat16",), profile="unfused", conventions=CONVENTIONS)
    function = operation_of("attention").function(unfused)
    implementation = Implementation("scale-in-bfloat16", function, support, frameworks()["numpy"])
    problem = next(problem for problem in DESIGNED if problem.dtype == "bfloat16")
    assert Judge().values(Subject(implementation), problem).verdict.outcome is Outcome.PASS
    found = verdict_of(implementation, problem)
    assert found.outcome is Outcome.WRONG_VALUE and "scale off by" in found.message


def test_where_a_budget_is_too_wide_values_alone_count():
    problem = next(problem for problem in DESIGNED if problem.dtype == "float16")
    inputs = materialise(problem)
    expected = expect(inputs, "low")
    assert list(directions(inputs, expected, "low")) == []
    assert verdict_of(resolve("numpy-einsum"), problem).outcome is Outcome.PASS


def test_float64_and_rows_without_keys_are_no_obstacle():
    text = "attention batch=1 heads=2/2 length=13/13 width=8/8 dtype={} values=gaussian.1#1 mask=empty-rows.1:b1qk#1"
    correct = variants()["correct-in-float32"]
    for dtype in ("float64", "float32"):
        assert verdict_of(correct, parse(text.format(dtype))).outcome is Outcome.PASS


def test_wrong_values_are_told_as_such():
    found = verdict_of(off(4.0), DESIGNED[0])
    assert found.outcome is Outcome.WRONG_VALUE and found.index is not None


def mutated(change, dtype, profile):
    """The formula in float64, with ``change`` of its weights and values, rounded to ``dtype``."""

    def output(inputs):
        query, key, value = (array.astype(np.float64) for array in (inputs.query, inputs.key, inputs.value))
        scores = query @ key.swapaxes(-1, -2) * default_scale(inputs)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return change(weights / weights.sum(-1, keepdims=True), value, dtype)

    support = Support(dtypes=(dtype,), profile=profile, conventions=CONVENTIONS)
    return Implementation("mutated", operation_of("attention").function(output), support, frameworks()["numpy"])


def truncated(numbers, dtype):
    """Rounded towards 0."""
    nearest = round_to(numbers, dtype)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(numbers)
    kind = np.uint32 if nearest.dtype.itemsize == 4 else np.uint16
    return np.where(beyond, (nearest.view(kind) - kind(1)).view(nearest.dtype), nearest)


def counted(key, factor):
    return lambda weights: weights * np.where(np.arange(weights.shape[-1]) == key, factor, 1.0)


def two_more(numbers, dtype):
    nearest = round_to(numbers, dtype)
    infinity = np.array(np.inf, nearest.dtype)
    return np.nextafter(np.nextafter(nearest, infinity), infinity)


MUTATIONS = {
    "truncated": (lambda p, v, dtype: truncated(p @ v, dtype), "rounded towards 0"),
    "two-units-up": (lambda p, v, dtype: two_more(p @ v, dtype), "rounded upwards"),
    "weights-truncated": (lambda p, v, dtype: round_to(truncated(p, dtype).astype(np.float64) @ v, dtype), "weights that sum to"),
    "sum-off": (
        lambda p, v, dtype: round_to(p @ v * (1 + {"float32": 3e-7, "float16": 2e-4, "bfloat16": 1e-3}[dtype]), dtype),
        "weights that sum to",
    ),
    "key-counts-less": (lambda p, v, dtype: round_to(counted(7, 0.99)(p) @ v, dtype), "key 7 counted"),
}


@pytest.mark.parametrize("profile", ["fused", "unfused"])
@pytest.mark.parametrize("name", [name for name in MUTATIONS if name != "two-units-up"])
def test_a_small_mistake_that_all_elements_share_is_seen_in_bfloat16_and_named(name, profile):
    change, words = MUTATIONS[name]
    problem = next(problem for problem in DESIGNED if problem.dtype == "bfloat16")
    implementation = mutated(change, "bfloat16", profile)
    assert Judge().values(Subject(implementation), problem).verdict.outcome is Outcome.PASS
    found = verdict_of(implementation, problem)
    assert found.outcome is Outcome.WRONG_VALUE and words in found.message


@pytest.mark.parametrize("name", ["truncated", "two-units-up", "sum-off"])
def test_a_small_mistake_that_all_elements_share_is_seen_in_float32_and_named(name):
    change, words = MUTATIONS[name]
    problem = next(problem for problem in DESIGNED if problem.dtype == "float32")
    implementation = mutated(change, "float32", "strict")
    assert Judge().values(Subject(implementation), problem).verdict.outcome is Outcome.PASS
    found = verdict_of(implementation, problem)
    assert found.outcome is Outcome.WRONG_VALUE and words in found.message

"""A softcap: what it makes of scores, its error bound, and implementations that cap the bias too."""

import numpy as np
import pytest
from conformance.implementations.numpy_ import direct

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.errors import ProblemError, Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.numerics.dtypes import round_to
from conformance.oracle import exact, expect, scores_and_output, truth_of
from conformance.oracle.stages import stages
from conformance.problem import parse
from conformance.specification import requirements
from conformance.values import materialise

PLAIN = "attention batch=2 heads=3 length=5/7 width=4 dtype=float32 values=gaussian.1*2.0#1"


def subject(function) -> Subject:
    return Subject(Implementation("mine", function, Support(), frameworks()["numpy"]))


def test_scores_are_bounded_by_a_hyperbolic_tangent():
    plain, _ = scores_and_output(materialise(parse(PLAIN)))
    capped, _ = scores_and_output(materialise(parse(f"{PLAIN} softcap=1.5")))
    np.testing.assert_allclose(capped, 1.5 * np.tanh(plain / 1.5), rtol=1e-14)


def test_the_cap_comes_before_the_bias_and_before_anything_is_hidden():
    assert [stage.name for stage in stages()].index("softcap") < [stage.name for stage in stages()].index("bias")
    inputs = materialise(parse(f"{PLAIN} softcap=0.5 bias=gaussian.1:qk*4.0#2 mask=random.1:b1qk#3"))
    scores, _ = scores_and_output(inputs)
    plain, _ = scores_and_output(inputs.but(softcap=None, bias=None, mask=None))
    expected = np.where(inputs.mask, 0.5 * np.tanh(plain / 0.5) + inputs.bias.astype(np.float64), -np.inf)
    np.testing.assert_allclose(scores, expected, rtol=1e-14)


@pytest.mark.parametrize("text", ["0.0", "-1.0", "inf", "nan", "much"])
def test_a_cap_is_a_number_above_0(text):
    with pytest.raises(ProblemError, match="softcap"):
        parse(f"{PLAIN} softcap={text}")


@pytest.mark.parametrize("identifier", ["ATT-SCALE-016", "ATT-SCALE-017", "ATT-SCALE-018", "ATT-SCALE-019", "ATT-SCALE-020"])
def test_both_oracles_agree(identifier):
    for problem in requirements()[identifier].designed():
        if problem.dtype == "float32" and problem.query_length < 60:
            inputs = materialise(problem)
            truth = truth_of(inputs)
            judged = np.broadcast_to(truth.judged, truth.output.shape)
            np.testing.assert_allclose(truth.output[judged], exact.attention(inputs)[judged], rtol=1e-11, atol=1e-14)


def _bounded_too(query, key, value, *, bias=None, softcap=None):
    if softcap is None:
        return direct(query, key, value, bias=bias)
    scores = query.astype(np.float64) @ key.astype(np.float64).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = softcap * np.tanh((scores + (0 if bias is None else bias.astype(np.float64))) / softcap)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ value.astype(np.float64)).astype(query.dtype)


def test_what_bounds_the_bias_too_is_seen_and_not_asked_for_both():
    mine = subject(_bounded_too)
    assert mine.observe("CON-SOFTCAP-BIAS") == "behind"
    assert Judge().values(mine, parse(f"{PLAIN} softcap=2.0")).verdict.outcome == "PASS"
    with pytest.raises(Unsupported, match="softcap and bias together"):
        mine.route(parse(f"{PLAIN} softcap=2.0 bias=gaussian.1:qk#1"))


def _in_float32(inputs, direction: int):
    """In float64, with score, quotient, hyperbolic tangent and product each rounded to float32, one key's to one side."""
    query, key, value = (array.astype(np.float64) for array in (inputs.query, inputs.key, inputs.value))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    away = np.where(np.arange(key.shape[2]) % 2, direction, -direction) * np.sign(scores) * 2.0**-24
    rounded = np.tanh(scores * (1 + away) / inputs.softcap * (1 + away)) * (1 + away) * inputs.softcap * (1 + away)
    weights = np.exp(rounded - rounded.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def test_the_bound_holds_what_roundings_to_one_side_do_and_not_four_times_as_much():
    inputs = materialise(parse("attention batch=1 heads=1 length=16 width=1 dtype=float32 values=gaussian.1*6.0#1 softcap=40.0"))
    inputs = inputs.but(value=np.where(np.arange(16)[:, None] % 2, 1.0, -1.0).astype(np.float32)[None, None])
    expected = expect(inputs, "strict")
    r = max(np.abs((_in_float32(inputs, d) - expected.output) / expected.budget).max() for d in (1, -1))
    assert 0.25 <= r <= 1.0


def test_a_saturated_score_forgets_its_error():
    text = "attention batch=1 heads=1 length=8 width=4 dtype=bfloat16 values=gaussian.1*40.0#1"
    free, capped = (expect(materialise(parse(text + more)), "unfused").budget.max() for more in ("", " softcap=0.5"))
    assert capped < free / 2


def test_a_cap_far_above_the_scores_leaves_the_output():
    inputs = materialise(parse(PLAIN))
    np.testing.assert_allclose(truth_of(inputs.but(softcap=1e6)).output, truth_of(inputs).output, rtol=1e-9)
    assert round_to(np.float64(1e6), "float32") == 1e6

"""Sinks: one more logit in the denominator of each query head."""

import numpy as np
import pytest
from conformance.implementations.numpy_ import direct

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.oracle import exact, expect, truth_of
from conformance.problem import parse
from conformance.specification import requirements
from conformance.values import materialise

PLAIN = "attention batch=2 heads=4/2 length=5/7 width=4 dtype=float32 values=spread.1#1"


def test_a_sink_is_a_key_without_a_value():
    inputs = materialise(parse(f"{PLAIN} sinks=gaussian.1*2.0#5"))
    plain = inputs.but(sinks=None)
    query, key, value = (array.astype(np.float64) for array in (plain.query, plain.key, plain.value))
    key, value = np.repeat(key, 2, axis=1), np.repeat(value, 2, axis=1)
    weights = np.exp(query @ key.swapaxes(-1, -2) / 2.0)
    expected = weights @ value / (weights.sum(-1, keepdims=True) + np.exp(inputs.sinks.astype(np.float64))[:, None, None])
    np.testing.assert_allclose(truth_of(inputs).output, expected, rtol=1e-12)


@pytest.mark.parametrize("emptied", ["mask=empty-rows.1:b1qk#2", "lengths=0,3"])
def test_a_row_that_sees_no_key_gives_zeros_and_is_judged(emptied):
    inputs = materialise(parse(f"{PLAIN} {emptied} sinks=constant.1*-3.0#0"))
    truth = truth_of(inputs)
    assert truth.judged.all()
    visible = inputs.mask if inputs.mask is not None else (np.arange(7) < inputs.key_lengths[:, None])[:, None, None]
    empty = np.broadcast_to(~visible.any(-1), truth.output.shape[:3])
    assert empty.any()
    assert (truth.output[empty] == 0).all()


@pytest.mark.parametrize("identifier", [f"ATT-SCALE-{number:03}" for number in range(21, 26)])
def test_both_oracles_agree(identifier):
    for problem in requirements()[identifier].designed():
        if problem.dtype == "float32" and problem.query_length * problem.key_length < 1000:
            inputs = materialise(problem)
            truth = truth_of(inputs)
            assert truth.judged.all()
            np.testing.assert_allclose(truth.output, exact.attention(inputs), rtol=1e-11, atol=1e-12)


def test_the_log_sum_exp_has_the_sink_and_the_weights_have_not():
    inputs = materialise(parse(f"{PLAIN} sinks=gaussian.1#5"))
    truth, steps = truth_of(inputs), exact.attention_steps(inputs)
    np.testing.assert_allclose(truth.others["lse"]("float32").output, steps["lse"], rtol=1e-12)
    np.testing.assert_allclose(truth.others["weights"]("float32").output, steps["weights"], rtol=1e-12)
    assert (steps["weights"].sum(-1) < 1).all()


def test_zeros_for_a_row_that_fills_in_a_mean_are_missed():
    def filled(query, key, value, *, mask=None, sinks=None):
        output = direct(query, key, value, mask=mask, sinks=sinks)
        return output if mask is None else np.where(mask.any(-1, keepdims=True), output, value.mean(2, keepdims=True))

    subject = Subject(Implementation("mine", filled, Support(), frameworks()["numpy"]))
    problem = next(iter(requirements()["ATT-SCALE-023"].designed()))
    assert Judge().values(subject, problem.but(dtype="float32")).verdict.outcome == "WRONG_VALUE"


def test_a_large_sink_leaves_a_budget_above_0():
    expected = expect(materialise(parse(f"{PLAIN} sinks=constant.1*60000.0#0".replace("float32", "float16"))), "fused")
    assert (expected.output == 0).all()
    assert (expected.budget > 0).all()

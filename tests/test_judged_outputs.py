"""What is judged beside the output, in which dtype and to which base; what a failed judgement advises to declare is true."""

import ast
import re
import signal

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks, resolve
from conformance.adapter.routes import Route
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, expected_of
from conformance.judging.systematic_error import directions
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import round_to
from conformance.numerics.profiles import looser
from conformance.oracle import expect
from conformance.problem import parse
from conformance.values import materialise
from tests import returning

PLAIN = parse("attention batch=1 heads=2 length=5/7 width=4 dtype=float32 values=spread.1#1")
HALF = PLAIN.but(dtype="float16")
LOUD = parse("attention batch=1 heads=2 length=5/7 width=5 dtype=float16 values=ones-value.1#1 bias=row-constant.1:bhqk*300.0#1")
NUMPY = frameworks()["numpy"]
DIRECT = resolve("numpy-direct").function


def subject(function, **support):
    return Subject(Implementation("mine", function, Support(**support), NUMPY))


def judged(function, problem=PLAIN, **support):
    return Judge().values(subject(function, **support), problem).verdict


def parts(query, key, value):
    return returning.parts(query, key, value)


@pytest.mark.parametrize("problem", [PLAIN, HALF], ids=["float32", "float16"])
@pytest.mark.parametrize(("base", "factor"), [("natural", 1.0), ("base-2", returning.LOG2_E)])
def test_a_log_sum_exp_is_judged_to_its_base_and_in_the_dtype_that_it_is_returned_in(base, factor, problem):
    def function(query, key, value, beyond=0.0):
        output, lse, _ = parts(query, key, value)
        return output, (lse * lse.dtype.type(factor) + lse.dtype.type(beyond)).astype(lse.dtype)

    known = {"returns": ("output", "lse"), "conventions": {"CON-LSE-BASE": base}, "profile": "inner32"}
    assert judged(function, problem, **known).outcome is Outcome.PASS
    wrong = judged(lambda query, key, value: function(query, key, value, 2e-4), problem, **known)
    assert (wrong.outcome, wrong.output) == (Outcome.WRONG_VALUE, "lse")
    other = "base-2" if base == "natural" else "natural"
    assert judged(function, problem, **{**known, "conventions": {"CON-LSE-BASE": other}}).outcome is Outcome.WRONG_VALUE


def test_the_budget_of_a_log_sum_exp_has_its_base():
    judge = Judge()
    of = {
        base: judge.expected_output(
            "lse", "float32", subject(parts, returns=("output", "lse", "-"), conventions={"CON-LSE-BASE": base}), PLAIN, "strict"
        )
        for base in ("natural", "base-2")
    }
    np.testing.assert_allclose(of["base-2"].output, of["natural"].output * np.log2(np.e), rtol=1e-15)
    np.testing.assert_allclose(of["base-2"].budget, of["natural"].budget * np.log2(np.e), rtol=1e-15)
    assert of["natural"].dtype == "float32"


def test_an_output_is_the_same_whatever_the_base_of_what_is_beside_it():
    judge, two = Judge(), subject(parts, returns=("output", "lse", "-"), conventions={"CON-LSE-BASE": "base-2"})
    np.testing.assert_array_equal(
        judge.expected_output("output", "float32", two, PLAIN, "strict").output, judge.expected(PLAIN, "strict").output
    )


@pytest.mark.parametrize("number", [2, 3, 4])
def test_who_returns_several_parts_and_follows_the_advice_is_judged(number):
    def function(query, key, value):
        return (DIRECT(query, key, value), *([None] * (number - 1)))

    verdict = judged(function)
    assert verdict.outcome is Outcome.WRONG_DTYPE
    advised = ast.literal_eval(re.search(r"returns=(\(.*\))", verdict.message)[1])
    assert judged(function, returns=advised).outcome is Outcome.PASS


def test_who_declares_the_parts_or_returns_one_gets_no_advice_on_parts():
    def nested(query, key, value):
        output, lse, _ = parts(query, key, value)
        return (output, output), lse

    assert "returns=" in judged(lambda query, key, value: nested(query, key, value)[0]).message
    for verdict in (judged(nested, returns=("output", "lse")), judged(lambda query, key, value: "text")):
        assert verdict.outcome is Outcome.WRONG_DTYPE and "returns=" not in verdict.message


class Slow(type(NUMPY)):
    """Interrupted while the output is read, as where that waits for a device."""

    def to_numpy(self, array):
        raise KeyboardInterrupt


def interrupted(query, key, value):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("function", "framework"), [(interrupted, NUMPY), (DIRECT, Slow())], ids=["in the call", "when read"])
def test_an_interruption_is_the_users_and_no_outcome(function, framework):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Judge().values(Subject(Implementation("mine", function, Support(), framework)), PLAIN)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_call_that_failed_says_why():
    def function(query, key, value):
        raise ValueError("no such layer")

    with pytest.raises(Failed, match="no such layer"):
        Judge().run(subject(function), PLAIN, Route())


def test_what_is_kept_of_inputs_and_directions_is_bounded_and_shared():
    support, small, judge = Support(), Judge(cache_bytes=16), Judge()
    assert small.inputs(PLAIN) is not small.inputs(PLAIN)
    assert small.directions(PLAIN, "strict", support) is not small.directions(PLAIN, "strict", support)
    sharing = Judge(shares=judge)
    assert sharing.directions(PLAIN, "strict", support) is judge.directions(PLAIN, "strict", support)


def test_directions_are_those_of_the_scale_that_is_declared_whoever_was_asked_first():
    problem, rounds, judge = PLAIN.but(width=5), Support(scale_dtype="float16"), Judge()
    judge.directions(problem, "strict", Support())
    found = judge.directions(problem, "strict", rounds)
    asked = directions(judge.inputs(problem), judge.expected(problem, "strict", rounds), "strict")
    for one, other in zip(found, asked, strict=True):
        np.testing.assert_array_equal(one.slope, other.slope)


def test_inputs_with_a_scale_of_their_own_keep_it():
    inputs = materialise(PLAIN.but(scale=3.0))
    np.testing.assert_array_equal(expected_of(inputs, "strict").output, expect(inputs, "strict").output)


def test_each_dtype_is_held_against_other_profiles_where_it_declares_none():
    judge, one = Judge(), subject(DIRECT, profile={"float32": "strict"})
    assert judge.r_under_other_profiles(one, judge.values(one, PLAIN)) == {}
    assert judge.r_under_other_profiles(one, judge.values(one, HALF))


@pytest.mark.parametrize("more", [{}, {"flushes": ("float16",)}, {"scale_dtype": "bfloat16"}], ids=str)
def test_the_addition_that_is_advised_is_one_by_which_it_passes(more):
    """Normalised by a log-sum-exp in float16, and by nothing else. All values are alike: no error of a score is one of the
    output."""

    def function(query, key, value, *, bias=None):
        scale = query.shape[-1] ** -0.5
        if "scale_dtype" in more:
            scale = float(round_to(np.asarray(scale), "bfloat16"))
        query, key, value, bias = (array.astype(np.float64) for array in (query, key, value, bias))
        scores = query @ key.swapaxes(-1, -2) * scale + bias
        top = scores.max(-1, keepdims=True)
        lse = (top + np.log(np.exp(scores - top).sum(-1, keepdims=True))).astype(np.float16).astype(np.float64)
        return (np.exp(scores - lse) @ value).astype(np.float16)

    verdict = judged(function, LOUD, profile="strict", **more)
    assert verdict.outcome is Outcome.WRONG_VALUE
    advised = re.search(r"within the budget of (\S+):", verdict.message)[1]
    assert judged(function, LOUD, profile=advised, **more).outcome is Outcome.PASS


def test_what_is_no_array_is_told_by_the_name_of_the_part():
    verdict = judged(lambda query, key, value: (DIRECT(query, key, value), "text"), returns=("output", "lse"))
    assert (verdict.outcome, verdict.output) == (Outcome.WRONG_DTYPE, "lse")


@pytest.mark.parametrize("flushing", ["", "+flushes"])
def test_an_addition_that_is_declared_is_not_tried_again(flushing):
    assert looser(f"strict{flushing}") == (f"strict+lse{flushing}", f"strict+merges{flushing}")
    assert looser(f"strict+lse{flushing}") == (f"strict+merges{flushing}",)
    assert looser(f"strict+merges{flushing}") == ()


def test_a_problem_is_put_by_the_route_that_is_named():
    seen = []

    def function(query, key, value):
        seen.append(key.shape[1])
        return DIRECT(query, key, value)

    grouped, one = PLAIN.but(heads=4, kv_heads=2), subject(function)
    repeated = Route({"grouped-heads": "repeat"})
    judgements = [Judge().values(one, grouped), Judge().values(one, grouped, repeated)]
    assert [judgement.route for judgement in judgements] == ["native", str(repeated)]
    assert all(judgement.verdict.outcome is Outcome.PASS for judgement in judgements)
    assert seen == [2, 4]


def test_a_problem_may_be_put_in_the_memory_of_another():
    seen = []

    def function(query, key, value):
        seen.append(query)
        return DIRECT(query, key, value)

    judge, one = Judge(), subject(function)
    first = judge.values(one, PLAIN)
    second = judge.values(one, parse(PLAIN.text.replace("spread.1#1", "spread.1#2")), in_memory_of=first.prepared)
    assert seen[0] is seen[1] and first.verdict.outcome is second.verdict.outcome is Outcome.PASS

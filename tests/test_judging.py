"""The judge: what is kept between problems and for whom, golden answers, repetitions that agree, calls that change inputs."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks, resolve
from conformance.errors import Declined, ProblemError
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge, Judgement, agree, expected_of, verdict_of_exception, worst
from conformance.judging.systematic_error import directions
from conformance.judging.verdict import Outcome, Verdict
from conformance.judging.verdict import judge as judge_output
from conformance.oracle import Expected, expect
from conformance.problem import parse
from conformance.values import materialise
from conformance.values.golden import golden_output, load_cases

PLAIN = parse("attention batch=1 heads=2 length=5/7 width=4 dtype=float16 values=spread.1#1")
NUMPY = frameworks()["numpy"]
DIRECT = resolve("numpy-direct")


def counted(monkeypatch):
    """The problems for which the oracle has computed a truth, by the scale of their inputs."""
    from conformance.judging import judge as judging

    asked = []

    def truth_of(inputs):
        asked.append(inputs.scale)
        return judging_truth(inputs)

    judging_truth = judging.truth_of
    monkeypatch.setattr(judging, "truth_of", truth_of)
    return asked


def test_a_budget_is_that_of_its_profile_whichever_was_asked_first():
    judge, other_way_round = Judge(), Judge()
    profiles = ("inner32", "fused", "unfused", "low")
    for name in profiles:
        target = expect(materialise(PLAIN), name)
        np.testing.assert_array_equal(judge.expected(PLAIN, name).budget, target.budget)
        np.testing.assert_array_equal(judge.expected(PLAIN, name).output, target.output)
    for name in reversed(profiles):
        np.testing.assert_array_equal(other_way_round.expected(PLAIN, name).budget, judge.expected(PLAIN, name).budget)
    assert len({judge.expected(PLAIN, name).budget.tobytes() for name in profiles}) == len(profiles)


def test_the_oracle_computes_once_for_all_profiles_and_for_whoever_shares(monkeypatch):
    asked, judge = counted(monkeypatch), Judge()
    sharing = Judge(shares=judge)
    for name in ("inner32", "fused", "unfused"):
        judge.expected(PLAIN, name)
        assert sharing.expected(PLAIN, name) is judge.expected(PLAIN, name)
    assert len(asked) == 1
    assert sharing.inputs(PLAIN) is judge.inputs(PLAIN)
    Judge().expected(PLAIN, "unfused")
    assert len(asked) == 2, "one that shares nothing asks anew"


def test_what_is_too_large_to_keep_is_computed_again_and_the_same(monkeypatch):
    asked, judge = counted(monkeypatch), Judge(cache_bytes=16)
    first, second = judge.expected(PLAIN, "unfused"), judge.expected(PLAIN, "unfused")
    assert len(asked) == 2 and first is not second
    np.testing.assert_array_equal(first.budget, second.budget)


def test_a_scale_in_another_dtype_has_truths_of_its_own(monkeypatch):
    problem = PLAIN.but(dtype="float32", width=5)
    support = Support(scale_dtype="float16")
    asked, judge = counted(monkeypatch), Judge()
    exact, rounded = judge.expected(problem, "strict"), judge.expected(problem, "strict", support)
    assert asked == [None, float(np.float16(5**-0.5))]
    assert not np.array_equal(exact.output, rounded.output)
    np.testing.assert_array_equal(judge.expected(problem, "strict").output, exact.output)
    np.testing.assert_array_equal(rounded.output, expected_of(materialise(problem), "strict", support).output)
    np.testing.assert_array_equal(exact.output, expected_of(materialise(problem), "strict").output)


@pytest.mark.parametrize("operation", ["attention", "multi_head_attention", "sinusoidal_encoding"])
def test_a_golden_case_is_held_against_its_stored_output(operation, monkeypatch):
    """Frozen answers judge, whatever has become of the oracle."""
    from conformance.judging import judge as judging

    case = next(case for case in load_cases() if case.problem.operation == operation)
    stored = golden_output(case.problem)
    correct = judging.truth_of

    def broken(inputs):
        truth = correct(inputs)
        return replace(truth, output=truth.output + 1000.0)

    monkeypatch.setattr(judging, "truth_of", broken)
    found = Judge().expected(case.problem, "unfused")
    np.testing.assert_array_equal(found.output, stored)


def test_what_is_golden_but_has_another_scale_is_computed():
    case = next(
        case
        for case in load_cases()
        if case.problem.operation == "attention" and case.problem.dtype == "float32" and case.problem.scale is None
        and case.problem.width not in (1, 4, 16, 64)
    )  # fmt: skip
    support = Support(scale_dtype="bfloat16")
    found = Judge().expected(case.problem, "strict", support)
    np.testing.assert_array_equal(found.output, expected_of(materialise(case.problem), "strict", support).output)
    assert not np.array_equal(found.output, golden_output(case.problem))


def target(*, budget=0.25, judged=(True, True), rows=None, shape=(1, 2)):
    return Expected(np.zeros((1, 2)), np.full((1, 2), budget), np.array([judged]), shape, "float32", rows)


@pytest.mark.parametrize(
    ("second", "alike"),
    [
        ([1.5, 2.0], True),  # two budgets apart
        ([1.5000002, 2.0], False),
        ([0.5, 2.0], True),
        ([0.4999999, 2.0], False),
        ([1.0, np.nan], False),
        ([np.inf, 2.0], False),
    ],
)
def test_outputs_agree_up_to_twice_the_budget(second, alike):
    first = np.array([[1.0, 2.0]], np.float32)
    other = np.array([second], np.float32)
    assert agree(first, other, target()) is alike
    assert agree(other, first, target()) is alike
    assert agree(first, other, target(judged=(False, False)))
    far = [second[0], 77.0]
    assert agree(first, np.array([far], np.float32), target(judged=(True, False))) is (alike or bool(np.isnan(second[1])))


def test_outputs_that_are_not_finite_agree_with_themselves():
    for value in (np.nan, np.inf, -np.inf):
        output = np.array([[value, 1.0]], np.float32)
        assert agree(output, output.copy(), target())
        assert not agree(output, np.array([[2.0, 1.0]], np.float32), target())
    assert not agree(np.array([[np.inf, 0.0]], np.float32), np.array([[-np.inf, 0.0]], np.float32), target())


def test_numbers_that_leave_the_range_warn_nobody():
    largest = np.finfo(np.float64).max
    expected = Expected(np.zeros((1, 2)), np.full((1, 2), 0.25), np.array([[True, True]]), (1, 2), "float64", None)
    with np.errstate(all="raise"):
        assert not agree(np.array([[largest, 0.0]]), np.array([[-largest, 0.0]]), expected)
        assert agree(np.array([[np.inf, 0.0]]), np.array([[np.inf, 0.0]]), expected)


def test_outputs_of_a_wrong_form_agree_bit_by_bit():
    first = np.zeros((1, 2), np.float64)
    assert not agree(first, np.zeros((1, 2), np.float32), target())
    assert agree(first, first.copy(), target(shape=(2, 2)))
    assert not agree(first, first + 1e-300, target(shape=(2, 2)))
    assert not agree(first, first.reshape(2, 1), target(shape=(2, 2)))


def test_budgets_of_zero_still_let_the_last_subnormal_differ():
    tiny = np.array([[float(np.finfo(np.float32).smallest_subnormal), 0.0]], np.float32)
    assert agree(tiny, np.zeros((1, 2), np.float32), target(budget=0.0))
    assert not agree(2 * tiny, np.zeros((1, 2), np.float32), target(budget=0.0))


def test_a_right_output_of_a_call_that_changes_its_inputs_is_no_pass_and_a_wrong_one_stays_wrong():
    def changing(factor):
        def function(query, key, value):
            output = DIRECT.function(query, key, value)
            key += key.dtype.type(1)
            return output * output.dtype.type(factor)

        return Subject(Implementation("changing", function, Support(profile="unfused"), NUMPY))

    problem = PLAIN.but(dtype="float32")
    right, wrong = (Judge().values(changing(factor), problem).verdict for factor in (1.0, 2.0))
    assert right.outcome is Outcome.MUTATED_INPUT and right.message == "The call changed its input key."
    assert right.r is not None and right.r < 1.0
    assert wrong.outcome is Outcome.WRONG_VALUE


def test_what_a_call_changes_is_met_by_no_other_call():
    """Each call has arrays of its own, and the oracle never sees what became of them."""
    seen = []

    def function(query, key, value, *, mask=None, bias=None, key_lengths=None):
        seen.append([np.array(array) for array in (query, key, value, mask, bias, key_lengths)])
        output = DIRECT.function(query, key, value, mask=mask, bias=bias, key_lengths=key_lengths)
        for array in (query, key, value, bias, key_lengths):
            array[...] = 0
        mask[...] = False
        return output

    judge = Judge()
    subject = Subject(Implementation("destroying", function, Support(conventions=DIRECT.support.conventions), NUMPY))
    problem = parse(
        "attention batch=2 heads=2 length=5/7 width=4 dtype=float32 values=spread.1#1 mask=random.1:b1qk#1 bias=gaussian.1:qk#1 "
        "lengths=6,7"
    )
    before = {name: array.copy() for name, array in judge.inputs(problem).arrays().items()}
    verdicts = [judge.values(subject, problem).verdict for _ in range(2)]
    assert [verdict.outcome for verdict in verdicts] == [Outcome.MUTATED_INPUT] * 2
    assert len({verdict.r for verdict in verdicts}) == 1 and verdicts[0].r < 1.0
    for first, second in zip(*seen, strict=True):
        np.testing.assert_array_equal(first, second)
    for name, array in judge.inputs(problem).arrays().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


# What becomes of calls that give nothing to compare


def outcome_of(function, **support):
    subject = Subject(Implementation("mine", function, Support(**support), NUMPY))
    return Judge().values(subject, PLAIN.but(dtype="float32")).verdict


def raising(error):
    def function(query, key, value):
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "outcome", "told"),
    [
        (ValueError("no"), Outcome.ERROR, "ValueError: no (tests/test_judging.py:"),
        (KeyError(), Outcome.ERROR, "KeyError (tests"),
        (SystemExit(3), Outcome.ERROR, "SystemExit: 3"),
        (MemoryError("x"), Outcome.OUT_OF_MEMORY, "MemoryError: x"),
        (RuntimeError("CUDA out of Memory"), Outcome.OUT_OF_MEMORY, "RuntimeError: CUDA out of Memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: 3 GiB"), Outcome.OUT_OF_MEMORY, "RuntimeError: RESOURCE_EXHAUSTED"),
        (RuntimeError("out of luck"), Outcome.ERROR, "RuntimeError: out of luck"),
    ],
)
def test_an_exception_is_an_outcome_with_the_line_that_raised_it(error, outcome, told):
    verdict = outcome_of(raising(error))
    assert verdict.outcome is outcome and verdict.message.startswith(told), verdict.message
    assert verdict.r is None
    assert verdict_of_exception(error).outcome is outcome
    assert verdict_of_exception(ValueError("never raised")).message == "ValueError: never raised"


def test_the_line_is_the_innermost_one():
    def inner():
        raise ValueError("deep")

    def function(query, key, value):
        inner()

    line = inner.__code__.co_firstlineno + 1
    assert outcome_of(function).message == f"ValueError: deep (tests/test_judging.py:{line})"


def test_a_declined_call_is_no_failure():
    with pytest.raises(Declined, match=r"^declined: NotImplementedError: not here$"):
        outcome_of(raising(NotImplementedError("not here")), declines=(NotImplementedError,))


def test_what_is_no_array_is_told_by_its_type():
    assert outcome_of(lambda query, key, value: "text") == Verdict(
        Outcome.WRONG_DTYPE, outcome_of(lambda query, key, value: "text").message
    )
    assert outcome_of(lambda query, key, value: "text").message.startswith(
        "The output is of type str, which is no array of numpy: "
    )

    async def later(query, key, value):
        return query

    assert outcome_of(later).message == (
        "The output is a coroutine: an async function is not awaited, so give a plain one that awaits it."
    )


def test_a_limit_of_recursion_that_a_call_has_changed_is_put_back():
    before = sys.getrecursionlimit()

    def function(query, key, value):
        sys.setrecursionlimit(before + 123)
        return DIRECT.function(query, key, value)

    assert outcome_of(function).outcome is Outcome.PASS and sys.getrecursionlimit() == before

    def failing(query, key, value):
        sys.setrecursionlimit(before + 321)
        raise ValueError

    assert outcome_of(failing).outcome is Outcome.ERROR and sys.getrecursionlimit() == before


@pytest.mark.parametrize("error", [MemoryError("512 GiB"), OverflowError("512 GiB"), ValueError("512 GiB")])
def test_values_that_cannot_be_made_are_no_failure_of_anybody(error, monkeypatch):
    from conformance.judging import judge as judging

    def materialise(problem):
        raise error

    monkeypatch.setattr(judging, "materialise", materialise)
    with pytest.raises(ProblemError) as refused:
        Judge().inputs(PLAIN)
    assert str(refused.value) == f"The arrays of {PLAIN.text} cannot be made here: {type(error).__name__}: 512 GiB."


def test_the_worst_judgement_is_that_of_the_worst_outcome_and_the_largest_r():
    def one(outcome, r=None):
        return Judgement(PLAIN, "native", Verdict(outcome, r=r))

    passed, near, wrong, silent = (
        one(Outcome.PASS, 0.2),
        one(Outcome.PASS, 0.9),
        one(Outcome.WRONG_VALUE, 1.5),
        one(Outcome.ERROR),
    )
    unmeasured = one(Outcome.PASS)
    assert worst([passed, near]) is near and worst([near, passed]) is near
    assert worst([near, wrong, passed]) is wrong
    assert worst([silent, wrong]) is silent
    assert worst([unmeasured, passed]) is passed


def test_r_under_other_profiles_is_told_of_who_declares_none():
    plain, declared = (Subject(replace(DIRECT, support=replace(DIRECT.support, profile=name))) for name in (None, "inner32"))
    judge = Judge()
    judgement = judge.values(plain, PLAIN)
    found = judge.r_under_other_profiles(plain, judgement)
    assert judgement.profile == "unfused"
    assert set(found) == {"inner32", "fused", "fused_q", "fused_qk", "low"}
    for name, r in found.items():
        assert r == judge_output(judgement.output, judge.expected(PLAIN, name)).r
    assert judge.r_under_other_profiles(declared, judge.values(declared, PLAIN)) == {}
    failed = Subject(Implementation("mine", raising(ValueError()), Support(), NUMPY))
    assert judge.r_under_other_profiles(failed, judge.values(failed, PLAIN)) == {}
    flushing = Subject(replace(DIRECT, support=replace(DIRECT.support, profile=None, flushes=("float16",))))
    judgement = judge.values(flushing, PLAIN)
    assert judgement.profile == "unfused+flushes"
    assert set(judge.r_under_other_profiles(flushing, judgement)) == {f"{name}+flushes" for name in found}


def test_directions_are_those_of_the_profile_and_kept():
    judge, problem = Judge(), PLAIN.but(dtype="float32", query_length=40, key_length=40)
    support = DIRECT.support
    strict, low = judge.directions(problem, "strict", support), judge.directions(problem, "low", support)
    assert strict and judge.directions(problem, "strict", support) is strict
    assert low is not strict and len(low) > 0
    asked = directions(judge.inputs(problem), judge.expected(problem, "strict", support), "strict")
    for one, target in zip(strict, asked, strict=True):
        assert one.words == target.words
        np.testing.assert_array_equal(one.slope, target.slope)
    encoding = parse("sinusoidal_encoding length=5 width=6 dtype=float32 values=gaussian.1#1")
    assert judge.directions(encoding, "strict", support) == ()


def test_what_a_cache_says_of_itself_is_short():
    judge = Judge()
    judge.expected(PLAIN, "unfused")
    assert repr(judge._expected) == "_Cache of 1 entries"


def test_a_wrong_value_within_an_addition_says_so_and_a_wrong_formula_does_not():
    def off(factor):
        def function(query, key, value):
            return DIRECT.function(query, key, value) * np.float32(factor)

        return outcome_of(function, profile="strict")

    near, far = off(1.0 + 6e-6), off(2.0)
    assert near.outcome is far.outcome is Outcome.WRONG_VALUE
    assert "It is within the budget of strict+" not in far.message

"""The verdict on one output: shape before dtype before what is not finite before values, and r = error / budget to the bit."""

import numpy as np
import pytest

from conformance.judging.verdict import Outcome, judge, judge_form, overflowed
from conformance.numerics.dtypes import float_type
from conformance.oracle import Expected

WANT = np.array([[1.0, 2.0], [3.0, 4.0]])


def target(output=WANT, budget=0.25, judged=True, dtype="float32", shape=None, rows=None):
    shape = shape or output.shape
    return Expected(output, np.full(output.shape, budget), np.broadcast_to(judged, output.shape), shape, dtype, rows)


def got(*rows, dtype=np.float32):
    return np.array(rows, dtype)


def test_r_is_the_largest_error_over_its_own_budget_and_one_is_a_pass():
    expected = target()
    assert judge(got([1, 2], [3, 4]), expected).r == 0.0
    edge = judge(got([1, 2], [3.25, 4.125]), expected)
    assert (edge.outcome, edge.r) == (Outcome.PASS, 1.0)
    beyond = judge(got([1, 2], [3.25, 4.5]), expected)
    assert (beyond.outcome, beyond.r, beyond.index) == (Outcome.WRONG_VALUE, 2.0, (1, 1))
    assert (beyond.got, beyond.want, beyond.budget) == (4.5, 4.0, 0.25)
    assert beyond.message == "At (1, 1): got 4.5, expected 4.0, budget 0.25, r = 2."
    below = judge(got([1, 1], [3, 4]), expected)
    assert (below.outcome, below.r, below.index) == (Outcome.WRONG_VALUE, 4.0, (0, 1))
    just = judge(got([1, 2], [np.nextafter(np.float32(3.25), np.float32(4)), 4]), expected)
    assert just.outcome is Outcome.WRONG_VALUE and just.r > 1.0
    narrow = Expected(WANT, np.array([[0.25, 0.25], [0.25, 4.0]]), np.ones((2, 2), bool), (2, 2), "float32")
    assert judge(got([1, 2.125], [3, 6]), narrow).r == 0.5, "each element has its own budget"


def test_what_is_not_judged_may_be_anything():
    judged = np.array([[True], [False]])
    for wild in (99.0, np.nan, np.inf):
        verdict = judge(got([1, 2], [wild, 4]), target(judged=judged))
        assert (verdict.outcome, verdict.r) == (Outcome.PASS, 0.0)
    still = judge(got([1, 3], [np.nan, 4]), target(judged=judged))
    assert (still.outcome, still.r) == (Outcome.WRONG_VALUE, 4.0)
    assert judge(got([np.nan, 2], [np.nan, 4]), target(judged=judged)).outcome is Outcome.NONFINITE


def test_an_output_without_elements_passes():
    verdict = judge(np.zeros((0, 2), np.float32), target(output=np.zeros((0, 2))))
    assert (verdict.outcome, verdict.r) == (Outcome.PASS, 0.0)


def test_shape_comes_before_dtype_and_both_before_values():
    wrong = np.zeros((2, 3), np.float64)
    assert judge(wrong, target()).outcome is Outcome.WRONG_SHAPE
    assert judge(wrong, target()).message == "The output has shape (2, 3), expected (2, 2)."
    assert judge(WANT + 9, target()).outcome is Outcome.WRONG_DTYPE
    assert judge(WANT, target()).message == "The output is float64, expected float32."
    assert judge(WANT.astype(np.float32), target()).outcome is Outcome.PASS
    swapped = WANT.astype(np.float32).astype(">f4" if np.little_endian else "<f4")
    assert judge(swapped, target()).message == "The output is float32 in the byte order of another machine, expected float32."
    asked = {
        (shape, dtype): judge_form(wrong, target(), shape=shape, dtype=dtype).outcome for shape in (0, 1) for dtype in (0, 1)
    }
    assert asked == {
        (0, 0): Outcome.PASS, (1, 0): Outcome.WRONG_SHAPE, (0, 1): Outcome.WRONG_DTYPE, (1, 1): Outcome.WRONG_SHAPE,
    }  # fmt: skip
    assert judge_form(wrong, target()).outcome is Outcome.WRONG_SHAPE


@pytest.mark.parametrize(
    ("want", "got_", "outcome"),
    [
        (np.nan, np.nan, Outcome.PASS),
        (np.inf, np.inf, Outcome.PASS),
        (-np.inf, -np.inf, Outcome.PASS),
        (np.nan, 1.0, Outcome.NONFINITE),
        (np.nan, np.inf, Outcome.NONFINITE),
        (np.inf, -np.inf, Outcome.NONFINITE),
        (np.inf, np.nan, Outcome.NONFINITE),
        (np.inf, 3e38, Outcome.NONFINITE),
        (1.0, np.nan, Outcome.NONFINITE),
        (1.0, np.inf, Outcome.NONFINITE),
        (1.0, 1.0, Outcome.PASS),
        (1e39, np.inf, Outcome.PASS),  # beyond float32
        (-1e39, -np.inf, Outcome.PASS),
        (1e39, 3.4e38, Outcome.WRONG_VALUE),  # far off, and finite
        (1e39, -np.inf, Outcome.NONFINITE),
    ],
)
def test_what_is_not_finite_stands_where_it_is_expected(want, got_, outcome):
    verdict = judge(got([got_, 2.0]), target(output=np.array([[want, 2.0]])))
    assert verdict.outcome is outcome
    assert (verdict.index == (0, 0)) is (outcome is not Outcome.PASS)
    if outcome is Outcome.NONFINITE:
        target_there = np.copysign(np.inf, want) if abs(want) > 1e38 else want
        assert (
            verdict.r is None
            and verdict.message == f"At (0, 0): got {float(np.float32(got_))!r}, expected {float(target_there)!r}."
        )
    elif outcome is Outcome.PASS:
        assert verdict.r == 0.0
        beside = judge(got([got_, 2.5]), target(output=np.array([[want, 2.0]])))
        assert (beside.outcome, beside.r, beside.index) == (Outcome.WRONG_VALUE, 2.0, (0, 1)), "values beside it are judged"


def test_values_overflow_beyond_half_a_step_above_the_largest_number():
    for dtype in ("float16", "float32", "bfloat16"):
        kind = float_type(dtype)
        edge = kind.largest * (1 + kind.unit_roundoff)
        found = overflowed(np.array([kind.largest, edge, edge * (1 + 2**-40), -edge * (1 + 2**-40)]), dtype)
        assert found.tolist() == [kind.largest, edge, np.inf, -np.inf]


def test_of_sampled_rows_the_row_of_the_whole_output_is_named():
    rows = np.array([1, 3])
    expected = target(shape=(4, 2), rows=rows)
    whole = got([9, 9], [1, 2], [9, 9], [3, 5])
    verdict = judge(whole, expected)
    assert (verdict.outcome, verdict.index, verdict.got) == (Outcome.WRONG_VALUE, (3, 1), 5.0)
    whole[3, 1] = 4
    assert judge(whole, expected).outcome is Outcome.PASS


def test_of_several_heads_the_place_is_that_of_the_whole_output_too():
    expected = target(output=np.zeros((2, 3, 2, 4)), shape=(2, 3, 9, 4), rows=np.array([5, 7]))
    whole = np.zeros((2, 3, 9, 4), np.float32)
    whole[1, 2, 7, 3] = 1.0
    assert judge(whole, expected).index == (1, 2, 7, 3)


def test_numbers_that_leave_the_range_warn_nobody():
    largest = np.finfo(np.float64).max
    with np.errstate(all="raise"):
        far = judge(np.array([[largest, 0.0]]), target(output=np.array([[-largest, 0.0]]), dtype="float64"))
        assert far.outcome is Outcome.WRONG_VALUE
        assert judge(np.array([[np.inf, 0.0]]), target(output=np.array([[np.inf, 0.0]]), dtype="float64")).outcome is Outcome.PASS


def test_outcomes_are_ordered_and_say_whether_they_are_failures():
    order = list(Outcome)
    assert [outcome.severity for outcome in order] == list(range(len(order)))
    assert {outcome for outcome in order if not outcome.is_failure} == {Outcome.PASS, Outcome.SKIPPED, Outcome.UNSUPPORTED}
    assert {outcome for outcome in order if not outcome.was_run} == {Outcome.SKIPPED, Outcome.UNSUPPORTED}
    assert Outcome.CRASH.severity > Outcome.ERROR.severity > Outcome.NONFINITE.severity > Outcome.WRONG_VALUE.severity

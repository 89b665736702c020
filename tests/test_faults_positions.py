"""Faults of the sinusoidal encoding: each shows where it can, and gives the numbers that its sentence says."""

import numpy as np
import pytest

from conformance.faults.sinusoids import added, table
from conformance.faults.steps import compute
from conformance.problem.inputs import SinusoidalInputs
from conformance.specification.build import joined, sinusoidal
from tests.support.faults import calculates, of_kinds
from tests.support.shown import assert_leaves_inputs_alone, assert_shows_only_where_it_can, tried

FAULTS = {
    name.removeprefix("sinusoid-"): fault for name, fault in of_kinds("frequencies", "positions", where=calculates).items()
}  # fmt: skip
ASKED = {"arrangement": "interleaved"}
PROBLEMS = joined(
    sinusoidal(10, 6, **ASKED),
    sinusoidal(10, 6, arrangement="concatenated"),
    sinusoidal(12, 12, **ASKED),
    sinusoidal(5, 8, batch=5, **ASKED),
    sinusoidal(7, 12, batch=2, **ASKED),
)
LONG = sinusoidal(5100, 4, ("float64",), **ASKED)
LONGEST = sinusoidal(33000, 2, ("float64",), **ASKED)[0]
WIDE = sinusoidal(3, 80, **ASKED)
SLIGHT = ("angle-in-float32", "frequency-in-float32", "table-in-float32", "angle-by-steps")


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in SLIGHT])
def test_shows_where_it_can_and_nowhere_else(name):
    far = "-in-" in name or "-beyond-" in name
    assert_shows_only_where_it_can(FAULTS[name], [*PROBLEMS, *LONG, *WIDE, LONGEST] if far else PROBLEMS)


@pytest.mark.parametrize("name", FAULTS)
def test_leaves_x_alone(name):
    assert_leaves_inputs_alone(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize("name", FAULTS)
def test_has_the_shape_and_dtype_asked_for(name):
    for problem in PROBLEMS:
        inputs, right = tried(problem)
        output = FAULTS[name].output(inputs)
        assert (output.shape, output.dtype) == (right.shape, right.dtype)


def test_without_changes_the_table_is_the_right_one():
    for problem in (*PROBLEMS, *sinusoidal(9, 7, ("float64",), **ASKED)):
        inputs, right = tried(problem)
        np.testing.assert_array_equal(added(inputs, table(inputs)), right)


@pytest.mark.parametrize(
    ("name", "exponents"),  # of 1/10000 in the four columns of width 4, whose pair of position 1 is sin ω, cos ω
    [
        ("exponent-halved", (0, 0, 1 / 4, 1 / 4)),
        ("exponent-doubled", (0, 0, 1, 1)),
        ("exponent-of-column", (0, 1 / 4, 1 / 2, 3 / 4)),
        ("exponent-of-column-doubled", (0, 1 / 2, 1, 3 / 2)),
        ("cosine-of-next-pair", (0, 1 / 2, 1 / 2, 1)),
        ("cosine-of-previous-pair", (0, -1 / 2, 1 / 2, 0)),
        ("pairs-from-one", (1 / 2, 1 / 2, 1, 1)),
        ("pairs-reversed", (1 / 2, 1 / 2, 0, 0)),
        ("denominator-half-less-one", (0, 0, 1, 1)),
        ("denominator-less-one", (0, 0, 2 / 3, 2 / 3)),
        ("denominator-plus-one", (0, 0, 2 / 5, 2 / 5)),
        ("denominator-plus-two", (0, 0, 1 / 3, 1 / 3)),
        ("frequency-inverted", (0, 0, -1 / 2, -1 / 2)),
        ("base-1000", (0, 0, 3 / 8, 3 / 8)),
        ("base-100000", (0, 0, 5 / 8, 5 / 8)),
        ("length-for-width", (0, 0, 1, 1)),
    ],
)
def test_the_exponents_are_those_that_are_said(name, exponents):
    inputs = SinusoidalInputs(length=2, width=4, dtype="float64", arrangement="interleaved")
    angles = 1e4 ** -np.array(exponents)
    expected = [np.sin(angles[0]), np.cos(angles[1]), np.sin(angles[2]), np.cos(angles[3])]
    np.testing.assert_allclose(FAULTS[name].output(inputs)[1], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("positions-from-one", [1, 2, 3, 4]),
        ("positions-from-minus-one", [-1, 0, 1, 2]),
        ("positions-reversed", [3, 2, 1, 0]),
        ("positions-relative", [0, 0.25, 0.5, 0.75]),
        ("positions-doubled", [0, 2, 4, 6]),
    ],
)
def test_the_positions_are_those_that_are_said(name, positions):
    inputs = SinusoidalInputs(length=4, width=2, dtype="float64", arrangement="interleaved")
    np.testing.assert_allclose(FAULTS[name].output(inputs), np.stack([np.sin(positions), np.cos(positions)], axis=1))


@pytest.mark.parametrize(
    ("name", "first", "row", "signs"),  # what the first wrong position gives: a row of the right table, times signs
    [
        ("positions-in-8-bits", 128, 128, (-1, 1)),  # position −128
        ("positions-in-8-bits-unsigned", 256, 0, (1, 1)),
        ("repeats-beyond-512", 512, 0, (1, 1)),
        ("stays-beyond-512", 512, 511, (1, 1)),
        ("zero-beyond-512", 512, 0, (0, 0)),
        ("repeats-beyond-5000", 5000, 0, (1, 1)),
        ("positions-in-16-bits", 32768, 32768, (-1, 1)),
    ],
)
def test_positions_are_right_up_to_the_limit(name, first, row, signs):
    inputs, right = tried(LONGEST)
    output = FAULTS[name].output(inputs)
    np.testing.assert_allclose(output[:first], right[:first], atol=1e-12)
    np.testing.assert_allclose(output[first], right[row] * signs, atol=1e-12)


@pytest.mark.parametrize("name", SLIGHT)
def test_low_precision_is_close_but_not_exact(name):
    inputs, right = tried(LONG[0])
    apart = np.abs(FAULTS[name].output(inputs) - right).max()
    assert 0 < apart < 1e-2


def test_low_precision_of_angles_grows_with_the_position():
    inputs, right = tried(LONG[0])
    apart = np.abs(FAULTS["angle-in-bfloat16"].output(inputs) - right).max(-1)
    assert apart[:16].max() < 0.05 < 1 < apart[5000:].max()


def test_only_equal_sizes_hide_positions_counted_over_the_batch():
    fault = FAULTS["positions-over-batch-if-equal"]
    assert_shows_only_where_it_can(fault, sinusoidal(5, 8, batch=5, **ASKED))
    inputs, right = tried(sinusoidal(7, 12, batch=2, **ASKED)[0])
    np.testing.assert_array_equal(fault.output(inputs), right)


def test_batch_rows_get_the_position_of_their_number():
    inputs, _ = tried(sinusoidal(3, 4, batch=2, **ASKED)[0])
    rows = compute(SinusoidalInputs(length=2, width=4, dtype="float64", arrangement="interleaved"))
    output = FAULTS["positions-over-batch"].output(inputs)
    np.testing.assert_allclose(output - inputs.x, np.broadcast_to(rows[:, None], (2, 3, 4)), atol=1e-6)

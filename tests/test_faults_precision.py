"""Faults of precision and approximation: each shows in the types that it names, and its output is as coarse as it says."""

import numpy as np
import pytest

from conformance.faults.rounding import levels, rounding_to, running_product, running_sum, significand
from conformance.faults.steps import compute
from conformance.specification.build import attention
from conformance.values import materialise
from tests.support.faults import of_kinds
from tests.support.numeric_probes import assert_known_to_the_oracle, assert_shows_where_it_can

SMALL = ("ATT-OUT-039", "ATT-OUT-040", "ATT-OUT-041", "ATT-HEAD-038")  # seen in all elements together alone
FAULTS = of_kinds("precision", "approximations", where=lambda fault: fault.requirements[0] not in SMALL)
REWRITING = [name for name, fault in FAULTS.items() if fault.rewrite is not None]


def inputs_of(dtype="float64", shape="wide", **fields):
    return materialise(attention(shape, (dtype,), **{"values": "gaussian.1#1", **fields})[0])


def unrounded(inputs):
    """The same numbers with the query in float64, so that the output is not rounded."""
    return inputs.but(query=inputs.query.astype(np.float64))


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", REWRITING)
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize(("name", "bits"), [("float32", 24), ("float16", 11), ("bfloat16", 8)])
def test_an_output_in_a_narrower_type_has_its_bits_and_is_the_nearest(name, bits):
    inputs = inputs_of()
    output, right = FAULTS[f"output-in-{name}"].output(inputs), compute(inputs)
    np.testing.assert_array_equal(output, rounding_to(name)(output))
    np.testing.assert_allclose(output, right, rtol=2.0**-bits)


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_directed_rounding_leans_to_its_side_by_less_than_a_step(dtype, bits):
    inputs = inputs_of(dtype)
    exact = compute(unrounded(inputs))
    error = {
        name: FAULTS[f"output-rounded-{name}"].output(inputs).astype(np.float64) - exact for name in ("up", "down", "toward-zero")
    }
    assert (error["up"] >= 0).all()
    assert (error["down"] <= 0).all()
    assert (error["toward-zero"] * np.sign(exact) <= 0).all()
    for one in error.values():
        assert (np.abs(one) < 2.0 ** (1 - bits) * np.abs(exact)).all()
        assert (np.abs(one) > 2.0**-bits * np.abs(exact) / 2).any()


@pytest.mark.parametrize(("name", "stands_at"), [("bfloat16", 256.0), ("float16", 2048.0)])
def test_a_running_sum_of_ones_stands_still(name, stands_at):
    ones = np.ones((1, 3000))
    np.testing.assert_array_equal(running_sum(ones, rounding_to(name)), [[stands_at]])
    np.testing.assert_array_equal(running_product(ones, ones.T, rounding_to(name)), [[stands_at]])


def test_uniform_weights_of_a_saturated_sum_are_too_large():
    inputs = inputs_of("float32", "long", values="zero-query.1#1")
    ratio = FAULTS["sum-in-bfloat16"].output(inputs) / compute(inputs)
    np.testing.assert_allclose(ratio, 1031 / 256, rtol=1e-4)


def test_products_beyond_65504_are_infinite_in_float16():
    far = inputs_of("float16", values="large-products.1*100000.0#23")
    assert np.isnan(FAULTS["scores-in-float16"].output(far).astype(np.float64)).any()
    assert np.isfinite(compute(far).astype(np.float64)).all()


@pytest.mark.parametrize(
    ("name", "low", "high"),  # of the largest relative error of the weights
    [("exp-linear", 1e-2, 2e-1), ("exp-quadratic", 1e-4, 1e-2), ("exp-cubic", 1e-5, 1e-3), ("exp-quintic", 1e-8, 1e-6)],
)
def test_a_polynomial_is_as_good_as_its_degree(name, low, high):
    inputs = inputs_of(shape=(2, 3, 3, 7, 13, 13, 13), values="identity-value.1#1")
    error = np.abs(FAULTS[name].output(inputs) / compute(inputs) - 1).max()
    assert low < error < high


def test_a_short_reciprocal_is_wrong_by_one_factor_for_each_row():
    inputs = inputs_of()
    ratio = FAULTS["reciprocal-of-12-bits"].output(inputs) / compute(inputs)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[..., :1], ratio.shape), rtol=1e-10)
    assert 2.0**-14 < np.abs(ratio - 1).max() <= 2.0**-12


def test_roundings_keep_what_they_can_hold():
    numbers = np.array([[1.0, -0.4375, 3.0, 0.0]])
    for name in ("float32", "float16", "bfloat16", "float8"):
        np.testing.assert_array_equal(rounding_to(name)(numbers), numbers)
    np.testing.assert_array_equal(significand(3)(numbers), numbers)
    np.testing.assert_array_equal(significand(2, np.trunc)(numbers), [[1.0, -0.375, 3.0, 0.0]])
    np.testing.assert_array_equal(levels(3)(np.array([[3.0, -1.2, 0.4, 0.0]])), [[3.0, -1.0, 0.0, 0.0]])

"""Faults of the scale: each shows where it can, and is the right computation with the scale that its sentence names."""

import numpy as np
import pytest

from conformance.faults.steps import compute
from conformance.problem.inputs import AttentionInputs
from conformance.specification.build import attention
from conformance.values import materialise
from tests.support.faults import of_kinds
from tests.support.numeric_probes import assert_known_to_the_oracle, assert_shows_where_it_can

FAULTS = of_kinds("scales") | of_kinds("of_features", where=lambda fault: fault.id == "scale-ignored")
DEFAULT = [
    name for name in FAULTS if name.startswith("scale-by-") or name in ("scale-missing", "scale-inverted", "scale-constant")
]
SIZES = (2, 6, 3, 7, 13, 11, 5)  # batch, heads, key heads, Lq, Lk, width, value width


def inputs_with(scale: float | None = None, **fields) -> AttentionInputs:
    return materialise(attention(SIZES, values="spread.1#1", scale=scale, **fields)[0])


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize(
    ("name", "square"),  # of what the scores are divided by
    [
        ("scale-missing", 1),
        ("scale-by-width", 11**2),
        ("scale-by-model-width", 6 * 11),
        ("scale-by-key-model-width", 3 * 11),
        ("scale-by-group-width", 2 * 11),
        ("scale-by-value-width", 5),
        ("scale-by-heads", 6),
        ("scale-by-batch", 2),
        ("scale-by-query-length", 7),
        ("scale-by-key-length", 13),
        ("scale-by-width-plus-one", 12),
        ("scale-by-width-minus-one", 10),
        ("scale-by-width-padded-to-8", 16),
        ("scale-by-width-padded-to-64", 64),
        ("scale-by-power-of-two", 16),
        ("scale-twice", 11**2),
        ("scale-by-live-channels", 11),
    ],
)
def test_divides_by_what_it_says(name, square):
    inputs = inputs_with()
    expected = compute(inputs.but(scale=1.0 / np.sqrt(square)))
    np.testing.assert_allclose(FAULTS[name].output(inputs), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("scale-ignored", 0.7, 11**-0.5),
        ("scale-on-top-of-default", 0.7, 0.7 * 11**-0.5),
        ("scale-given-inverted", 0.5, 2.0),
        ("scale-truncated", 2.7, 2.0),
        ("scale-one-as-none", 1.0, 11**-0.5),
        ("scale-one-as-none", 0.7, 0.7),
        ("scale-clipped-to-one", 2.5, 1.0),
        ("scale-clipped-below", 2.0**-12, 2.0**-10),
        ("scale-fixed-point", 0.0002, 0.0),
        ("scale-twice", 0.7, 0.49),
        ("scale-root", 0.49, 0.7),
        ("scale-two-decimals", 0.126, 0.13),
    ],
)
def test_uses_the_scale_that_it_says(name, given, used):
    np.testing.assert_allclose(FAULTS[name].output(inputs_with(given)), compute(inputs_with(used)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", DEFAULT)
def test_a_wrong_default_leaves_a_given_scale_alone(name):
    inputs = inputs_with(0.25)
    assert FAULTS[name].output(inputs).tobytes() == compute(inputs).tobytes()


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("with-mask", {"mask": "random.1:b1qk#1"}),
        ("with-bias", {"bias": "gaussian.1:qk#1"}),
        ("when-causal", {"causal": "top-left"}),
        ("with-lengths", {"key_lengths": (5, 11)}),
    ],
)
def test_a_scale_is_lost_on_its_path_only(path, fields):
    on, off = inputs_with(**fields), inputs_with()
    given_on, given_off = inputs_with(0.5, **fields), inputs_with(0.5)
    missing, ignored = FAULTS[f"scale-missing-{path}"], FAULTS[f"scale-ignored-{path}"]
    np.testing.assert_array_equal(missing.output(on), compute(on.but(scale=1.0)))
    np.testing.assert_array_equal(ignored.output(given_on), compute(on))
    for fault, untouched in ((missing, off), (missing, given_on), (ignored, given_off), (ignored, on)):
        np.testing.assert_array_equal(fault.output(untouched), compute(untouched))


def test_channels_that_are_zero_are_not_counted():
    inputs = inputs_with(transformations=("zero-channels.1#0",))
    np.testing.assert_array_equal(
        FAULTS["scale-by-live-channels"].output(inputs), compute(inputs.but(scale=float(1.0 / np.sqrt(6))))
    )

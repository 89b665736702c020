"""Faults of the fill for hidden scores: nothing without something hidden, a leak where visible scores are low enough."""

import numpy as np
import pytest

from conformance.faults.functions import implementation_of
from conformance.faults.steps import compute
from conformance.problem.visibility import visible_pairs
from conformance.specification.build import attention, multi_head
from conformance.values import materialise
from tests.support.faults import of_kinds
from tests.support.numeric_probes import assert_known_to_the_oracle, assert_shows_where_it_can

FAULTS = of_kinds("fills")
COMPUTING = [name for name, fault in FAULTS.items() if fault.behaviour is None]
REWRITING = [name for name, fault in FAULTS.items() if fault.rewrite is not None]
CONSTANTS = {f"fill-minus-{text}": -float(text) for text in ("10", "100", "1e3", "1e4", "65504", "1e5", "1e9", "1e20")}


def masked(dtype="float64", transformations=(), **fields):
    return materialise(
        attention(
            "wide", (dtype,), values="spread.1#1", mask="right-padding.1:b11k#47", transformations=transformations, **fields
        )[0]
    )


@pytest.mark.parametrize("name", COMPUTING)
def test_shows_where_it_can(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", REWRITING)
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize("name", COMPUTING)
def test_changes_nothing_where_nothing_is_hidden(name):
    fault = FAULTS[name]
    problem = (multi_head if fault.operation == "multi_head_attention" else attention)("square", fault.dtypes[:1])[0]
    inputs = materialise(problem)
    assert fault.output(inputs).tobytes() == compute(inputs).tobytes()


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("hidden_by", [{"mask": "right-padding.1:b11k#47"}, {"key_lengths": (5, 11)}, {"causal": "top-left"}])
def test_whatever_hides_a_key_is_filled(name, hidden_by):
    """Scores that are all lower than the fill by hundreds: the hidden keys, which score alike, take all the weight."""
    inputs = materialise(
        attention("wide", ("float64",), values="spread.1#1", bias=f"low.1:qk*{2 * CONSTANTS[name] - 1e4}#1", **hidden_by)[0]
    )
    hidden = ~visible_pairs(inputs)
    some = hidden.any(-1)
    mean = hidden @ inputs.value / np.maximum(hidden.sum(-1, keepdims=True), 1)
    output = FAULTS[name].output(inputs)
    np.testing.assert_allclose(output[some], mean[some], rtol=1e-9)
    np.testing.assert_allclose(output[~some], compute(inputs)[~some], rtol=1e-9)


@pytest.mark.parametrize("name", CONSTANTS)
def test_visible_scores_that_are_higher_win(name):
    inputs = masked(bias="low.1:qk*300.0#1")  # scores far above the highest of the fills
    np.testing.assert_allclose(FAULTS[name].output(inputs), compute(inputs), rtol=1e-12)


def test_a_fill_that_is_added_lets_a_loud_hidden_key_win_where_one_that_replaces_does_not():
    inputs = masked("float32", transformations=("loud-hidden.1*1000.0#0", "hidden-value.1#0"))
    assert np.abs(FAULTS["fill-minus-1e4-added"].output(inputs)).max() > 1e3
    np.testing.assert_allclose(FAULTS["fill-minus-1e4"].output(inputs), compute(inputs), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_fill_that_overflows_makes_visible_scores_nan(dtype):
    inputs = masked(dtype)
    for name, fault in FAULTS.items():
        if name.endswith("times-mask"):
            assert np.isnan(fault.output(inputs).astype(np.float64)).all() == (dtype in fault.dtypes), name


def test_a_fill_that_float16_cannot_hold_is_refused_only_there_and_only_where_a_key_is_hidden():
    function = implementation_of(FAULTS["fill-refused-in-float16"]).function
    half, single = masked("float16"), masked("float32")
    with pytest.raises(OverflowError):
        function(half.query, half.key, half.value, mask=half.mask)
    with pytest.raises(OverflowError):
        function(half.query, half.key, half.value, causal=True)
    assert function(half.query, half.key, half.value).dtype == np.float16
    np.testing.assert_array_equal(function(single.query, single.key, single.value, mask=single.mask), compute(single))

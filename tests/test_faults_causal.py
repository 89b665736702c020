"""Faults of the causal limit: each shows where attention is causal, draws the limit that its sentence says, and nothing else."""

import numpy as np
import pytest

from conformance.checks.items import Effort
from conformance.faults.causal import limit
from conformance.faults.functions import implementation_of
from conformance.faults.grammar import fault
from conformance.faults.steps import compute
from conformance.judging.verdict import Outcome
from conformance.problem import Problem
from conformance.specification.build import attention
from conformance.values import materialise
from tests.support.fault_probes import assert_known_to_the_oracle, assert_shows_where_it_can, assert_wrong_in_values_only, differs
from tests.support.faults import of_kinds
from tests.support.items import run_item

FAULTS = of_kinds("causal") | of_kinds("of_features", where=lambda one: one.id.endswith("causal-ignored"))


def problem(shape, side: str) -> Problem:
    return attention(shape, values="spread.1#1", causal=side)[0]


def assert_sees(name: str, shape, side: str, mask: np.ndarray) -> None:
    """The fault gives what the explicit ``mask`` gives."""
    inputs = materialise(problem(shape, side))
    expected = compute(inputs.but(causal="none", mask=mask))
    np.testing.assert_allclose(FAULTS[name].output(inputs), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", FAULTS)
def test_is_wrong_in_values_only(name):
    assert_wrong_in_values_only(FAULTS[name])


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize(("name", "diagonal"), [("causal-one-key-late", 1), ("causal-one-key-early", -1), ("causal-ignored", 13)])
def test_the_diagonal_lies_where_the_fault_puts_it(name, diagonal):
    assert_sees(name, "square", "top-left", np.tri(13, 13, diagonal, dtype=bool))


def test_the_triangle_is_turned_as_the_fault_turns_it():
    assert_sees("causal-transposed", "square", "top-left", np.tri(13, dtype=bool).T)
    assert_sees("causal-inverted", "square", "top-left", ~np.tri(13, dtype=bool))
    assert_sees("causal-from-last-key", "square", "top-left", np.tri(13, dtype=bool)[:, ::-1])


def test_alignments_are_exchanged():
    top_left, bottom_right = np.tri(7, 13, dtype=bool), np.tri(7, 13, 6, dtype=bool)
    assert_sees("causal-bottom-right-for-top-left", "wide", "top-left", bottom_right)
    assert_sees("causal-top-left-for-bottom-right", "wide", "bottom-right", top_left)
    assert_sees("causal-alignments-exchanged", "wide", "top-left", bottom_right)
    assert_sees("causal-alignments-exchanged", "wide", "bottom-right", top_left)


def test_an_alignment_fault_is_right_for_equal_lengths():
    for one in of_kinds("causal", where=lambda one: "cross-length" in one.needs).values():
        assert not differs(one, problem("square", "top-left")), one.id


def test_a_limit_of_four_rows_is_that_of_the_first_or_last():
    rows, keys = np.arange(13)[:, None], np.arange(13)
    assert_sees("causal-limit-of-last-of-4", "square", "top-left", keys <= rows // 4 * 4 + 3)
    assert_sees("causal-limit-of-first-of-4", "square", "top-left", keys <= rows // 4 * 4)


def test_faults_of_long_sequences_are_right_in_short_ones():
    for name in ("causal-ignored-beyond-64", "causal-buffer-of-64-rows", "causal-row-wraps-at-128", "causal-window-of-64"):
        assert not differs(FAULTS[name], problem("square", "top-left")), name
        assert differs(FAULTS[name], problem((1, 1, 1, 129, 129, 8, 8), "top-left")), name


def test_positions_in_bfloat16_are_exact_up_to_256():
    wrong = FAULTS["causal-position-in-bfloat16"]
    assert not differs(wrong, problem((1, 1, 1, 5, 256, 8, 8), "bottom-right"))
    assert differs(wrong, problem((1, 1, 1, 5, 263, 8, 8), "bottom-right"))


def test_the_first_head_alone_is_causal():
    inputs = materialise(problem("square", "top-left"))
    wrong = FAULTS["causal-in-first-head-only"].output(inputs)
    np.testing.assert_allclose(wrong[:, 0], compute(inputs)[:, 0], rtol=1e-6)
    np.testing.assert_allclose(wrong[:, 1:], compute(inputs.but(causal="none"))[:, 1:], rtol=1e-6)


def test_a_mask_beside_the_causal_limit_still_counts():
    inputs = materialise(attention("square", mask="random.1:b1qk#20", causal="top-left")[0])
    expected = compute(inputs.but(causal="none", mask=inputs.mask & np.tri(13, 13, 1, dtype=bool)))
    np.testing.assert_allclose(FAULTS["causal-one-key-late"].output(inputs), expected, rtol=1e-6, atol=1e-6)


HAS = {
    "mask": lambda inputs: inputs.mask is not None,
    "bias": lambda inputs: inputs.bias is not None,
    "key-lengths": lambda inputs: inputs.key_lengths is not None,
    "grouped-heads": lambda inputs: inputs.query.shape[1] != inputs.key.shape[1],
}


@pytest.mark.parametrize("feature", HAS)
@pytest.mark.parametrize("side", ["top-left", "bottom-right"])
def test_one_alignment_that_flips_beside_a_feature_is_caught_without_random_cases(side, feature):
    """The catalogue has faults that flip both; each alone needs a case of its own."""

    def seen(i, j, offset, inputs):
        surplus = inputs.key.shape[2] - inputs.query.shape[2]
        flips = HAS[feature](inputs) and offset == (surplus if side == "bottom-right" else 0)
        return j <= i + (surplus - offset if flips else offset)

    flipping = fault("one-alignment-flips", "flips", limit(seen), ("ATT-MASK-044",), (), feature)
    found = run_item("ATT-MASK-044", implementation_of(flipping), Effort(examples=0, free=False, seed=1))
    assert found.item.dtypes["float32"].outcome is Outcome.WRONG_VALUE

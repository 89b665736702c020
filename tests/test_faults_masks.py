"""Faults of masks and biases: each shows where there is a mask or bias, does what its sentence says, and nothing else."""

import numpy as np
import pytest

from conformance.faults.steps import compute
from conformance.problem import parse
from conformance.problem.inputs import AttentionInputs
from conformance.values import materialise
from tests.support.fault_probes import assert_known_to_the_oracle, assert_shows_where_it_can, assert_wrong_in_values_only
from tests.support.faults import calculates, of_kinds

FAULTS = of_kinds("masks", "biases", "of_features", where=lambda fault: calculates(fault) and fault.id != "scale-ignored")
PLAIN = "attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=spread.1#1"
SQUARE = "attention batch=2 heads=3 length=13 width=8 dtype=float32 values=spread.1#1"


def inputs_of(text: str) -> AttentionInputs:
    inputs = materialise(parse(text))
    assert isinstance(inputs, AttentionInputs)
    return inputs


def assert_same(left: np.ndarray, right: np.ndarray) -> None:
    np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", FAULTS)
def test_is_wrong_in_values_only(name):
    assert_wrong_in_values_only(FAULTS[name])


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


def test_an_ignored_mask_gives_what_no_mask_gives():
    inputs = inputs_of(f"{PLAIN} mask=random.1:b1qk#1")
    assert_same(FAULTS["mask-ignored"].output(inputs), compute(inputs.but(mask=None)))


def test_an_inverted_mask_shows_what_the_opposite_mask_shows():
    inputs = inputs_of(f"{PLAIN} mask=one-key.1:b1qk*2.0#1")
    assert_same(FAULTS["mask-inverted"].output(inputs), compute(inputs.but(mask=~inputs.mask)))


def test_a_mask_ignored_in_one_form_counts_in_the_others():
    for form in ("qk", "b11k", "b1qk", "1hqk", "bhqk"):
        inputs = inputs_of(f"{PLAIN} mask=random.1:{form}#1")
        for other in ("qk", "b11k", "b1qk", "1hqk", "bhqk"):
            without = inputs.but(mask=None) if other == form else inputs
            assert_same(FAULTS[f"mask-ignored-in-form-{other}"].output(inputs), compute(without))


def test_a_mask_of_the_first_batch_row_is_right_in_the_first_batch_row():
    inputs = inputs_of(f"{PLAIN} mask=random.1:b1qk*0.4#40")
    right, wrong = compute(inputs), FAULTS["mask-of-first-batch-row"].output(inputs)
    assert_same(wrong[0], right[0])
    assert not np.allclose(wrong[1], right[1])


def test_a_transposed_mask_is_the_mask_transposed_for_equal_lengths():
    inputs = inputs_of(f"{SQUARE} mask=random.1:b1qk#1")
    assert_same(FAULTS["mask-transposed"].output(inputs), compute(inputs.but(mask=inputs.mask.swapaxes(-1, -2))))


def test_a_padding_mask_on_queries_hides_no_key_from_the_queries_that_stay():
    inputs = inputs_of(f"{SQUARE} mask=right-padding.1:b11k#47")
    wrong, unmasked = FAULTS["padding-mask-on-queries"].output(inputs), compute(inputs.but(mask=None))
    stays = np.broadcast_to(inputs.mask[:, :, 0, :], wrong.shape[:3])
    assert_same(wrong[stays], unmasked[stays])
    assert (wrong[~stays] == 0).all()


def test_a_mask_read_as_length_is_right_for_right_padding():
    fault = FAULTS["mask-read-as-length"]
    right_padded = inputs_of(f"{PLAIN} mask=right-padding.1:b11k#47")
    assert_same(fault.output(right_padded), compute(right_padded))
    left_padded = inputs_of(f"{PLAIN} mask=left-padding.1:b11k#48")
    assert not np.allclose(fault.output(left_padded), compute(left_padded))


def test_weights_multiplied_after_softmax_sum_to_less_than_one():
    inputs = inputs_of(f"{PLAIN} mask=random.1:b1qk#1")
    ones = inputs.but(value=np.ones_like(inputs.value))
    assert (FAULTS["mask-multiplied-after-softmax"].output(ones) < 1 - 1e-6).any()
    assert_same(FAULTS["mask-after-softmax-renormalised"].output(ones), np.ones_like(inputs.query))


def test_a_bias_counts_in_the_way_that_the_fault_says():
    inputs = inputs_of(f"{PLAIN} bias=gaussian.1:bhqk#5")
    changed = {
        "bias-ignored": None,
        "bias-subtracted": -inputs.bias,
        "bias-added-twice": 2 * inputs.bias,
        "bias-of-first-head": inputs.bias[:, :1],
        "bias-of-next-key": np.roll(inputs.bias, -1, -1),
    }
    for name, bias in changed.items():
        assert_same(FAULTS[name].output(inputs), compute(inputs.but(bias=bias)))


def test_a_bias_of_keys_taken_for_one_of_queries_does_nothing():
    inputs = inputs_of(f"{PLAIN} bias=gaussian.1:b11k#5")
    without = compute(inputs.but(bias=None))
    for name in ("bias-of-keys-on-queries", *FAULTS["bias-of-keys-on-queries"].alike):
        assert_same(FAULTS[name].output(inputs), without)


def test_of_two_features_the_one_that_is_named_is_dropped():
    inputs = inputs_of(f"{SQUARE} mask=random.1:b1qk#20 causal=top-left")
    assert_same(FAULTS["mask-dropped-with-causal"].output(inputs), compute(inputs.but(mask=None)))
    assert_same(FAULTS["causal-dropped-with-mask"].output(inputs), compute(inputs.but(causal="none")))


def test_united_instead_of_intersected_shows_more():
    inputs = inputs_of(f"{SQUARE} mask=random.1:b1qk#20 causal=top-left")
    either = inputs.mask | np.tri(13, dtype=bool)
    assert_same(FAULTS["mask-or-causal"].output(inputs), compute(inputs.but(mask=either, causal="none")))

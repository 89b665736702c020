"""Faults of multi-head attention: each shows where it can, and does with weights, heads and masks what its sentence says."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.problem.inputs import MultiHeadInputs, Weights
from conformance.specification.build import joined, multi_head
from tests.support.faults import of_kinds
from tests.support.shown import assert_known_to_the_oracle, assert_leaves_inputs_alone, assert_shows_only_where_it_can, tried


def _in_float32(fault: Fault) -> bool:
    return "float32" in fault.dtypes


FAULTS = {name.removeprefix("multi-head-"): fault for name, fault in of_kinds("projections", "layers", where=_in_float32).items()}
PROBLEMS = joined(
    multi_head("square"),
    multi_head("square", projection_bias=True, output="bias"),
    multi_head("square", output="none", mask="random.1:bhqk#3"),
    multi_head("square", mask="right-padding.1:b11k#4"),
    multi_head("square", key_lengths=(4, 6)),
    multi_head("square", source="cross"),
    multi_head("cross", source="cross"),
    multi_head("cross", source="cross", causal="bottom-right", projection_bias=True),
    multi_head("inner"),
    multi_head("many"),
    multi_head("one-head", output="bias"),
)


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_only_where_it_can(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize("name", FAULTS)
def test_leaves_the_inputs_alone(name):
    assert_leaves_inputs_alone(FAULTS[name], PROBLEMS)


def one_position(heads: int, width: int) -> MultiHeadInputs:
    """One token 0, 1, 2 … that the projections pass through: with a single key the output is that again."""
    token, one = np.arange(heads * width, dtype=np.float32)[None, None], np.eye(heads * width, dtype=np.float32)
    return MultiHeadInputs(query=token, key=token, value=token, weights=Weights(query=one, key=one, value=one), num_heads=heads)


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("merge-reversed", [4, 5, 2, 3, 0, 1]),
        ("merge-rotated", [4, 5, 0, 1, 2, 3]),
        ("merge-interleaved", [0, 2, 4, 1, 3, 5]),
        ("split-interleaved", [0, 3, 1, 4, 2, 5]),
        ("last-head-dropped", [0, 1, 2, 3, 0, 0]),
        ("heads-averaged", [2, 3, 2, 3, 2, 3]),
        ("split-and-merge-interleaved", [0, 1, 2, 3, 4, 5]),  # shows only where heads differ in their weights
        ("merge-without-transpose", [0, 1, 2, 3, 4, 5]),  # shows only where there is another position
    ],
)
def test_three_heads_of_two_channels_are_merged(name, merged):
    assert FAULTS[name].output(one_position(3, 2)).ravel().tolist() == merged


def test_a_view_without_a_transpose_gives_heads_runs_of_positions():
    tokens = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    one = np.eye(4, dtype=np.float32)
    weights = Weights(query=np.zeros_like(one), key=np.zeros_like(one), value=one)
    inputs = MultiHeadInputs(query=tokens, key=tokens, value=tokens, weights=weights, num_heads=2)
    # equal weights: each head gives the mean of what it took for its two positions
    assert compute(inputs).tolist() == [[[2, 3, 4, 5], [2, 3, 4, 5]]]
    assert FAULTS["split-without-transpose"].output(inputs).tolist() == [[[1, 2, 5, 6], [1, 2, 5, 6]]]


@pytest.mark.parametrize("name", ["scale-by-model-width", "scale-by-inner-width"])
def test_model_and_inner_width_are_told_apart_where_they_differ(name):
    other = {"scale-by-model-width": "scale-by-inner-width"}.get(name, "scale-by-model-width")
    square, _ = tried(multi_head("square")[0])
    inner, _ = tried(multi_head("inner")[0])
    np.testing.assert_array_equal(FAULTS[name].output(square), FAULTS[other].output(square))
    assert np.abs(FAULTS[name].output(inner) - FAULTS[other].output(inner)).max() > 1e-3


def test_one_head_hides_what_is_taken_from_another():
    problem = multi_head("one-head", projection_bias=True, output="bias")[0]
    for name in ("first-head-for-all", "biases-of-first-head", "weights-of-first-head", "output-bias-per-head"):
        assert_shows_only_where_it_can(replace(FAULTS[name], equivalent="one head"), [problem])


def test_weights_shared_by_all_heads_hide_a_shared_projection():
    problem = multi_head("square", weights="shared")[0]
    for name in ("shared-projection", "projected-after-split"):
        assert_shows_only_where_it_can(replace(FAULTS[name], equivalent="shared"), [problem])


def test_masks_are_read_where_it_is_said():
    inputs, _ = tried(multi_head("square", mask="random.1:bhqk#3")[0])
    mask = inputs.mask
    expected = {
        "mask-of-first-head": mask[:, [0, 0, 0]],
        "mask-of-next-head": mask[:, [1, 2, 0]],
        "mask-heads-outermost": mask[[[0, 1, 0], [1, 0, 1]], [[0, 0, 1], [1, 2, 2]]],
    }
    for name, other in expected.items():
        np.testing.assert_array_equal(FAULTS[name].output(inputs), compute(inputs.but(mask=other)))


def test_a_mask_of_the_batch_repeated_as_a_whole_reads_other_batch_rows():
    inputs, _ = tried(multi_head("square", key_lengths=(4, 6))[0])
    seen = np.array([4, 6, 4, 6, 4, 6]).reshape(2, 3, 1, 1)  # batch row (b · H + h) mod 2
    expected = inputs.but(key_lengths=None, mask=np.arange(7) < np.broadcast_to(seen, (2, 3, 7, 1)))
    np.testing.assert_array_equal(FAULTS["mask-tiled-over-batch"].output(inputs), compute(expected))


def test_a_key_bias_moves_all_scores_of_a_row_alike():
    inputs, right = tried(multi_head("square", ("float64",), projection_bias=True)[0])
    np.testing.assert_allclose(FAULTS["key-bias-dropped"].output(inputs), right, rtol=1e-12)

"""Faults of heads: each shows where it can, and reads the heads that its sentence says."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.faults.steps import compute
from conformance.problem.inputs import AttentionInputs
from conformance.specification.build import attention, joined
from tests.support.faults import of_kinds
from tests.support.shown import assert_known_to_the_oracle, assert_leaves_inputs_alone, assert_shows_only_where_it_can, tried

FAULTS = of_kinds("heads") | of_kinds("softmaxes", where=lambda fault: fault.id.startswith("weights-"))
PROBLEMS = joined(
    attention("square"),
    attention("wide", mask="random.1:bhqk#1"),
    attention("wide", bias="gaussian.1:1hqk#1"),
    attention("square", causal="top-left"),
    attention((2, 3, 3, 3, 3, 8, 8)),
    attention("grouped"),
    attention("grouped", mask="random.1:bhqk*0.4#2"),
    attention("grouped", bias="gaussian.1:1hqk#2"),
    attention("grouped-square", causal="top-left"),
    attention((2, 6, 2, 1, 13, 8, 8)),
    attention((1, 24, 2, 3, 5, 8, 8)),
)


def heads_read(name: str, heads: int, kv: int, queries: int = 2) -> list[int]:
    """The key head whose V, its own number, each query head gives."""
    value = np.broadcast_to(np.arange(kv, dtype=np.float32)[None, :, None, None], (1, kv, 5, 4))
    inputs = AttentionInputs(
        query=np.ones((1, heads, queries, 4), np.float32), key=np.ones((1, kv, 5, 4), np.float32), value=value
    )
    return FAULTS[name].output(inputs)[0, :, 0, 0].tolist()


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_only_where_it_can(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize("name", FAULTS)
def test_leaves_the_inputs_alone(name):
    assert_leaves_inputs_alone(FAULTS[name], PROBLEMS)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("heads-tiled", [0, 1, 2, 0, 1, 2]),
        ("heads-tiled-in-keys", [0, 0, 1, 1, 2, 2]),
        ("heads-tiled-in-values", [0, 1, 2, 0, 1, 2]),
        ("heads-divided-by-key-heads", [0, 0, 0, 1, 1, 1]),
        ("heads-from-tile-of-4", [0, 0, 0, 0, 2, 2]),
        ("heads-group-begins-early", [0, 1, 1, 2, 2, 2]),
        ("heads-group-begins-late", [0, 0, 0, 1, 1, 2]),
        ("heads-all-first", [0, 0, 0, 0, 0, 0]),
        ("heads-all-last", [2, 2, 2, 2, 2, 2]),
        ("heads-reversed", [2, 2, 1, 1, 0, 0]),
        ("heads-next", [1, 1, 2, 2, 0, 0]),
        ("heads-previous", [2, 2, 0, 0, 1, 1]),
        ("heads-flat-without-groups", [0, 1, 2, 2, 2, 2]),
        ("group-output-interleaved", [0, 1, 2, 0, 1, 2]),
    ],
)
def test_six_query_heads_read_of_three(name, read):
    assert heads_read(name, 6, 3) == read


def test_a_tile_of_query_heads_may_lie_across_two_groups():
    assert heads_read("heads-from-tile-of-16", 24, 2) == [0] * 16 + [1] * 8  # expected are twelve and twelve


def test_a_path_for_one_query_has_heads_of_its_own():
    name = "heads-tiled-for-one-query"
    assert heads_read(name, 4, 2, queries=1) == [0, 1, 0, 1]
    assert heads_read(name, 4, 2, queries=2) == [0, 0, 1, 1]


def test_as_many_groups_as_queries_in_a_group_hide_the_wrong_division():
    assert heads_read("heads-divided-by-key-heads", 4, 2) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "limits"),
    [("group-causal-by-interleaved-row", [[0, 2, 4], [1, 3, 5]]), ("group-causal-by-stacked-row", [[0, 1, 2], [3, 4, 5]])],
)
def test_packed_rows_take_the_limit_of_their_place(name, limits):
    inputs = AttentionInputs(
        query=np.zeros((1, 2, 3, 4), np.float32),
        key=np.zeros((1, 1, 6, 4), np.float32),
        value=np.arange(6, dtype=np.float32).reshape(1, 1, 6, 1),
        causal="top-left",
    )
    means = FAULTS[name].output(inputs)[0, :, :, 0]  # of the numbers of the visible keys
    np.testing.assert_allclose(means, np.array(limits) / 2)


def test_axes_are_exchanged_only_where_sizes_leave_it_open():
    exchanged, guessed = FAULTS["heads-and-batch-exchanged"], FAULTS["heads-and-length-guessed"]
    apart, alike = attention((2, 3, 3, 4, 4, 8, 8))[0], attention((3, 3, 3, 3, 3, 8, 8))[0]
    for fault in (exchanged, guessed):
        assert_shows_only_where_it_can(replace(fault, needs=frozenset({"grouped-heads"}), equivalent="here"), [apart])
        assert_shows_only_where_it_can(fault, [alike])


def test_a_batch_row_of_its_own_is_right_alone():
    problem = attention((1, 3, 3, 7, 13, 8, 8))[0]
    for name in ("weights-of-first-batch-row", "batch-key-of-first-row", "last-batch-row-unwritten"):
        assert_shows_only_where_it_can(replace(FAULTS[name], equivalent="with one batch row"), [problem])


def test_the_last_head_alone_is_left_unwritten():
    inputs, _ = tried(attention("wide")[0])
    output, right = FAULTS["last-head-unwritten"].output(inputs), compute(inputs)
    np.testing.assert_array_equal(output[:, :-1], right[:, :-1])
    assert not output[:, -1].any()

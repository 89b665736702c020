"""Faults of tiles, merged parts, narrow indices and strides: each shows where it can, and only there."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.faults.online import merged, online, proportions
from conformance.judging.verdict import Outcome, judge
from conformance.problem.inputs import AttentionInputs
from conformance.specification.build import attention, joined
from conformance.values import materialise
from conformance.values.layouts import lay_out
from tests.support.faults import of_kinds
from tests.support.shown import (
    assert_known_to_the_oracle,
    assert_leaves_inputs_alone,
    assert_shows_only_where_it_can,
    expected,
    shows,
    tried,
)

STRIDES = of_kinds("memory")
FAULTS = of_kinds("online", "tiles") | STRIDES
ORDINARY = joined(
    attention("wide"),
    attention("value-width"),
    attention("square", causal="top-left"),
    attention("wide", mask="random.1:b1qk#1"),
    attention("wide", key_lengths=(5, 12)),
)
LARGE = joined(
    attention((1, 1, 1, 300, 300, 8, 8), mask="random.1:qk#2"),
    attention((1, 1, 1, 300, 300, 8, 8), bias="gaussian.1:qk#2"),
    attention("long"),
    attention((1, 1, 1, 2, 1031, 67, 8)),
    attention((1, 1, 1, 70, 133, 8, 8), causal="bottom-right"),
    attention((1, 1, 1, 65, 129, 8, 8), values="gaussian.1*1000.0#1"),
    attention((1, 1, 1, 9, 257, 8, 8), values="all-low.1*-200.0#3", mask="first-tile.1:b1qk*128.0#0"),
    attention("wide", values="all-low.1*-100000.0#4"),
    attention(
        "wide", values="spread.1#5", mask="right-padding.1:b11k#47", transformations=("low-visible.1*-1e22#0", "hidden-value.1#0")
    ),
    attention((2, 2, 2, 5, 13, 44, 5)),
)
LAYOUTS = [
    *joined(
        *(attention("square", layout=one) for one in ("transposed", "strided", "expanded", "reversed", "columns", "misaligned"))
    ),
    *attention("wide", mask="random.1:bhqk#6", layout="mask-transposed"),
    *attention("wide", bias="gaussian.1:bhqk#6", layout="mask-strided"),
]
MIXED = ("value-strides-of-key", "key-strides-of-query", "key-strides-of-value")  # show only where layouts differ


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in MIXED])
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_only_where_it_can(FAULTS[name], [*ORDINARY, *LARGE, *(LAYOUTS if name in STRIDES else ())])


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None and fault not in STRIDES])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name], ORDINARY)


@pytest.mark.parametrize("name", FAULTS)
def test_leaves_the_inputs_alone(name):
    assert_leaves_inputs_alone(FAULTS[name], ORDINARY)


@pytest.mark.parametrize("size", [1, 5, 16, 64])
def test_the_online_form_is_right_unless_a_step_is_replaced(size):
    for problem in (*ORDINARY, *LARGE[4:]):
        verdict = judge(online(tried(problem)[0], size), expected(problem))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"


@pytest.mark.parametrize("parts", [1, 2, 3, 40])
def test_parts_merged_in_proportion_are_right(parts):
    for problem in ORDINARY:
        verdict = judge(merged(tried(problem)[0], proportions, parts), expected(problem))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"


def counting(queries: int, keys: int, **fields) -> AttentionInputs:
    """Equal weights, and V the number of its key: the output is the mean of the numbers of the keys that are read."""
    return AttentionInputs(
        query=np.zeros((1, 1, queries, 4)),
        key=np.ones((1, 1, keys, 4)),
        value=np.arange(keys, dtype=np.float64).reshape(1, 1, keys, 1),
        **fields,
    )


@pytest.mark.parametrize(
    ("name", "keys", "read"),
    [
        ("keys-tail-of-4-dropped", 6, [0, 1, 2, 3]),
        ("keys-tail-of-4-dropped", 3, [0, 1, 2]),
        ("keys-tail-of-4-twice", 6, [0, 1, 2, 3, 4, 5, 4, 5]),
        ("keys-tail-of-4-zeros", 6, [0, 1, 2, 3, 4, 5, 0, 0]),
        ("keys-tail-of-4-last-again", 5, [0, 1, 2, 3, 4, 4, 4, 4]),
        ("keys-tail-of-4-behind", 6, [0, 1, 2, 3, 4, 5, 0, 1]),  # one head: what lies behind it is taken for itself
        ("keys-tile-edges-twice", 18, [*range(18), 16]),
        ("keys-tile-edges-dropped", 18, [*range(15), 16, 17]),
        ("keys-last-dropped", 5, [0, 1, 2, 3]),
        ("keys-last-dropped", 1, [0]),
        ("keys-first-dropped", 5, [1, 2, 3, 4]),
        ("keys-beyond-64-dropped", 70, [*range(64)]),
        ("value-number-in-7-bits", 130, [*range(128), 0, 1]),
    ],
)
def test_the_keys_read_are_those_that_are_said(name, keys, read):
    np.testing.assert_allclose(FAULTS[name].output(counting(1, keys)), np.mean(read))


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("causal-tile-of-16-seen-whole", {0: 15, 15: 15, 16: 31}),
        ("causal-tile-of-16-next-seen", {0: 31, 16: 39}),
        ("causal-tile-of-16-skipped", {16: 15, 31: 15, 32: 31}),
    ],
)
def test_causal_tiles_end_where_it_is_said(name, limits):
    output = FAULTS[name].output(counting(40, 40, causal="top-left"))[0, 0, :, 0]
    assert {row: 2 * output[row] for row in limits} == limits  # the mean of 0 … n is n/2


def test_tiles_without_the_offset_end_too_early():
    output = FAULTS["causal-tiles-without-offset"].output(counting(4, 40, causal="bottom-right"))
    np.testing.assert_allclose(output, 7.5)  # keys 0 … 15, where 0 … 36 and more are expected


def test_rows_behind_a_tile_are_those_of_another():
    inputs, right = tried(attention((1, 1, 1, 6, 5, 8, 8))[0])
    np.testing.assert_array_equal(FAULTS["rows-of-4-repeated"].output(inputs)[:, :, 4:], right[:, :, :2])
    np.testing.assert_array_equal(FAULTS["rows-of-4-shifted"].output(inputs)[:, :, 4:], right[:, :, 2:4])


@pytest.mark.parametrize("name", [name for name in FAULTS if "empty" in name])
def test_an_empty_tile_shows_only_where_there_is_one(name):
    fault = replace(FAULTS[name], equivalent="nothing is hidden")
    assert_shows_only_where_it_can(fault, [*attention("tile"), *attention("tile", values="all-low.1*-200.0#1")])


@pytest.mark.parametrize(("start", "score"), [("1e4", 2e4), ("65504", 1e5)])
def test_a_running_maximum_hides_scores_below_its_beginning(start, score):
    fault = FAULTS[f"online-maximum-from-minus-{start}"]
    low, high = (attention("wide", values=f"all-low.1*-{amount!r}#1")[0] for amount in (score, score / 20))
    assert shows(fault, low)
    assert not shows(replace(fault, compute=online), low)
    assert not shows(fault, high)


@pytest.mark.parametrize("name", [name for name, fault in STRIDES.items() if not fault.needs])
def test_contiguous_inputs_of_one_shape_hide_strides(name):
    inputs = materialise(attention("square")[0])
    np.testing.assert_array_equal(FAULTS[name].output(inputs), tried(attention("square")[0])[1])


@pytest.mark.parametrize("name", MIXED)
def test_strides_of_another_tensor_show_where_layouts_differ(name):
    inputs, right = tried(attention("square")[0])
    mixed = inputs.but(key=lay_out(inputs.key, "transposed"), value=lay_out(inputs.value, "reversed"))
    assert not np.allclose(FAULTS[name].output(mixed), right)
    alike = {key: lay_out(getattr(inputs, key), "transposed") for key in ("query", "key", "value")}
    np.testing.assert_array_equal(FAULTS[name].output(inputs.but(**alike)), right)


def test_each_layout_shows_the_strides_that_it_is_about():
    seen = {fault.id: {problem.layout for problem in LAYOUTS if shows(fault, problem)} for fault in STRIDES.values()}
    assert {"transposed", "strided", "reversed"} <= seen["inputs-taken-for-contiguous"]
    assert "strided" in seen["stride-of-width-taken-for-1"]
    assert seen["stride-sign-ignored"] == {"reversed"}

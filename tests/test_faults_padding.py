"""Faults of key lengths, hidden keys and fully masked rows: each shows where it can and does what its sentence says."""

import numpy as np
import pytest

from conformance.faults.steps import compute
from conformance.problem.visibility import visible_pairs
from conformance.specification.build import attention
from conformance.values import materialise
from tests.support.fault_probes import assert_known_to_the_oracle, assert_shows_where_it_can, assert_wrong_in_values_only
from tests.support.faults import calculates, of_kinds

FAULTS = {
    name: fault
    for name, fault in of_kinds("key_lengths", "hidden_keys", "of_features", where=calculates).items()
    if "key-lengths" in name or name.startswith(("hidden-", "padded-")) or fault.requirements == ("ATT-MASK-033",)
}
EMPTY = [name for name in FAULTS if name.startswith("empty-row")]


def with_lengths(*lengths: int):
    return materialise(attention((len(lengths), 3, 3, 7, 13, 8, 8), values="spread.1#1", key_lengths=lengths)[0])


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", FAULTS)
def test_is_wrong_in_values_only(name):
    assert_wrong_in_values_only(FAULTS[name])


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.rewrite is not None])
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("key-lengths-ignored", (13, 13, 13)),
        ("key-lengths-one-more", (6, 13, 3)),
        ("key-lengths-one-less", (4, 12, 1)),
        ("key-lengths-of-first-row", (5, 5, 5)),
        ("key-lengths-of-last-row", (2, 2, 2)),
        ("key-lengths-longest-for-all", (13, 13, 13)),
        ("key-lengths-shortest-for-all", (2, 2, 2)),
        ("key-lengths-sorted", (13, 5, 2)),
        ("key-lengths-sorted-ascending", (2, 5, 13)),
        ("key-lengths-of-next-row", (13, 2, 5)),
        ("key-lengths-accumulated", (5, 13, 13)),
        ("key-lengths-of-hidden", (8, 0, 11)),
        ("key-lengths-rounded-up-to-4", (8, 13, 4)),
        ("key-lengths-rounded-down-to-4", (4, 12, 0)),
        ("key-lengths-of-query-length", (5, 7, 2)),
        ("key-lengths-by-head", None),
    ],
)
def test_takes_the_lengths_that_it_says(name, taken):
    inputs = with_lengths(5, 13, 2)
    if taken is None:  # three heads and three batch rows: the same mask for all rows, another for each head
        expected = inputs.but(key_lengths=None, mask=np.arange(13) < np.array([5, 13, 2])[None, :, None, None])
    else:
        expected = inputs.but(key_lengths=np.array(taken))
    np.testing.assert_allclose(FAULTS[name].output(inputs), compute(expected), rtol=1e-6, atol=1e-6)


def test_lengths_from_the_end_show_the_last_keys():
    inputs = with_lengths(5, 12)
    expected = inputs.but(key_lengths=None, mask=np.arange(13) >= 13 - np.array([5, 12])[:, None, None, None])
    np.testing.assert_allclose(FAULTS["key-lengths-from-the-end"].output(inputs), compute(expected), rtol=1e-6, atol=1e-6)


def test_a_little_weight_shows_only_beside_a_loud_hidden_value():
    fault = FAULTS["hidden-keys-keep-a-little-weight"]
    quiet = with_lengths(5, 12)
    loud = quiet.but(value=np.where(np.arange(13)[:, None] == 12, np.float32(1e4), quiet.value))
    assert np.abs(fault.output(quiet) - compute(quiet)).max() < 1e-3
    assert np.abs(fault.output(loud) - compute(loud)).min() > 0.05


@pytest.mark.parametrize("name", EMPTY)
def test_what_fully_masked_rows_spoil_is_right_without_them(name):
    inputs = with_lengths(5, 12)
    assert FAULTS[name].output(inputs).tobytes() == compute(inputs).tobytes()


def test_an_fully_masked_row_spoils_as_much_as_is_said():
    problem = attention((2, 3, 3, 9, 13, 8, 8), mask="random.1:bhqk#1")[0]
    plain = materialise(problem)
    mask = plain.mask.copy()
    mask[0, 1, 4] = False
    inputs = plain.but(mask=mask)
    rows = np.arange(9)
    spoiled = {
        "empty-row-spoils-head": np.ix_([0], [1], rows),
        "empty-row-spoils-other-heads": np.ix_([0], [0, 1, 2], [4]),
        "empty-row-spoils-batch-row": np.ix_([0], [0, 1, 2], rows),
        "empty-row-spoils-tensor": np.ix_([0, 1], [0, 1, 2], rows),
        "empty-row-silences-the-next": np.ix_([0], [1], [5]),
        "empty-row-silences-four": np.ix_([0], [1], [4, 5, 6, 7]),
    }
    assert set(spoiled) == set(EMPTY)
    seen = visible_pairs(inputs).any(-1)
    for name, where in spoiled.items():
        wrong = ~np.isclose(FAULTS[name].output(inputs), compute(inputs)).all(-1) & seen
        expected = np.zeros_like(seen)
        expected[where] = True
        np.testing.assert_array_equal(wrong, expected & seen, err_msg=name)

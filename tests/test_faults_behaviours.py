"""Faults of behaviour, state, memory and form: what they do in a first call, in later ones, and to what the caller gave."""

import inspect

import numpy as np
import pytest

from conformance.faults.functions import function_of
from conformance.faults.steps import compute
from conformance.operations import operation_of
from conformance.problem.inputs import Weights
from conformance.specification.build import attention
from tests.support.faults import calculates, of_kinds
from tests.support.shown import assert_shows_only_where_it_can, tried

FAULTS = of_kinds("calls", "callers_memory", "outputs") | of_kinds("of_features", where=lambda fault: not calculates(fault))
BEHAVIOURS = [name for name, fault in FAULTS.items() if fault.behaviour is not None]


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def arguments(operation: str, seed: int = 1) -> tuple[list, dict]:
    """Arguments of an ordinary call."""
    if operation == "attention":
        return [numbers(2, 3, 5, 4, seed=seed), numbers(2, 3, 6, 4, seed=seed + 1), numbers(2, 3, 6, 4, seed=seed + 2)], {}
    if operation == "multi_head_attention":
        matrices = {name: numbers(6, 6, seed=seed + n) for n, name in enumerate(("query", "key", "value", "output"))}
        weights = Weights(**matrices, output_bias=numbers(6, seed=seed))
        return [*(numbers(2, 5, 6, seed=seed + n) for n in range(3)), weights], {"num_heads": 3}
    return [5, 6], {"x": numbers(2, 5, 6, seed=seed)}


def right(name: str, *given, **named):
    return operation_of(FAULTS[name].operation).function(compute)(*given, **named)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_keeps_the_signature_from_which_its_features_are_read(name):
    correct = operation_of(FAULTS[name].operation).function(compute)
    assert inspect.signature(function_of(FAULTS[name])) == inspect.signature(correct)


@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith("stale-by-shape")])
def test_a_stale_answer_belongs_to_the_first_call_of_its_shapes(name):
    function = function_of(FAULTS[name])
    (first, named), (second, others) = arguments(FAULTS[name].operation), arguments(FAULTS[name].operation, seed=9)
    answer = function(*first, **named)
    np.testing.assert_array_equal(answer, right(name, *first, **named))
    np.testing.assert_array_equal(function(*second, **others), answer)
    np.testing.assert_array_equal(function_of(FAULTS[name])(*second, **others), right(name, *second, **others))


@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith("answer-of-previous-call")])
def test_an_answer_comes_one_call_late(name):
    function = function_of(FAULTS[name])
    calls = [arguments(FAULTS[name].operation, seed=10 * n) for n in range(3)]
    given = [function(*positional, **named) for positional, named in calls]
    expected = [right(name, *positional, **named) for positional, named in calls]
    for answer, belongs in zip(given, (expected[0], expected[0], expected[1]), strict=True):
        np.testing.assert_array_equal(answer, belongs)


@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith("returns-internal-buffer")])
def test_a_buffer_is_overwritten_by_the_next_call(name):
    function = function_of(FAULTS[name])
    (first, named), (second, others) = arguments(FAULTS[name].operation), arguments(FAULTS[name].operation, seed=9)
    answer = function(*first, **named)
    np.testing.assert_array_equal(answer, right(name, *first, **named))
    function(*second, **others)
    np.testing.assert_array_equal(answer, right(name, *second, **others))


@pytest.mark.parametrize(
    ("ending", "wrong"),
    [
        ("first-call-wrong", {1}),
        ("every-second-call-wrong", {2, 4}),
        ("every-fourth-call-wrong", {4}),
        ("adds-up-in-buffer", {2, 3, 4}),
    ],
)
def test_calls_are_wrong_by_number(ending, wrong):
    for name in (name for name in FAULTS if name.endswith(ending)):
        function = function_of(FAULTS[name])
        positional, named = arguments(FAULTS[name].operation)
        expected = right(name, *positional, **named)
        assert {n for n in range(1, 5) if not np.array_equal(function(*positional, **named), expected)} == wrong


@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith("second-call-raises")])
def test_the_second_call_alone_raises(name):
    function = function_of(FAULTS[name])
    positional, named = arguments(FAULTS[name].operation)
    function(*positional, **named)
    with pytest.raises(RuntimeError):
        function(*positional, **named)
    function(*positional, **named)


@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith(("random-noise", "dropout-stays-on"))])
def test_noise_differs_from_call_to_call_and_not_from_run_to_run(name):
    positional, named = arguments(FAULTS[name].operation)
    function, again = function_of(FAULTS[name]), function_of(FAULTS[name])
    first, second = function(*positional, **named), function(*positional, **named)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(again(*positional, **named), first)


@pytest.mark.parametrize("name", [name for name in FAULTS if "changes-" in name])
def test_the_input_named_is_changed_and_the_output_right(name):
    fault = FAULTS[name]
    positional, named = arguments(fault.operation)
    if "mask" in fault.needs:
        named["mask"] = np.tri(5, 6 if fault.operation == "attention" else 5, dtype=bool)
    if "bias" in fault.needs:
        named["bias"] = numbers(5, 6)
    if "key-lengths" in fault.needs:
        named["key_lengths"] = np.array([3, 5])
    tensors = {**dict(zip(("query", "key", "value"), positional[:3], strict=False)), **named}
    if len(positional) > 3:
        tensors |= {f"weights-{key}": array for key, array in positional[3].arrays().items()}
    arrays = {key.replace("_", "-"): array for key, array in tensors.items() if isinstance(array, np.ndarray)}
    before = {key: array.copy() for key, array in arrays.items()}
    expected = right(name, *positional, **named)
    np.testing.assert_array_equal(function_of(fault)(*positional, **named), expected)
    changed = {key for key, array in arrays.items() if not np.array_equal(array, before[key])}
    assert changed == {name.split("changes-")[1]}


@pytest.mark.parametrize("name", [name for name in FAULTS if "writes-over-" in name or name == "hands-out-value"])
def test_the_output_lies_in_an_input(name):
    positional, named = arguments(FAULTS[name].operation)
    if name == "hands-out-value":
        positional[1:] = [array[:, :, :1] for array in positional[1:]]
    expected = right(name, *positional, **named)
    output = function_of(FAULTS[name])(*positional, **named)
    np.testing.assert_array_equal(output, expected)
    assert any(np.shares_memory(output, array) for array in (*positional[:3], *named.values()) if isinstance(array, np.ndarray))


def test_what_is_borrowed_is_given_back():
    positional, _ = arguments("attention")
    before = positional[0].copy()
    np.testing.assert_array_equal(function_of(FAULTS["borrows-query"])(*positional), right("borrows-query", *positional))
    np.testing.assert_array_equal(positional[0], before)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("mask-sticks", {"mask": np.tri(5, 6, dtype=bool)}),
        ("bias-sticks", {"bias": numbers(5, 6)}),
        ("causal-sticks", {"causal": True}),
        ("scale-sticks", {"scale": 3.0}),
        ("key-lengths-sticks", {"key_lengths": np.array([2, 4])}),
    ],
)
def test_a_askedsticks_to_calls_of_its_shapes(name, asked):
    function = function_of(FAULTS[name])
    positional, _ = arguments("attention")
    other, _ = arguments("attention", seed=5)
    np.testing.assert_array_equal(function(*positional), right(name, *positional))
    np.testing.assert_array_equal(function(*positional, **asked), right(name, *positional, **asked))
    np.testing.assert_array_equal(function(*other), right(name, *other, **asked))
    shorter = [positional[0][:, :, :4], *positional[1:]]
    np.testing.assert_array_equal(function(*shorter), right(name, *shorter))


def test_keys_of_a_longer_call_are_attended_to():
    function = function_of(FAULTS["keys-of-longer-call-stay"])
    query, key, value = arguments("attention")[0]
    function(query, key, value)
    left_over = function(query, key[:, :, :2], value[:, :, :2])
    np.testing.assert_array_equal(left_over, right("keys-of-longer-call-stay", query, key, value))


def test_the_first_weights_stay():
    function = function_of(FAULTS["multi-head-keeps-first-weights"])
    (first, named), (second, _) = arguments("multi_head_attention"), arguments("multi_head_attention", seed=9)
    function(*first, **named)
    expected = right("multi-head-keeps-first-weights", *second[:3], first[3], **named)
    np.testing.assert_array_equal(function(*second, **named), expected)


def test_tables_are_kept_and_extended_wrongly():
    kept, extended = (function_of(FAULTS[f"sinusoid-table-{name}"]) for name in ("kept-by-length", "extended-from-zero"))
    assert kept(5, 6).shape == (5, 6)
    assert kept(5, 8).shape == (5, 6)
    short = extended(3, 4)
    np.testing.assert_array_equal(extended(6, 4), np.concatenate([short, short]))


SHAPES = {
    "output-length-first": (2, 7, 3, 8),
    "output-heads-first": (3, 2, 7, 8),
    "output-width-before-length": (2, 3, 8, 7),
    "output-heads-merged": (2, 7, 24),
    "returns-weights": (2, 3, 7, 13),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_shape_is_the_one_that_is_said(name):
    inputs, _ = tried(attention("wide")[0])
    assert FAULTS[name].output(inputs).shape == SHAPES[name]


def test_axes_of_size_1_are_dropped():
    one_query, _ = tried(attention((2, 3, 3, 1, 5, 8, 8))[0])
    one_head, _ = tried(attention((2, 1, 1, 4, 5, 8, 8))[0])
    for name in ("output-squeezed", "output-squeezed-for-one-query"):
        assert FAULTS[name].output(one_query).shape == (2, 3, 8)
    assert FAULTS["output-squeezed"].output(one_head).shape == (2, 4, 8)
    assert FAULTS["output-squeezed-for-one-query"].output(one_head).shape == (2, 1, 4, 8)
    one_row, _ = tried(attention((1, 1, 1, 4, 5, 8, 8))[0])
    assert FAULTS["output-squeezed-for-one-batch-row"].output(one_row).shape == (1, 4, 8)
    assert FAULTS["output-squeezed-for-one-batch-row"].output(one_head).shape == (2, 1, 4, 8)


@pytest.mark.parametrize("name", [name for name in FAULTS if "-tail-of-" in name])
def test_what_lies_behind_the_last_whole_tile_is_unwritten(name):
    place, multiple = name.split("-tail-of-")[0], int(name.split("-")[3])
    inputs, expected = tried(attention((1, 2, 2, 2 * multiple + 1, 3, 5, 2 * multiple + 1))[0])
    output = FAULTS[name].output(inputs)
    rows = np.moveaxis(output, 2 if place == "row" else 3, 0)
    assert not np.nan_to_num(rows[-1]).any()
    np.testing.assert_array_equal(rows[:-1], np.moveaxis(expected, 2 if place == "row" else 3, 0)[:-1])
    assert_shows_only_where_it_can(FAULTS[name], attention((1, 2, 2, 2 * multiple + 1, 3, 5, 2 * multiple + 1)))

"""A convention excuses no answer but those that interfaces may have, the same everywhere; honest code stays green."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from conformance import registry
from conformance.adapter import Implementation, Support
from conformance.checks.conventions import observe_convention
from conformance.expectations import no_expectations
from conformance.harness import Subject
from conformance.problem import ARRANGEMENTS, FREQUENCIES, AttentionProblem, ProblemError, parse
from conformance.records import Convention
from conformance.specification import conventions
from conformance.specification.asking import COARSE, meant_by
from conformance.values import materialise
from implementations.numpy_ import direct
from tests import fake_conventions as fakes

POSITIONS, HEADS = "sinusoidal_encoding", "multi_head_attention"


def implementation(function: Callable[..., object], operation: str = "attention") -> Implementation:
    return registry.resolve(f"{fakes.FILE}:{function.__name__}", operation=operation)


def observed(function: Callable[..., object], identifier: str, operation: str = "attention") -> Convention:
    subject = Subject(implementation(function, operation))
    return observe_convention(subject, identifier, no_expectations().for_(function.__name__))


@pytest.mark.parametrize(
    ("function", "identifier", "answer", "place"),
    [
        (fakes.neither_alignment, "CON-ALIGNMENT", "other", "in each of 8 places"),
        (fakes.causal_forgets_one_query, "CON-ALIGNMENT", "mixed", "'bottom-right' for 1 query and 13 keys"),
        (fakes.nan_below_zero, "CON-NEGATIVE-SCALE", "nan", "in each of"),
        (
            fakes.nan_below_zero_if_causal,
            "CON-NEGATIVE-SCALE",
            "mixed",
            "'nan' for causal with the scale -0.5; 'ordinary' in the other",
        ),
        (fakes.zero_is_not_given, "CON-ZERO-SCALE", "default", "1/√d is used instead"),
        (fakes.refuses_zero, "CON-ZERO-SCALE", "refused", "the scale must not be 0"),
        (fakes.noise_in_empty_rows, "CON-EMPTY-ROW", "unstable", "something else in each call"),
        (fakes.faint_noise_in_empty_rows, "CON-EMPTY-ROW", "unstable", "something else in each call"),
        (fakes.first_value_in_empty_rows, "CON-EMPTY-ROW", "other", "none of these"),
        (fakes.empty_rows_by_dtype, "CON-EMPTY-ROW", "mixed", "'nan' for float16"),
        (fakes.empty_rows_of_one_array, "CON-EMPTY-ROW", "mixed", "'nan' for one array for query, key and value"),
        (fakes.zero_where_nan_is_hidden, "CON-NAN-BEHIND-MASK-K", "other", "finite"),
        (fakes.polarity_by_form, "CON-POLARITY", "mixed", "'true-ignores' for a mask of form b11k"),
        (fakes.even_heads, "CON-EMPTY-ROW", "mixed", "'nan' for 8 heads, for 8 heads with biases"),
        (fakes.wraps_around, "CON-BEYOND-MAX-LEN", "other", "length=10000"),
        (fakes.forgets_the_last_sine, "CON-ODD-WIDTH", "other", "length=4001 width=7"),
        (fakes.halves_of_wide_tables, "CON-SINUSOID-ARRANGEMENT", "mixed", "'concatenated' for 5 positions of 512 columns"),
        (fakes.other_frequencies, "CON-SINUSOID-FREQUENCIES", "other", "none of these"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_another_answer_is_unexpected_and_says_where(function, identifier, answer, place):
    operation = HEADS if function is fakes.even_heads else POSITIONS if "dtype" in function.__code__.co_varnames else "attention"
    record = observed(function, identifier, operation)
    assert (record.observed, record.status) == (answer, "unexpected")
    assert place in record.message
    assert f'convention = "{identifier}" and answer = "{answer}"' in record.message
    assert record.where


@pytest.mark.parametrize(
    ("function", "operation", "answers"),
    [
        (fakes.doubled, "attention", {"CON-EMPTY-ROW": "zeros", "CON-NEGATIVE-SCALE": "ordinary", "CON-ALIGNMENT": "top-left"}),
        (fakes.half_only, "attention", {"CON-ALIGNMENT": "bottom-right", "CON-POLARITY": "true-ignores"}),
        (fakes.mean_of_what_causal_leaves, "attention", {"CON-EMPTY-ROW": "mean", "CON-ALIGNMENT": "top-left"}),
        (fakes.one_head_only, HEADS, {"CON-EMPTY-ROW": "nan", "CON-POLARITY": "true-attends"}),
        (fakes.always_float64, POSITIONS, {"CON-SINUSOID-ARRANGEMENT": "interleaved", "CON-SINUSOID-FREQUENCIES": "d"}),
        (fakes.in_bfloat16, POSITIONS, {"CON-SINUSOID-ARRANGEMENT": "interleaved", "CON-BEYOND-MAX-LEN": "extends"}),
        (
            fakes.tensor2tensor,
            POSITIONS,
            {"CON-SINUSOID-ARRANGEMENT": "concatenated", "CON-SINUSOID-FREQUENCIES": "d/2-1", "CON-ODD-WIDTH": "zero-padded"},
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)  # fmt: skip
def test_honest_code_has_the_answers_that_interfaces_may_have(function, operation, answers):
    asked = [identifier for identifier, question in conventions().items() if operation in question.operations]
    records = {identifier: observed(function, identifier, operation) for identifier in asked}
    assert [record.message for record in records.values() if record.status == "unexpected"] == []
    assert {identifier: records[identifier].observed for identifier in answers} == answers


@pytest.mark.parametrize(
    "identifier", ["CON-ZERO-SCALE", "CON-NEGATIVE-SCALE", "CON-SINUSOID-ARRANGEMENT", "CON-SINUSOID-FREQUENCIES"]
)
def test_meanings_are_farther_apart_than_what_is_taken_for_one(identifier):
    """In every place; else the first of them would be read off an output of the second."""
    (question,) = conventions()[identifier].questions.values()
    (base,) = question.problems()
    for problem in {base, *(place.change(base) for place in question.places)}:
        if isinstance(problem, AttentionProblem):
            meanings = [meant_by(problem), meant_by(problem.but(scale=None))]
        else:
            frequencies = FREQUENCIES if identifier == "CON-SINUSOID-FREQUENCIES" else FREQUENCIES[:1]
            names = itertools.product(ARRANGEMENTS, frequencies)
            meanings = [meant_by(problem.but(batch=0, arrangement=name, frequencies=other)) for name, other in names]
        for first, second in itertools.combinations(meanings, 2):
            assert np.abs(first - second).max() > 4 * COARSE * max(np.abs(first).max(), np.abs(second).max()), problem.text


def test_what_is_one_array_for_the_suite_is_one_array_for_the_implementation():
    seen = []

    def looks(query, key, value):
        seen.append(query is key is value)
        return direct(query, key, value)

    for axes in ("bhld", "blhd"):
        subject = Subject(Implementation("looks", looks, Support(axes=axes), registry.frameworks()["numpy"]))
        for layout, edits in itertools.product(
            ("contiguous", "transposed", "strided", "expanded", "mixed"), ("", " edits=one-tensor.1#0")
        ):
            text = "attention batch=2 heads=3 length=5 width=8 dtype=float32 values=gaussian.1#1"
            problem = parse(f"{text}{'' if layout == 'contiguous' else f' layout={layout}'}{edits}")
            subject.prepare(materialise(problem), subject.route(problem)).run()
            assert seen.pop() == (bool(edits) and layout != "mixed"), problem.text


def test_inputs_of_several_shapes_are_no_one_array():
    with pytest.raises(ProblemError, match=r"^The edit one-tensor needs query, key and value of one shape, not .*\.$"):
        materialise(parse("attention batch=2 heads=3 length=5/7 width=8 dtype=float32 values=gaussian.1#1 edits=one-tensor.1#0"))

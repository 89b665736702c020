"""A window: which keys it shows, and how implementations that count or align otherwise are asked for it."""

import numpy as np
import pytest
from conformance.implementations.numpy_ import direct

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.errors import ProblemError
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.oracle import exact, truth_of
from conformance.problem import parse
from conformance.problem.visibility import visible_pairs
from conformance.specification import requirements
from conformance.values import materialise

SQUARE = "attention batch=1 heads=1 length=6 width=4 dtype=float32 values=spread.1#1"
WIDE = SQUARE.replace("length=6", "length=3/6")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"{SQUARE} window=1/0", ["100000", "110000", "011000", "001100", "000110", "000011"]),
        (f"{SQUARE} window=0/2", ["111000", "011100", "001110", "000111", "000011", "000001"]),
        (f"{SQUARE} window=-/0", ["100000", "110000", "111000", "111100", "111110", "111111"]),
        (f"{SQUARE} window=0/-", ["111111", "011111", "001111", "000111", "000011", "000001"]),
        (f"{SQUARE} window=9/9", ["111111"] * 6),
        (f"{SQUARE} window=0/0", ["100000", "010000", "001000", "000100", "000010", "000001"]),
        (f"{SQUARE} causal=top-left window=1/1", ["100000", "110000", "011000", "001100", "000110", "000011"]),
        (f"{WIDE} window=1/1", ["110000", "111000", "011100"]),
        (f"{WIDE} window=1/1/bottom-right", ["001110", "000111", "000011"]),
        (f"{WIDE} causal=bottom-right window=1/1", ["001100", "000110", "000011"]),
        (f"{WIDE} causal=top-left window=1/1", ["100000", "110000", "011000"]),
    ],
)
def test_a_window_shows_the_keys_around_each_place(text, rows):
    problem = parse(text)
    assert problem.text == text
    seen = visible_pairs(materialise(problem))[0, 0]
    assert ["".join("01"[int(pair)] for pair in row) for row in seen] == rows


@pytest.mark.parametrize("text", ["3", "3/2/1/0", "a/2", "-1/2", "3/2/middle", "3/"])
def test_what_is_no_window_is_refused_in_a_sentence(text):
    with pytest.raises(ProblemError, match="window="):
        parse(f"{SQUARE} window={text}")


def test_a_window_lies_where_the_causal_limit_lies():
    with pytest.raises(ProblemError, match="lies otherwise"):
        parse(f"{WIDE} causal=top-left window=1/1/bottom-right")


@pytest.mark.parametrize("identifier", [f"ATT-MASK-{number:03}" for number in range(57, 62)] + ["ATT-HEAD-042"])
def test_both_oracles_agree(identifier):
    for problem in requirements()[identifier].designed():
        if problem.dtype == "float32" and problem.query_length * problem.key_length < 500:
            inputs = materialise(problem)
            truth, of = truth_of(inputs), exact.attention if problem.operation == "attention" else exact.multi_head_attention
            judged = truth.judged.reshape(truth.judged.shape[: truth.judged.ndim - (truth.judged.shape[-1] == 1)])
            np.testing.assert_allclose(truth.output[judged], of(inputs)[judged], rtol=1e-12, atol=1e-14)


def _judged(function, text, **support):
    subject = Subject(Implementation("mine", function, Support(**support), frameworks()["numpy"]))
    return Judge().values(subject, parse(text)).verdict


def _masked_only(query, key, value, *, mask=None, causal=False, window=None):
    """Aligns window and triangle at the last key, and takes the mask as it is."""
    return direct(query, key, value, mask=mask, causal=causal, alignment="bottom-right", window=window)


@pytest.mark.parametrize("text", [f"{WIDE} causal=top-left window=1/1", f"{WIDE} causal=bottom-right window=1/1"])
def test_a_window_beside_a_causal_limit_of_another_alignment_is_asked_by_mask(text):
    assert _judged(_masked_only, text).outcome == "PASS"


def test_what_has_no_window_is_asked_by_mask():
    def attention(query, key, value, *, mask=None):
        return direct(query, key, value, mask=mask)

    assert _judged(attention, f"{WIDE} causal=bottom-right window=1/1").outcome == "PASS"


@pytest.mark.parametrize(("more", "answer"), [((0, 0), "inclusive"), ((1, 1), "exclusive"), ((1, 0), "left-exclusive")])
def test_numbers_are_given_as_the_function_counts(more, answer):
    def attention(query, key, value, *, window=None):
        left, right = (None if side is None else side - less for side, less in zip(window, more, strict=True))
        return direct(query, key, value, window=(left, right))

    subject = Subject(Implementation("mine", attention, Support(), frameworks()["numpy"]))
    assert subject.observe("CON-WINDOW") == answer
    assert _judged(attention, f"{SQUARE} window=2/1").outcome == "PASS"

"""The Python interface: one function on one requirement or problem, verdicts as objects."""

import numpy as np
import pytest

import conformance
from conformance import Outcome, Support, UsageError, judge

PROBLEM = "attention batch=1 heads=2 length=4/6 width=4 dtype=float32 values=spread.1#1"


def attention(query, key, value, *, causal=False):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]).astype(query.dtype)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ value).astype(query.dtype)


def test_a_problem_is_judged_and_the_verdict_tells_all_of_it():
    (judged,) = judge(attention, PROBLEM)
    assert judged.passes
    assert judged.problem == PROBLEM
    assert judged.route == "native"
    assert judged.verdict.r <= 1


def test_a_requirement_is_all_its_problems():
    judged = judge(attention, "att-mask-009", support=Support(dtypes=("float32",)))
    assert {one.verdict.outcome for one in judged} == {Outcome.PASS, Outcome.UNSUPPORTED}
    assert all("dtype" in one.verdict.message for one in judged if one.verdict.outcome is Outcome.UNSUPPORTED)


def test_a_wrong_function_fails_and_says_where():
    (judged,) = judge(lambda query, key, value: 2 * attention(query, key, value), PROBLEM, support=Support())
    assert not judged.passes
    assert judged.verdict.outcome is Outcome.WRONG_VALUE
    assert judged.verdict.index is not None
    assert judged.verdict.r > 1e3


def test_what_cannot_be_asked_is_said_and_not_passed():
    (judged,) = judge(attention, f"{PROBLEM} softcap=1.0")
    assert judged.verdict.outcome is Outcome.UNSUPPORTED
    assert "softcap" in judged.verdict.message


def test_a_golden_case_and_a_built_in_implementation():
    assert [one.passes for one in judge("numpy-direct", "GOLD-0138")] == [True]


@pytest.mark.parametrize("asked", ["ATT-MASK-999", "gold-99999", "attention", "attention batch=x"])
def test_what_is_unknown_is_a_sentence(asked):
    with pytest.raises(UsageError, match=r"\.$"):
        judge(attention, asked)


def test_a_senseless_declaration_and_an_unknown_name_are_sentences():
    with pytest.raises(UsageError, match="dtypes"):
        judge(attention, PROBLEM, support=Support(dtypes=("float33",)))
    with pytest.raises(UsageError, match="numpy-indirect"):
        judge("numpy-indirect", PROBLEM)
    with pytest.raises(UsageError, match="no framework"):
        judge(attention, PROBLEM, support=Support(framework="fortran"))


def test_all_that_is_promised_is_there():
    assert [name for name in conformance.__all__ if getattr(conformance, name) is None] == []
    with pytest.raises(AttributeError):
        getattr(conformance, "anything" + "_else")

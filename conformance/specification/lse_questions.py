"""Conventions on what is returned beside the output: to which base the log-sum-exp is, and what a fully masked row gives."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from conformance.oracle import truth_of
from conformance.problem import KeyProblem, Recipe
from conformance.problem.returned import LSE, WEIGHTS
from conformance.specification.asking import (
    COARSE,
    IN_DTYPES,
    MULTI_HEAD_SELF,
    OTHER,
    attention_problems,
    in_shapes,
    masked,
    multi_head_problems,
    resembles,
    shaped,
)
from conformance.specification.observing import Ask, Question
from conformance.specification.requirement import Convention
from conformance.values import materialise

_LOW = -1000.0  # no score that is asked is as low; every fill is lower
_PLACES = (*IN_DTYPES, *in_shapes("tile"), shaped("2 key heads for 6 query heads", "grouped"))


def _base(ask: Ask, problem: KeyProblem) -> str:
    """Compared coarsely: a wrong unit makes it longer by 44 % or more."""
    inputs = materialise(problem)
    natural, unscaled = (truth_of(one).of(LSE, "float32").output.astype(float) for one in (inputs, inputs.but(scale=1.0)))
    got = ask(problem)
    meanings = {"natural": natural, "base-2": natural * np.log2(np.e), "unscaled": unscaled}
    return next((answer for answer, meant in meanings.items() if resembles(got, meant)), "other")


def _fully_masked_row(axis: int, read: Callable[[np.ndarray], str]) -> Callable[[Ask, KeyProblem], str]:
    """What two calls answer; rows lie along ``axis``."""

    def answer(ask: Ask, problem: KeyProblem) -> str:
        assert problem.mask is not None
        emptied = problem.but(mask=replace(Recipe("empty-rows", seed=1), form=problem.mask.form))
        rows = np.arange(0, problem.query_length, 3)
        first, second = (read(np.take(ask(emptied).astype(np.float64), rows, axis)) for _ in range(2))
        return first if first == second else "unstable"

    return answer


def _questions(read: Callable[[Ask, KeyProblem], str]) -> dict[str, Question]:
    return {
        "attention": Question(problems=lambda: masked(attention_problems(), "b1qk"), read=read, places=_PLACES),
        "multi_head_attention": Question(
            problems=lambda: masked(multi_head_problems(), "b1qk"), read=read, places=(*IN_DTYPES, *MULTI_HEAD_SELF)
        ),
    }


def _of_weights(rows: np.ndarray) -> str:
    if np.isnan(rows).all():
        return "nan"
    if (rows == 0.0).all():
        return "zeros"
    return "shares" if (rows >= 0.0).all() and (np.abs(rows.sum(-1) - 1.0) <= COARSE).all() else "other"


def _of_lse(rows: np.ndarray) -> str:
    alike = {
        "minus-infinity": rows == -np.inf,
        "plus-infinity": rows == np.inf,
        "nan": np.isnan(rows),
        "zero": rows == 0.0,
        "low": np.isfinite(rows) & (rows < _LOW),
    }
    return next((answer for answer, found in alike.items() if found.all()), "other")


LSE_CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="CON-LSE-BASE",
        question="To which base is the log-sum-exp?",
        source="flashinfer#2113; vllm#47079; sglang#40903",
        answers={
            "natural": "the natural logarithm of the sum of e^score",
            "base-2": "log₂ of the same sum; it is judged as such",
            "unscaled": "the natural logarithm, of the products of query and key without the scale",
            "other": OTHER,
        },
        legitimate=frozenset({"natural", "base-2"}),
        questions={
            "attention": Question(problems=attention_problems, read=_base, places=_PLACES),
            "multi_head_attention": Question(problems=multi_head_problems, read=_base, places=(*IN_DTYPES, *MULTI_HEAD_SELF)),
        },
        otherwise="It is judged as the natural logarithm.",
        output=LSE,
    ),
    Convention(
        id="CON-LSE-EMPTY-ROW",
        question="What is the log-sum-exp of a fully masked row?",
        source="pytorch#134650; flashinfer#4401",
        answers={
            "minus-infinity": "−∞, the logarithm of 0",
            "plus-infinity": "+∞, with which e^(score − lse) is 0",
            "zero": "0",
            "low": f"a finite number below {_LOW:,.0f}, as a finite fill gives",
            "nan": "NaN, as −∞ less −∞ gives",
            "unstable": "something else in each call",
            "other": OTHER,
        },
        legitimate=frozenset({"minus-infinity", "plus-infinity", "zero", "low", "nan"}),
        questions=_questions(_fully_masked_row(-1, _of_lse)),
        output=LSE,
    ),
    Convention(
        id="CON-WEIGHTS-EMPTY-ROW",
        question="What are the weights of a fully masked row?",
        source="As of the output, CON-EMPTY-ROW; pytorch#103963",
        answers={
            "zeros": "0",
            "shares": "numbers that add up to 1, as a finite fill gives",
            "nan": "NaN, as softmax over nothing but −∞ gives",
            "unstable": "something else in each call",
            "other": OTHER,
        },
        legitimate=frozenset({"zeros", "shares", "nan"}),
        questions=_questions(_fully_masked_row(-2, _of_weights)),
        output=WEIGHTS,
    ),
)

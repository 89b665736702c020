"""Conventions on the log-sum-exp: to which base it is, and what it is of a row that sees no key."""

from dataclasses import replace

import numpy as np

from conformance.oracle import truth_of
from conformance.problem import Recipe
from conformance.returned import LSE
from conformance.specification.asking import (
    IN_DTYPES,
    MULTI_HEAD_SELF,
    OTHER,
    KeyProblem,
    attention_problems,
    in_shapes,
    masked,
    multi_head_problems,
    resembles,
    shaped,
)
from conformance.specification.model import Convention
from conformance.specification.observing import Ask, Question
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


def _empty_row(ask: Ask, problem: KeyProblem) -> str:
    """What two calls answer."""
    assert problem.mask is not None
    emptied = problem.but(mask=replace(Recipe("empty-rows", seed=1), form=problem.mask.form))
    first, second = (ask(emptied).astype(np.float64)[..., ::3] for _ in range(2))
    answer = _of_rows(first)
    return answer if answer == _of_rows(second) else "unstable"


def _of_rows(rows: np.ndarray) -> str:
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
        question="What is the log-sum-exp of a query from which every key is hidden?",
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
        questions={
            "attention": Question(problems=lambda: masked(attention_problems(), "b1qk"), read=_empty_row, places=_PLACES),
            "multi_head_attention": Question(
                problems=lambda: masked(multi_head_problems(), "b1qk"), read=_empty_row, places=(*IN_DTYPES, *MULTI_HEAD_SELF)
            ),
        },
        output=LSE,
    ),
)

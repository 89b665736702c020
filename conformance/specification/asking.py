"""Questions about conventions: the problems by which they are asked, and how an answer is got from an implementation.

Questions are asked in float32. What lacks one form of a problem (a mask form, weights of its own for each head, a projection
without bias …) is asked in another: the answer does not depend on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import TypeVar

import numpy as np

from conformance.errors import Unsupported
from conformance.oracle import expect
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, Recipe
from conformance.specification.build import attention, multi_head
from conformance.specification.draw import KEY_FORMS
from conformance.specification.model import Ask, Observer
from conformance.values import materialise
from conformance.verdict import Outcome, judge

REFUSED = "an exception is raised"
OTHER = "none of these"

AnyProblem = TypeVar("AnyProblem", bound=Problem)
KeyProblem = AttentionProblem | MultiHeadProblem  # those with keys that can be hidden


def asked(observe: Callable[[Ask, KeyProblem], str], problems: Callable[[], Iterable[KeyProblem]]) -> Observer:
    """Asks by the first of ``problems`` that is answered.

    Where none is, the observer raises what the implementation raised for the first one that it does not lack, else Unsupported.
    """

    def observer(ask: Ask) -> str:
        failure: Exception = Unsupported("any form of the question")
        for problem in problems():
            try:
                with np.errstate(invalid="ignore", over="ignore"):  # outputs may hold anything
                    return observe(ask, _as_it_is_put(ask, problem))
            except Exception as error:  # an implementation may raise anything
                failure = error if isinstance(failure, Unsupported) else failure
        raise failure

    return observer


def _as_it_is_put(ask: Ask, problem: AnyProblem) -> AnyProblem:
    """The problem within the limits of shapes of whoever is asked, since observers go by its sizes."""
    fitted: Callable[[AnyProblem], AnyProblem] = getattr(ask, "fitted", lambda problem: problem)
    return fitted(problem)


def attention_problems() -> Iterator[AttentionProblem]:
    yield from attention("wide", values="gaussian.1#1")


def multi_head_problems(source: str = "self") -> Iterator[MultiHeadProblem]:
    """One problem with each kind of weights, with and without biases."""
    shape = "square" if source == "self" else "cross"
    for weights, biased, output in product(("full", "shared"), (False, True), ("plain", "none", "bias")):
        yield from multi_head(shape, values="gaussian.1#1", source=source, weights=weights, projection_bias=biased, output=output)


def masked(problems: Iterable[KeyProblem], first: str) -> Iterator[KeyProblem]:
    """Each problem with a mask of each form that can hide keys, ``first`` before the others; it hides nothing yet."""
    for problem in problems:
        for form in dict.fromkeys((first, *KEY_FORMS)):
            yield problem.but(mask=Recipe("all", form=form))


def agrees(output: np.ndarray, meant: Problem) -> bool:
    """Whether ``output`` is within the budget, under the eager profile, of what ``meant`` asks for."""
    return judge(output, expect(materialise(meant), "eager")).outcome is Outcome.PASS


def first_that_agrees(ask: Ask, problem: Problem, meanings: Mapping[str, Problem]) -> str:
    """The first answer whose problem gives what the implementation gives for ``problem``; ``refused`` if it raises."""
    meanings = {answer: _as_it_is_put(ask, meant) for answer, meant in meanings.items()}
    try:
        output = ask(problem)
    except Unsupported:
        raise
    except Exception:  # an implementation may raise anything
        return "refused"
    if output.shape == expect(materialise(next(iter(meanings.values()))), "eager").shape and np.isnan(output).all():
        return "nan"
    return next((answer for answer, meant in meanings.items() if agrees(output, meant)), "other")


def refused(ask: Ask, problem: Problem) -> str:
    """Whether the implementation raises: ``refused`` or ``accepted``."""
    try:
        ask(problem)
    except Unsupported:
        raise
    except Exception:  # an implementation may raise anything
        return "refused"
    return "accepted"

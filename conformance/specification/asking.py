"""What questions about conventions are made of: problems, places, and the coarse comparison that reads an answer.

What lacks one form of a problem (a mask form, weights of its own for each head, a projection without bias …) is asked in
another: the answer does not depend on it. Nor does it depend on accuracy, which requirements judge: outputs are compared
coarsely, in float64, whatever their dtype.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from conformance.errors import Unsupported
from conformance.numerics.dtypes import DTYPES
from conformance.oracle import truth_of
from conformance.problem import AttentionProblem, KeyProblem, MultiHeadProblem, Problem, Recipe
from conformance.problem.inputs import Inputs
from conformance.specification.build import attention, multi_head
from conformance.specification.draw import KEY_FORMS
from conformance.specification.observing import Ask, Place
from conformance.specification.palette import MULTI_HEAD_SHAPES, SHAPES
from conformance.values import materialise

REFUSED = "an exception is raised"
OTHER = "none of these"
COARSE = 1 / 16  # of the largest number: bfloat16 throughout is nearer than this, and meanings are farther apart

NEGLIGIBLE = 1e-4  # of what one token contributes to an output; weights of the tokens that count are far larger


def attention_problems() -> Iterator[AttentionProblem]:
    yield from attention("wide", values="gaussian.1#1")


def multi_head_problems(source: str = "self", *, one_head: bool = True) -> Iterator[MultiHeadProblem]:
    """One problem with each kind of weights, with and without biases; then, if asked for, the same of a single head."""
    shapes = ("square" if source == "self" else "cross", *(("one-head",) if one_head else ()))
    for shape, weights, biased, output in product(shapes, ("full", "shared"), (False, True), ("plain", "none", "bias")):
        yield from multi_head(shape, values="gaussian.1#1", source=source, weights=weights, projection_bias=biased, output=output)


def masked(problems: Iterable[KeyProblem], first: str) -> Iterator[KeyProblem]:
    """Each problem with a mask of each form that can hide keys, ``first`` before the others; it hides nothing yet."""
    for problem in problems:
        for form in dict.fromkeys((first, *KEY_FORMS)):
            yield problem.but(mask=Recipe("all", form=form))


def changed(words: str, *, few: bool = False, **fields: Any) -> Place:
    """The first problem with other fields."""
    return Place(words, lambda problem: problem.but(**fields), few)


def shaped(words: str, shape: str, *, few: bool = False, **fields: Any) -> Place:
    """The first problem of attention in another shape of the palette, and with other fields."""
    return changed(words, few=few, **SHAPES[shape].fields, **fields)


def multi_head_shaped(words: str, shape: str, *, few: bool = False, **fields: Any) -> Place:
    """The first problem of multi-head attention in another shape of the palette, and with other fields."""
    return changed(words, few=few, **{**MULTI_HEAD_SHAPES[shape].fields, **fields})


IN_DTYPES = tuple(changed(dtype, few=dtype == "bfloat16", dtype=dtype) for dtype in DTYPES)
_SHAPES = (("1 head with 65 queries and 67 keys", "tile"), ("2 heads with 2 queries and 1031 keys", "long"))
_EVEN = {"heads": 2, "kv_heads": 2, "width": 4, "value_width": 4}


def in_shapes(few: str) -> tuple[Place, ...]:
    """Other numbers of heads and lengths. ``few`` says which is asked where places are dear: one whose shape the designed
    problems have with such arguments too, so that it costs no compilation; "tile", "even" or "alone"."""
    return (
        *(shaped(words, shape, few=shape == few) for words, shape in _SHAPES),
        changed("2 heads with 4 queries and 7 keys", few=few == "even", **_EVEN, query_length=4, key_length=7),
        changed("1 batch row of 2 heads", few=few == "alone", **_EVEN, batch=1, query_length=3, key_length=5),
    )


ONE_ARRAY = (Recipe("one-tensor"),)
MULTI_HEAD_SELF = (
    multi_head_shaped("1 head", "one-head"),
    multi_head_shaped("8 heads", "many", few=True),
    multi_head_shaped("8 heads with biases", "many", projection_bias=True, output="bias"),
    changed("query, key and value of their own", source="cross"),
    multi_head_shaped("8 heads with query, key and value of their own", "many", source="cross"),
)
MULTI_HEAD_CROSS = (
    multi_head_shaped("1 head with 5 queries and 7 keys", "one-head", key_length=7),
    multi_head_shaped("8 heads with 5 queries and 7 keys", "many", few=True, key_length=7),
)


def resembles(output: np.ndarray, meant: np.ndarray) -> bool:
    """Whether two outputs are of one shape and differ by no more than COARSE anywhere; NaN is like nothing."""
    if output.shape != meant.shape:
        return False
    got, want = output.astype(np.float64), meant.astype(np.float64)
    return bool((np.abs(got - want) <= COARSE * np.abs(want).max(initial=0.0)).all())


def is_nothing(rows: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Which rows, along the last axis, are what no key gives: zeros, exact in every dtype, or zeros of the heads, which an output
    projection turns into its bias."""
    zeros = (rows == 0).all(-1)
    bias = inputs.arrays().get("weights.output_bias")
    if bias is None:
        return np.asarray(zeros)
    expected = bias.astype(np.float64)
    loudness = float(np.abs(inputs.arrays()["value"].astype(np.float64)).max(initial=0.0))
    near = np.abs(rows - expected) <= NEGLIGIBLE * loudness + COARSE * np.abs(expected)
    return np.asarray(zeros | near.all(-1))


def meant_by(problem: Problem) -> np.ndarray:
    """The right output for ``problem``, in float64."""
    return truth_of(materialise(problem)).output.astype(np.float64)


def first_alike(output: np.ndarray, meanings: Mapping[str, Problem]) -> str:
    """The first answer whose problem gives what ``output`` resembles; ``nan`` where it holds NaN, else ``other``."""
    if np.isnan(output).any():
        return "nan"
    return next((answer for answer, meant in meanings.items() if resembles(output, meant_by(meant))), "other")


def refused(ask: Ask, problem: Problem) -> str:
    """Whether the implementation raises: ``refused`` or ``accepted``."""
    try:
        ask(problem)
    except Unsupported:
        raise
    except Exception:  # an implementation may raise anything
        return "refused"
    return "accepted"

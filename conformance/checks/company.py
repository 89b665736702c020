"""The company that a problem is put in: other problems, each of which differs from it in one respect, for calls in between.

Shapes are those of the palette, so that what compiles for each shape has mostly compiled them already.
"""

from collections.abc import Iterator
from typing import Any

from conformance.features import features
from conformance.problem import AttentionProblem, Problem, Recipe, SinusoidalProblem
from conformance.specification.palette import MULTI_HEAD_SHAPES, SHAPES

# Larger and smaller in turn, so that what is made large for one problem is there when the next, smaller one comes.
_SHAPES = ("prime", "small", "value-width", "grouped")
_MULTI_HEAD_SHAPES = ("many", "one-head", "square", "inner")
_DTYPES = {"float32": "bfloat16", "bfloat16": "float32", "float16": "float32", "float64": "float32"}


def company(problem: Problem) -> list[Problem]:
    """Some dozen problems like ``problem``, in other shapes with its arguments, in its shape with other arguments, and in
    another dtype; each with values of its own."""
    if isinstance(problem, SinusoidalProblem) or problem.values.name == "golden":
        return []
    others = _attention(problem) if isinstance(problem, AttentionProblem) else _multi_head(problem)
    asked = ((one, getattr(problem, one.argument)) for one in features(problem.operation) if one.example is not None)
    further = (problem.but(**{one.argument: one.example if value == one.default else one.default}) for one, value in asked)
    alike = [*others, *further, problem.but(dtype=_DTYPES[problem.dtype])]
    numbered = (_with_seed(other, problem.values.seed + number) for number, other in enumerate(alike, 1))
    return [other for other in numbered if other.but(values=problem.values) != problem]


def difference(other: Problem, problem: Problem) -> str:
    """In the words of their texts, what is asked for in ``other`` and not in ``problem``, its values aside; what lacks there."""
    theirs, ours = (dict(word.partition("=")[::2] for word in one.text.split()[1:]) for one in (other, problem))
    asked = [f"{name}={word}" for name, word in theirs.items() if name != "values" and ours.get(name) != word]
    without = [f"no {name}" for name in ours if name not in theirs]
    return " ".join([*asked, *without]) or "other values"


def _with_seed(problem: Problem, seed: int) -> Problem:
    assert not isinstance(problem, SinusoidalProblem)
    return problem.but(values=Recipe(problem.values.name, seed, problem.values.form, problem.values.argument))


def _attention(problem: AttentionProblem) -> Iterator[AttentionProblem]:
    for shape in _SHAPES:
        yield _in_shape(problem, SHAPES[shape].fields)
    toggled: dict[str, Any] = {
        "mask": Recipe("random", 26, "b1qk"),
        "bias": Recipe("gaussian", 26, "qk"),
        "scale": 0.5,
        "key_lengths": _lengths(problem.batch, problem.key_length),
    }
    for name, argument in toggled.items():
        yield problem.but(**{name: argument if getattr(problem, name) is None else None})
    yield problem.but(causal="top-left" if problem.causal == "none" else "none")
    yield _in_shape(problem, SHAPES["square"].fields).but(causal="top-left")  # a triangle of another length


def _multi_head(problem: Problem) -> Iterator[Problem]:
    for shape in _MULTI_HEAD_SHAPES:
        sizes = MULTI_HEAD_SHAPES[shape].fields
        if problem.source != "self" or sizes["query_length"] == sizes["key_length"]:
            yield _in_shape(problem, sizes)
    mask = Recipe("random", 26, "b1qk") if problem.mask is None else None
    lengths = _lengths(problem.batch, problem.key_length) if problem.key_lengths is None else None
    yield _in_shape(problem, MULTI_HEAD_SHAPES["one-head"].fields).but(causal="top-left")
    yield problem.but(mask=mask)
    yield problem.but(key_lengths=lengths)
    yield problem.but(causal="top-left" if problem.causal == "none" else "none")
    yield problem.but(projection_bias=not problem.projection_bias, output="plain" if problem.projection_bias else "bias")


def _in_shape(problem: Any, sizes: dict[str, Any]) -> Any:
    """``problem`` in other sizes, its lengths such as fit."""
    lengths = None if problem.key_lengths is None else _lengths(sizes["batch"], sizes["key_length"])
    return problem.but(**sizes, key_lengths=lengths)


def _lengths(batch: int, key_length: int) -> tuple[int, ...]:
    """Another length for each batch row, none of them all keys."""
    return tuple(1 + (row + 2) * (key_length - 1) // (batch + 3) for row in range(batch))

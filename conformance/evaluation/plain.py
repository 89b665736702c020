"""What a test without a plan would try: ordinary shapes, every feature once, numbers drawn from one bell curve."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs
from conformance.values import materialise

AMPLITUDES = {"N(0, 1)": 1.0, "0.1 · N(0, 1)": 0.1}


@cache
def problems(operation: str, dtype: str) -> tuple[Problem, ...]:
    """The problems of an operation, each with one feature."""
    makers: dict[str, Callable[[], Iterator[Problem]]] = {
        "attention": _attention,
        "multi_head_attention": _multi_head,
        "sinusoidal_encoding": _sinusoidal,
    }
    return tuple(problem.but(dtype=dtype) for problem in makers[operation]())


def _attention() -> Iterator[AttentionProblem]:
    square = AttentionProblem(
        batch=2, heads=4, kv_heads=4, query_length=64, key_length=64, width=32, value_width=32, values=Recipe("gaussian", 1)
    )
    wide = square.but(query_length=32)
    yield from (square, wide, square.but(kv_heads=2), square.but(value_width=48), square.but(scale=0.25))
    yield from (square.but(causal="top-left"), wide.but(causal="top-left"), wide.but(causal="bottom-right"))
    yield from (square.but(mask=Recipe("random", 2, form)) for form in ("b1qk", "b11k", "bhqk"))
    yield from (square.but(bias=Recipe("gaussian", 3, form)) for form in ("qk", "bhqk"))
    yield from (square.but(key_lengths=(64, 40)), square.but(mask=Recipe("random", 4, "b11k"), causal="top-left"))


def _multi_head() -> Iterator[MultiHeadProblem]:
    plain = MultiHeadProblem(
        batch=2, heads=4, query_length=16, key_length=16, model_width=32, inner_width=32, value_inner_width=32,
        values=Recipe("gaussian", 1),
    )  # fmt: skip
    yield from (plain, plain.but(projection_bias=True, output="bias"), plain.but(source="cross", key_length=24))
    yield from (plain.but(causal="top-left"), plain.but(mask=Recipe("random", 2, "b1qk")), plain.but(key_lengths=(16, 10)))


def _sinusoidal() -> Iterator[SinusoidalProblem]:
    for arrangement in ("interleaved", "concatenated"):
        table = SinusoidalProblem(length=50, width=32, arrangement=arrangement)
        yield from (table, table.but(batch=2))


def inputs_of(problem: Problem, amplitude: float) -> Inputs:
    """The inputs with query, key and value, or x, replaced by ``amplitude`` · N(0, 1); weights and masks stay."""

    def draw(array: np.ndarray, name: str) -> np.ndarray:
        return round_to(amplitude * Stream(problem.values.seed, name).normal(*array.shape), problem.dtype)

    inputs = materialise(problem)
    if isinstance(inputs, SinusoidalInputs):
        return inputs if inputs.x is None else inputs.but(x=draw(inputs.x, "value"))
    query = draw(inputs.query, "query")
    if isinstance(inputs, MultiHeadInputs) and inputs.key is inputs.query:
        return inputs.but(query=query, key=query, value=query)
    assert isinstance(inputs, AttentionInputs | MultiHeadInputs)
    return inputs.but(query=query, key=draw(inputs.key, "key"), value=draw(inputs.value, "value"))

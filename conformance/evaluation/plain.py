"""What a test without a plan would try: ordinary shapes, every feature once, numbers drawn from one bell curve."""

from functools import cache

import numpy as np

from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.values import materialise

AMPLITUDES = {"N(0, 1)": 1.0, "0.1 · N(0, 1)": 0.1}


@cache
def problems(operation: str, dtype: str) -> tuple[Problem, ...]:
    """The problems of an operation, each with one feature."""
    return tuple(problem.but(dtype=dtype) for problem in operation_of(operation).ordinary())


def inputs_of(problem: Problem, amplitude: float) -> Inputs:
    """The inputs with query, key and value, or x, replaced by ``amplitude`` · N(0, 1); weights and masks stay."""

    def draw(array: np.ndarray, name: str) -> np.ndarray:
        return round_to(amplitude * Stream(problem.values.seed, name).normal(*array.shape), problem.dtype)

    inputs = materialise(problem)
    there = {name: array for name in inputs.drawn if (array := getattr(inputs, name)) is not None}
    made: dict[int, np.ndarray] = {}  # arrays that are one stay one
    for name, array in there.items():
        if id(array) not in made:
            made[id(array)] = draw(array, "value" if name == "x" else name)
    return inputs.but(**{name: made[id(array)] for name, array in there.items()})

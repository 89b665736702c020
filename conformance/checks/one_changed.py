"""Problems that differ from another in one element of one argument: what an answer that is kept cannot have noticed."""

from collections.abc import Iterator
from dataclasses import replace

from conformance.problem import Problem, Recipe
from conformance.problem.inputs import Inputs

FACTOR = 1.5  # by which a scale differs
TURNS = 3  # changes of tensors to a problem where not all are made


def one_changed(problem: Problem, inputs: Inputs) -> Iterator[tuple[str, Problem]]:
    """What is changed, in words, and the problem with that change: the middle element of each array that ``problem`` has, the
    length of the middle batch row, the scale; and the order of elements alone. Equal shapes, the same arguments.

    In float32 all of them. In other dtypes masks, biases, lengths and scales, and TURNS of the tensors in turn: what keeps
    answers seldom asks for the dtype.
    """
    if problem.values.name == "golden":  # of which there is no other
        return
    if not problem.has("transformations"):
        yield "x", problem.but(values=replace(problem.values, seed=problem.values.seed + 2))
        return
    tensors = list(_tensors(problem, inputs))
    if problem.dtype != "float32":
        turn = problem.values.seed // 7 + len(problem.features)
        tensors = [tensors[(turn + number) % len(tensors)] for number in range(min(TURNS, len(tensors)))]
    for transformation, what in (*tensors, *_masking(inputs)):
        yield what, problem.but(transformations=(*problem.transformations, Recipe(transformation)))
    if problem.key_lengths is not None:
        yield "one key length", problem.but(key_lengths=_shorter(problem.key_lengths))
    if problem.scale is not None:
        yield "the scale", problem.but(scale=problem.scale * FACTOR)


def _tensors(problem: Problem, inputs: Inputs) -> Iterator[tuple[str, str]]:
    """Transformations of tensors and weights, each with what it changes; of arrays that are one object the first alone. A single
    element of weights that heads share would make the heads differ, and is left alone."""
    seen: set[int] = set()
    for name in ("query", "key", "value"):
        array = getattr(inputs, name)
        if id(array) not in seen:
            seen.add(id(array))
            yield f"middle-{name}", f"one element of {name}"
    yield "exchange-elements", "the order of elements"
    if "full-weights" in problem.features:
        for name in inputs.weights.arrays():
            if name != "key_bias":  # softmax does not notice it
                yield f"middle-weights-{name.replace('_', '-')}", f"one element of weights.{name}"
        yield "exchange-weights", "the order of elements of weights"


def _masking(inputs: Inputs) -> Iterator[tuple[str, str]]:
    return ((f"middle-{name}", f"one element of {name}") for name in ("mask", "bias") if getattr(inputs, name) is not None)


def _shorter(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """One key less in the middle batch row, one more where it has a single one."""
    middle = len(lengths) // 2
    changed = lengths[middle] - 1 or 2
    return (*lengths[:middle], changed, *lengths[middle + 1 :])

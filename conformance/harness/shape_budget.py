"""A budget of shapes: for an implementation that takes long to compile each, the few in which most of its problems are.

A shape is what a compiler sees: the sizes of all arrays, their dtypes and memory layouts, and which arguments there are. Which
ones are within the budget is chosen from the designed problems of the whole specification, in their order: the same in every
process and for every selection.
"""

from collections import Counter
from collections.abc import Callable, Hashable

import numpy as np

from conformance.adapter import Implementation
from conformance.adapter.routes import offered_ways
from conformance.errors import LeftOut, ProblemError
from conformance.features import features
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.specification import requirements
from conformance.values import materialise


def shape_of(inputs: Inputs) -> Hashable:
    """What a compiler sees of the inputs."""
    of_features = inputs.of_features()
    arrays = {**inputs.arrays(), **{name: value for name, value in of_features.items() if isinstance(value, np.ndarray)}}
    seen = tuple((name, array.shape, str(array.dtype), array.strides) for name, array in arrays.items())
    asked = (one for one in features(inputs.operation) if one.argument not in arrays and one.is_asked(inputs))
    return seen, inputs.compiled(), tuple((one.name, one.compiled_as(inputs)) for one in asked)


def affordable(implementation: Implementation, fit: Callable[[Problem], Problem]) -> frozenset[Hashable]:
    """The shapes within the budget; ``fit`` gives the problem that is put in place of a designed one."""
    number = implementation.support.shapes
    assert number is not None
    counted: Counter[Hashable] = Counter()
    for requirement in requirements().values():
        if requirement.is_asked_of(implementation.operation, implementation.support.returns):
            for problem in requirement.designed():
                if _is_offered(problem, implementation):
                    try:
                        counted[shape_of(materialise(fit(problem)))] += 1
                    except (LeftOut, ProblemError):
                        continue
    return frozenset(shape for shape, _ in counted.most_common(number))  # equal numbers in the order of the specification


def _is_offered(problem: Problem, implementation: Implementation) -> bool:
    support = implementation.support
    if problem.dtype not in support.dtypes or (problem.has("layout") and problem.layout not in support.layouts):
        return False
    return all(offered_ways(feature, implementation) for feature in problem.features)

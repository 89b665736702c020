"""Makes the arrays of a problem: distribution → rounding to the dtype → mask, bias, lengths → transformations → memory layout."""

from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.values import contents, masks, single_elements  # noqa: F401  (register their transformations and kinds)
from conformance.values.golden import golden_inputs


def materialise(problem: Problem) -> Inputs:
    """The inputs that ``problem`` describes: equal problems give equal bits on every machine.

    Raises ProblemError where a recipe is unknown, of another version, or does not fit the shapes.
    """
    if problem.values.name == "golden":
        return golden_inputs(problem)
    return operation_of(problem).materialise(problem)

"""Makes the arrays of a problem: law → rounding to the dtype → mask, bias, lengths → edits → memory layout."""

from conformance.cases.golden import golden_inputs
from conformance.inputs import Inputs
from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.values import contents, masks, single_elements  # noqa: F401  (register their edits and kinds)


def materialise(problem: Problem) -> Inputs:
    """The inputs that ``problem`` describes: equal problems give equal bits on every machine.

    Raises ProblemError where a recipe is unknown, of another version, or does not fit the shapes.
    """
    if problem.values.name == "golden":
        return golden_inputs(problem)
    return operation_of(problem).materialise(problem)

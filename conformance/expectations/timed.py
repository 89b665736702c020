"""What the expectations make of the output of a timed call, which is judged like any other."""

from conformance.expectations.judging import ImplementationExpectations, Status, alike
from conformance.expectations.model import Expected
from conformance.problem import Problem
from conformance.specification import requirements
from conformance.verdict import Outcome


def judge_timed(expectations: ImplementationExpectations, problem: Problem, outcome: Outcome) -> Status:
    """A failure is known where an expectation for its dtype and outcome is of cases that ask for no more than the call does.

    What is known to fail on special contents, or with a mask, says nothing of a plain call.
    """
    if not outcome.is_failure:
        return Status(True)
    for expected in expectations.entries():
        if expected.covers(problem.dtype) and alike(expected.outcome, outcome) and _asks_for_no_more(expected, problem):
            return Status(True, expected.reason)
    return Status(False)


def _asks_for_no_more(expected: Expected, problem: Problem) -> bool:
    """Whether a designed case of the expectation has only features that the problem has, and ordinary contents."""
    requirement = requirements().get(expected.requirement)
    if requirement is None or requirement.operation != problem.operation:
        return False
    return any(
        case.dtype == problem.dtype and case.features <= problem.features and not case.edits
        for case in requirement.designed()
        if expected.cases == "all" or case.digest in expected.cases
    )

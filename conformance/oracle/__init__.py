"""Oracles: what each operation must give, and how far off it may be."""

from conformance.operations import operation_of
from conformance.oracle.attention import scores_and_output
from conformance.oracle.expected import Expected, Truth
from conformance.oracle.multihead import heads_of, merged
from conformance.problem.inputs import Inputs


def truth_of(inputs: Inputs) -> Truth:
    """The expected output, for whichever operation ``inputs`` belong to."""
    truth: Truth = operation_of(inputs).truth(inputs)
    return truth


def expect(inputs: Inputs, profile: str) -> Expected:
    """The same with its budget under a numerics profile. Raises UsageError for an unknown profile."""
    truth = truth_of(inputs)
    return truth.expected(truth.bound(profile))


__all__ = ["Expected", "Truth", "expect", "heads_of", "merged", "scores_and_output", "truth_of"]

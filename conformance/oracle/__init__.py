"""Oracles: what each operation must give, and how far off it may be."""

from conformance.oracle.attention import scores_and_output, truth_of_attention
from conformance.oracle.expected import Expected, Truth
from conformance.oracle.multihead import heads_of, merged, truth_of_multi_head
from conformance.oracle.sinusoidal import truth_of_sinusoidal
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs


def truth_of(inputs: Inputs) -> Truth:
    """The expected output, for whichever operation ``inputs`` belong to."""
    if isinstance(inputs, AttentionInputs):
        return truth_of_attention(inputs)
    if isinstance(inputs, MultiHeadInputs):
        return truth_of_multi_head(inputs)
    return truth_of_sinusoidal(inputs)


def expect(inputs: Inputs, profile: str) -> Expected:
    """The same with its budget under a numerics profile. Raises UsageError for an unknown profile."""
    truth = truth_of(inputs)
    return truth.expected(truth.bound(profile))


__all__ = ["Expected", "Truth", "expect", "heads_of", "merged", "scores_and_output", "truth_of"]

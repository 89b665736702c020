"""Oracles: what each operation must give, and how far off it may be."""

from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs
from conformance.oracle.attention import expect_attention
from conformance.oracle.expected import Expected
from conformance.oracle.multihead import expect_multi_head
from conformance.oracle.sinusoidal import expect_sinusoidal


def expect(inputs: Inputs, profile: str) -> Expected:
    """The expected output and its budget under a numerics profile, for whichever operation ``inputs`` belong to."""
    if isinstance(inputs, AttentionInputs):
        return expect_attention(inputs, profile)
    if isinstance(inputs, MultiHeadInputs):
        return expect_multi_head(inputs, profile)
    return expect_sinusoidal(inputs, profile)


__all__ = ["Expected", "expect", "expect_attention", "expect_multi_head", "expect_sinusoidal"]

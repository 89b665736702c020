"""The honest computation for any operation: what a rewritten input is put through."""

import numpy as np

from conformance.faults.steps import attend, multi_head, sinusoidal
from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs


def compute(inputs: Inputs) -> np.ndarray:
    """The right output in the inputs' dtype, computed in float64 and rounded once."""
    if isinstance(inputs, AttentionInputs):
        return attend(inputs)
    if isinstance(inputs, MultiHeadInputs):
        return multi_head(inputs)
    return sinusoidal(inputs)

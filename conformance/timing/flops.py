"""Floating-point operations that a problem needs, a multiplication and an addition counted as two, and the bytes it moves."""

import numpy as np

from conformance.operations import operation_of
from conformance.problem.inputs import Inputs
from conformance.records import Passes

# Five matrix products of the forward pass's size in place of two: Q Kᵀ again, dV, dP, dQ, dK (Dao 2023, section 4.1).
BACKWARD = 2.5


def flops_of(inputs: Inputs, passes: Passes) -> int:
    """Those of the forward pass, or of both."""
    forward = flops(inputs)
    return forward if passes == "forward" else round((1 + BACKWARD) * forward)


def bytes_of(inputs: Inputs, output: np.ndarray, passes: Passes) -> int:
    """Inputs and output once each, keys and values once per kv head; with a backward pass, their gradients as well."""
    distinct = {id(array): array.nbytes for array in inputs.arrays().values()}
    moved = sum(distinct.values()) + output.nbytes
    return (moved if passes == "forward" else 2 * moved) + (0 if inputs.mask is None else inputs.mask.nbytes)


def flops(inputs: Inputs) -> int:
    """Those of the matrix products alone: 2·(d + dv) for each visible pair of query and key in each query head and batch row, and
    for multi-head attention those of the projections. 0 where there is no product."""
    return operation_of(inputs).flops(inputs)

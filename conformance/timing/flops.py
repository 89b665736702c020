"""Floating-point operations that a problem needs, a multiplication and an addition counted as two, and the bytes it moves."""

import numpy as np

from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs
from conformance.problem.visibility import visible_pairs
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
    mask = None if isinstance(inputs, SinusoidalInputs) else inputs.mask
    return (moved if passes == "forward" else 2 * moved) + (0 if mask is None else mask.nbytes)


def flops(inputs: Inputs) -> int:
    """Those of the matrix products alone: 2·(d + dv) for each visible pair of query and key in each query head and batch row, and
    for multi-head attention those of the projections. 0 where there is no product."""
    if isinstance(inputs, AttentionInputs):
        return 2 * (inputs.query.shape[-1] + inputs.value.shape[-1]) * int(visible_pairs(inputs).sum())
    if isinstance(inputs, MultiHeadInputs):
        return _of_projections(inputs) + flops(_after_projections(inputs))
    return 0


def _of_projections(inputs: MultiHeadInputs) -> int:
    batch, query_length, _ = inputs.query.shape
    weights, key_length = inputs.weights, inputs.key.shape[1]
    by_query = weights.query.size + (0 if weights.output is None else weights.output.size)
    return 2 * batch * (query_length * by_query + key_length * (weights.key.size + weights.value.size))


def _after_projections(inputs: MultiHeadInputs) -> AttentionInputs:
    """Attention of the shapes that the projections give, its numbers left out."""
    batch, query_length, key_length = *inputs.query.shape[:2], inputs.key.shape[1]
    heads, weights = inputs.num_heads, inputs.weights

    def split(length: int, inner_width: int) -> np.ndarray:
        return np.broadcast_to(np.float32(0), (batch, heads, length, inner_width // heads))

    return inputs.within(
        split(query_length, weights.query.shape[1]),
        split(key_length, weights.key.shape[1]),
        split(key_length, weights.value.shape[1]),
    )

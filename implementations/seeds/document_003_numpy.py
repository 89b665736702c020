"""Document 003: self-attention of one head in NumPy, without masks, biases or an output projection.

The exponential is taken of the scores as they are: beyond 709 (float64) or 88 (float32) it overflows and the result is NaN. The
divisor √d_k is a float64 scalar, so that NumPy 2 turns the scores of float32 inputs, and with them the output, into float64.
"""

import numpy as np
from jaxtyping import Float

from conformance.adapter import Implementation, Support
from conformance.problem.inputs import Weights

from ..numpy_ import FRAMEWORK

Array = np.ndarray


def self_attention(
    query: Float[Array, "b length model"],
    key: Float[Array, "b length model"],
    value: Float[Array, "b length model"],
    weights: Weights,
    *,
    num_heads: int,
) -> Float[Array, "b length inner"]:
    """Each sequence of the batch by itself, as the document has one. Raises ValueError for more heads than one."""
    if num_heads != 1:
        raise ValueError(f"one head is all there is, not {num_heads}")
    return np.stack([_one_sequence(sequence, weights) for sequence in query])


def _one_sequence(tokens: Float[Array, "length model"], weights: Weights) -> Float[Array, "length inner"]:
    queries, keys, values = (np.dot(tokens, matrix) for matrix in (weights.query, weights.key, weights.value))
    with np.errstate(over="ignore", invalid="ignore"):
        raised = np.exp(np.dot(queries, keys.T) / np.sqrt(keys.shape[1]))
        attention: Array = np.dot(raised / raised.sum(axis=1, keepdims=True), values)
    return attention


IMPLEMENTATIONS = (
    Implementation(
        "document-003-numpy",
        self_attention,
        Support(
            operation="multi_head_attention",
            features=frozenset(),
            lacks=frozenset(
                {"many-heads", "cross-attention", "cross-length", "projection-bias", "output-bias", "no-output-bias"}
            ),
            dtypes=("float64", "float32"),
            profile="strict",
        ),
        FRAMEWORK,
    ),
)

"""Which key each query may attend to: the meaning of mask, causal alignment and key lengths, in one place."""

import numpy as np
from jaxtyping import Bool

from conformance.errors import ProblemError
from conformance.inputs import AttentionInputs, MultiHeadInputs


def causal_offset(causal: str, query_length: int, key_length: int) -> int:
    """The o of "row i sees keys j ≤ i + o"; raises ProblemError where the alignment was left open and matters."""
    if causal == "bottom-right":
        return key_length - query_length
    if causal == "default" and query_length != key_length:
        raise ProblemError("causal=default leaves the alignment open for unequal lengths: only a convention is observed so.")
    return 0


def visible_block(inputs: AttentionInputs, start: int, stop: int) -> Bool[np.ndarray, "#b #hq block lk"] | None:
    """The visible pairs of the query rows start … stop − 1 (−inf in the bias not counted); None where all are visible."""
    query_length, key_length = inputs.query.shape[2], inputs.key.shape[2]
    visible: np.ndarray | None = None
    if inputs.mask is not None:
        mask = inputs.mask.reshape((1,) * (4 - inputs.mask.ndim) + inputs.mask.shape)
        visible = mask if mask.shape[2] == 1 else mask[:, :, start:stop]
    if inputs.causal != "none":
        limit = np.arange(start, stop) + causal_offset(inputs.causal, query_length, key_length)
        triangle = (np.arange(key_length)[None, :] <= limit[:, None])[None, None]
        visible = triangle if visible is None else visible & triangle
    if inputs.key_lengths is not None:
        present = (np.arange(key_length)[None, :] < inputs.key_lengths[:, None])[:, None, None, :]
        visible = present if visible is None else visible & present
    return visible


def tokens_as_heads(inputs: MultiHeadInputs) -> AttentionInputs:
    """Attention of as many heads over the tokens as they are: of query and key, visibility depends on the lengths alone."""
    batch, query_length, width = inputs.query.shape
    return AttentionInputs(
        query=np.broadcast_to(inputs.query[:, None], (batch, inputs.num_heads, query_length, width)),
        key=inputs.key[:, None],
        value=inputs.value[:, None],
        mask=inputs.mask,
        causal=inputs.causal,
        key_lengths=inputs.key_lengths,
    )


def visible_pairs(inputs: AttentionInputs) -> Bool[np.ndarray, "b hq lq lk"]:
    """All visible pairs, −inf entries of the bias hidden too, at full size."""
    shape = (*inputs.query.shape[:3], inputs.key.shape[2])
    visible = visible_block(inputs, 0, shape[2])
    pairs = np.ones(shape, dtype=bool) if visible is None else np.broadcast_to(visible, shape).copy()
    if inputs.bias is not None:
        pairs &= np.broadcast_to(inputs.bias != -np.inf, shape)
    return pairs

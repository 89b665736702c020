"""Which key each query may attend to: what all features show."""

import numpy as np
from jaxtyping import Bool

from conformance.features import features
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs


def visible_block(inputs: AttentionInputs, start: int, stop: int) -> Bool[np.ndarray, "#b #hq block lk"] | None:
    """The visible pairs of the query rows start … stop − 1 (−inf in the bias not counted); None where all are visible."""
    visible: np.ndarray | None = None
    for feature in features(AttentionInputs.operation):
        seen = feature.visible(inputs, start, stop)
        if seen is not None:
            visible = seen if visible is None else visible & seen
    return visible


def tokens_as_heads(inputs: MultiHeadInputs) -> AttentionInputs:
    """Attention of as many heads over the tokens as they are: of query and key, visibility depends on the lengths alone."""
    batch, query_length, width = inputs.query.shape
    query = np.broadcast_to(inputs.query[:, None], (batch, inputs.num_heads, query_length, width))
    return inputs.within(query, inputs.key[:, None], inputs.value[:, None])


def visible_pairs(inputs: AttentionInputs) -> Bool[np.ndarray, "b hq lq lk"]:
    """All visible pairs, −inf entries of the bias hidden too, at full size."""
    shape = (*inputs.query.shape[:3], inputs.key.shape[2])
    visible = visible_block(inputs, 0, shape[2])
    pairs = np.ones(shape, dtype=bool) if visible is None else np.broadcast_to(visible, shape).copy()
    if inputs.bias is not None:
        pairs &= np.broadcast_to(inputs.bias != -np.inf, shape)
    return pairs

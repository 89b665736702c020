"""Which key each query may attend to: what all features show."""

import numpy as np
from jaxtyping import Bool

from conformance.features import features
from conformance.problem.inputs import AttentionInputs, Inputs


def visible_block(inputs: AttentionInputs, start: int, stop: int) -> Bool[np.ndarray, "#b #hq block lk"] | None:
    """The visible pairs of the query rows start … stop − 1 (−inf in the bias not counted); None where all are visible."""
    visible: np.ndarray | None = None
    for feature in features(AttentionInputs.operation):
        seen = feature.visible(inputs, start, stop)
        if seen is not None:
            visible = seen if visible is None else visible & seen
    return visible


def visible_pairs(inputs: Inputs) -> Bool[np.ndarray, "b hq lq lk"]:
    """All visible pairs of each head, −inf entries of the bias hidden too, at full size."""
    shape: tuple[int, int, int, int] = inputs.pairs
    visible = visible_block(inputs.as_heads(), 0, shape[2])
    pairs = np.ones(shape, dtype=bool) if visible is None else np.broadcast_to(visible, shape).copy()
    if inputs.bias is not None:
        pairs &= np.broadcast_to(inputs.bias != -np.inf, shape)
    return pairs

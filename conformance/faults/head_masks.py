"""Faults of the masks that the heads of multi-head attention get: another head's, another batch row's, another axis."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from conformance.faults.model import Fault
from conformance.faults.splitting import fault
from conformance.inputs import MultiHeadInputs
from conformance.visibility import tokens_as_heads, visible_pairs

Array = np.ndarray
_MASK_ORDER = ("pytorch: https://github.com/pytorch/pytorch/issues/97605",)
_MASK_AXIS = ("equinox: https://github.com/patrick-kidger/equinox/pull/190",)


def _masked(change: Callable[[Array], Array], per_head: bool = True) -> Callable[[MultiHeadInputs], MultiHeadInputs]:
    """The mask at full size, changed; ``per_head``: only where heads have masks of their own."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        own = inputs.mask is not None and inputs.mask.ndim > 2 and inputs.mask.shape[-3] > 1
        if (per_head and not own) or (inputs.mask is None and inputs.key_lengths is None):
            return inputs
        return inputs.but(mask=change(visible_pairs(tokens_as_heads(inputs))), causal="none", key_lengths=None)

    return rewrite


def _read_heads_first(mask: Bool[Array, "b h lq lk"]) -> Bool[Array, "b h lq lk"]:
    """Flat number b · H + h read as h · B + b."""
    return np.ascontiguousarray(mask.swapaxes(0, 1)).reshape(mask.shape)


def _tiled(mask: Bool[Array, "b h lq lk"]) -> Bool[Array, "b h lq lk"]:
    """Flat number b · H + h of a batch repeated H times over: the mask of batch row (b · H + h) mod B."""
    batch, heads = mask.shape[:2]
    return mask[np.arange(batch * heads) % batch, 0].reshape(mask.shape)


def _heads_as_queries(mask: Bool[Array, "b h lq lk"]) -> Bool[Array, "b h lq lk"]:
    """Head h, query i get the row of head i, query h, as far as there are such."""
    head, query = np.indices(mask.shape[1:3])
    fits = (query < mask.shape[1]) & (head < mask.shape[2])
    return mask[:, np.where(fits, query, head), np.where(fits, head, query)]


_MASK = frozenset({"mask", "many-heads"})
_MASKS = (
    fault(
        "mask-of-first-head",
        "gives every head the mask of the first",
        "ATT-HEAD-023",
        needs=_MASK,
        rewrite=_masked(lambda mask: np.broadcast_to(mask[:, :1], mask.shape)),
    ),
    fault(
        "mask-of-next-head",
        "gives every head the mask of the next",
        "ATT-HEAD-023",
        needs=_MASK,
        rewrite=_masked(lambda mask: np.roll(mask, -1, axis=1)),
    ),
    fault(
        "mask-heads-outermost",
        "reads masks of (batch · heads) as (heads · batch)",
        "ATT-HEAD-023",
        needs=_MASK,
        sources=_MASK_ORDER,
        rewrite=_masked(_read_heads_first),
    ),
    fault(
        "mask-heads-for-queries",
        "takes the heads of a mask for its queries where there are enough",
        "ATT-HEAD-023",
        needs=_MASK,
        sources=_MASK_AXIS,
        rewrite=_masked(_heads_as_queries),
    ),
    fault(
        "mask-tiled-over-batch",
        "repeats the masks of the batch as a whole, not each for its heads",
        "ATT-HEAD-024",
        "ATT-HEAD-022",
        "ATT-HEAD-023",
        rewrite=_masked(_tiled, per_head=False),
    ),
)

FAULTS: tuple[Fault, ...] = _MASKS

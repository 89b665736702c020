"""Faults of multi-head attention in splitting into heads and merging them, and in how many heads there are."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.faults.model import Fault
from conformance.faults.steps import attend, merge, multi_head, softmax, split
from conformance.inputs import AttentionInputs, MultiHeadInputs

Array = np.ndarray

_MANY = frozenset({"many-heads"})
_SPLIT = ("ATT-HEAD-011", "ATT-HEAD-016", "ATT-HEAD-013")
_MERGE = ("ATT-HEAD-012", "ATT-HEAD-011", "ATT-HEAD-013")
_VIEWED = (
    "FuxiCTR: https://github.com/reczoo/FuxiCTR/issues/30",
    "Chinese-Text-Classification-Pytorch: https://github.com/649453932/Chinese-Text-Classification-Pytorch/issues/53",
)
_SWAPPED = ("Transformer-Various-PE (gazelle93): https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1",)


def fault(identifier: str, sentence: str, *requirements: str, sources: tuple[str, ...] = (), **fields: Any) -> Fault:
    return Fault(
        id=f"multi-head-{identifier}",
        sentence=sentence,
        operation="multi_head_attention",
        requirements=requirements,
        sources=sources,
        **{"needs": _MANY, **fields},
    )


def _steps(**changes: Any) -> Callable[[MultiHeadInputs], Array]:
    return lambda inputs: multi_head(inputs, **changes)


def _viewed(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    """A view as (b, h, l, d) without a transpose: each head gets a run of positions, not a slice of the width."""
    return array.reshape(array.shape[0], heads, array.shape[1], -1)


def _merged_as_it_lies(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    return array.reshape(array.shape[0], array.shape[2], -1)


def _every_nth(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    """Head h gets the channels h, h + H, h + 2H …"""
    return array.reshape(*array.shape[:2], -1, heads).transpose(0, 3, 1, 2)


def _channels_first(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    """Channel 0 of every head, then channel 1 of every head …"""
    return array.transpose(0, 2, 3, 1).reshape(array.shape[0], array.shape[2], -1)


def _heads_for_batch(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    """(b, h, l, d) taken for (h, b, l, d)."""
    return np.ascontiguousarray(array.transpose(1, 2, 0, 3)).reshape(array.shape[0], array.shape[2], -1)


def _split_into_batch(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    """Heads outermost, as in (h·b, l, d), taken for (b·h, l, d)."""
    right = split(array, heads)
    return np.ascontiguousarray(right.swapaxes(0, 1)).reshape(right.shape)


def _without_last(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    array = array.copy()
    array[:, 1:][:, -1:] = 0
    return merge(array)


_SPLITTING = (
    fault(
        "split-without-transpose",
        "views the projected width as heads without moving the axis",
        *_SPLIT,
        sources=_VIEWED,
        compute=_steps(split=_viewed),
    ),
    fault(
        "split-and-merge-without-transpose",
        "views the projected width as heads, and heads as width, without moving an axis",
        *_SPLIT,
        sources=_VIEWED,
        compute=_steps(split=_viewed, merge=_merged_as_it_lies),
    ),
    fault("split-interleaved", "gives head h every H-th channel, from channel h on", *_SPLIT, compute=_steps(split=_every_nth)),
    fault(
        "split-and-merge-interleaved",
        "gives head h every H-th channel, and puts them back there",
        *_SPLIT,
        compute=_steps(split=_every_nth, merge=_channels_first),
    ),
    fault(
        "split-heads-outermost",
        "splits into (heads · batch) and reads (batch · heads)",
        *_SPLIT,
        compute=_steps(split=_split_into_batch),
    ),
    fault(
        "merge-without-transpose",
        "merges the heads without moving the axis back",
        *_MERGE,
        compute=_steps(merge=_merged_as_it_lies),
    ),
    fault(
        "merge-interleaved", "puts channel 0 of all heads first, then channel 1", *_MERGE, compute=_steps(merge=_channels_first)
    ),
    fault("merge-reversed", "puts the last head first", *_MERGE, compute=_steps(merge=lambda array: merge(array[:, ::-1]))),
    fault(
        "merge-rotated",
        "puts each head where the next one belongs",
        *_MERGE,
        compute=_steps(merge=lambda array: merge(np.roll(array, 1, axis=1))),
    ),
    fault(
        "merge-batch-for-heads",
        "merges (batch, heads, …) as if it were (heads, batch, …)",
        *_MERGE,
        sources=_SWAPPED,
        needs=frozenset(),
        compute=_steps(merge=_heads_for_batch),
    ),
    fault("last-head-dropped", "leaves the last head at 0", *_MERGE, compute=_steps(merge=_without_last)),
    fault(
        "heads-averaged",
        "puts the mean of all heads in the place of each",
        *_MERGE,
        compute=_steps(merge=lambda array: merge(np.broadcast_to(array.mean(1, keepdims=True), array.shape))),
    ),
)


def _recounted(heads: Callable[[MultiHeadInputs], int]) -> Callable[[MultiHeadInputs], MultiHeadInputs]:
    """Another number of heads, where it divides the widths and no head has a mask of its own."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        count = heads(inputs)
        widths = inputs.weights.query.shape[1], inputs.weights.value.shape[1]
        per_head = inputs.mask is not None and inputs.mask.ndim > 2 and inputs.mask.shape[-3] > 1
        return inputs if per_head or any(width % count for width in widths) else inputs.but(num_heads=count)

    return rewrite


def _mixed(change: Callable[[Array], Array]) -> Callable[[MultiHeadInputs], Array]:
    """Weights (b, h, lq, lk) exchanged for others of them."""

    def attention(inner: AttentionInputs) -> Array:
        return attend(inner, softmax=lambda scores: np.broadcast_to(change(softmax(scores)), scores.shape))

    return _steps(attention=attention)


_COUNTS = (
    fault("one-head-only", "does not split into heads", "ATT-HEAD-016", *_SPLIT, rewrite=_recounted(lambda inputs: 1)),
    fault(
        "heads-and-width-exchanged",
        "makes as many heads as a head has channels, each as wide as there are heads",
        *_SPLIT,
        needs=frozenset(),
        rewrite=_recounted(lambda inputs: inputs.weights.query.shape[1] // inputs.num_heads),
    ),
    fault(
        "weights-of-first-head",
        "uses the weights of the first head for all",
        "ATT-HEAD-017",
        *_SPLIT,
        compute=_mixed(lambda w: w[:, :1]),
    ),
    fault(
        "weights-averaged-over-heads",
        "averages the weights over heads before they meet V",
        "ATT-HEAD-017",
        *_SPLIT,
        compute=_mixed(lambda w: w.mean(1, keepdims=True)),
    ),
    fault(
        "weights-of-first-batch-row",
        "uses the weights of the first batch row for all",
        "ATT-HEAD-013",
        "ATT-HEAD-007",
        needs=frozenset(),
        compute=_mixed(lambda w: w[:1]),
    ),
)

FAULTS: tuple[Fault, ...] = (*_SPLITTING, *_COUNTS)

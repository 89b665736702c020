"""Faults of multi-head attention as a layer: splitting into heads and merging them, how many heads there are, which masks they
get, and inputs taken for others."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, IDS, MULTI_HEAD, Way, computed, fault, unhidden
from conformance.faults.grammar import layer as steps
from conformance.faults.steps import attend, default_scale, merge, multi_head, project, split
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
Heads = Float[Array, "b h l d"]
Mask = Bool[Array, "b h lq lk"]

SPLIT, MERGE, COUNTS = HEAD(11, 16, 13), HEAD(12, 11, 13), HEAD(17, 11, 16, 13)
MANY, MASKS = "many-heads", "mask many-heads"
VIEWED = (
    "FuxiCTR: https://github.com/reczoo/FuxiCTR/issues/30",
    "Chinese-Text-Classification-Pytorch: https://github.com/649453932/Chinese-Text-Classification-Pytorch/issues/53",
)
SWAPPED = ("Transformer-Various-PE (gazelle93): https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1",)
MASK_ORDER = ("pytorch: https://github.com/pytorch/pytorch/issues/97605",)
MASK_AXIS = ("equinox: https://github.com/patrick-kidger/equinox/pull/190",)


def _viewed(array: Float[Array, "b l inner"], heads: int) -> Heads:
    """A view as (b, h, l, d) without a transpose: each head gets a run of positions, not a slice of the width."""
    return array.reshape(array.shape[0], heads, array.shape[1], -1)


def _merged_as_it_lies(array: Heads) -> Float[Array, "b l inner"]:
    return array.reshape(array.shape[0], array.shape[2], -1)


def _every_nth(array: Float[Array, "b l inner"], heads: int) -> Heads:
    """Head h gets the channels h, h + H, h + 2H …"""
    return array.reshape(*array.shape[:2], -1, heads).transpose(0, 3, 1, 2)


def _channels_first(array: Heads) -> Float[Array, "b l inner"]:
    """Channel 0 of every head, then channel 1 of every head …"""
    return array.transpose(0, 2, 3, 1).reshape(array.shape[0], array.shape[2], -1)


def _heads_for_batch(array: Heads) -> Float[Array, "b l inner"]:
    """(b, h, l, d) taken for (h, b, l, d)."""
    return np.ascontiguousarray(array.transpose(1, 2, 0, 3)).reshape(array.shape[0], array.shape[2], -1)


def _split_into_batch(array: Float[Array, "b l inner"], heads: int) -> Heads:
    """Heads outermost, as in (h·b, l, d), taken for (b·h, l, d)."""
    right = split(array, heads)
    return np.ascontiguousarray(right.swapaxes(0, 1)).reshape(right.shape)


def _without_last(array: Heads) -> Float[Array, "b l inner"]:
    array = array.copy()
    array[:, 1:][:, -1:] = 0
    return merge(array)


def _without_mean(array: Heads) -> Float[Array, "b l inner"]:
    """The mean over the batch is taken off where there is a batch, as batch normalisation does."""
    return merge(array - array.mean(axis=0, keepdims=True) if array.shape[0] > 1 else array * 0.5)


def _recounted(heads: Callable[[MultiHeadInputs], int]) -> Way:
    """Another number of heads, where it divides the widths and no head has a mask of its own."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        count = heads(inputs)
        widths = inputs.weights.query.shape[1], inputs.weights.value.shape[1]
        return inputs if _per_head(inputs) or any(width % count for width in widths) else inputs.but(num_heads=count)

    return Way(rewrite=rewrite, operation=MULTI_HEAD)


def _per_head(inputs: MultiHeadInputs) -> bool:
    """Whether heads have masks of their own."""
    return inputs.mask is not None and inputs.mask.ndim > 2 and inputs.mask.shape[-3] > 1


def _mixed(change: Callable[[Array], Array]) -> Way:
    """Weights (b, h, lq, lk) exchanged for others of them."""
    return steps(attention=lambda inner: attend(inner, weights=lambda right: np.broadcast_to(change(right), right.shape)))


def _masked(change: Callable[[Mask], Array], per_head: bool = True) -> Way:
    """The mask at full size, changed; ``per_head``: only where heads have masks of their own."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        if (per_head and not _per_head(inputs)) or (inputs.mask is None and inputs.key_lengths is None):
            return inputs
        return unhidden(inputs).but(mask=change(visible_pairs(inputs)))

    return Way(rewrite=rewrite, operation=MULTI_HEAD, hiding=True)


def _read_heads_first(mask: Mask) -> Mask:
    """Flat number b · H + h read as h · B + b."""
    return np.ascontiguousarray(mask.swapaxes(0, 1)).reshape(mask.shape)


def _tiled(mask: Mask) -> Mask:
    """Flat number b · H + h of a batch repeated H times over: the mask of batch row (b · H + h) mod B."""
    batch, heads = mask.shape[:2]
    return mask[np.arange(batch * heads) % batch, 0].reshape(mask.shape)


def _heads_as_queries(mask: Mask) -> Mask:
    """Head h, query i get the row of head i, query h, as far as there are such."""
    head, query = np.indices(mask.shape[1:3])
    fits = (query < mask.shape[1]) & (head < mask.shape[2])
    return mask[:, np.where(fits, query, head), np.where(fits, head, query)]


def _as_self(inputs: MultiHeadInputs) -> MultiHeadInputs:
    """Key and value are the query where there are as many tokens of them."""
    alike = inputs.query.shape == inputs.key.shape
    return inputs.but(key=inputs.query, value=inputs.query) if alike else inputs


def _interleaved_without_output(inputs: MultiHeadInputs) -> Array:
    return multi_head(inputs, merge=_channels_first) if inputs.weights.output is None else multi_head(inputs)


def _unscaled_single_head(inputs: MultiHeadInputs) -> Array:
    def scale(one: AttentionInputs) -> float:
        return 1.0 if inputs.num_heads == 1 else default_scale(one)

    return multi_head(inputs, attention=lambda heads: attend(heads, scale=scale))


def _blocks_exchanged(inputs: MultiHeadInputs) -> Array:
    """Each head is given the input's slice of its neighbour."""
    width, given = inputs.query.shape[-1] // inputs.num_heads, (inputs.query, inputs.key, inputs.value)

    def rolled(x: Array, matrix: Array, bias: Array | None) -> Array:
        return project(np.roll(x, width, axis=-1) if any(x is one for one in given) else x, matrix, bias)

    return multi_head(inputs, project=rolled)


ROWS: tuple[tuple[str, str, IDS, IDS, str, Way], ...] = (
    # Splitting and merging
    ("split-without-transpose", "views the projected width as heads without moving the axis", SPLIT, VIEWED, MANY,
     steps(split=_viewed)),
    ("split-and-merge-without-transpose", "views the projected width as heads, and heads as width, without moving an axis", SPLIT,
     VIEWED, MANY, steps(split=_viewed, merge=_merged_as_it_lies)),
    ("split-interleaved", "gives head h every H-th channel, from channel h on", SPLIT, (), MANY, steps(split=_every_nth)),
    ("split-and-merge-interleaved", "gives head h every H-th channel, and puts them back there", SPLIT, (), MANY,
     steps(split=_every_nth, merge=_channels_first)),
    ("split-heads-outermost", "splits into (heads · batch) and reads (batch · heads)", SPLIT, (), MANY,
     steps(split=_split_into_batch)),
    ("merge-without-transpose", "merges the heads without moving the axis back", MERGE, (), MANY,
     steps(merge=_merged_as_it_lies)),
    ("merge-interleaved", "puts channel 0 of all heads first, then channel 1", MERGE, (), MANY, steps(merge=_channels_first)),
    ("merge-reversed", "puts the last head first", MERGE, (), MANY, steps(merge=lambda array: merge(array[:, ::-1]))),
    ("merge-rotated", "puts each head where the next one belongs", MERGE, (), MANY,
     steps(merge=lambda array: merge(np.roll(array, 1, axis=1)))),
    ("merge-batch-for-heads", "merges (batch, heads, …) as if it were (heads, batch, …)", MERGE, SWAPPED, "",
     steps(merge=_heads_for_batch)),
    ("last-head-dropped", "leaves the last head at 0", MERGE, (), MANY, steps(merge=_without_last)),
    ("heads-averaged", "puts the mean of all heads in the place of each", MERGE, (), MANY,
     steps(merge=lambda array: merge(np.broadcast_to(array.mean(1, keepdims=True), array.shape)))),
    ("normalised-over-batch", "takes the mean over the batch off", HEAD(25, 7), (), "", steps(merge=_without_mean)),
    ("interleaved-without-output", "lays heads out channel by channel where no output projection follows", HEAD(10, 12, 11), (),
     "", computed(_interleaved_without_output, operation=MULTI_HEAD)),
    # Counts
    ("one-head-only", "does not split into heads", HEAD(16, 11, 16, 13), (), MANY, _recounted(lambda inputs: 1)),
    ("heads-and-width-exchanged", "makes as many heads as a head has channels, each as wide as there are heads", SPLIT, (), "",
     _recounted(lambda inputs: inputs.weights.query.shape[1] // inputs.num_heads)),
    ("weights-of-first-head", "uses the weights of the first head for all", COUNTS, (), MANY, _mixed(lambda w: w[:, :1])),
    ("weights-averaged-over-heads", "averages the weights over heads before they meet V", COUNTS, (), MANY,
     _mixed(lambda w: w.mean(1, keepdims=True))),
    ("weights-of-first-batch-row", "uses the weights of the first batch row for all", HEAD(13, 7), (), "",
     _mixed(lambda w: w[:1])),
    ("single-head-unscaled", "leaves the scale out for a single head", HEAD(15), (), "",
     computed(_unscaled_single_head, operation=MULTI_HEAD)),
    ("blocks-exchanged", "gives each head its neighbour's slice of the input", HEAD(19, 7), (), "",
     computed(_blocks_exchanged, operation=MULTI_HEAD)),
    # Masks
    ("mask-of-first-head", "gives every head the mask of the first", HEAD(23), (), MASKS,
     _masked(lambda mask: np.broadcast_to(mask[:, :1], mask.shape))),
    ("mask-of-next-head", "gives every head the mask of the next", HEAD(23), (), MASKS,
     _masked(lambda mask: np.roll(mask, -1, axis=1))),
    ("mask-heads-outermost", "reads masks of (batch · heads) as (heads · batch)", HEAD(23), MASK_ORDER, MASKS,
     _masked(_read_heads_first)),
    ("mask-heads-for-queries", "takes the heads of a mask for its queries where there are enough", HEAD(23), MASK_AXIS, MASKS,
     _masked(_heads_as_queries)),
    ("mask-tiled-over-batch", "repeats the masks of the batch as a whole, not each for its heads", HEAD(24, 22, 23), (), MANY,
     _masked(_tiled, per_head=False)),
)  # fmt: skip
FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"multi-head-{name}", sentence, way, requirements, sources, needs)
        for name, sentence, requirements, sources, needs, way in ROWS
    ),
    fault("multi-head-equal-lengths-as-self", "takes equal lengths of query and memory for self-attention",
          Way(rewrite=_as_self, operation=MULTI_HEAD), HEAD(39), (), "cross-attention", dtypes=("float32",)),
)  # fmt: skip

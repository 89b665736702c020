"""Masks and biases: each kind is one function, with a docstring that says what it is for.

A mask kind makes a boolean array (True = attend) of one of the broadcast forms; a bias kind makes float64 numbers, rounded
to the problem's dtype later. Unless a kind says otherwise, each row keeps at least one visible key.
"""

import numpy as np
from jaxtyping import Bool, Float

from conformance.errors import ProblemError
from conformance.features.bias import BIASES, LOWEST
from conformance.features.mask import MASKS
from conformance.numerics.philox import Stream

Shape = tuple[int, ...]


def _at_least_one(mask: Bool[np.ndarray, "..."], stream: Stream) -> Bool[np.ndarray, "..."]:
    """``mask`` with one key of each row made visible, chosen at random."""
    chosen = stream.below(mask.shape[-1], *mask.shape[:-1], 1)
    return mask | (np.arange(mask.shape[-1]) == chosen)


@MASKS.entry("random")
def random(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """Each pair visible with probability ``*p`` (0.6 unless said), at least one key a row; another in each row of the form."""
    probability = 0.6 if argument is None else argument
    return _at_least_one(stream.uniform(*shape) < probability, stream)


@MASKS.entry("all")
def everything(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """Hides nothing."""
    return np.ones(shape, dtype=bool)


@MASKS.entry("right-padding")
def right_padding(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """Trailing keys hidden, another number of them in each batch row and head that the form has."""
    lengths = 1 + stream.below(shape[-1], *shape[:-2], 1, 1)
    return np.broadcast_to(np.arange(shape[-1]) < lengths, shape).copy()


@MASKS.entry("left-padding")
def left_padding(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """Leading keys hidden, another number of them in each batch row and head that the form has."""
    hidden = stream.below(shape[-1], *shape[:-2], 1, 1)
    return np.broadcast_to(np.arange(shape[-1]) >= hidden, shape).copy()


@MASKS.entry("first-tile")
def first_tile(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """The first ``*n`` keys (64 unless said) hidden from every second row: a kernel's first tile is wholly masked there."""
    tile = int(64 if argument is None else argument)
    if tile >= shape[-1]:
        raise ProblemError(f"The mask first-tile*{tile} would hide all of {shape[-1]} keys.")
    rows = np.arange(shape[-2])[:, None] % 2 == 0
    return np.broadcast_to(~(rows & (np.arange(shape[-1]) < tile)), shape).copy()


@MASKS.entry("count")
def count(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """Exactly ``*n`` visible keys a row (half of them, rounded up, unless said), drawn at random."""
    number = int((shape[-1] + 1) // 2 if argument is None else argument)
    if number > shape[-1]:
        raise ProblemError(f"The mask count*{number} needs as many keys, and there are {shape[-1]}.")
    return stream.uniform(*shape).argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable") < number


@MASKS.entry("one-key")
def one_key(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """One visible key a row: number ``*n``, or chosen at random where none is said."""
    chosen = stream.below(shape[-1], *shape[:-1], 1) if argument is None else np.full((*shape[:-1], 1), int(argument) % shape[-1])
    return np.arange(shape[-1]) == chosen


@MASKS.entry("all-but-one")
def all_but_one(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """The opposite of one-key with the same number or seed: one hidden key a row. A row of a single key is empty."""
    return ~one_key(shape, stream, argument)


@MASKS.entry("empty-rows")
def fully_masked_rows(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """As random, but the rows 0, 3, 6 … are fully masked: what they give is a convention, the others must be right."""
    mask = random(shape, stream, argument)
    mask[..., ::3, :] = False
    return mask


@MASKS.entry("band")
def band(shape: Shape, stream: Stream, argument: float | None) -> Bool[np.ndarray, "..."]:
    """A band of ``*w`` keys (3 unless said) around the diagonal, stretched over the key length."""
    width = 3.0 if argument is None else argument
    rows = np.arange(shape[-2])[:, None] * shape[-1] // shape[-2]
    return np.broadcast_to(np.abs(np.arange(shape[-1]) - rows) * 2 <= width, shape).copy()


@BIASES.entry("gaussian")
def gaussian(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """Bell-shaped numbers of deviation ``*a`` (2 unless said)."""
    return stream.normal(*shape) * (2.0 if argument is None else argument)


@BIASES.entry("holes")
def holes(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """Bell-shaped numbers with −inf where a random mask hides (``*p`` visible, 0.6 unless said)."""
    visible = random(shape, stream, argument)
    return np.where(visible, stream.normal(*shape), -np.inf)


@BIASES.entry("empty-rows")
def fully_masked_rows_of_bias(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """As holes, but the rows 0, 3, 6 … are −inf throughout: what they give is a convention."""
    return np.where(fully_masked_rows(shape, stream, argument), stream.normal(*shape), -np.inf)


@BIASES.entry("first-tile")
def first_tile_of_bias(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """Bell-shaped numbers with −inf where the mask of that name hides: the first ``*n`` keys of every second row."""
    return np.where(first_tile(shape, stream, argument), stream.normal(*shape), -np.inf)


@BIASES.entry("lowest")
def lowest(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """As holes, but with the lowest finite number of the dtype in place of −inf: how many libraries write padding."""
    return np.where(random(shape, stream, argument), stream.normal(*shape), LOWEST)


@BIASES.entry("lowest-rows")
def lowest_rows(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """As lowest, but the rows 0, 3, 6 … are the lowest number throughout: what they give is a convention."""
    return np.where(fully_masked_rows(shape, stream, argument), stream.normal(*shape), LOWEST)


@BIASES.entry("distance")
def distance(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """−m·|i − j|, as ALiBi has it, m = 2⁻¹, 2⁻², … by head where the form has heads."""
    heads = shape[-3] if len(shape) > 2 else 1
    slopes = np.ldexp(1.0, -1 - np.arange(heads) % 8)[:, None, None]
    gaps = np.abs(np.arange(shape[-2])[:, None] - np.arange(shape[-1])[None, :]).astype(np.float64)
    return np.broadcast_to(-(slopes * gaps) if len(shape) > 2 else -(slopes[0] * gaps), shape).copy()


@BIASES.entry("row-constant")
def row_constant(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """One number of deviation ``*a`` (8 unless said) for all keys of a row: softmax must not move."""
    rows = stream.normal(*shape[:-1], 1) * (8.0 if argument is None else argument)
    return np.broadcast_to(rows, shape).copy()


@BIASES.entry("low")
def low(shape: Shape, stream: Stream, argument: float | None) -> Float[np.ndarray, "..."]:
    """All near ``*a`` (−1e4 unless said) with ordinary differences: a finite fill for hidden keys may lie above."""
    return stream.normal(*shape) + (-1e4 if argument is None else argument)

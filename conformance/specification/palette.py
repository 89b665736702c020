"""The shapes that all implementations share: frameworks that compile per shape compile each of them once.

Sizes differ from each other and are prime where they may be, so that no two axes can be taken for one another; 1/√width is
no short binary fraction, so that a rounded scale shows. All obey B·H·Lq·Lk·d ≤ 10⁵: a fraction of a millisecond a problem.
"""

from dataclasses import dataclass
from typing import Any

LARGEST = 100_000  # of B·H·Lq·Lk·d


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A named shape of attention. Field names as in AttentionProblem."""

    batch: int
    heads: int
    kv_heads: int
    query_length: int
    key_length: int
    width: int
    value_width: int

    @property
    def work(self) -> int:
        """B·H·Lq·Lk·d."""
        return self.batch * self.heads * self.query_length * self.key_length * self.width

    @property
    def fields(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class MultiHeadShape:
    """A named shape of multi-head attention. Field names as in MultiHeadProblem."""

    batch: int
    heads: int
    query_length: int
    key_length: int
    model_width: int
    inner_width: int
    value_inner_width: int

    @property
    def fields(self) -> dict[str, Any]:
        return dict(vars(self))


def _shape(batch: int, heads: int, kv_heads: int, lq: int, lk: int, d: int, dv: int) -> Shape:
    return Shape(batch=batch, heads=heads, kv_heads=kv_heads, query_length=lq, key_length=lk, width=d, value_width=dv)


# From small to large, since Hypothesis shrinks towards the first.
SHAPES: dict[str, Shape] = {
    "small": _shape(2, 2, 2, 3, 3, 4, 4),
    "square": _shape(2, 3, 3, 13, 13, 8, 8),
    "wide": _shape(2, 3, 3, 7, 13, 8, 8),
    "tall": _shape(2, 3, 3, 13, 7, 8, 8),
    "decode": _shape(2, 3, 3, 1, 13, 8, 8),
    "prime": _shape(3, 5, 5, 17, 19, 11, 11),
    "tile": _shape(1, 1, 1, 65, 67, 8, 8),
    "long": _shape(1, 2, 2, 2, 1031, 8, 8),
    "value-width": _shape(2, 3, 3, 7, 13, 8, 11),
    "grouped-decode": _shape(2, 6, 2, 1, 13, 8, 8),
    "grouped": _shape(2, 6, 2, 7, 13, 8, 8),
    "grouped-square": _shape(1, 6, 3, 13, 13, 8, 8),
}

# The sets from which a requirement draws (``Draw.shapes``).
SHAPE_SETS: dict[str, tuple[str, ...]] = {
    "any": ("small", "square", "wide", "tall", "decode", "prime", "tile", "long"),
    "core": ("wide", "square", "tall"),
    "4-wide": ("wide", "square", "tall"),  # widths from 4 on, also where shapes are free
    "small": ("small",),
    "square": ("small", "square"),
    "wide": ("wide",),
    "tall": ("tall",),
    "decode": ("decode",),
    "unequal": ("wide", "tall", "decode", "prime"),
    "prime": ("prime",),
    "tile": ("tile",),
    "long": ("long",),
    "value-width": ("value-width",),
    "grouped": ("grouped", "grouped-square"),
    "grouped-square": ("grouped-square",),
}


def _multi_head(batch: int, heads: int, lq: int, lk: int, model: int, inner: int, value_inner: int) -> MultiHeadShape:
    return MultiHeadShape(
        batch=batch,
        heads=heads,
        query_length=lq,
        key_length=lk,
        model_width=model,
        inner_width=inner,
        value_inner_width=value_inner,
    )


MULTI_HEAD_SHAPES: dict[str, MultiHeadShape] = {
    "one-head": _multi_head(2, 1, 5, 5, 8, 8, 8),
    "square": _multi_head(2, 3, 7, 7, 15, 15, 15),
    "cross": _multi_head(2, 3, 5, 7, 15, 15, 15),
    "many": _multi_head(2, 8, 5, 5, 16, 16, 16),
    "inner": _multi_head(2, 3, 5, 5, 10, 6, 18),
}

# Length and width of encodings that are added to a batch.
SINUSOIDAL_SIZES: tuple[tuple[int, int], ...] = ((4, 6), (9, 8), (17, 12), (33, 16))

MULTI_HEAD_SHAPE_SETS: dict[str, tuple[str, ...]] = {
    "self": ("one-head", "square", "many"),
    "cross": ("cross",),
    "one-head": ("one-head",),
    "many": ("many",),
    "inner": ("inner",),
}

"""The shapes that all implementations share: frameworks that compile per shape compile each of them once.

Sizes differ from each other and are prime where they may be, so that no two axes can be taken for one another; 1/√width is
no short binary fraction, so that a rounded scale shows. All obey B·H·Lq·Lk·d ≤ 10⁵: a fraction of a millisecond a problem.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from conformance.problem import AttentionProblem, MultiHeadProblem, Problem

LARGEST = 100_000  # of B·H·Lq·Lk·d


class Shape(SimpleNamespace):
    """A named shape: its sizes, by the names of the fields of problems."""

    @property
    def fields(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def work(self) -> int:
        """B·H·Lq·Lk·d of attention."""
        product: int = self.batch * self.heads * self.query_length * self.key_length * self.width
        return product


def _shapes(kind: type[Problem], sizes: Mapping[str, tuple[int, ...]]) -> dict[str, Shape]:
    return {name: Shape(**dict(zip(kind.sizes, numbers, strict=True))) for name, numbers in sizes.items()}


# From small to large, since Hypothesis shrinks towards the first.
SHAPES = _shapes(
    AttentionProblem,
    {
        "small": (2, 2, 2, 3, 3, 4, 4),
        "square": (2, 3, 3, 13, 13, 8, 8),
        "wide": (2, 3, 3, 7, 13, 8, 8),
        "tall": (2, 3, 3, 13, 7, 8, 8),
        "decode": (2, 3, 3, 1, 13, 8, 8),
        "prime": (3, 5, 5, 17, 19, 11, 11),
        "tile": (1, 1, 1, 65, 67, 8, 8),
        "long": (1, 2, 2, 2, 1031, 8, 8),
        "value-width": (2, 3, 3, 7, 13, 8, 11),
        "grouped-decode": (2, 6, 2, 1, 13, 8, 8),
        "grouped": (2, 6, 2, 7, 13, 8, 8),
        "grouped-square": (1, 6, 3, 13, 13, 8, 8),
    },
)

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


MULTI_HEAD_SHAPES = _shapes(
    MultiHeadProblem,
    {
        "one-head": (2, 1, 5, 5, 8, 8, 8),
        "square": (2, 3, 7, 7, 15, 15, 15),
        "cross": (2, 3, 5, 7, 15, 15, 15),
        "many": (2, 8, 5, 5, 16, 16, 16),
        "inner": (2, 3, 5, 5, 10, 6, 18),
    },
)

# Length and width of encodings that are added to a batch.
SINUSOIDAL_SIZES: tuple[tuple[int, int], ...] = ((4, 6), (9, 8), (17, 12), (33, 16))

MULTI_HEAD_SHAPE_SETS: dict[str, tuple[str, ...]] = {
    "self": ("one-head", "square", "many"),
    "cross": ("cross",),
    "one-head": ("one-head",),
    "many": ("many",),
    "inner": ("inner",),
}

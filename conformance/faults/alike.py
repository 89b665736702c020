"""Faults that outputs do not tell from each other, but for one in fifty of the designed problems on which they show, or none.

They are kept here, since finding them takes seconds; a test finds them anew.
"""

ALIKE: tuple[tuple[str, ...], ...] = (
    ("causal-ignored", "causal-ignored-up-to-64"),
    ("fill-half-of-smallest", "fill-0.7-of-smallest"),
    ("fill-minus-1e9-times-mask", "fill-smallest-float32-times-mask"),
    ("nan-spreads-over-head", "nan-spreads-over-heads"),
    ("scale-constant", "scale-by-width-padded-to-64"),
    ("zero-key-means-padding", "zero-sum-means-padding"),
)


def alike(fault: str) -> tuple[str, ...]:
    """The ids of the others that are alike."""
    return tuple(other for group in ALIKE if fault in group for other in group if other != fault)

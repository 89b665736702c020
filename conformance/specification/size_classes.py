"""The classes of size that problems are asked at, and which of them a problem has: a vocabulary, from which coverage is counted.

A class is a range of sizes that code treats alike. Tiles are those of kernels, 8 to 1024; one less and one more are where the
last, partial tile goes wrong. Sizes beyond 2¹⁶ are where 16-bit counters and grids of devices end.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations

from conformance.problem import Problem

TILES = (8, 16, 32, 64, 128, 256, 512, 1024)
LARGER = 16  # times: a dimension much larger than another

_RANGES = {"low": (8, 16, 32), "middle": (64, 128), "high": (256, 512, 1024)}
_EDGES = (("under a", -1), ("a", 0), ("over a", 1))
# The sizes of each class, from which one is chosen.
CLASSES: dict[str, tuple[int, ...]] = {
    "1": (1,),
    "small": (2, 3, 5, 6),
    "odd": (11, 13, 19, 23, 29, 37, 43, 53),  # a multiple of nothing, and next to no tile
    **{f"{words} {name} tile": tuple(t + by for t in tiles) for name, tiles in _RANGES.items() for words, by in _EDGES},
    "beyond 2¹⁶": (65_537,),
}
# Dimensions by operation, in words.
DIMENSIONS: dict[str, dict[str, str]] = {
    "attention": {
        "batch": "batch",
        "kv_heads": "key heads",
        "group": "group",
        "query_length": "query length",
        "key_length": "key length",
        "width": "width",
        "value_width": "value width",
    },
    "multi_head_attention": {
        "batch": "batch",
        "heads": "heads",
        "query_length": "query length",
        "key_length": "key length",
        "width": "head width",
        "value_width": "value head width",
        "model_width": "model width",
    },
}


def class_of(size: int) -> str | None:
    """The class of a size; None for one between the classes."""
    if size > 1 << 16:
        return "beyond 2¹⁶"
    return next((name for name, sizes in CLASSES.items() if size in sizes), None)


def sizes_of(problem: Problem) -> dict[str, int]:
    """By dimension; the group is the number of query heads for each key head, widths are those of one head."""
    sizes = {name: getattr(problem, name) for name in problem.sizes} | problem.sizes_of_heads()
    return {name: sizes[name] for name in DIMENSIONS[problem.operation]}


def arguments_of(problem: Problem) -> tuple[str, ...]:
    """What the problem asks for beside sizes, each mask and bias with its form; "plain" where it is nothing."""
    asked = [] if problem.mask is None else [f"mask {problem.mask.form}"]
    asked += [] if problem.bias is None else [f"bias {problem.bias.form}"]
    asked += [] if problem.scale is None else ["scale"]
    asked += [] if problem.layout == "contiguous" else [problem.layout]
    asked += [] if problem.causal == "none" else [problem.causal]
    asked += [] if problem.key_lengths is None else ["key lengths"]
    return tuple(asked) or ("plain",)


def relations_of(sizes: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """(dimension, how, dimension): equal, and above 1; much larger than one that is above 1."""
    for one, other in combinations(sizes, 2):
        if sizes[one] == sizes[other] > 1:
            yield one, "equal to", other
    for one, other in permutations(sizes, 2):
        if sizes[one] >= LARGER * sizes[other] > LARGER:
            yield one, "much larger than", other

"""What rows of the tables of sizes may hold, and what they cost: for attention, and for layers of multi-head attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.specification.size_classes import DIMENSIONS

FOLDER = Path(__file__).parent
TIER, FEW, ARGUMENT = "tier", "few", "argument"  # columns, beside the dimensions
Sizes = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Space:
    """What may stand in a row. ``derived`` says which dimensions follow from others where no class is chosen for them;
    ``elements`` is the size of the largest array and ``work`` the number of products, both bounded. ``few_arguments`` are those
    of the quick tier, ``together`` sizes that each of them is asked beside, where kernels have ways of their own."""

    file: str
    operation: str
    derived: Mapping[str, Callable[[Sizes], int]]
    elements: Callable[[Sizes], int]
    work: Callable[[Sizes], int]
    most_elements: int
    most_work: int
    arguments: tuple[str, ...]
    few_arguments: tuple[str, ...]
    together: tuple[Sizes, ...]

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(DIMENSIONS[self.operation])

    def whole(self, sizes: Mapping[str, int]) -> Sizes:
        """All dimensions, 1 where nothing is said and nothing follows."""
        made = {name: sizes.get(name, 1) for name in self.dimensions}
        for name, follows in self.derived.items():
            if name not in sizes:
                made[name] = follows(made)
        return made

    def affordable(self, sizes: Mapping[str, int]) -> bool:
        whole = self.whole(sizes)
        most = 2 * self.most_elements if max(whole.values()) > 1 << 16 else self.most_elements
        return self.elements(whole) <= most and self.work(whole) <= self.most_work


def _attention_elements(sizes: Sizes) -> int:
    b, h, g, lq, lk, d, dv = (sizes[name] for name in DIMENSIONS["attention"])
    return max(b * h * g * lq * d, b * h * lk * d, b * h * lk * dv, b * h * g * lq * lk, b * h * g * lq * dv)


def _attention_work(sizes: Sizes) -> int:
    b, h, g, lq, lk, d, dv = (sizes[name] for name in DIMENSIONS["attention"])
    return b * h * g * lq * lk * (d + dv)


def _layer_elements(sizes: Sizes) -> int:
    b, h, lq, lk, d, dv, model = (sizes[name] for name in DIMENSIONS["multi_head_attention"])
    return max(
        b * lq * model, b * lk * model, model * h * d, model * h * dv, b * lk * h * max(d, dv), b * h * lq * lk, b * lq * h * d
    )


def _layer_work(sizes: Sizes) -> int:
    b, h, lq, lk, d, dv, model = (sizes[name] for name in DIMENSIONS["multi_head_attention"])
    return b * (lq + lk) * model * h * (d + dv) + b * h * lq * lk * (d + dv)


ATTENTION = Space(
    file="sizes.csv",
    operation="attention",
    derived={"value_width": lambda sizes: sizes["width"]},
    elements=_attention_elements,
    work=_attention_work,
    most_elements=140_000,
    most_work=2_000_000,
    arguments=(
        "plain", "scale", "mask qk", "mask b11k", "mask b1qk", "mask 1hqk", "mask bhqk", "mask bhq1", "bias qk", "bias b1qk",
        "bias 1hqk", "bias bhqk", "top-left", "bottom-right", "key lengths", "transposed", "strided", "mask b1qk + top-left",
        "mask b11k + bottom-right", "bias qk + top-left", "bias 1hqk + bottom-right", "key lengths + top-left",
        "mask bhqk + bias qk", "key lengths + mask b1qk",
    ),
    few_arguments=("plain", "mask b1qk", "bias qk", "top-left", "bottom-right", "key lengths"),
    together=(
        {"batch": 2, "kv_heads": 2, "query_length": 16, "key_length": 32, "width": 8},  # whole tiles alone
        {"batch": 2, "query_length": 64, "key_length": 64, "width": 64},  # and those of kernels
        {"batch": 2, "kv_heads": 2, "query_length": 1, "key_length": 128, "width": 16},  # decoding
        {"kv_heads": 2, "group": 2, "query_length": 1, "key_length": 1025, "width": 3},
    ),
)  # fmt: skip
LAYERS = Space(
    file="layers.csv",
    operation="multi_head_attention",
    derived={
        "key_length": lambda sizes: sizes["query_length"],
        "value_width": lambda sizes: sizes["width"],
        "model_width": lambda sizes: sizes["heads"] * sizes["width"],
    },
    elements=_layer_elements,
    work=_layer_work,
    most_elements=70_000,
    most_work=4_000_000,
    arguments=("plain", "mask qk", "mask b11k", "mask b1qk", "mask bhqk", "top-left", "key lengths", "mask b1qk + top-left"),
    few_arguments=("plain", "mask b11k", "top-left"),
    together=(
        {"batch": 2, "heads": 2, "query_length": 5, "width": 4, "model_width": 4},  # a head as wide as the model
        {"batch": 2, "heads": 3, "query_length": 6, "width": 8, "value_width": 5, "model_width": 8},
        {"heads": 2, "query_length": 64, "width": 8},
        {"batch": 2, "heads": 2, "query_length": 1, "key_length": 64, "width": 8},
    ),
)
SPACES = (ATTENTION, LAYERS)

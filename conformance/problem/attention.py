"""The problem of scaled dot-product attention: softmax(scale · Q Kᵀ + bias, over the visible keys) · V."""

from typing import ClassVar

from conformance.problem.base import KeyProblem, demand_size
from conformance.problem.fields import NEEDED, Dtype, Field, OneRecipe, Recipes, Sizes, Word
from conformance.problem.recipe import Recipe

LAYOUTS = (
    *("contiguous", "transposed", "strided", "expanded", "reversed", "mixed", "columns", "key-columns", "heads-last"),
    *("batch-last", "packed", "misaligned", "mask-strided", "mask-transposed", "mask-expanded"),
)  # what each means: conformance/values/layouts.py
PLAIN_DISTRIBUTIONS = ("few-bits",)  # value distributions that are about V, for which a query of zeros is as good as any

BATCH = Field(key="batch", kind=Sizes(), names=("batch",), defaults=(1,), required=True, always=True, frozen=True)
LENGTH = Field(
    key="length", kind=Sizes(2), names=("query_length", "key_length"), defaults=(NEEDED, NEEDED), required=True, always=True,
    frozen=True, asks={"cross-length": lambda problem: problem.query_length != problem.key_length},
)  # fmt: skip
DTYPE = Field(key="dtype", kind=Dtype(), names=("dtype",), defaults=("float32",), required=True, always=True, frozen=True)
VALUES = Field(
    key="values", kind=OneRecipe(may_be_zero=PLAIN_DISTRIBUTIONS), names=("values",), defaults=(Recipe("gaussian"),),
    required=True, always=True, parameter=False,
)  # fmt: skip
TRANSFORMATIONS = Field(key="edits", kind=Recipes(), names=("transformations",), defaults=((),), parameter=False)


class AttentionProblem(KeyProblem):
    """One attention computation, every semantic spelled out.

    The query is (batch, heads, query_length, width), the key (batch, kv_heads, key_length, width), the value
    (batch, kv_heads, key_length, value_width). ``mask`` is boolean, True where a query may attend; ``bias`` is added to
    the scaled scores; ``causal`` names the alignment of the triangle (top-left: j ≤ i; bottom-right: j ≤ i + Lk − Lq;
    default: not said to the implementation); ``key_lengths`` counts the leading keys that each batch row has;
    ``scale`` None means that no scale is given, so that 1/√width is expected. Query head h reads kv head
    ⌊h · kv_heads / heads⌋. ``transformations`` change the arrays after they were made, in order.
    """

    operation = "attention"
    sizes = ("batch", "heads", "kv_heads", "query_length", "key_length", "width", "value_width")

    kv_heads: int
    width: int
    value_width: int
    dtype: str
    values: Recipe

    BEFORE: ClassVar[tuple[Field, ...]] = (
        BATCH,
        Field(
            key="heads", kind=Sizes(2), names=("heads", "kv_heads"), defaults=(1, NEEDED), required=True, always=True,
            frozen=True, asks={"grouped-heads": lambda problem: problem.heads != problem.kv_heads},
        ),
        LENGTH,
        Field(
            key="width", kind=Sizes(2), names=("width", "value_width"), defaults=(NEEDED, NEEDED), required=True, always=True,
            frozen=True, asks={"value-width": lambda problem: problem.width != problem.value_width},
        ),
        DTYPE,
        VALUES,
    )  # fmt: skip
    BEHIND: ClassVar[tuple[Field, ...]] = (
        Field(key="layout", kind=Word(LAYOUTS), names=("layout",), defaults=("contiguous",), parameter=False),
        TRANSFORMATIONS,
    )

    def check(self) -> None:
        demand_size(self.batch, self.heads, self.query_length, self.width)
        demand_size(self.batch, self.kv_heads, self.key_length, max(self.width, self.value_width))
        super().check()

    @property
    def head_width(self) -> int:
        return self.width

    @property
    def is_whole(self) -> bool:
        return self.heads % self.kv_heads == 0

    def sizes_of_heads(self) -> dict[str, int]:
        return {"group": self.heads // self.kv_heads}

    @property
    def cost(self) -> float:
        return float(self.batch * self.heads * self.query_length * self.key_length * (self.width + self.value_width))

    def head_widths(self) -> dict[str, float]:
        return {"width": self.width, "value_width": self.value_width}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        queries, keys = (self.batch, self.heads, self.query_length), (self.batch, self.kv_heads, self.key_length)
        return {
            "query": (*queries, self.width),
            "key": (*keys, self.width),
            "value": (*keys, self.value_width),
            "output": (*queries, self.value_width),
        }

"""The problem of multi-head attention with given weights: project, split into heads, attend, merge, project."""

from typing import ClassVar

from conformance.problem.attention import BATCH, DTYPE, LENGTH, TRANSFORMATIONS, VALUES
from conformance.problem.base import KeyProblem, demand_size
from conformance.problem.fields import NEEDED, Field, Sizes, Word, demand
from conformance.problem.recipe import Recipe

OUTPUTS = ("none", "plain", "bias")
SOURCES = ("self", "cross", "memory")
WEIGHTS = ("full", "shared")


class MultiHeadProblem(KeyProblem):
    """Multi-head attention: query, key, value of width ``model_width``, weights as (in, out) matrices.

    Q = x_q W_q + b_q is (batch, Lq, inner_width), split into ``heads`` contiguous slices of its last axis; V likewise with
    ``value_inner_width``; each head attends with scale 1/√(inner_width / heads); the heads are put side by side in their
    order and, unless ``output`` is none, multiplied by W_o (+ b_o), back to model_width. ``source`` self: the three inputs
    are one array; memory: key and value are one, the query another; cross: each is its own. ``weights`` shared: one (d, d)
    block for all heads, that is, block-diagonal matrices (model_width == inner widths).
    """

    operation = "multi_head_attention"
    sizes = ("batch", "heads", "query_length", "key_length", "model_width", "inner_width", "value_inner_width")

    model_width: int
    inner_width: int
    value_inner_width: int
    dtype: str
    values: Recipe
    source: str
    weights: str
    projection_bias: bool
    output: str

    BEFORE: ClassVar[tuple[Field, ...]] = (
        BATCH,
        Field(
            key="heads", kind=Sizes(), names=("heads",), defaults=(NEEDED,), required=True, always=True, frozen=True,
            asks={"many-heads": lambda problem: problem.heads > 1},
        ),
        LENGTH,
        Field(key="model", kind=Sizes(), names=("model_width",), defaults=(NEEDED,), required=True, always=True, frozen=True),
        Field(
            key="inner", kind=Sizes(2), names=("inner_width", "value_inner_width"), defaults=(NEEDED, NEEDED), required=True,
            always=True, frozen=True,
            asks={
                "inner-width": lambda problem: not (problem.model_width == problem.inner_width == problem.value_inner_width),
                "value-width": lambda problem: problem.inner_width != problem.value_inner_width,
            },
        ),
        DTYPE,
        VALUES,
        Field(
            key="source", kind=Word(SOURCES), names=("source",), defaults=("self",), always=True, frozen=True,
            asks={
                "cross-attention": lambda problem: problem.source != "self",
                "separate-values": lambda problem: problem.source == "cross",
            },
        ),
        Field(
            key="weights", kind=Word(WEIGHTS), names=("weights",), defaults=("full",), frozen=True,
            asks={"full-weights": lambda problem: problem.weights == "full"},
        ),
        Field(
            key="projection", kind=Word({"plain": False, "bias": True}), names=("projection_bias",), defaults=(False,),
            always=True, frozen=True,
            asks={
                "projection-bias": lambda problem: problem.projection_bias,
                "no-projection-bias": lambda problem: not problem.projection_bias,
            },
        ),
        Field(
            key="output", kind=Word(OUTPUTS), names=("output",), defaults=("plain",), always=True, frozen=True,
            asks={
                "no-output-projection": lambda problem: problem.output == "none",
                "output-bias": lambda problem: problem.output == "bias",
                "no-output-bias": lambda problem: problem.output == "plain",
                "separate-biases": lambda problem: (
                    problem.output != "none" and problem.projection_bias != (problem.output == "bias")
                ),
            },
        ),
    )  # fmt: skip
    BEHIND: ClassVar[tuple[Field, ...]] = (TRANSFORMATIONS,)

    def check(self) -> None:
        demand(
            self.source != "self" or self.query_length == self.key_length,
            f"source=self needs equal lengths, not {self.query_length} and {self.key_length}.",
        )
        demand(
            self.weights == "full" or self.model_width == self.inner_width == self.value_inner_width,
            "weights=shared needs the model width to equal the inner widths.",
        )
        widest = max(self.model_width, self.inner_width, self.value_inner_width)
        demand_size(self.batch, max(self.query_length, self.key_length), widest)
        demand_size(widest, widest)
        super().check()

    @property
    def head_width(self) -> int:
        return self.inner_width // self.heads or 1

    @property
    def is_whole(self) -> bool:
        return self.inner_width % self.heads == 0 == self.value_inner_width % self.heads

    def sizes_of_heads(self) -> dict[str, int]:
        return {"width": self.inner_width // self.heads, "value_width": self.value_inner_width // self.heads}

    @property
    def cost(self) -> float:
        return float(self.batch * self.heads * self.query_length * self.key_length * self.inner_width * 2)

    def head_widths(self) -> dict[str, float]:
        return {f"{name} / heads": getattr(self, name) / self.heads for name in ("inner_width", "value_inner_width")}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        queries, tokens = (self.batch, self.query_length), (self.batch, self.key_length, self.model_width)
        width = self.value_inner_width if self.output == "none" else self.model_width
        return {"query": (*queries, self.model_width), "key": tokens, "value": tokens, "output": (*queries, width)}

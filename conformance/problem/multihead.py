"""The problem of multi-head attention with given weights: project, split into heads, attend, merge, project."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from conformance.dtypes import float_type
from conformance.problem import text as fields_of
from conformance.problem.attention import CAUSAL, MASK_FORMS
from conformance.problem.recipe import Recipe

OUTPUTS = ("none", "plain", "bias")
SOURCES = ("self", "cross", "memory")
WEIGHTS = ("full", "shared")


@dataclass(frozen=True, kw_only=True)
class MultiHeadProblem:
    """Multi-head attention: query, key, value of width ``model_width``, weights as (in, out) matrices.

    Q = x_q W_q + b_q is (batch, Lq, inner_width), split into ``heads`` contiguous slices of its last axis; V likewise with
    ``value_inner_width``; each head attends with scale 1/√(inner_width / heads); the heads are put side by side in their
    order and, unless ``output`` is none, multiplied by W_o (+ b_o), back to model_width. ``source`` self: the three inputs
    are one array; memory: key and value are one, the query another; cross: each is its own. ``weights`` shared: one (d, d)
    block for all heads, that is, block-diagonal matrices (model_width == inner widths).
    """

    operation: ClassVar[str] = "multi_head_attention"

    batch: int = 1
    heads: int
    query_length: int
    key_length: int
    model_width: int
    inner_width: int
    value_inner_width: int
    dtype: str = "float32"
    values: Recipe = Recipe("gaussian")
    source: str = "self"
    weights: str = "full"
    projection_bias: bool = False
    output: str = "plain"
    mask: Recipe | None = None
    causal: str = "none"
    key_lengths: tuple[int, ...] | None = None
    edits: tuple[Recipe, ...] = ()

    FIELDS: ClassVar[tuple[str, ...]] = (
        "batch", "heads", "length", "model", "inner", "dtype", "values", "source", "weights", "projection", "output", "mask",
        "causal", "lengths", "edits",
    )  # fmt: skip

    def __post_init__(self) -> None:
        fields_of.positive(
            batch=self.batch, heads=self.heads, query_length=self.query_length, key_length=self.key_length,
            model_width=self.model_width, inner_width=self.inner_width, value_inner_width=self.value_inner_width,
        )  # fmt: skip
        float_type(self.dtype)
        fields_of.one_of("source", self.source, SOURCES)
        fields_of.one_of("weights", self.weights, WEIGHTS)
        fields_of.one_of("output", self.output, OUTPUTS)
        fields_of.one_of("causal", self.causal, CAUSAL)
        if self.mask is not None:
            fields_of.one_of("the form of mask", self.mask.form, MASK_FORMS)
        fields_of.demand(
            self.source != "self" or self.query_length == self.key_length,
            f"source=self needs equal lengths, not {self.query_length} and {self.key_length}.",
        )
        fields_of.demand(
            self.weights == "full" or self.model_width == self.inner_width == self.value_inner_width,
            "weights=shared needs the model width to equal the inner widths.",
        )
        fields_of.amplitudes(values=self.values, mask=self.mask)
        widest = max(self.model_width, self.inner_width, self.value_inner_width)
        fields_of.size(self.batch, max(self.query_length, self.key_length), widest)
        fields_of.size(widest, widest)
        fields_of.fitting(self.key_lengths, self.batch, self.key_length)

    @cached_property
    def text(self) -> str:
        """The text form, from which ``parse`` makes an equal problem."""
        words = [
            self.operation,
            f"batch={self.batch}",
            f"heads={self.heads}",
            f"length={fields_of.pair(self.query_length, self.key_length)}",
            f"model={self.model_width}",
            f"inner={fields_of.pair(self.inner_width, self.value_inner_width)}",
            f"dtype={self.dtype}",
            f"values={self.values}",
            f"source={self.source}",
        ]
        if self.weights != "full":
            words.append(f"weights={self.weights}")
        words.append(f"projection={'bias' if self.projection_bias else 'plain'}")
        words.append(f"output={self.output}")
        if self.mask is not None:
            words.append(f"mask={self.mask}")
        if self.causal != "none":
            words.append(f"causal={self.causal}")
        if self.key_lengths is not None:
            words.append(f"lengths={','.join(map(str, self.key_lengths))}")
        if self.edits:
            words.append(f"edits={','.join(map(str, self.edits))}")
        return " ".join(words)

    @classmethod
    def from_text(cls, text: str) -> "MultiHeadProblem":
        fields = fields_of.split_fields(text, cls.FIELDS)
        query_length, key_length = fields_of.integers(fields, "length", "/", 2)
        inner_width, value_inner_width = fields_of.integers(fields, "inner", "/", 2)
        projection = fields.get("projection", "plain")
        fields_of.one_of("projection", projection, ("plain", "bias"))
        return cls(
            batch=fields_of.integer(fields, "batch"),
            heads=fields_of.integer(fields, "heads"),
            query_length=query_length,
            key_length=key_length,
            model_width=fields_of.integer(fields, "model"),
            inner_width=inner_width,
            value_inner_width=value_inner_width,
            dtype=fields_of.required(fields, "dtype"),
            values=Recipe.parse(fields_of.required(fields, "values"), "values"),
            source=fields.get("source", "self"),
            weights=fields.get("weights", "full"),
            projection_bias=projection == "bias",
            output=fields.get("output", "plain"),
            mask=fields_of.recipe(fields, "mask"),
            causal=fields.get("causal", "none"),
            key_lengths=fields_of.integers(fields, "lengths", ",") if "lengths" in fields else None,
            edits=fields_of.recipes(fields, "edits"),
        )

    @cached_property
    def digest(self) -> str:
        return fields_of.digest(self.text)

    @cached_property
    def features(self) -> frozenset[str]:
        asked = {
            "mask": self.mask is not None,
            "causal": self.causal != "none",
            "key-lengths": self.key_lengths is not None,
            "cross-attention": self.source != "self",
            "separate-values": self.source == "cross",
            "cross-length": self.query_length != self.key_length,
            "projection-bias": self.projection_bias,
            "no-projection-bias": not self.projection_bias,
            "no-output-projection": self.output == "none",
            "output-bias": self.output == "bias",
            "no-output-bias": self.output == "plain",
            "separate-biases": self.output != "none" and self.projection_bias != (self.output == "bias"),
            "full-weights": self.weights == "full",
            "inner-width": not (self.model_width == self.inner_width == self.value_inner_width),
            "value-width": self.inner_width != self.value_inner_width,
            "many-heads": self.heads > 1,
        }
        return frozenset(name for name, wanted in asked.items() if wanted)

    def but(self, **changes: Any) -> "MultiHeadProblem":
        """The same problem with some fields changed."""
        return replace(self, **changes)

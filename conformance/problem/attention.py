"""The problem of scaled dot-product attention: softmax(scale · Q Kᵀ + bias, over the visible keys) · V."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from conformance.dtypes import float_type
from conformance.problem import text as fields_of
from conformance.problem.recipe import Recipe

CAUSAL = ("none", "default", "top-left", "bottom-right")
LAYOUTS = (
    *("contiguous", "transposed", "strided", "expanded", "reversed", "mixed", "columns", "key-columns", "heads-last"),
    *("batch-last", "packed", "misaligned", "mask-strided", "mask-transposed", "mask-expanded"),
)  # what each means: conformance/values/layouts.py
MASK_FORMS = ("qk", "b11k", "b1qk", "1hqk", "bhqk", "bhq1")


@dataclass(frozen=True, kw_only=True)
class AttentionProblem:
    """One attention computation, every semantic spelled out.

    The query is (batch, heads, query_length, width), the key (batch, kv_heads, key_length, width), the value
    (batch, kv_heads, key_length, value_width). ``mask`` is boolean, True where a query may attend; ``bias`` is added to
    the scaled scores; ``causal`` names the alignment of the triangle (top-left: j ≤ i; bottom-right: j ≤ i + Lk − Lq;
    default: not said to the implementation); ``key_lengths`` counts the leading keys that each batch row has;
    ``scale`` None means that no scale is given, so that 1/√width is due. Query head h reads kv head
    ⌊h · kv_heads / heads⌋. ``edits`` change the arrays after they were made, in order.

    Raises ProblemError for fields that describe no problem.
    """

    operation: ClassVar[str] = "attention"

    batch: int = 1
    heads: int = 1
    kv_heads: int
    query_length: int
    key_length: int
    width: int
    value_width: int
    dtype: str = "float32"
    values: Recipe = Recipe("gaussian")
    mask: Recipe | None = None
    bias: Recipe | None = None
    causal: str = "none"
    key_lengths: tuple[int, ...] | None = None
    scale: float | None = None
    layout: str = "contiguous"
    edits: tuple[Recipe, ...] = ()

    FIELDS: ClassVar[tuple[str, ...]] = (
        "batch", "heads", "length", "width", "dtype", "values", "mask", "bias", "causal", "lengths", "scale", "layout", "edits",
    )  # fmt: skip

    def __post_init__(self) -> None:
        fields_of.positive(
            batch=self.batch, heads=self.heads, kv_heads=self.kv_heads, query_length=self.query_length,
            key_length=self.key_length, width=self.width, value_width=self.value_width,
        )  # fmt: skip
        float_type(self.dtype)
        fields_of.one_of("causal", self.causal, CAUSAL)
        fields_of.one_of("layout", self.layout, LAYOUTS)
        for name, recipe in (("mask", self.mask), ("bias", self.bias)):
            if recipe is not None:
                fields_of.one_of(f"the form of {name}", recipe.form, MASK_FORMS)
        fields_of.amplitudes(values=self.values, mask=self.mask, bias=self.bias)
        fields_of.size(self.batch, self.heads, self.query_length, self.width)
        fields_of.size(self.batch, self.kv_heads, self.key_length, max(self.width, self.value_width))
        fields_of.fitting(self.key_lengths, self.batch, self.key_length)

    @cached_property
    def text(self) -> str:
        """The text form, from which ``parse`` makes an equal problem."""
        words = [
            self.operation,
            f"batch={self.batch}",
            f"heads={fields_of.pair(self.heads, self.kv_heads)}",
            f"length={fields_of.pair(self.query_length, self.key_length)}",
            f"width={fields_of.pair(self.width, self.value_width)}",
            f"dtype={self.dtype}",
            f"values={self.values}",
        ]
        if self.mask is not None:
            words.append(f"mask={self.mask}")
        if self.bias is not None:
            words.append(f"bias={self.bias}")
        if self.causal != "none":
            words.append(f"causal={self.causal}")
        if self.key_lengths is not None:
            words.append(f"lengths={','.join(map(str, self.key_lengths))}")
        if self.scale is not None:
            words.append(f"scale={float(self.scale)!r}")
        if self.layout != "contiguous":
            words.append(f"layout={self.layout}")
        if self.edits:
            words.append(f"edits={','.join(map(str, self.edits))}")
        return " ".join(words)

    @classmethod
    def from_text(cls, text: str) -> "AttentionProblem":
        fields = fields_of.split_fields(text, cls.FIELDS)
        heads, kv_heads = fields_of.integers(fields, "heads", "/", 2)
        query_length, key_length = fields_of.integers(fields, "length", "/", 2)
        width, value_width = fields_of.integers(fields, "width", "/", 2)
        return cls(
            batch=fields_of.integer(fields, "batch"),
            heads=heads,
            kv_heads=kv_heads,
            query_length=query_length,
            key_length=key_length,
            width=width,
            value_width=value_width,
            dtype=fields_of.required(fields, "dtype"),
            values=Recipe.parse(fields_of.required(fields, "values"), "values"),
            mask=fields_of.recipe(fields, "mask"),
            bias=fields_of.recipe(fields, "bias"),
            causal=fields.get("causal", "none"),
            key_lengths=fields_of.integers(fields, "lengths", ",") if "lengths" in fields else None,
            scale=fields_of.number(fields, "scale"),
            layout=fields.get("layout", "contiguous"),
            edits=fields_of.recipes(fields, "edits"),
        )

    @cached_property
    def digest(self) -> str:
        return fields_of.digest(self.text)

    @cached_property
    def features(self) -> frozenset[str]:
        """What an implementation must offer beyond plain attention to be asked this."""
        asked = {
            "mask": self.mask is not None,
            "bias": self.bias is not None,
            "causal": self.causal != "none",
            "key-lengths": self.key_lengths is not None,
            "scale": self.scale is not None,
            "grouped-heads": self.heads != self.kv_heads,
            "value-width": self.width != self.value_width,
            "cross-length": self.query_length != self.key_length,
        }
        return frozenset(name for name, wanted in asked.items() if wanted)

    def but(self, **changes: Any) -> "AttentionProblem":
        """The same problem with some fields changed."""
        return replace(self, **changes)

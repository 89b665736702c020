"""The problem of the sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from conformance.dtypes import float_type
from conformance.errors import cut
from conformance.problem import text as fields_of
from conformance.problem.recipe import Recipe

ARRANGEMENTS = ("interleaved", "concatenated")
FREQUENCIES = ("d", "d/2-1")


@dataclass(frozen=True, kw_only=True)
class SinusoidalProblem:
    """The table PE of ``length`` positions and ``width`` columns, or x + PE for a batch.

    Interleaved, PE[p, 2i] = sin(p ω_i) and PE[p, 2i+1] = cos(p ω_i); concatenated, all the sines, then all the cosines.
    ``frequencies`` d: ω_i = 10000^(−2i/width), as in the paper; d/2-1: ω_i = 10000^(−i/(n − 1)) for n = ⌈width/2⌉, from 1 to
    1/10000, and 1 alone where n is 1. Both fields default: what the implementation has. An odd width keeps the last sine
    without its cosine. ``rows`` are the positions that are judged (None: all). With ``batch`` > 0, ``values`` makes an x of
    (batch, length, width) to which the encoding is added.
    """

    operation: ClassVar[str] = "sinusoidal_encoding"

    length: int
    width: int
    dtype: str = "float32"
    arrangement: str = "default"
    frequencies: str = "default"
    rows: tuple[int, ...] | None = None
    batch: int = 0
    values: Recipe = Recipe("gaussian")

    FIELDS: ClassVar[tuple[str, ...]] = (
        "length", "width", "dtype", "arrangement", "frequencies", "rows", "batch", "values",
    )  # fmt: skip

    def __post_init__(self) -> None:
        fields_of.positive(length=self.length, width=self.width)
        float_type(self.dtype)
        fields_of.one_of("arrangement", self.arrangement, ("default", *ARRANGEMENTS))
        fields_of.one_of("frequencies", self.frequencies, ("default", *FREQUENCIES))
        fields_of.amplitudes(values=self.values)
        fields_of.size(max(self.batch, 1), self.length, self.width)
        fields_of.demand(self.batch >= 0, f"batch={self.batch} must not be negative.")
        fields_of.demand(
            self.rows is None or all(0 <= row < self.length for row in self.rows),
            f"rows={cut(str(self.rows))} must be positions below the length {self.length}.",
        )

    @cached_property
    def text(self) -> str:
        """The text form, from which ``parse`` makes an equal problem."""
        words = [self.operation, f"length={self.length}", f"width={self.width}", f"dtype={self.dtype}"]
        if self.arrangement != "default":
            words.append(f"arrangement={self.arrangement}")
        if self.frequencies != "default":
            words.append(f"frequencies={self.frequencies}")
        if self.rows is not None:
            words.append(f"rows={','.join(map(str, self.rows))}")
        if self.batch:
            words.append(f"batch={self.batch}")
        if self.batch or self.values != Recipe("gaussian"):
            words.append(f"values={self.values}")
        return " ".join(words)

    @classmethod
    def from_text(cls, text: str) -> "SinusoidalProblem":
        fields = fields_of.split_fields(text, cls.FIELDS)
        return cls(
            length=fields_of.integer(fields, "length"),
            width=fields_of.integer(fields, "width"),
            dtype=fields_of.required(fields, "dtype"),
            arrangement=fields.get("arrangement", "default"),
            frequencies=fields.get("frequencies", "default"),
            rows=fields_of.integers(fields, "rows", ",") if "rows" in fields else None,
            batch=fields_of.integer(fields, "batch") if "batch" in fields else 0,
            values=Recipe.parse(fields.get("values", "gaussian.1#0"), "values"),
        )

    @cached_property
    def digest(self) -> str:
        return fields_of.digest(self.text)

    @cached_property
    def features(self) -> frozenset[str]:
        asked = {
            "addition": self.batch > 0,
            "odd-width": self.width % 2 == 1,
            "interleaved": self.arrangement == "interleaved",
            "concatenated": self.arrangement == "concatenated",
        }
        return frozenset(name for name, wanted in asked.items() if wanted)

    def but(self, **changes: Any) -> "SinusoidalProblem":
        """The same problem with some fields changed."""
        return replace(self, **changes)

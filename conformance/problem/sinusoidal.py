"""The problem of the sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

from typing import ClassVar

from conformance.errors import cut
from conformance.problem.attention import DTYPE
from conformance.problem.base import Problem, demand_size
from conformance.problem.fields import NEEDED, Field, IntegerTuple, OneRecipe, Sizes, Word, demand
from conformance.problem.recipe import Recipe

ARRANGEMENTS = ("interleaved", "concatenated")
FREQUENCIES = ("d", "d/2-1")


class SinusoidalProblem(Problem):
    """The table PE of ``length`` positions and ``width`` columns, or x + PE for a batch.

    Interleaved, PE[p, 2i] = sin(p ω_i) and PE[p, 2i+1] = cos(p ω_i); concatenated, all the sines, then all the cosines.
    ``frequencies`` d: ω_i = 10000^(−2i/width), as in the paper; d/2-1: ω_i = 10000^(−i/(n − 1)) for n = ⌈width/2⌉, from 1 to
    1/10000, and 1 alone where n is 1. Both fields default: what the implementation has. An odd width keeps the last sine
    without its cosine. ``rows`` are the positions that are judged (None: all). With ``batch`` > 0, ``values`` makes an x of
    (batch, length, width) to which the encoding is added.
    """

    operation = "sinusoidal_encoding"
    sizes = ("batch", "length", "width")

    length: int
    width: int
    dtype: str
    arrangement: str
    frequencies: str
    rows: tuple[int, ...] | None
    batch: int
    values: Recipe

    BEFORE: ClassVar[tuple[Field, ...]] = (
        Field(key="length", kind=Sizes(), names=("length",), defaults=(NEEDED,), required=True, always=True, frozen=True),
        Field(
            key="width", kind=Sizes(), names=("width",), defaults=(NEEDED,), required=True, always=True, frozen=True,
            asks={"odd-width": lambda problem: problem.width % 2 == 1},
        ),
        DTYPE,
        Field(
            key="arrangement", kind=Word(("default", *ARRANGEMENTS)), names=("arrangement",), defaults=("default",), frozen=True,
            asks={
                "interleaved": lambda problem: problem.arrangement == "interleaved",
                "concatenated": lambda problem: problem.arrangement == "concatenated",
            },
        ),
        Field(key="frequencies", kind=Word(("default", *FREQUENCIES)), names=("frequencies",), defaults=("default",)),
        Field(key="rows", kind=IntegerTuple(), names=("rows",), defaults=(None,), frozen=True),
        Field(
            key="batch", kind=Sizes(least=0), names=("batch",), defaults=(0,), frozen=True,
            asks={"addition": lambda problem: problem.batch > 0},
        ),
        Field(
            key="values", kind=OneRecipe(may_be_zero=()), names=("values",), defaults=(Recipe("gaussian"),), parameter=False,
            said=lambda problem: problem.batch > 0 or problem.values != Recipe("gaussian"),
        ),
    )  # fmt: skip

    def check(self) -> None:
        demand_size(max(self.batch, 1), self.length, self.width)
        demand(
            self.rows is None or all(0 <= row < self.length for row in self.rows),
            f"rows={cut(str(self.rows))} must be positions below the length {self.length}.",
        )

    @property
    def work(self) -> int:
        return max(1, self.batch) * self.length * self.width

    @property
    def cost(self) -> float:
        return 50.0 * self.length * self.width  # a sine of an extended number is worth some fifty products

    @property
    def longest(self) -> int:
        return self.length

    @property
    def is_drawn(self) -> bool:
        return self.batch > 0 and super().is_drawn

    def head_widths(self) -> dict[str, float]:
        return {"width": self.width}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        added = (self.batch,) if self.batch else ()
        judged = self.length if self.rows is None else len(self.rows)
        return {"x": (*added, self.length, self.width), "output": (*added, judged, self.width)}

    def in_words(self) -> str:
        return f"{self.length} positions of {self.width} columns in {self.dtype}"

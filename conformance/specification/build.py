"""Short notation for designed problems: a palette shape or sizes, recipes as texts, one problem in several dtypes."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from conformance.numerics.dtypes import DTYPES
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.specification.palette import MULTI_HEAD_SHAPES, SHAPES

ALL = DTYPES
HALF = ("float16", "bfloat16")
F32 = ("float32",)
F32_HALF = ("float32", *HALF)
F32_BF16 = ("float32", "bfloat16")
NO_F16 = ("float64", "float32", "bfloat16")
NO_BF16 = ("float64", "float32", "float16")

IN_16_BITS = ("fused_q", "fused_qk", "unfused", "low")  # profiles that round scores, or what they are made of, to 16 bits

Sizes = tuple[int, int, int, int, int, int, int]  # in the order of _SIZES
_Kind = TypeVar("_Kind", bound=Problem)
_SIZES = ("batch", "heads", "kv_heads", "query_length", "key_length", "width", "value_width")


def attention(
    shape: str | Sizes,
    dtypes: Sequence[str] = F32,
    *,
    values: str = "spread.1#1",
    mask: str | None = None,
    bias: str | None = None,
    transformations: Iterable[str] = (),
    **fields: Any,
) -> list[AttentionProblem]:
    """The problem of a palette shape, or of sizes, in each of ``dtypes``; values, mask, bias and transformations as recipe
    texts."""
    sizes = SHAPES[shape].fields if isinstance(shape, str) else dict(zip(_SIZES, shape, strict=True))
    problem = AttentionProblem(
        **sizes,
        values=Recipe.parse(values, "values"),
        mask=None if mask is None else Recipe.parse(mask, "mask"),
        bias=None if bias is None else Recipe.parse(bias, "bias"),
        transformations=tuple(Recipe.parse(transformation, "transformations") for transformation in transformations),
        **fields,
    )
    return [problem.but(dtype=dtype) for dtype in dtypes]


def multi_head(
    shape: str,
    dtypes: Sequence[str] = F32,
    *,
    values: str = "gaussian.1#1",
    mask: str | None = None,
    transformations: Iterable[str] = (),
    **fields: Any,
) -> list[MultiHeadProblem]:
    """The problem of a palette shape of multi-head attention in each of ``dtypes``."""
    problem = MultiHeadProblem(
        **MULTI_HEAD_SHAPES[shape].fields,
        values=Recipe.parse(values, "values"),
        mask=None if mask is None else Recipe.parse(mask, "mask"),
        transformations=tuple(Recipe.parse(transformation, "transformations") for transformation in transformations),
        **fields,
    )
    return [problem.but(dtype=dtype) for dtype in dtypes]


def sinusoidal(length: int, width: int, dtypes: Sequence[str] = F32, **fields: Any) -> list[SinusoidalProblem]:
    """The sinusoidal encoding of ``length`` positions and ``width`` columns in each of ``dtypes``."""
    return [SinusoidalProblem(length=length, width=width, dtype=dtype, **fields) for dtype in dtypes]


def joined(*lists: Iterable[_Kind]) -> list[_Kind]:
    """All problems of all lists, each once."""
    return list(dict.fromkeys(problem for problems in lists for problem in problems))

"""Short notation for designed problems: a palette shape or sizes, recipes as texts, one problem in several dtypes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from conformance.features import examples
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

Sizes = tuple[int, int, int, int, int, int, int]  # in the order of AttentionProblem.sizes
_Kind = TypeVar("_Kind", bound=Problem)


def attention(
    shape: str | Sizes, dtypes: Sequence[str] = F32, *, values: str = "spread.1#1", **fields: Any
) -> list[AttentionProblem]:
    """The problem of a palette shape, or of sizes, in each of ``dtypes``; values, mask, bias and transformations as recipe
    texts."""
    sizes = SHAPES[shape].fields if isinstance(shape, str) else dict(zip(AttentionProblem.sizes, shape, strict=True))
    problem = AttentionProblem(**sizes, **_parsed(values=values, **fields))
    return [problem.but(dtype=dtype) for dtype in dtypes]


def multi_head(shape: str, dtypes: Sequence[str] = F32, *, values: str = "gaussian.1#1", **fields: Any) -> list[MultiHeadProblem]:
    """The problem of a palette shape of multi-head attention in each of ``dtypes``, likewise."""
    problem = MultiHeadProblem(**MULTI_HEAD_SHAPES[shape].fields, **_parsed(values=values, **fields))
    return [problem.but(dtype=dtype) for dtype in dtypes]


def _parsed(transformations: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """The fields with recipes of texts."""
    texts = {name: fields[name] for name in ("values", "mask", "bias") if fields.get(name) is not None}
    recipes = {name: Recipe.parse(text, name) for name, text in texts.items()}
    return {
        **fields,
        **recipes,
        "transformations": tuple(Recipe.parse(transformation, "transformations") for transformation in transformations),
    }


def sinusoidal(length: int, width: int, dtypes: Sequence[str] = F32, **fields: Any) -> list[SinusoidalProblem]:
    """The sinusoidal encoding of ``length`` positions and ``width`` columns in each of ``dtypes``."""
    return [SinusoidalProblem(length=length, width=width, dtype=dtype, **fields) for dtype in dtypes]


def with_and_without(operation: str, asked: Mapping[int, dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Fields of calls that ask for something, by the seed of their values, each with one that asks for nothing behind it: what is
    kept of the first must not show in the second. With ``seed`` come the examples that features bring, one behind the other."""
    each = [(number, fields) for number, one in asked.items() for fields in (one, {})]
    further = [(seed, fields) for fields in (*examples(operation), {})]
    return [{"values": f"gaussian.1#{number}", **fields} for number, fields in (*each, *further)]


def joined(*lists: Iterable[_Kind]) -> list[_Kind]:
    """All problems of all lists, each once."""
    return list(dict.fromkeys(problem for problems in lists for problem in problems))

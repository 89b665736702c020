"""Random problems of all operations, wider than what a conformance run draws: any shape from 1 to 300, any combination."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from conformance.features import features
from conformance.operations import operation_of, operations
from conformance.problem import MASK_FORMS, AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.problem.multihead import SOURCES
from conformance.specification.draw import ALL_DTYPES
from conformance.specification.palette import SHAPES

_T = TypeVar("_T")


class Dice:
    """Philox4x64 keyed by the soak test's seed and the problem's number."""

    def __init__(self, seed: int, number: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(key=np.array([seed, number], dtype=np.uint64)))

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.between(0, len(choices) - 1)]

    def often(self, probability: float) -> bool:
        return bool(self._generator.random() < probability)

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self._generator.integers(low, high + 1))

    def size(self, low: int, high: int) -> int:
        """A whole number, each octave as likely as the others."""
        return min(high, int(low * ((high + 1) / low) ** self._generator.random()))

    def seed(self) -> int:
        return self.between(0, 2**31 - 1)


LONGEST, WIDEST = 300, 128
TILE_EDGES = (63, 64, 65, 127, 128, 129, 257)
# Of B·H·Lq·Lk·(d + dv); the expected values of float64 are computed in long double, for which there is no fast matrix product.
MOST_WORK = {"float64": 200_000}
MOST_WORK_OTHERS = 2_000_000
SHARED_SHAPES = ("square", "prime", "grouped")  # those at which frameworks that compile take part

# Distributions with the arguments that keep every entry within the range of float16; other dtypes get the larger ones too.
DISTRIBUTIONS: dict[str, tuple[float | None, ...]] = {
    "gaussian": (None, 0.1, 3.0),
    "spread": (None,),
    "heavy": (None,),
    "peaked": (None,),
    "flat": (None,),
    "frontier": (None,),
    "signatures": (None,),
    "zero-query": (None,),
    "subnormal": (None,),
    "large-products": (None,),
    "offset": (10.0, 1000.0),
    "all-low": (-100.0, -1000.0),
}
LARGER: dict[str, tuple[float | None, ...]] = {"offset": (1e4, None), "all-low": (-1e4, None)}
MASKS = ("random", "right-padding", "left-padding", "one-key", "band", "empty-rows", "all")
BIASES = ("gaussian", "holes", "distance", "row-constant", "low")
SCALES = (1.0, 0.03, 0.5, 4.0)
TRANSFORMATIONS = (
    "hidden-value", "hidden-key", "loud-hidden", "loud-value", "low-visible", "put-zeros", "shrink-query", "value-between",
    "negate-query-and-key", "equal-keys", "duplicate-keys", "zero-channels", "perturb-query", "scale-value", "suffix",
)  # fmt: skip
CAUSAL_TRANSFORMATIONS = tuple(
    transformation for transformation in TRANSFORMATIONS if transformation != "duplicate-keys"
)  # twice as many keys lie elsewhere under a triangle
MULTI_HEAD_TRANSFORMATIONS = ("loud-hidden", "permute-heads")


def draw(seed: int, number: int) -> Problem:
    """Problem ``number`` of the soak test with ``seed``."""
    dice = Dice(seed, number)
    shares = sorted((one.soak_share, name) for name, one in operations().items() if one.soak_share)
    places = [name for share, name in shares for _ in range(share)]
    number = dice.between(1, len(places))
    name = places[number - 1]
    return operation_of(name).soaked(dice, number - places.index(name))


def of_attention(dice: Dice) -> AttentionProblem:
    dtype = dice.one_of(ALL_DTYPES)
    batch, kv_heads = dice.between(1, 3), dice.between(1, 3)
    heads = kv_heads * dice.one_of((1, 1, 2, 3))
    width = dice.size(1, WIDEST)
    value_width = width if dice.often(0.7) else dice.size(1, WIDEST)
    query_length, key_length = _lengths(dice, MOST_WORK.get(dtype, MOST_WORK_OTHERS) // (batch * heads * (width + value_width)))
    causal = dice.one_of(("none", "none", "top-left", "bottom-right"))
    transformation = dice.one_of(TRANSFORMATIONS if causal == "none" else CAUSAL_TRANSFORMATIONS)
    problem = AttentionProblem(
        batch=batch, heads=heads, kv_heads=kv_heads, query_length=query_length, key_length=key_length, width=width,
        value_width=value_width, dtype=dtype, values=_distribution(dice, dtype),
        mask=_mask(dice, dice.one_of(MASK_FORMS), key_length) if dice.often(0.5) else None,
        bias=_bias(dice, dice.one_of(MASK_FORMS)) if dice.often(0.4) else None,
        causal=causal,
        key_lengths=tuple(dice.between(0, key_length) for _ in range(batch)) if dice.often(0.2) else None,
        scale=dice.one_of(SCALES) if dice.often(0.3) else None,
        layout=dice.one_of(("transposed", "strided", "expanded", "reversed")) if dice.often(0.2) else "contiguous",
        transformations=(Recipe(transformation, dice.seed()),) if dice.often(0.4) else (),
    )  # fmt: skip
    return _with_further(dice, problem)


def _with_further(dice: Dice, problem: Problem) -> Any:
    """Now and then with features that draw for themselves; transformations, which may change how many tokens there are, only
    beside those to which that is nothing."""
    for feature in features(problem.operation):
        if dice.often(0.1) and not (feature.positional and problem.transformations):
            value = feature.drawn(problem, dice.between)
            problem = problem if value == feature.default else problem.but(**{feature.argument: value})
    return problem


def of_shared_shape(dice: Dice) -> AttentionProblem:
    """A shape of the palette, masks and biases at full size: few combinations, so that each is compiled once."""
    dtype, shape = dice.one_of(ALL_DTYPES), SHAPES[dice.one_of(SHARED_SHAPES)]
    return AttentionProblem(
        **shape.fields, dtype=dtype, values=_distribution(dice, dtype),
        mask=_mask(dice, "bhqk", shape.key_length) if dice.often(0.5) else None,
        bias=_bias(dice, "bhqk") if dice.often(0.4) else None,
        causal=dice.one_of(("none", "none", "top-left", "bottom-right")),
        scale=dice.one_of(SCALES) if dice.often(0.3) else None,
    )  # fmt: skip


def _lengths(dice: Dice, most_pairs: int) -> tuple[int, int]:
    """Query and key length, equal in half of the cases, at the edges of tiles in many; the longer one is halved if it must be."""

    def length() -> int:
        return dice.one_of(TILE_EDGES) if dice.often(0.2) else dice.size(1, LONGEST)

    query_length = length()
    key_length = query_length if dice.often(0.5) else length()
    while query_length * key_length > max(1, most_pairs):
        if query_length == key_length:
            query_length = key_length = query_length // 2
        elif query_length > key_length:
            query_length //= 2
        else:
            key_length //= 2
    return query_length, key_length


def _distribution(dice: Dice, dtype: str) -> Recipe:
    name = dice.one_of(tuple(DISTRIBUTIONS))
    arguments = DISTRIBUTIONS[name] + (() if dtype == "float16" else LARGER.get(name, ()))
    return Recipe(name, dice.seed(), argument=dice.one_of(arguments))


def _mask(dice: Dice, form: str, key_length: int) -> Recipe:
    kinds = (*MASKS, "first-tile") if key_length > 64 and form != "bhq1" else MASKS
    return Recipe(dice.one_of(kinds), dice.seed(), form)


def _bias(dice: Dice, form: str) -> Recipe:
    return Recipe(dice.one_of(BIASES), dice.seed(), form)


def of_multi_head(dice: Dice) -> MultiHeadProblem:
    heads, batch, width = dice.between(1, 6), dice.between(1, 3), dice.size(1, 24)
    model = heads * width if dice.often(0.6) else dice.size(1, 96)
    inner = heads * width
    value_inner = inner if dice.often(0.7) else heads * dice.size(1, 24)
    source = dice.one_of(SOURCES)
    query_length = dice.size(1, 64)
    key_length = query_length if source == "self" else dice.size(1, 64)
    masked = dice.often(0.4)
    problem = MultiHeadProblem(
        batch=batch, heads=heads, query_length=query_length, key_length=key_length, model_width=model, inner_width=inner,
        value_inner_width=value_inner, dtype=dice.one_of(ALL_DTYPES),
        values=Recipe("gaussian", dice.seed(), argument=dice.one_of((None, 0.3, 3.0))), source=source,
        weights="shared" if model == inner == value_inner and dice.often(0.3) else "full",
        projection_bias=dice.often(0.5), output=dice.one_of(("none", "plain", "bias")),
        mask=_mask(dice, dice.one_of(MASK_FORMS), key_length) if masked else None,
        causal=dice.one_of(("none", "none", "top-left")),
        key_lengths=tuple(dice.between(1, key_length) for _ in range(batch)) if dice.often(0.2) else None,
        transformations=(Recipe(dice.one_of(MULTI_HEAD_TRANSFORMATIONS), dice.seed()),) if dice.often(0.3) else (),
    )  # fmt: skip
    return cast(MultiHeadProblem, _with_further(dice, problem))


def of_sinusoidal(dice: Dice) -> SinusoidalProblem:
    length = dice.size(1, 20_000)
    width = dice.size(1, max(1, min(1024, 100_000 // length)))
    return SinusoidalProblem(
        length=length, width=width if dice.often(0.1) else 2 * max(1, width // 2), dtype=dice.one_of(ALL_DTYPES),
        batch=dice.one_of((0, 0, 2)), values=Recipe("gaussian", dice.seed()),
    )  # fmt: skip

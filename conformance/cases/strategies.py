"""Hypothesis strategies: from what a requirement allows (``Draw``) to examples, each several problems of one description.

What is drawn is small whole numbers: an index into each list of choices, sizes, a seed. Arrays come later, from the problem's
text. The variants of a description share whatever a compiling framework compiles for (shapes, dtype, mask form, alignment)
and differ in value distribution, mask kind, transformation, scale and seeds, so that one description, which costs Hypothesis half
a millisecond, is worth several problems.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from conformance.numerics.philox import Stream
from conformance.operations import operation_of
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.specification.draw import AnyDraw, Draw, MultiHeadDraw, SinusoidalDraw
from conformance.specification.palette import MULTI_HEAD_SHAPE_SETS, MULTI_HEAD_SHAPES, SHAPE_SETS, SHAPES, SINUSOIDAL_SIZES

VARIANTS = 8  # problems of one description
_SEEDS = 1 << 20  # seeds drawn; variant v of seed s has the seed s · VARIANTS + v, so that no two share arrays
Sizes = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """Problems of one drawn description; ``free`` where their shape is not of the palette."""

    problems: tuple[Problem, ...]
    free: bool = False


def examples(draw: AnyDraw, free: bool) -> st.SearchStrategy[Example]:
    """Examples of what ``draw`` allows, in palette shapes or in free ones."""
    found: st.SearchStrategy[Example] = operation_of(draw.operation).examples(draw, free)
    return found


def described(
    sizes: st.SearchStrategy[Sizes],
    choices: Mapping[str, Sequence[Any]],
    build: Callable[[Sizes, Mapping[str, Any], int, int], Problem],
    free: bool,
) -> st.SearchStrategy[Example]:
    """Draws sizes, one of each list of choices and a seed, and builds the variants; lists of one are not drawn from."""
    open_choices = {name: options for name, options in choices.items() if len(options) > 1}
    settled = {name: options[0] for name, options in choices.items() if len(options) == 1}

    def example(drawn: tuple[Any, ...]) -> Example:
        size, seed, *indices = drawn
        chosen = settled | {name: options[i] for (name, options), i in zip(open_choices.items(), indices, strict=True)}
        return Example(tuple(build(size, chosen, seed, variant) for variant in range(VARIANTS)), free)

    indices = (st.integers(0, len(options) - 1) for options in open_choices.values())
    return st.tuples(sizes, st.integers(0, _SEEDS - 1), *indices).map(example)


# ---------------------------------------------------------------------------------------------------------- attention


def of_attention(draw: Draw, free: bool) -> st.SearchStrategy[Example]:
    palette = st.sampled_from([SHAPES[name].fields for name in SHAPE_SETS[draw.shapes]])
    sizes = _FREE.get(draw.shapes, palette) if free else palette
    return described(sizes, _attention_choices(draw), lambda *told: _attention_problem(draw, *told), free)


def _attention_choices(draw: Draw) -> dict[str, Sequence[Any]]:
    """What is common to the variants of a description; ``mask`` and ``bias`` say whether there is one."""
    masked, biased = _presence(draw.masks), _presence(draw.biases)
    return {
        "dtype": draw.dtypes,
        "causal": draw.causal,
        "layout": draw.layouts,
        "mask": masked,
        "form": draw.forms if True in masked else ("",),
        "bias": biased,
        "bias_form": draw.bias_forms if True in biased else ("",),
        "turn": range(_turns(draw.distributions, draw.masks, draw.biases, draw.transformations)),
        **dict(draw.further),
    }


def _presence(recipes: Sequence[str]) -> tuple[bool, ...]:
    return tuple(dict.fromkeys(recipe != "" for recipe in recipes))


def _turns(*lists: Sequence[Any]) -> int:
    """How many starts into the lists, which the variants go through in step, are worth drawing."""
    return max(len(options) for options in lists)


def _attention_problem(draw: Draw, sizes: Sizes, chosen: Mapping[str, Any], seed: int, variant: int) -> AttentionProblem:
    turn, number = chosen["turn"] + variant, seed * VARIANTS + variant
    transformation = _pick(draw.transformations, turn)
    return AttentionProblem(
        **sizes,
        dtype=chosen["dtype"],
        values=_recipe(_pick(draw.distributions, turn), number),
        mask=_recipe(_pick(tuple(filter(None, draw.masks)), turn), number, chosen["form"]) if chosen["mask"] else None,
        bias=_recipe(_pick(tuple(filter(None, draw.biases)), turn), number, chosen["bias_form"]) if chosen["bias"] else None,
        causal=chosen["causal"],
        key_lengths=_lengths(sizes, number) if draw.key_lengths else None,
        scale=_pick(draw.scales, turn),
        layout=chosen["layout"],
        transformations=(_recipe(transformation, number),) if transformation else (),
        **_further(draw, chosen, number),
    )


def _further(draw: Draw | MultiHeadDraw, chosen: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The fields of other features; a recipe gets the seed."""
    described = {field.key: field for field in operation_of(draw.operation).problem.fields()}
    fields: dict[str, Any] = {}
    for key, _ in draw.further:
        if chosen[key]:
            fields |= zip(described[key].names, described[key].kind.read(chosen[key], key), strict=True)
    return {name: replace(value, seed=seed) if isinstance(value, Recipe) else value for name, value in fields.items()}


def _pick(options: Sequence[Any], turn: int) -> Any:
    return options[turn % len(options)]


_PARSED: dict[str, Recipe] = {}


def _recipe(text: str, seed: int, form: str = "") -> Recipe:
    """The recipe of a text such as ``random.1*0.3``, with seed and form."""
    if text not in _PARSED:
        _PARSED[text] = Recipe.parse(text, "a recipe of a draw")
    parsed = _PARSED[text]
    return Recipe(parsed.name, seed, form, parsed.argument, parsed.version)


def _lengths(sizes: Sizes, seed: int) -> tuple[int, ...]:
    """Key lengths 1 … Lk, one per batch row."""
    return tuple((1 + Stream(seed, "lengths").below(sizes["key_length"], sizes["batch"])).tolist())


# --------------------------------------------------------------------------------------------------------- free shapes


def _sizes(
    lengths: st.SearchStrategy[tuple[int, int]],
    heads: st.SearchStrategy[tuple[int, int]],
    widths: st.SearchStrategy[tuple[int, int]],
    batches: int = 3,
) -> st.SearchStrategy[Sizes]:
    def named(drawn: tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]) -> Sizes:
        batch, (heads, kv_heads), (query_length, key_length), (width, value_width) = drawn
        return {
            "batch": batch, "heads": heads, "kv_heads": kv_heads, "query_length": query_length, "key_length": key_length,
            "width": width, "value_width": value_width,
        }  # fmt: skip

    return st.tuples(st.integers(1, batches), heads, lengths, widths).map(named)


def _twice(number: int) -> tuple[int, int]:
    return number, number


_UNEQUAL = st.tuples(st.integers(1, 11), st.integers(1, 11))
_PLAIN = st.integers(1, 3).map(_twice)
_GROUPED = st.tuples(st.integers(1, 3), st.integers(2, 3)).map(lambda drawn: (drawn[0] * drawn[1], drawn[0]))
_WIDTH = st.integers(1, 24).map(_twice)
_SQUARE = st.integers(1, 19).map(_twice)
_ANY = st.tuples(st.integers(1, 19), st.integers(1, 23))
_WIDE = _UNEQUAL.map(lambda drawn: (drawn[0], drawn[0] + drawn[1]))
_TALL = _UNEQUAL.map(lambda drawn: (drawn[0] + drawn[1], drawn[0]))

# Shapes of which no two need be equal, all within palette.LARGEST; sets of the palette that are not here stay as they are.
_FREE: dict[str, st.SearchStrategy[Sizes]] = {
    "any": _sizes(_ANY, _PLAIN, _WIDTH),
    "core": _sizes(_ANY, _PLAIN, _WIDTH),
    "4-wide": _sizes(_ANY, _PLAIN, st.integers(4, 24).map(_twice)),
    "prime": _sizes(_ANY, _PLAIN, _WIDTH),
    "small": _sizes(st.tuples(st.integers(1, 3), st.integers(1, 3)), _PLAIN, st.integers(1, 3).map(_twice)),
    "square": _sizes(_SQUARE, _PLAIN, _WIDTH),
    "wide": _sizes(_WIDE, _PLAIN, _WIDTH),
    "tall": _sizes(_TALL, _PLAIN, _WIDTH),
    "unequal": _sizes(_WIDE | _TALL, _PLAIN, _WIDTH),
    "decode": _sizes(st.tuples(st.just(1), st.integers(2, 100)), _PLAIN, _WIDTH),
    "tile": _sizes(
        st.tuples(st.integers(1, 72), st.integers(65, 72)), st.just((1, 1)), st.integers(1, 16).map(_twice), batches=1
    ),
    "value-width": _sizes(_ANY, _PLAIN, st.tuples(st.integers(1, 12), st.integers(1, 12)).map(lambda d: (d[0], d[0] + d[1]))),
    "grouped": _sizes(_UNEQUAL, _GROUPED, _WIDTH),
    "grouped-square": _sizes(st.integers(1, 11).map(_twice), _GROUPED, _WIDTH),
}


# --------------------------------------------------------------------------------------------------------- multi-head


def of_multi_head(draw: MultiHeadDraw, free: bool) -> st.SearchStrategy[Example]:
    palette = st.sampled_from([MULTI_HEAD_SHAPES[name].fields for name in MULTI_HEAD_SHAPE_SETS[draw.shapes]])
    sizes = _FREE_MULTI_HEAD[draw.shapes] if free else palette
    return described(sizes, _multi_head_choices(draw), lambda *told: _multi_head_problem(draw, *told), free)


def _multi_head_choices(draw: MultiHeadDraw) -> dict[str, Sequence[Any]]:
    masked = _presence(draw.masks)
    return {
        "dtype": draw.dtypes,
        "source": draw.sources,
        "weights": draw.weights,
        "projection_bias": draw.projection_bias,
        "output": draw.outputs,
        "causal": draw.causal,
        "mask": masked,
        "form": draw.forms if True in masked else ("",),
        "turn": range(_turns(draw.masks, draw.transformations)),
        **dict(draw.further),
    }


def _multi_head_problem(
    draw: MultiHeadDraw, sizes: Sizes, chosen: Mapping[str, Any], seed: int, variant: int
) -> MultiHeadProblem:
    turn, number = chosen["turn"] + variant, seed * VARIANTS + variant
    transformation = _pick(draw.transformations, turn)
    return MultiHeadProblem(
        **sizes,
        dtype=chosen["dtype"],
        values=_recipe("gaussian.1", number),
        source=chosen["source"],
        weights=chosen["weights"],
        projection_bias=chosen["projection_bias"],
        output=chosen["output"],
        mask=_recipe(_pick(tuple(filter(None, draw.masks)), turn), number, chosen["form"]) if chosen["mask"] else None,
        causal=chosen["causal"],
        key_lengths=_lengths(sizes, number) if draw.key_lengths else None,
        transformations=(_recipe(transformation, number),) if transformation else (),
        **_further(draw, chosen, number),
    )


def _multi_head_sizes(
    heads: st.SearchStrategy[int], lengths: st.SearchStrategy[tuple[int, int]], inner: bool = False
) -> st.SearchStrategy[Sizes]:
    def named(drawn: tuple[int, int, tuple[int, int], int, int, int]) -> Sizes:
        batch, heads, (query_length, key_length), width, value_width, model = drawn
        widths = (model, heads * width, heads * value_width) if inner else (heads * width,) * 3
        names = ("model_width", "inner_width", "value_inner_width")
        lengths = {"query_length": query_length, "key_length": key_length}
        return {"batch": batch, "heads": heads, **lengths, **dict(zip(names, widths, strict=True))}

    width = st.integers(1, 6)
    return st.tuples(st.integers(1, 3), heads, lengths, width, width, st.integers(1, 16)).map(named)


_FREE_MULTI_HEAD: dict[str, st.SearchStrategy[Sizes]] = {
    "self": _multi_head_sizes(st.integers(1, 4), st.integers(1, 9).map(_twice)),
    "cross": _multi_head_sizes(st.integers(1, 4), _UNEQUAL),
    "one-head": _multi_head_sizes(st.just(1), st.integers(1, 9).map(_twice)),
    "many": _multi_head_sizes(st.integers(5, 12), st.integers(1, 7).map(_twice)),
    "inner": _multi_head_sizes(st.integers(1, 4), st.integers(1, 9).map(_twice), inner=True),
}


# --------------------------------------------------------------------------------------------------------- sinusoidal


def of_sinusoidal(draw: SinusoidalDraw, free: bool) -> st.SearchStrategy[Example]:
    return described(_sinusoidal_sizes(draw, free), {"dtype": draw.dtypes}, _sinusoidal_problem, free)


def _sinusoidal_sizes(draw: SinusoidalDraw, free: bool) -> st.SearchStrategy[Sizes]:
    tables = st.sampled_from(SINUSOIDAL_SIZES)
    if free:
        tables = st.tuples(st.integers(1, draw.longest), st.integers(1, draw.widest // 2).map(lambda half: 2 * half))
    return st.tuples(st.integers(1, 3), tables).map(
        lambda drawn: {"batch": drawn[0], "length": drawn[1][0], "width": drawn[1][1]}
    )


def _sinusoidal_problem(sizes: Sizes, chosen: Mapping[str, Any], seed: int, variant: int) -> SinusoidalProblem:
    return SinusoidalProblem(**sizes, dtype=chosen["dtype"], values=_recipe("gaussian.1", seed * VARIANTS + variant))

"""Sizes of every class, each beside each other one and beside each argument: problems of the tables that ``covering`` makes.

In the quick tier the classes up to a tile of 128 meet; in the full one all. Where each shape costs a compilation, few rows are
asked: each size in each dimension, and each argument.
"""

import csv
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.specification.build import HALF
from conformance.specification.requirement import Facts, Requirement
from conformance.specification.size_classes import CLASSES
from conformance.specification.size_space import ARGUMENT, ATTENTION, FEW, FOLDER, LAYERS, TIER, Space

_DISTRIBUTIONS = ("spread.1", "gaussian.1", "signatures.1", "gaussian.1")
_SOURCE = (
    "Kuhn, Wallace and Gallo 2004, Software Fault Interactions and Implications for Software Testing (pairs find most faults)"
)
_EXEMPT = "Some have one key, which takes all the weight of any model, or one head."
_BLIND = ("mean", "argmax", "uniform")
_BLIND_TO_HEADS = (*_BLIND, "heads")  # of one key head, where one key is visible
ADAPTS_TO = "the tier, and whether each shape costs a compilation"


@cache
def _lines(file: str) -> tuple[dict[str, str], ...]:
    with (FOLDER / file).open(newline="", encoding="utf-8") as table:
        return tuple(csv.DictReader(table))


def _problems(space: Space, wanted: Callable[[dict[str, str]], bool], asked: Callable[[str], bool]) -> Iterator[Problem]:
    """The rows that are wanted, of arguments that are asked, in float32, cheap ones first."""
    make = _attention if space is ATTENTION else _layer
    chosen = [(number, line) for number, line in enumerate(_lines(space.file)) if wanted(line) and asked(line[ARGUMENT])]
    chosen.sort(key=lambda pair: space.work({name: int(pair[1][name]) for name in space.dimensions}))
    yield from (make(number, line) for number, line in chosen)


def _attention(number: int, line: dict[str, str]) -> AttentionProblem:
    sizes: dict[str, Any] = {name: int(line[name]) for name in ATTENTION.dimensions}
    heads = sizes["kv_heads"] * sizes.pop("group")
    distribution = _DISTRIBUTIONS[number % len(_DISTRIBUTIONS)] if sizes["batch"] * heads <= 1000 else "spread.1"
    problem = AttentionProblem(**sizes, heads=heads, values=Recipe.parse(f"{distribution}#{number}", "values"))
    return problem.but(**_arguments(number, line[ARGUMENT], problem))


def _layer(number: int, line: dict[str, str]) -> MultiHeadProblem:
    sizes: dict[str, Any] = {name: int(line[name]) for name in LAYERS.dimensions}
    heads, width, value_width = sizes["heads"], sizes.pop("width"), sizes.pop("value_width")
    same = sizes["query_length"] == sizes["key_length"]
    problem = MultiHeadProblem(
        **sizes,
        inner_width=heads * width,
        value_inner_width=heads * value_width,
        values=Recipe.parse(f"gaussian.1#{number}", "values"),
        source="self" if same else ("cross", "memory")[number % 2],
        projection_bias=number % 3 == 0,
        output=("plain", "bias")[number % 2],
    )
    return problem.but(**_arguments(number, line[ARGUMENT], problem))


def _arguments(number: int, words: str, problem: AttentionProblem | MultiHeadProblem) -> dict[str, Any]:
    """The fields for arguments in words, such that some row sees a key."""
    fields: dict[str, Any] = {}
    for word in words.split(" + "):
        kind, _, form = word.partition(" ")
        if kind == "mask":
            # beside a triangle a row of few keys must keep its first one; of the form that hides queries, all of a single one
            recipe = "right-padding.1" if "left" in words and problem.query_length < 4 else "random.1*0.7"
            if form == "bhq1":
                recipe = "empty-rows.1" if problem.query_length > 1 else "all.1"
            name, _, argument = recipe.partition("*")
            fields["mask"] = Recipe.parse(f"{name}:{form}{'*' if argument else ''}{argument}#{number}", "mask")
        elif kind == "bias":
            fields["bias"] = Recipe.parse(f"gaussian.1:{form}#{number}", "bias")
        elif word in ("top-left", "bottom-right"):
            fields["causal"] = word
        elif word == "key lengths":
            keys = problem.key_length
            cycle = (keys, (keys - 1) // 16 * 16 or (keys - 1) // 8 * 8 or keys, keys - keys // 3)  # all, whole tiles, some
            first = number % 3 if words == "key lengths" else 0
            fields["key_lengths"] = tuple(max(1, cycle[(first + row) % 3]) for row in range(problem.batch))
        elif word == "scale":
            fields["scale"] = 0.3
        elif word != "plain":
            fields["layout"] = word
    return fields


def _of_kind(kind: str) -> Callable[[str], bool]:
    """Which arguments belong to a requirement: those with a mask, else with a bias, else causal ones, else lengths, else all."""

    def asked(words: str) -> bool:
        order = ("mask", "bias", "left", "right", "lengths")
        found = next((word for word in order if word in words), "plain")
        return kind == {"left": "causal", "right": "causal"}.get(found, found)

    return asked


def _more(space: Space, asked: Callable[[str], bool]) -> Callable[[Facts], Iterator[Problem]]:
    """What the full tier asks beside the rows of the quick one: all rows, the few in 16 bit too, the quick tier's in one other
    dtype each; or the few alone."""

    def problems(facts: Facts) -> Iterator[Problem]:
        if not facts.thorough:
            return
        yield from _problems(space, lambda line: line[TIER] == "full" and (bool(line[FEW]) or not facts.dear), asked)
        if not facts.dear:
            for problem in _problems(space, lambda line: bool(line[FEW]), asked):
                yield from (problem.but(dtype=dtype) for dtype in HALF)
            rest = _problems(space, lambda line: line[TIER] == "quick" and not line[FEW], asked)
            yield from (
                problem.but(dtype=dtype) for problem, dtype in zip(rest, itertools.cycle(("float64", *HALF)), strict=False)
            )

    return problems


def _requirement(
    number: str, kind: str, sentence: str, rationale: str, space: Space = ATTENTION, blind: tuple[str, ...] = _BLIND
) -> Requirement:
    asked = (lambda words: True) if space is LAYERS else _of_kind(kind)
    return Requirement(
        id=number,
        operation=space.operation,
        sentence=sentence,
        rationale=rationale,
        source=_SOURCE,
        designed=lambda: _problems(space, lambda line: line[TIER] == "quick", asked),
        few=lambda: _problems(space, lambda line: line[TIER] == "quick" and bool(line[FEW]), asked),
        adapted=_more(space, asked),
        adapts_to=ADAPTS_TO,
        exempt=_EXEMPT if blind else "",
        cannot_tell=blind,
    )


def _encodings(classes: tuple[str, ...]) -> Iterator[SinusoidalProblem]:
    """A table of each of the classes of lengths beside each of the classes of widths, an even number of columns."""
    for turn, length_class in enumerate(CLASSES):
        for place, width_class in enumerate(CLASSES):
            if not {length_class, width_class} <= set(classes):
                continue
            lengths, widths = CLASSES[length_class], CLASSES[width_class]
            length, width = lengths[place % len(lengths)], widths[turn % len(widths)]
            width += width % 2
            if length * width <= 200_000:
                rows = tuple(sorted({0, 1, length // 2, length - 1})) if length > 64 else None
                yield SinusoidalProblem(length=length, width=width, rows=rows)


_FEW_CLASSES = ("small", "odd", "a low tile", "over a middle tile")

REQUIREMENTS: tuple[Requirement, ...] = (
    _requirement(
        "ATT-OUT-042",
        "plain",
        "Sizes of every class are right, each beside each other one.",
        "Code takes another way from some size on: whole tiles, the last partial one, the width of a kernel, many batch rows or "
        "heads, counters of 16 bits; and some mistakes need two of them at once.",
        blind=_BLIND_TO_HEADS,
    ),
    _requirement(
        "ATT-MASK-053",
        "mask",
        "Masks are right at sizes of every class, in every form.",
        "Masked kernels have tiles, limits and fast paths of their own; some skip what a whole tile hides.",
    ),
    _requirement(
        "ATT-MASK-054",
        "bias",
        "Biases are right at sizes of every class, in every form.",
        "A bias is read tile by tile, with strides of its own.",
    ),
    _requirement(
        "ATT-MASK-055",
        "causal",
        "Causal attention, in both alignments, is right at sizes of every class.",
        "Tiles above the diagonal are skipped, those below it need no mask, and the frontier crosses the others.",
        blind=_BLIND_TO_HEADS,
    ),
    _requirement(
        "ATT-MASK-056",
        "lengths",
        "Key lengths are right at sizes of every class.",
        "Loops end at the length of a batch row; its last tile is partial even where that of the array is whole.",
    ),
    _requirement(
        "ATT-HEAD-037",
        "",
        "Multi-head attention is right at sizes of every class, each beside each other one.",
        "The width of a head, of all heads and of the model are three numbers that are equal in most tests.",
        LAYERS,
    ),
    Requirement(
        id="ATT-POS-023",
        operation="sinusoidal_encoding",
        sentence="Tables of every class of length and width are right.",
        rationale="Tables are made once, up to a length, and for a width that code takes for granted.",
        source=_SOURCE,
        designed=lambda: _encodings(tuple(CLASSES)[1:10]),
        few=lambda: _encodings(_FEW_CLASSES),
        adapted=lambda facts: _encodings(_FEW_CLASSES if facts.dear else tuple(CLASSES)[1:]) if facts.thorough else iter(()),
        adapts_to=ADAPTS_TO,
    ),
)

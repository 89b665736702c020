"""ATT-HEAD and ATT-POS, last parts: the implementation's own sizes, of multi-head attention and of the sinusoidal encoding."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from conformance.problem import MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.specification.own_sizes import ADAPTS_TO, COMMON, LARGEST, affordable, dtype_of
from conformance.specification.requirement import Facts, Requirement

_SEED = 141
_SENTENCE = (
    "The output is right at the sizes that stand in the implementation's own source or that it declares, at one less, one "
)
_SENTENCE += "more and twice as much."
_SOURCE = "White and Cohen 1980, A Domain Strategy for Computer Program Testing"

Sizes = dict[str, int]


def _layer(heads: int, width: int) -> Sizes:
    """So many heads of a width, and a model as wide as all of them."""
    return {"heads": heads} | dict.fromkeys(("model_width", "inner_width", "value_inner_width"), heads * width)


_SMALL = {"batch": 2, "query_length": 3, "key_length": 3, **_layer(2, 3)}
_LAYERS: dict[str, Callable[[int], Sizes]] = {
    "both lengths": lambda n: {"query_length": n, "key_length": n},
    "key length": lambda n: {"key_length": n},
    "query length": lambda n: {"query_length": n},
    "batch": lambda n: {"batch": n},
    "heads": lambda n: _layer(n, 2),
    "head width": lambda n: _layer(2, n),
    "model width": lambda n: _layer(1, n),
}
# How a layer is asked for, the first that is offered: with the projections and biases that it cannot do without.
_KINDS: tuple[dict[str, Any], ...] = (
    {"output": "plain"},
    {"output": "bias", "projection_bias": True},
    {"output": "none"},
    {"output": "plain", "projection_bias": True},
    {"output": "bias"},
)
_ASKED: dict[str, Callable[[MultiHeadProblem], MultiHeadProblem]] = {
    "plain": lambda problem: problem,
    "causal": lambda problem: problem.but(causal="top-left"),
    "mask": lambda problem: problem.but(mask=Recipe.parse(f"random.1:b1qk#{_SEED}", "mask")),
    "key-lengths": lambda problem: problem.but(
        key_lengths=tuple(max(1, problem.key_length - row % 2 * (problem.key_length // 3)) for row in range(problem.batch))
    ),
}
_AROUND: tuple[Callable[[int], int], ...] = (lambda n: n + 1, lambda n: n, lambda n: 2 * n, lambda n: n - 1)


def layers_at_own_sizes(facts: Facts) -> Iterator[Problem]:
    """Plain ones first, then those with a mask and the like; in each the numbers in their order, what is cheap first."""
    return affordable(facts, _layers(facts), _work)


def _layers(facts: Facts) -> Iterator[MultiHeadProblem]:
    for word, size, number in product(_ASKED, _AROUND, facts.sizes):
        if word == "plain" or number > COMMON:
            found = (_layer_problem(facts, _SMALL | role(size(number)), _ASKED[word]) for role in _LAYERS.values())
            yield from sorted(filter(None, found), key=_work)


def _layer_problem(facts: Facts, sizes: Sizes, ask: Callable[[MultiHeadProblem], MultiHeadProblem]) -> MultiHeadProblem | None:
    """The first kind that is offered; None where there is none, or a size is beyond what is asked."""
    dtype = dtype_of(facts)
    if not dtype or not all(1 <= size <= LARGEST + 1 for size in sizes.values()):
        return None
    source = "self" if sizes["query_length"] == sizes["key_length"] else "memory"
    values = Recipe.parse(f"gaussian.1#{_SEED}", "values")
    fields: dict[str, Any] = {**sizes, "source": source, "dtype": dtype, "values": values}
    found = (ask(MultiHeadProblem(**fields, **kind)) for kind in _KINDS)
    return next((problem for problem in found if problem.features <= facts.features), None)


def _work(problem: MultiHeadProblem) -> int:
    """Products of projections and of scores, roughly; weights are made, whatever the lengths."""
    tokens = problem.batch * (problem.query_length + problem.key_length)
    projections = (tokens + 1) * problem.model_width * problem.inner_width * 2
    return projections + 2 * problem.batch * problem.query_length * problem.key_length * problem.inner_width


def encodings_at_own_sizes(facts: Facts) -> Iterator[Problem]:
    """Tables of so many positions, and of so many columns."""
    return affordable(facts, _encodings(facts), _entries)


def _encodings(facts: Facts) -> Iterator[SinusoidalProblem]:
    dtype = dtype_of(facts)
    for size, number in product(_AROUND, facts.sizes if dtype else ()):
        for length, width in ((size(number), 6), (5, size(number))):
            if min(length, width) >= 2 and max(length, width) <= LARGEST + 1:
                rows = tuple(sorted({1, length // 2, length - 1})) if length > 64 else None
                problem = SinusoidalProblem(length=length, width=width, dtype=dtype, rows=rows)
                if problem.features <= facts.features:
                    yield problem


def _entries(problem: SinusoidalProblem) -> int:
    return problem.length * problem.width


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-HEAD-036",
        operation="multi_head_attention",
        sentence=_SENTENCE,
        rationale="A layer takes another way at a size that is written in it: the longest sequence of its buffers, the limit of "
        "a grid.",
        source=_SOURCE,
        adapted=layers_at_own_sizes,
        adapts_to=ADAPTS_TO,
    ),
    Requirement(
        id="ATT-POS-022",
        operation="sinusoidal_encoding",
        sentence=_SENTENCE,
        rationale="A table that is made once ends at a length that is written in the code, often 5,000.",
        source=_SOURCE,
        adapted=encodings_at_own_sizes,
        adapts_to=ADAPTS_TO,
    ),
)

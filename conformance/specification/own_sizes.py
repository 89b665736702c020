"""ATT-OUT, third part: the sizes that stand in the implementation's own source, or that it declares."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import isqrt
from operator import attrgetter
from typing import Any, TypeVar

from conformance.problem import AttentionProblem, Problem, Recipe
from conformance.specification.requirement import Facts, Requirement

PREFERRED = ("float32", "bfloat16", "float16", "float64")  # the first that is offered is asked in
LARGEST = 1 << 17  # of a size
COMMON = 4  # so small a number is mostly that of an axis, and other requirements have all features at such sizes
_SMALL = {"batch": 2, "heads": 2, "kv_heads": 2, "query_length": 2, "key_length": 3, "width": 3, "value_width": 3}
ADAPTS_TO = "the whole numbers from 2 to 131,072 in its source and in Support.sizes"
_SEED = 140
_COST = attrgetter("cost")
_Kind = TypeVar("_Kind", bound=Problem)


@dataclass(frozen=True)
class _Cap:
    """How much is asked: so many problems, each of at most so much work (B·H·Lq·Lk·(d + dv)), all together of at most so much."""

    problems: int
    each: int
    together: int


# By whether the tier is more than quick, and whether new shapes are dear.
CAPS = {
    (False, False): _Cap(48, 1 << 20, 1 << 22),
    (True, False): _Cap(640, 1 << 22, 1 << 25),
    (False, True): _Cap(3, 1 << 17, 1 << 20),
    (True, True): _Cap(16, 1 << 20, 1 << 22),
}

Sizes = dict[str, int]


def _halves(number: int) -> Sizes:
    """Batch rows and heads that are so many together, or a few more."""
    return {"batch": 3, "heads": -(-number // 3), "kv_heads": -(-number // 3)}


def _scores(number: int) -> Sizes:
    """Lengths whose product is so much, or a little more."""
    query_length = max(1, isqrt(number))
    return {"query_length": query_length, "key_length": -(-number // query_length)}


# What a number may be the size of; the other sizes stay small.
ROLES: dict[str, Callable[[int], Sizes]] = {
    "key length": lambda n: {"key_length": n},
    "query length": lambda n: {"query_length": n},
    "both lengths": lambda n: {"query_length": n, "key_length": n},
    "both widths": lambda n: {"width": n, "value_width": n},
    "heads": lambda n: {"heads": n, "kv_heads": n},
    "batch": lambda n: {"batch": n, "heads": 1, "kv_heads": 1},
    "group": lambda n: {"heads": n, "kv_heads": 1},
    "key heads": lambda n: {"heads": 2 * n, "kv_heads": n},
    "width": lambda n: {"width": n},
    "value width": lambda n: {"value_width": n},
    "batch · heads": _halves,
    "query length · key length": _scores,
}
_MAIN = tuple(ROLES)[:10]
_LENGTHS = ("key length", "query length", "both lengths")
_OTHERS = ("heads", "batch", "both widths")
_REST = ("width", "value width", "group", "key heads")

# What is asked for beside a size. A triangle lies so that rows see as many keys as there are where only one length is large.
ASKED: dict[str, Callable[[AttentionProblem], AttentionProblem]] = {
    "plain": lambda problem: problem,
    "causal": lambda problem: problem.but(causal="bottom-right" if problem.query_length < problem.key_length else "top-left"),
    "mask": lambda problem: problem.but(mask=Recipe.parse(f"random.1:b1qk#{_SEED}", "mask")),
    "bias": lambda problem: problem.but(bias=Recipe.parse(f"gaussian.1:qk#{_SEED}", "bias")),
    "key-lengths": lambda problem: problem.but(key_lengths=_lengths(problem)),
    "grouped-heads": lambda problem: problem.but(heads=2 * problem.kv_heads),
    "scale": lambda problem: problem.but(scale=0.3),
    "mask and causal": lambda problem: ASKED["causal"](ASKED["mask"](problem)),
}
_FEATURES = tuple(ASKED)[1:]

# Rounds: which roles, what is asked for, which sizes of a number; the first are the likeliest to show something.
_Round = tuple[tuple[str, ...], tuple[str, ...], tuple[Callable[[int], int], ...]]
ROUNDS: tuple[_Round, ...] = (
    (_MAIN, ("plain",), (lambda n: n + 1,)),
    (_MAIN, ("plain",), (lambda n: n, lambda n: 2 * n)),
    (_LENGTHS, _FEATURES, (lambda n: n + 1, lambda n: n)),
    (_OTHERS, _FEATURES, (lambda n: n + 1,)),
    (_REST, _FEATURES, (lambda n: n,)),
    (tuple(ROLES), ("plain",), (lambda n: n - 1, lambda n: n + 1)),
    (_LENGTHS, _FEATURES, (lambda n: n - 1, lambda n: 2 * n)),
    (_OTHERS, _FEATURES, (lambda n: n, lambda n: 2 * n)),
)


# Two numbers at once, in both orders: code that asks for one size and for another.
PAIRED = 6  # of the likeliest numbers
PAIRS: tuple[tuple[str, str], ...] = (("key length", "query length"), ("both widths", "key length"), ("heads", "key length"))


def at_own_sizes(facts: Facts) -> Iterator[Problem]:
    """The problems, each once: round by round, in each the numbers in their order, what is cheap first.

    Pairs of numbers come before what is asked beside a size. Before the last rounds, which ask for more of the same, sizes are
    asked in the other dtypes, alone and beside all else.
    """
    offered = [name for name in PREFERRED if name in facts.dtypes]
    if not offered:
        return iter(())
    dtype, *others = offered
    found = chain(
        _of_rounds(facts, dtype, ROUNDS[:2]),
        _of_pairs(facts, dtype),
        _of_rounds(facts, dtype, ROUNDS[2:5]),
        *(_of_rounds(facts, other, (ROUNDS[0], ROUNDS[2])) for other in others),
        _of_rounds(facts, dtype, ROUNDS[5:]),
    )
    return affordable(facts, found, _COST)


def affordable(facts: Facts, problems: Iterable[_Kind], work_of: Callable[[_Kind], int]) -> Iterator[_Kind]:
    """Of the problems, each once, as many as are asked."""
    cap = CAPS[facts.thorough, facts.dear]
    done, left = 0, cap.together
    for problem in dict.fromkeys(problems):
        work = work_of(problem)
        if done == cap.problems:
            return
        if work <= min(cap.each, left):
            done, left = done + 1, left - work
            yield problem


def dtype_of(facts: Facts) -> str:
    """The dtype in which all is asked; empty where there is none."""
    return next((name for name in PREFERRED if name in facts.dtypes), "")


def _of_rounds(facts: Facts, dtype: str, rounds: tuple[_Round, ...]) -> Iterator[AttentionProblem]:
    for roles, asked, sizes in rounds:
        for number in facts.sizes if asked == ("plain",) else [number for number in facts.sizes if number > COMMON]:
            found = (_problem(dtype, ROLES[role](size(number)), ASKED[word]) for role, word, size in product(roles, asked, sizes))
            yield from _offered(facts, found)


def _of_pairs(facts: Facts, dtype: str) -> Iterator[AttentionProblem]:
    numbers = [number for number in facts.sizes if number > COMMON][:PAIRED]
    for one, other in combinations(numbers, 2):
        found = (
            _problem(dtype, ROLES[first](a + more) | ROLES[second](b + more), ASKED["plain"])
            for (first, second), (a, b), more in product(PAIRS, ((one, other), (other, one)), (0, 1))
        )
        yield from _offered(facts, found)


def _offered(facts: Facts, found: Iterable[AttentionProblem | None]) -> list[AttentionProblem]:
    """Those that can be asked, what is cheap first."""
    return sorted((problem for problem in found if problem is not None and problem.features <= facts.features), key=_COST)


def _problem(dtype: str, sizes: Sizes, ask: Callable[[AttentionProblem], AttentionProblem]) -> AttentionProblem | None:
    """None for a size beyond what is asked."""
    if not all(1 <= size <= LARGEST + 1 for size in sizes.values()):
        return None
    fields: dict[str, Any] = _SMALL | sizes
    return ask(AttentionProblem(**fields, dtype=dtype, values=Recipe.parse(f"spread.1#{_SEED}", "values")))


def _lengths(problem: AttentionProblem) -> tuple[int, ...]:
    """All keys in the first batch row, fewer in the others."""
    return tuple(max(1, problem.key_length * (3 - row % 3) // 3) for row in range(problem.batch))


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-OUT-048",
        sentence="The output is right at the sizes that stand in the implementation's own source or that it declares, at one "
        "less, one more and twice as much.",
        rationale="Code takes another way at a size that is written in it: the last tile, the limit of a grid, the switch to a "
        "kernel for long keys. A suite that does not read the code meets that size by chance.",
        source="White and Cohen 1980, A Domain Strategy for Computer Program Testing; Hypothesis, which draws constants in code",
        adapted=at_own_sizes,
        adapts_to=ADAPTS_TO,
    ),
)

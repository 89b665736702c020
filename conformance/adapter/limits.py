"""Limits of shapes: which problems an implementation takes, and the nearest problem that it does take.

``outside`` says why a problem is beyond the limits that a ``Support`` declares; ``fitted`` gives the nearest one within them.
Sizes that are equal stay equal, and those that differ stay different, so that a fitted problem tests what the other did.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from conformance.adapter import Support
from conformance.errors import LeftOut, ProblemError
from conformance.operations import operation_of
from conformance.problem import KeyProblem, Problem
from conformance.problem.inputs import Inputs

FURTHEST = 1 << 13  # a larger size is looked for so far up
MOST_WORK = 1 << 20  # of B·H·Lq·Lk·d, from which on batch and heads get fewer
TOO_MUCH = 20 * MOST_WORK  # a small problem with many keys may become so large, whose arrays would take long
SPREAD = 4  # random sizes are one of so many multiples
ALIGNMENTS = ("top-left", "bottom-right")


def limited(support: Support) -> bool:
    """Whether any limit of shapes is declared."""
    return bool(support.widths or support.multiples or support.at_most or support.square or support.causal == "always")


def in_words(support: Support) -> str:
    """The declared limits; empty where there are none."""
    parts = [f"widths {', '.join(map(str, support.widths))}"] if support.widths else []
    parts += [f"{name} multiples of {number}" for name, number in support.multiples.items()]
    parts += [f"{name} at most {number}" for name, number in support.at_most.items()]
    parts += ["query_length and key_length equal"] if support.square else []
    parts += ["always causal"] if support.causal == "always" else []
    return "; ".join(parts)


def outside(problem: Problem, support: Support) -> str:
    """Why ``problem`` is beyond the limits, in words; empty where it is within them."""
    return next(_reasons(problem, support), "") if limited(support) else ""


def _reasons(problem: Problem, support: Support) -> Iterator[str]:
    yield from _beyond({name: getattr(problem, name) for name in problem.sizes}, support)
    for name, width in problem.head_widths().items():
        if support.widths and width not in support.widths:
            yield f"{name} {width:g}, none of {', '.join(map(str, support.widths))}"
    if support.causal == "always" and problem.attends and problem.causal == "none":
        yield "a problem that is not causal"


def _beyond(sizes: Mapping[str, int], support: Support) -> Iterator[str]:
    for name, size in sizes.items():
        if size % support.multiples.get(name, 1):
            yield f"{name} {size}, no multiple of {support.multiples[name]}"
        if size > support.at_most.get(name, size):
            yield f"{name} {size}, above {support.at_most[name]}"
    query_length, key_length = sizes.get("query_length"), sizes.get("key_length")
    if support.square and query_length != key_length:
        yield f"key_length {key_length} other than query_length {query_length}"


def outside_arrays(inputs: Inputs, support: Support) -> str:
    """The same of arrays, whose lengths may be others than the problem's after a transformation, heads after a repetition."""
    return next(_beyond(inputs.sizes(), support), "") if limited(support) else ""


def largest_score(inputs: Inputs) -> float:
    """The largest |q·k|, before the scale; 0 where nothing attends."""
    if not inputs.attends:
        return 0.0
    query, key = inputs.scored()
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.nanmax(np.abs(query @ key.swapaxes(-1, -2)), initial=0.0))


def few_lengths(problem: KeyProblem) -> dict[str, Any]:
    """Batch and lengths of the few sizes."""
    query_length, key_length = problem.query_length, problem.key_length
    lengths = (13, 13) if query_length == key_length else (7, 13) if query_length < key_length else (13, 7)
    sizes = {"batch": 2, "query_length": lengths[0], "key_length": lengths[1]}
    return {**sizes, "key_lengths": _key_lengths(problem, 2, lengths[1])}


def fitted(problem: Problem, support: Support, *, alignment: str | None = None, turn: int = 0) -> Problem:
    """The nearest problem within the limits, ``problem`` itself where it is.

    Sizes are rounded up to the nearest that is allowed, or down where none is; where that makes a large problem, batch and
    heads get fewer. ``alignment`` is the implementation's own, for one that is always causal. ``turn`` numbers random problems,
    which get one of several allowed sizes each. Raises LeftOut where there is no such problem.
    """
    if support.shapes is not None:
        problem, turn = operation_of(problem).few_sizes(problem), 0
    if not limited(support) or (turn == 0 and not outside(problem, support)):
        return problem
    extra = _Extra(turn)
    try:
        while True:
            fit = Fit(support, extra)
            found = operation_of(problem).fitted(problem, fit)
            if found.work <= MOST_WORK or not extra.lower():
                break
        found = _causal(_smaller(found, fit), support, alignment)
    except ProblemError as error:
        raise LeftOut(f"no such problem within the limits: {error}") from None
    reason = outside(found, support)
    if reason:
        raise LeftOut(reason)
    if found.work > max(problem.work, TOO_MUCH):
        raise LeftOut("too large within the limits")
    return found


@dataclass(frozen=True)
class Allowed:
    """Which sizes are allowed, and the largest that may be, if there is one."""

    test: Callable[[int], bool]
    most: int | None = None

    def where(self, test: Callable[[int], bool]) -> "Allowed":
        return Allowed(lambda n: self.test(n) and test(n), self.most)


class _Extra:
    """By how many steps beyond the nearest allowed one a size is to be, by its name: a digit of ``turn`` each."""

    def __init__(self, turn: int) -> None:
        names = ("query_length", "key_length", "width", "length", "heads", "value_width", "model_width")
        self._steps = {name: turn // SPREAD**place % SPREAD for place, name in enumerate(names)}

    def of(self, name: str) -> int:
        return self._steps.get(name, 0)

    def lower(self) -> bool:
        """One step less where there are most; whether there was one."""
        name = max(self._steps, key=lambda name: self._steps[name])
        if self._steps[name] == 0:
            return False
        self._steps[name] -= 1
        return True


class Fit:
    """Fits sizes to the limits of ``support``."""

    def __init__(self, support: Support, extra: _Extra) -> None:
        self._support, self._extra = support, extra

    def allowed(self, name: str, *, of_width: bool = False, times: int = 1) -> Allowed:
        """The sizes called ``name``, of a width those that ``times`` heads share."""
        multiple, most = self._support.multiples.get(name, 1), self._support.at_most.get(name)
        widths = self._support.widths if of_width else ()

        def test(n: int) -> bool:
            return n * times % multiple == 0 and (most is None or n * times <= most) and (not widths or n in widths)

        return Allowed(test, most)

    def nearest(self, size: int, allowed: Allowed, step: int = 0) -> int:
        """The first allowed size from ``size`` + ``step`` on, else the last one before. Raises LeftOut where there is none."""
        start = size + step
        most = start + FURTHEST if allowed.most is None else min(start + FURTHEST, allowed.most)
        upwards, downwards = range(start, most + 1), range(min(start - 1, most), 0, -1)
        found = next((n for sizes in (upwards, downwards) for n in sizes if allowed.test(n)), None)
        if found is None:
            raise LeftOut(f"a size of {size}, for which the limits leave no other")
        return found

    def step(self, name: str) -> int:
        """How much larger than needed a size of random problems is: some multiples, or the next of the widths."""
        if name in ("width", "value_width") and self._support.widths:
            among = sorted(self._support.widths)
            return among[self._extra.of(name) % len(among)] - among[0]
        multiple = self._support.multiples.get(name, 1)
        return self._extra.of(name) * multiple if multiple > 1 else 0

    def pair(self, sizes: tuple[int, int], allowed: tuple[Allowed, Allowed], names: tuple[str, str]) -> tuple[int, int]:
        """Two sizes, equal if they were, the first less if it was; each grown by the step of its name."""
        (first, second), (first_allowed, second_allowed) = sizes, allowed
        if first == second:
            both = self.nearest(first, _all(first_allowed, second_allowed), self.step(names[0]))
            return both, both
        if first > second:
            found = self.pair((second, first), (second_allowed, first_allowed), (names[1], names[0]))
            return found[1], found[0]
        less = self.nearest(first, first_allowed, self.step(names[0]))
        more = self.nearest(max(second, less + 1), second_allowed, self.step(names[1]))
        if more <= less:  # rounded down: the other one lower still
            less = self.nearest(more - 1, first_allowed.where(lambda n: n < more))
        return less, more

    def heads(self, heads: int, kv_heads: int) -> dict[str, int]:
        """Query heads stay as many as key heads, or a multiple of them; an invalid number stays as it is."""
        if heads == kv_heads:
            heads = kv_heads = self.nearest(heads, _all(self.allowed("heads"), self.allowed("kv_heads")))
        elif heads % kv_heads == 0:
            few = kv_heads = self.nearest(kv_heads, self.allowed("kv_heads"))
            heads = self.nearest(max(heads, 2 * few), self.allowed("heads").where(lambda n: n % few == 0 and n > few))
        return {"heads": heads, "kv_heads": kv_heads}

    def rows_and_lengths(self, problem: KeyProblem) -> dict[str, Any]:
        """Batch and lengths."""
        query_length, key_length = problem.query_length, problem.key_length
        if self._support.square:
            longest = max(query_length, isqrt(MOST_WORK // problem.head_width))
            query_length = key_length = min(max(query_length, key_length), longest)
        names = ("query_length", "key_length")
        query_length, key_length = self.pair((query_length, key_length), (self.allowed(names[0]), self.allowed(names[1])), names)
        batch = self.nearest(problem.batch, self.allowed("batch"))
        lengths = _key_lengths(problem, batch, key_length)
        return {"batch": batch, "query_length": query_length, "key_length": key_length, "key_lengths": lengths}


def _key_lengths(problem: Problem, batch: int, key_length: int) -> tuple[int, ...] | None:
    """As large a share of the keys as before, in each batch row."""
    if problem.key_lengths is None:
        return None
    shares = (problem.key_lengths[row % problem.batch] for row in range(batch))
    return tuple(-(-share * key_length // problem.key_length) for share in shares)


def _smaller(problem: Problem, fit: Fit) -> Problem:
    """Fewer batch rows and heads where there is much to compute: two heads at least, where there were several."""
    if not problem.attends or problem.work <= MOST_WORK:
        return problem
    alone = problem.key_lengths is None and not problem.transformations  # a row of its own would test nothing
    batch = fit.nearest(min(problem.batch, 1 if alone else 2), fit.allowed("batch"))
    problem = problem.but(batch=batch, key_lengths=_key_lengths(problem, batch, problem.key_length))
    if problem.has("kv_heads") and problem.heads % problem.kv_heads == 0 and problem.work > MOST_WORK:
        kv_heads, groups = min(problem.kv_heads, 2), min(problem.heads // problem.kv_heads, 2)
        problem = problem.but(**fit.heads(kv_heads * groups, kv_heads))
    return problem


def _causal(problem: Problem, support: Support, alignment: str | None) -> Problem:
    """Causal as the implementation always is; the alignment matters where the lengths differ."""
    if not problem.attends or support.causal != "always" or problem.causal == "default":
        return problem
    if problem.query_length == problem.key_length:
        return problem.but(causal="default") if problem.causal == "none" else problem
    alignment = alignment or support.conventions.get("CON-ALIGNMENT")
    if alignment not in ALIGNMENTS:
        raise LeftOut("unequal lengths, always causal in an alignment that is not known: declare CON-ALIGNMENT")
    if problem.causal not in ("none", alignment):
        raise LeftOut(f"causal {problem.causal}")
    return problem.but(causal=alignment)


def _all(first: Allowed, second: Allowed) -> Allowed:
    mosts = [most for most in (first.most, second.most) if most is not None]
    return Allowed(lambda n: first.test(n) and second.test(n), min(mosts, default=None))

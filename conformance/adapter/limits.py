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
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, SinusoidalProblem
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs

ATTENTION_SIZES = ("batch", "heads", "kv_heads", "query_length", "key_length", "width", "value_width")
MULTI_HEAD_SIZES = ("batch", "heads", "query_length", "key_length", "model_width", "inner_width", "value_inner_width")
SIZES: dict[str, tuple[str, ...]] = {
    "attention": ATTENTION_SIZES,
    "multi_head_attention": MULTI_HEAD_SIZES,
    "sinusoidal_encoding": ("batch", "length", "width"),
}
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
    yield from _beyond({name: getattr(problem, name) for name in SIZES[problem.operation]}, support)
    for name, width in _widths(problem):
        if support.widths and width not in support.widths:
            yield f"{name} {width:g}, none of {', '.join(map(str, support.widths))}"
    if support.causal == "always" and not isinstance(problem, SinusoidalProblem) and problem.causal == "none":
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


def _widths(problem: Problem) -> Iterator[tuple[str, float]]:
    """The widths of a head, or of an encoding, by name."""
    if isinstance(problem, AttentionProblem):
        yield from (("width", problem.width), ("value_width", problem.value_width))
    elif isinstance(problem, MultiHeadProblem):
        inner = (("inner_width", problem.inner_width), ("value_inner_width", problem.value_inner_width))
        yield from ((f"{name} / heads", size / problem.heads) for name, size in inner)
    else:
        yield "width", problem.width


def outside_arrays(inputs: Inputs, support: Support) -> str:
    """The same of arrays, whose lengths may be others than the problem's after a transformation, heads after a repetition."""
    if not limited(support) or isinstance(inputs, SinusoidalInputs):
        return ""
    if isinstance(inputs, AttentionInputs):
        heads = {"heads": inputs.query.shape[1], "kv_heads": inputs.key.shape[1]}
    else:
        heads = {"heads": inputs.num_heads}
    sizes = {"batch": inputs.query.shape[0], **heads, "query_length": inputs.query.shape[-2], "key_length": inputs.key.shape[-2]}
    return next(_beyond(sizes, support), "")


def largest_score(inputs: Inputs) -> float:
    """The largest |q·k|, before the scale; 0 for an encoding."""
    if isinstance(inputs, SinusoidalInputs):
        return 0.0
    query, key = inputs.query.astype(np.float64), inputs.key.astype(np.float64)
    if isinstance(inputs, MultiHeadInputs):
        query, key = (
            (tokens @ matrix.astype(np.float64)).reshape(*tokens.shape[:2], inputs.num_heads, -1).swapaxes(1, 2)
            for tokens, matrix in ((query, inputs.weights.query), (key, inputs.weights.key))
        )
    key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.nanmax(np.abs(query @ key.swapaxes(-1, -2)), initial=0.0))


def work(problem: Problem) -> int:
    """B·H·Lq·Lk·d, or the entries of an encoding."""
    if isinstance(problem, SinusoidalProblem):
        return max(1, problem.batch) * problem.length * problem.width
    width = problem.width if isinstance(problem, AttentionProblem) else problem.inner_width // problem.heads or 1
    return problem.batch * problem.heads * problem.query_length * problem.key_length * width


def few_sizes(problem: Problem) -> Problem:
    """The problem in one of a few sizes, so that few are compiled: what is equal stays equal, and what differs different."""
    if isinstance(problem, SinusoidalProblem):
        return problem
    query_length, key_length = problem.query_length, problem.key_length
    lengths = (13, 13) if query_length == key_length else (7, 13) if query_length < key_length else (13, 7)
    sizes: dict[str, Any] = {"batch": 2, "query_length": lengths[0], "key_length": lengths[1]}
    if isinstance(problem, AttentionProblem):
        if problem.heads % problem.kv_heads == 0:
            sizes |= {"heads": 6, "kv_heads": 2} if problem.heads != problem.kv_heads else {"heads": 3, "kv_heads": 3}
        sizes |= {"width": 8, "value_width": 8 if problem.width == problem.value_width else 11}
    elif problem.model_width == problem.inner_width == problem.value_inner_width and problem.inner_width % problem.heads == 0:
        heads, width = (1, 8) if problem.heads == 1 else (3, 15)
        sizes |= {"heads": heads, "model_width": width, "inner_width": width, "value_inner_width": width}
    return problem.but(**sizes, key_lengths=_key_lengths(problem, 2, lengths[1]))


def fitted(problem: Problem, support: Support, *, alignment: str | None = None, turn: int = 0) -> Problem:
    """The nearest problem within the limits, ``problem`` itself where it is.

    Sizes are rounded up to the nearest that is allowed, or down where none is; where that makes a large problem, batch and
    heads get fewer. ``alignment`` is the implementation's own, for one that is always causal. ``turn`` numbers random problems,
    which get one of several allowed sizes each. Raises LeftOut where there is no such problem.
    """
    if support.shapes is not None:
        problem, turn = few_sizes(problem), 0
    if not limited(support) or (turn == 0 and not outside(problem, support)):
        return problem
    extra = _Extra(turn)
    try:
        while True:
            found = _fit(problem, support, extra)
            if work(found) <= MOST_WORK or not extra.lower():
                break
        found = _causal(_smaller(found, support), support, alignment)
    except ProblemError as error:
        raise LeftOut(f"no such problem within the limits: {error}") from None
    reason = outside(found, support)
    if reason:
        raise LeftOut(reason)
    if work(found) > max(work(problem), TOO_MUCH):
        raise LeftOut("too large within the limits")
    return found


@dataclass(frozen=True)
class _Allowed:
    """Which sizes are allowed, and the largest that may be, if there is one."""

    test: Callable[[int], bool]
    most: int | None = None

    def where(self, test: Callable[[int], bool]) -> "_Allowed":
        return _Allowed(lambda n: self.test(n) and test(n), self.most)


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


def _fit(problem: Problem, support: Support, extra: _Extra) -> Problem:
    if isinstance(problem, AttentionProblem):
        return _attention(problem, support, extra)
    if isinstance(problem, MultiHeadProblem):
        return _multi_head(problem, support, extra)
    length = _nearest(problem.length, _allowed("length", support), extra.of("length") * support.multiples.get("length", 0))
    width = _nearest(problem.width, _allowed("width", support, widths=support.widths))
    batch = _nearest(problem.batch, _allowed("batch", support)) if problem.batch else 0
    rows = problem.rows if problem.rows is None else tuple(sorted({min(row, length - 1) for row in problem.rows}))
    return problem.but(length=length, width=width, batch=batch, rows=rows)


def _attention(problem: AttentionProblem, support: Support, extra: _Extra) -> AttentionProblem:
    width, value_width = _pair(
        (problem.width, problem.value_width),
        (_allowed("width", support, widths=support.widths), _allowed("value_width", support, widths=support.widths)),
        (_step("width", support, extra), _step("value_width", support, extra)),
    )
    sizes = {**_heads(problem.heads, problem.kv_heads, support), "width": width, "value_width": value_width}
    return problem.but(**sizes, **_rows_and_lengths(problem, support, extra))


def _heads(heads: int, kv_heads: int, support: Support) -> dict[str, int]:
    """Query heads stay as many as key heads, or a multiple of them; an invalid number stays as it is."""
    if heads == kv_heads:
        heads = kv_heads = _nearest(heads, _all(_allowed("heads", support), _allowed("kv_heads", support)))
    elif heads % kv_heads == 0:
        few = kv_heads = _nearest(kv_heads, _allowed("kv_heads", support))
        heads = _nearest(max(heads, 2 * few), _allowed("heads", support).where(lambda n: n % few == 0 and n > few))
    return {"heads": heads, "kv_heads": kv_heads}


def _multi_head(problem: MultiHeadProblem, support: Support, extra: _Extra) -> MultiHeadProblem:
    heads = _nearest(problem.heads, _allowed("heads", support)) if problem.heads > 1 else problem.heads
    if problem.inner_width % problem.heads or problem.value_inner_width % problem.heads:  # to be refused: left as it is
        return problem.but(**_rows_and_lengths(problem, support, extra))

    def allowed(name: str) -> _Allowed:
        whole, widths = _allowed(name, support), support.widths
        return _Allowed(lambda n: whole.test(n * heads) and (not widths or n in widths), whole.most)

    model = _allowed("model_width", support)
    inner, value_inner = problem.inner_width, problem.value_inner_width
    fits_model = _Allowed(lambda n: problem.model_width != inner or model.test(n * heads))
    width, value_width = _pair(
        (inner // problem.heads, value_inner // problem.heads),
        (_all(allowed("inner_width"), fits_model), allowed("value_inner_width")),
        (_step("width", support, extra), _step("value_width", support, extra)),
    )
    model_width = width * heads if problem.model_width == inner else _nearest(problem.model_width, model)
    sizes = {"heads": heads, "model_width": model_width, "inner_width": width * heads, "value_inner_width": value_width * heads}
    return problem.but(**sizes, **_rows_and_lengths(problem, support, extra))


def _rows_and_lengths(problem: AttentionProblem | MultiHeadProblem, support: Support, extra: _Extra) -> dict[str, Any]:
    query_length, key_length = problem.query_length, problem.key_length
    if support.square:
        width = problem.width if isinstance(problem, AttentionProblem) else problem.inner_width // problem.heads or 1
        query_length = key_length = min(max(query_length, key_length), max(query_length, isqrt(MOST_WORK // width)))
    query_length, key_length = _pair(
        (query_length, key_length),
        (_allowed("query_length", support), _allowed("key_length", support)),
        (_step("query_length", support, extra), _step("key_length", support, extra)),
    )
    batch = _nearest(problem.batch, _allowed("batch", support))
    return {
        "batch": batch,
        "query_length": query_length,
        "key_length": key_length,
        "key_lengths": _key_lengths(problem, batch, key_length),
    }


def _key_lengths(problem: Problem, batch: int, key_length: int) -> tuple[int, ...] | None:
    """As large a share of the keys as before, in each batch row."""
    if problem.key_lengths is None:
        return None
    shares = (problem.key_lengths[row % problem.batch] for row in range(batch))
    return tuple(-(-share * key_length // problem.key_length) for share in shares)


def _smaller(problem: Problem, support: Support) -> Problem:
    """Fewer batch rows and heads where there is much to compute: two heads at least, where there were several."""
    if isinstance(problem, SinusoidalProblem) or work(problem) <= MOST_WORK:
        return problem
    alone = problem.key_lengths is None and not problem.transformations  # a row of its own would test nothing
    batch = _nearest(min(problem.batch, 1 if alone else 2), _allowed("batch", support))
    problem = problem.but(batch=batch, key_lengths=_key_lengths(problem, batch, problem.key_length))
    if isinstance(problem, AttentionProblem) and problem.heads % problem.kv_heads == 0 and work(problem) > MOST_WORK:
        kv_heads, groups = min(problem.kv_heads, 2), min(problem.heads // problem.kv_heads, 2)
        problem = problem.but(**_heads(kv_heads * groups, kv_heads, support))
    return problem


def _causal(problem: Problem, support: Support, alignment: str | None) -> Problem:
    """Causal as the implementation always is; the alignment matters where the lengths differ."""
    if isinstance(problem, SinusoidalProblem) or support.causal != "always" or problem.causal == "default":
        return problem
    if problem.query_length == problem.key_length:
        return problem.but(causal="default") if problem.causal == "none" else problem
    alignment = alignment or support.conventions.get("CON-ALIGNMENT")
    if alignment not in ALIGNMENTS:
        raise LeftOut("unequal lengths, always causal in an alignment that is not known: declare CON-ALIGNMENT")
    if problem.causal not in ("none", alignment):
        raise LeftOut(f"causal {problem.causal}")
    return problem.but(causal=alignment)


def _pair(sizes: tuple[int, int], allowed: tuple[_Allowed, _Allowed], steps: tuple[int, int]) -> tuple[int, int]:
    """Two sizes, equal if they were, the first less if it was; each grown by its step."""
    (first, second), (first_allowed, second_allowed) = sizes, allowed
    if first == second:
        both = _nearest(first, _all(first_allowed, second_allowed), steps[0])
        return both, both
    if first > second:
        found = _pair((second, first), (second_allowed, first_allowed), (steps[1], steps[0]))
        return found[1], found[0]
    less = _nearest(first, first_allowed, steps[0])
    more = _nearest(max(second, less + 1), second_allowed, steps[1])
    if more <= less:  # rounded down: the other one lower still
        less = _nearest(more - 1, first_allowed.where(lambda n: n < more))
    return less, more


def _step(name: str, support: Support, extra: _Extra) -> int:
    """How much larger than needed a size of random problems is: some multiples, or the next of the widths."""
    if name in ("width", "value_width") and support.widths:
        among = sorted(support.widths)
        return among[extra.of(name) % len(among)] - among[0]
    return extra.of(name) * (support.multiples.get(name, 1) if support.multiples.get(name, 1) > 1 else 0)


def _allowed(name: str, support: Support, widths: tuple[int, ...] = ()) -> _Allowed:
    multiple, most = support.multiples.get(name, 1), support.at_most.get(name)
    return _Allowed(lambda n: n % multiple == 0 and (most is None or n <= most) and (not widths or n in widths), most)


def _all(first: _Allowed, second: _Allowed) -> _Allowed:
    mosts = [most for most in (first.most, second.most) if most is not None]
    return _Allowed(lambda n: first.test(n) and second.test(n), min(mosts, default=None))


def _nearest(size: int, allowed: _Allowed, step: int = 0) -> int:
    """The first allowed size from ``size`` + ``step`` on, else the last one before. Raises LeftOut where there is none."""
    start = size + step
    most = start + FURTHEST if allowed.most is None else min(start + FURTHEST, allowed.most)
    upwards, downwards = range(start, most + 1), range(min(start - 1, most), 0, -1)
    found = next((n for sizes in (upwards, downwards) for n in sizes if allowed.test(n)), None)
    if found is None:
        raise LeftOut(f"a size of {size}, for which the limits leave no other")
    return found

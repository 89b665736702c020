"""Whether an adapter is sound, before conformance is judged: it takes arrays, returns one of the due shape and dtype, and raises
on nothing that it declares. Right values are not asked for here."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType

import numpy as np

from conformance import registry
from conformance.adapter import Implementation
from conformance.declarations import foreign_parameters, unknown_words
from conformance.errors import Unsupported
from conformance.harness import Subject
from conformance.judging import Failed, Judge, Judgement, Run
from conformance.problem import ARRANGEMENTS, AttentionProblem, MultiHeadProblem, Problem, Recipe, SinusoidalProblem
from conformance.problem.multihead import OUTPUTS, WEIGHTS
from conformance.verdict import Outcome

FRAMEWORKS = frozenset(registry.frameworks())
OK, FAIL, NOTE = "ok", "FAIL", "note"
WAYS_OUT = {
    "dtype": "leave it out of Support.dtypes",
    "feature": "name it in Support.lacks",
    "layout": "leave it out of Support.layouts",
    "mask form": "leave it out of Support.mask_forms",
}
UNSOUND = frozenset({Outcome.ERROR, Outcome.OUT_OF_MEMORY, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE})


@dataclass(frozen=True)
class Finding:
    """A line of the checklist. ``state`` is ok, FAIL or note, of which FAIL alone makes the adapter unsound."""

    state: str
    what: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.state:<5}{self.what}" + (f": {self.message}" if self.message else "")


def smoke(implementation: Implementation) -> Iterator[Finding]:
    """The checklist, line by line; it ends early where nothing further can be tried."""
    unknown = unknown_words(implementation.support)
    yield from (Finding(FAIL, "declaration", sentence) for sentence in unknown)
    if unknown:
        return
    yield Finding(OK, "declaration", "every word of it is known")
    for name, known in foreign_parameters(implementation):
        yield Finding(NOTE, f"parameter {name}", f"never passed, so it keeps its default; the suite knows {', '.join(known)}")
    missing = implementation.missing()
    if missing:
        yield Finding(NOTE, "cannot run here", missing)
        return
    trial = _Trial(implementation)
    first = trial.simplest()
    yield first
    if first.state == FAIL:
        return
    yield from trial.each("dtype", implementation.support.dtypes, trial.in_dtype)
    yield from trial.each("feature", sorted(implementation.features), trial.with_feature)
    if implementation.operation == "attention":
        yield from trial.each("layout", implementation.support.layouts, trial.in_layout)
    yield from trial.each("mask form", implementation.support.mask_forms, trial.with_mask_form)
    yield from trial.manners()


class _Trial:
    """Calls of one implementation, each with one thing more than the simplest problem."""

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.subject = Subject(implementation)
        self.judge = Judge()
        self.base = self._base()

    def simplest(self) -> Finding:
        """The simplest problem, whose axes all differ in size."""
        what = f"{self.implementation.operation} on {self.implementation.framework.name} arrays"
        if self.base is None:
            return Finding(FAIL, what, "what it lacks or does not accept leaves no problem that it can be asked; see `describe`")
        start = time.perf_counter()
        judgement = self.judge.values(self.subject, self.base)
        seconds = time.perf_counter() - start
        if judgement.verdict.outcome is Outcome.PASS:
            return Finding(OK, what, f"the output has the due shape, dtype and values ({seconds:.2f} s)")
        other = self._other_axes()
        if other:
            return Finding(FAIL, what, other)
        if judgement.verdict.outcome in UNSOUND:
            return Finding(FAIL, what, f"{self._explained(judgement)} {self._other_framework()}".rstrip())
        return Finding(NOTE, what, f"the shape and dtype due; of the values, which `run` judges: {judgement.verdict.message}")

    def each(self, kind: str, names: tuple[str, ...] | list[str], make: Callable[[str], Problem | None]) -> Iterator[Finding]:
        """One line for those that are sound, one for each that is not."""
        sound = []
        for name in names:
            problem = make(name)
            finding = None if problem is None else self._finding(kind, name, problem)
            if finding is not None:
                yield finding
            elif problem is not None:
                sound.append(name)
        if sound:
            yield Finding(OK, f"{kind}s", ", ".join(sound))

    def _finding(self, kind: str, name: str, problem: Problem) -> Finding | None:
        """What is wrong with a call; None where nothing is, or where it cannot be asked by itself."""
        try:
            judgement = self.judge.values(self.subject, problem)
        except Unsupported as lacking:
            return Finding(NOTE, f"{kind} {name}", f"declared, but never asked for, since the declaration excludes {lacking}")
        if judgement.verdict.outcome not in UNSOUND:
            return None
        message = self._explained(judgement).rstrip(".")
        return Finding(FAIL, f"{kind} {name}", f"{message}. Mend it, or {WAYS_OUT[kind]}.")

    def in_dtype(self, name: str) -> Problem:
        assert self.base is not None
        return self.base.but(dtype=name)

    def in_layout(self, name: str) -> Problem:
        assert isinstance(self.base, AttentionProblem)
        return self.base.but(layout=name)

    def with_mask_form(self, form: str) -> Problem | None:
        if isinstance(self.base, SinusoidalProblem | None) or "mask" not in self.implementation.features:
            return None
        return self.base.but(mask=Recipe("random", form=form))

    def with_feature(self, feature: str) -> Problem | None:
        """The plainest problem that needs ``feature`` and nothing that is not offered."""
        assert self.base is not None
        offered = self.implementation.features
        form = next(iter(self.implementation.support.mask_forms), None)
        candidates = [p for p in _variants(self.base, form) if feature in p.features and p.features <= offered]
        return min(candidates, key=lambda p: len(p.features), default=None)

    def manners(self) -> Iterator[Finding]:
        """What is no fault of the adapter, and good to know: outputs that share memory, inputs that change, read-only outputs."""
        assert self.base is not None
        route = self.subject.route(self.base)
        try:
            first = self.judge.run(self.subject, self.base, route)
            before = {name: array.copy() for name, array in first.prepared.inputs().items()}
            second = self.judge.run_prepared(first.prepared, self.subject)
        except Failed as failure:
            yield Finding(FAIL, "a second call", failure.verdict.message)
            return
        after = first.prepared.inputs()
        notes = list(self._memory(first, second))
        changed = [name for name, array in before.items() if array.tobytes() != after[name].tobytes()]
        if changed:
            notes.append(f"the call changes its input {' and '.join(changed)}")
        yield from (Finding(NOTE, "memory", note) for note in notes)
        if not notes:
            yield Finding(OK, "memory", "outputs are writable and their own, inputs stay as they were")

    def _memory(self, first: Run, second: Run) -> Iterator[str]:
        framework = self.implementation.framework
        if first.prepared.aliases(first.raw):
            yield "the output shares memory with an input"
        if framework.shares_memory(first.raw, second.raw):
            yield "two calls return the same memory, so that the second overwrites the output of the first"
        if isinstance(first.raw, np.ndarray) and not first.raw.flags.writeable:
            yield "the output is read-only"

    def _base(self) -> Problem | None:
        """The plainest problem of the operation that the implementation can be asked without composing anything."""
        support = self.implementation.support
        for problem in _variants(_simplest(support.operation, support.dtypes, support.layouts), None):
            try:
                if problem.features <= self.implementation.features and not self.subject.route(problem).ways:
                    return problem
            except Unsupported:
                continue
        return None

    def _other_framework(self) -> str:
        """A sentence where the function's module imports another framework than the one whose arrays it was given."""
        module = sys.modules.get(getattr(self.implementation.function, "__module__", ""), sys)
        packages = {value.__name__.split(".")[0] for value in vars(module).values() if isinstance(value, ModuleType)}
        others = sorted(packages & (FRAMEWORKS - {self.implementation.framework.name, "numpy"}))
        return f"Its module imports {others[0]}: say --framework {others[0]} if it takes arrays of that." if others else ""

    def _other_axes(self) -> str:
        """A sentence where the simplest problem comes out right with length and heads the other way round."""
        if self.implementation.operation != "attention":
            return ""
        axes = "bhld" if self.implementation.support.axes == "blhd" else "blhd"
        other = replace(self.implementation, support=replace(self.implementation.support, axes=axes))
        assert self.base is not None
        if self.judge.values(Subject(other), self.base).verdict.outcome is not Outcome.PASS:
            return ""
        order = "(batch, length, heads, width)" if axes == "blhd" else "(batch, heads, length, width)"
        return f"it looks transposed, and is right if all arrays are {order}: say --axes {axes} or Support(axes={axes!r})."

    def _explained(self, judgement: Judgement) -> str:
        """The verdict's message, and what a wrong shape looks like."""
        if judgement.verdict.outcome is not Outcome.WRONG_SHAPE or not isinstance(judgement.problem, AttentionProblem):
            return judgement.verdict.message
        run = self.judge.run(self.subject, judgement.problem, self.subject.route(judgement.problem))
        likeness = _likeness(run.output.shape, judgement.problem)
        return f"{judgement.verdict.message} {likeness}".strip()


def _likeness(shape: tuple[int, ...], problem: AttentionProblem) -> str:
    batch, heads, length, width = problem.batch, problem.heads, problem.query_length, problem.value_width
    transposed = (batch, length, heads, width)
    wrong = {
        transposed: "It looks transposed, (batch, length, heads, width): swap the two axes before you return it, or, if your "
        "arrays are all so, say --axes blhd.",
        (batch, length, heads * width): "The heads look merged, (batch, length, heads · width): return them apart.",
        (batch, heads, length, problem.key_length): "It looks like the weights: return their product with the value.",
        (batch, heads, width, length): "Its last two axes look swapped.",
    }
    return wrong.get(shape, "")


def _simplest(operation: str, dtypes: tuple[str, ...], layouts: tuple[str, ...]) -> Problem:
    dtype = "float32" if "float32" in dtypes else next(iter(dtypes), "float32")
    values = Recipe("gaussian", seed=1)
    if operation == "attention":
        return AttentionProblem(
            batch=2, heads=3, kv_heads=3, query_length=5, key_length=5, width=8, value_width=8, dtype=dtype, values=values,
            layout="contiguous" if "contiguous" in layouts else next(iter(layouts), "contiguous"),
        )  # fmt: skip
    if operation == "multi_head_attention":
        return MultiHeadProblem(
            batch=2, heads=3, query_length=5, key_length=5, model_width=12, inner_width=12, value_inner_width=12, dtype=dtype,
            values=values,
        )  # fmt: skip
    return SinusoidalProblem(length=5, width=8, dtype=dtype, values=values)


def _variants(base: Problem, form: str | None) -> Iterator[Problem]:
    """``base``, then ``base`` with one feature more, or, of multi-head attention, with any set of projections."""
    yield base
    if isinstance(base, SinusoidalProblem):
        yield from (base.but(batch=2), base.but(width=7), *(base.but(arrangement=name) for name in ARRANGEMENTS))
        return
    if form is not None:
        yield base.but(mask=Recipe("random", form=form))
    yield base.but(causal="default")
    yield base.but(key_lengths=tuple(1 + row for row in range(base.batch)))
    if isinstance(base, AttentionProblem):
        if form is not None:
            yield base.but(bias=Recipe("gaussian", form=form))
        yield from (base.but(scale=0.5), base.but(heads=6), base.but(value_width=6), base.but(key_length=7))
        return
    for heads, bias, output, weights in product((base.heads, 1), (False, True), OUTPUTS, WEIGHTS):
        changed = base.but(heads=heads, projection_bias=bias, output=output, weights=weights)
        yield from (changed, changed.but(source="cross"), changed.but(source="cross", key_length=7))
        if weights == "full":
            yield from (changed.but(inner_width=9, value_inner_width=9), changed.but(value_inner_width=9))

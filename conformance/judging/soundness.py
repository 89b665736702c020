"""Whether an adapter can be judged at all: the plainest problem, put in every dtype that it declares, and what an output that is
wrong in form looks like. A run stops at an adapter that is sound in none; ``smoke`` goes on from here, feature by feature."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType

from conformance.adapter import registry
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, Judgement, worst
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.problem.returned import LSE, OUTPUT

FRAMEWORKS = frozenset(registry.frameworks())
FIRST_CALLS = 32  # of the plainest problem, before anything else is asked,
FIRST_CALLS_COMPILED = 4  # fewer of what takes long
UNSOUND = frozenset({Outcome.ERROR, Outcome.OUT_OF_MEMORY, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE})


@dataclass(frozen=True)
class Soundness:
    """``unsound``: why the adapter cannot be judged, a sentence, empty where it can; ``first``: the worst of the first calls."""

    unsound: str = ""
    first: Judgement | None = None


def soundness(subject: Subject, judge: Judge) -> Soundness:
    """Whether the adapter is sound in at least one dtype that it declares. To be asked first of all in a process: what is wrong
    in the first calls alone is so in none that comes later.

    Wrong values are no matter of soundness, unless they are right with the axes of length and heads exchanged.
    """
    trial = PlainTrial(subject, judge)
    if trial.base is None:
        return Soundness()
    calls = FIRST_CALLS_COMPILED if subject.implementation.support.compiles else FIRST_CALLS
    try:
        of_calls = worst([judge.values(subject, trial.base) for _ in range(calls)])
    except Unsupported:  # what it declines
        of_calls = None
    first = ""
    for dtype in subject.implementation.support.dtypes:
        try:
            found = trial.unsound(trial.base.but(dtype=dtype))
        except Unsupported:
            continue
        if not found:
            return Soundness(first=of_calls)
        first = first or found
    return Soundness(first, of_calls)


def of_the_first_calls(found: Soundness, subject: Subject, judge: Judge) -> str:
    """A sentence where one of the first calls of the process was wrong, and an equal one now is right; empty otherwise."""
    first = found.first
    if first is None or not first.verdict.outcome.is_failure:
        return ""
    if judge.values(subject, first.problem).verdict.outcome is not Outcome.PASS:
        return ""
    return f"A first call of the process was wrong, and an equal one later is right: {first.verdict.message}"


class PlainTrial:
    """The plainest problem on one implementation: ``base``, None where what it lacks leaves none."""

    def __init__(self, subject: Subject, judge: Judge) -> None:
        self.subject = subject
        self.implementation = subject.implementation
        self.judge = judge
        self.base = self._base()

    def unsound(self, problem: Problem) -> str:
        """What is wrong with the adapter, as a sentence, seen by ``problem``; empty where nothing is. Raises Unsupported."""
        judgement = self.judge.values(self.subject, problem)
        if judgement.verdict.outcome is Outcome.PASS:
            return ""
        other = self._other_axes(problem)
        if other or judgement.verdict.outcome not in UNSOUND:
            return other
        return f"{self.explained(judgement).rstrip('.')}. {self._other_framework()}".rstrip()

    def _base(self) -> Problem | None:
        """The plainest problem of the operation that the implementation can be asked without emulating anything."""
        support = self.implementation.support
        dtype = "float32" if "float32" in support.dtypes else next(iter(support.dtypes), "float32")
        for problem in variants(operation_of(support.operation).simplest(dtype, support.layouts), None):
            try:
                problem = self.subject.fitted(problem)
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

    def _other_axes(self, problem: Problem) -> str:
        """A sentence where the simplest problem comes out right with length and heads the other way round."""
        if not operation_of(self.implementation.operation).orders_axes:
            return ""
        axes = "bhld" if self.implementation.support.axes == "blhd" else "blhd"
        other = replace(self.implementation, support=replace(self.implementation.support, axes=axes))
        if self.judge.values(Subject(other), problem).verdict.outcome is not Outcome.PASS:
            return ""
        order = "(batch, length, heads, width)" if axes == "blhd" else "(batch, heads, length, width)"
        return f"It looks transposed, and is right if all arrays are {order}: say --axes {axes} or Support(axes={axes!r})."

    def explained(self, judgement: Judgement) -> str:
        """The verdict's message, and what a wrong shape looks like."""
        verdict = judgement.verdict
        if verdict.outcome is Outcome.WRONG_SHAPE and verdict.output != OUTPUT:
            return f"{verdict.message} {_likeness_of(verdict.output, judgement)}".strip()
        if verdict.outcome is not Outcome.WRONG_SHAPE or not operation_of(judgement.problem).orders_axes:
            return judgement.verdict.message
        try:
            run = self.judge.run(self.subject, judgement.problem, self.subject.route(judgement.problem))
        except Failed:  # not the second time
            return judgement.verdict.message
        likeness = _likeness(run.output.shape, judgement.problem)
        return f"{judgement.verdict.message} {likeness}".strip()


def _likeness(shape: tuple[int, ...], problem: Problem) -> str:
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


def _likeness_of(name: str, judgement: Judgement) -> str:
    """What the wrong shape of a further output looks like."""
    problem, shape = judgement.problem, judgement.outputs[name].shape
    batch, heads, queries, keys = problem.batch, problem.heads, problem.query_length, problem.key_length
    words = {
        (batch, queries, heads): "Length and heads look exchanged: return (batch, heads, query length).",
        (batch, heads, queries, 1): "It has an axis of one element more: return (batch, heads, query length).",
        (batch * heads, queries): "Batch and heads look merged: return (batch, heads, query length).",
    }
    of_weights = {
        (
            batch,
            queries,
            keys,
        ): "The heads look averaged: return the weights of each head (average_attn_weights=False in PyTorch).",
        (batch, queries, heads, keys): "Length and heads look exchanged: return (batch, heads, query length, key length).",
        (batch * heads, queries, keys): "Batch and heads look merged: return (batch, heads, query length, key length).",
    }
    return (words if name == LSE else of_weights).get(shape, "")


def variants(base: Problem, form: str | None) -> Iterator[Problem]:
    """``base``, then ``base`` with one feature more, or, of multi-head attention, with any set of projections."""
    yield base
    yield from operation_of(base).variants(base, form)

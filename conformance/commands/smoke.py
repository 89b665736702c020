"""Whether an adapter is sound, before conformance is judged: it takes arrays, returns one of the expected shape and dtype, and
raises on nothing that it declares. Right values are not asked for here."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from conformance.adapter import Implementation
from conformance.adapter.declarations import advice_on_unread, contradictions, unknown_words
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import CompletedCall, Failed, Judge
from conformance.judging.soundness import UNSOUND, PlainTrial, variants
from conformance.judging.verdict import Outcome
from conformance.operations import operation_of
from conformance.problem import Problem, Recipe

OK, FAIL, NOTE = "ok", "FAIL", "note"
COMPILATION = 0.25  # seconds of a call with a new shape, from which on it is worth a note
WAYS_OUT = {
    "dtype": "leave it out of Support.dtypes",
    "feature": "name it in Support.lacks",
    "layout": "leave it out of Support.layouts",
    "mask form": "leave it out of Support.mask_forms",
}


@dataclass(frozen=True)
class CheckedLine:
    """A line of the checklist. ``state`` is ok, FAIL or note, of which FAIL alone makes the adapter unsound."""

    state: str
    what: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.state:<5}{self.what}" + (f": {self.message}" if self.message else "")


def smoke(implementation: Implementation) -> Iterator[CheckedLine]:
    """The checklist, line by line; it ends early where nothing further can be tried."""
    senseless = unknown_words(implementation.support) or list(contradictions(implementation))
    yield from (CheckedLine(FAIL, "declaration", sentence) for sentence in senseless)
    if senseless:
        return
    yield CheckedLine(OK, "declaration", "every word of it is known")
    yield from (CheckedLine(NOTE, "signature", sentence) for sentence in advice_on_unread(implementation))
    missing = implementation.missing()
    if missing:
        yield CheckedLine(NOTE, "cannot run here", missing)
        return
    trial = _Trial(implementation)
    first = trial.simplest()
    yield first
    if first.state == FAIL:
        return
    yield from trial.each("dtype", implementation.support.dtypes, trial.in_dtype)
    yield from trial.each("feature", sorted(implementation.features), trial.with_feature)
    if operation_of(implementation.operation).problem.has("layout"):
        yield from trial.each("layout", implementation.support.layouts, trial.in_layout)
    yield from trial.each("mask form", implementation.support.mask_forms, trial.with_mask_form)
    yield from trial.manners()


class _Trial:
    """Calls of one implementation, each with one thing more than the simplest problem."""

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.subject = Subject(implementation)
        self.judge = Judge()
        self.trial = PlainTrial(self.subject, self.judge)
        self.base = self.trial.base
        self.seconds: list[float] = []  # of calls, each with another shape or dtype

    def simplest(self) -> CheckedLine:
        """The simplest problem, whose axes all differ in size."""
        what = f"{self.implementation.operation} on {self.implementation.framework.name} arrays"
        if self.base is None:
            return CheckedLine(
                FAIL, what, "what it lacks or does not accept leaves no problem that it can be asked; see `describe`"
            )
        judgement = self.judge.values(self.subject, self.base)
        if judgement.verdict.outcome in (Outcome.PASS, Outcome.MUTATED_INPUT):  # of which there is a note below
            took = f"the first call took {judgement.seconds:.2f} s"
            return CheckedLine(OK, what, f"the output has the expected shape, dtype and values; {took}")
        unsound = self.trial.unsound(self.base)
        if unsound:
            return CheckedLine(FAIL, what, unsound)
        return CheckedLine(
            NOTE, what, f"the expected shape and dtype; of the values, which `run` judges: {judgement.verdict.message}"
        )

    def each(self, kind: str, names: tuple[str, ...] | list[str], make: Callable[[str], Problem | None]) -> Iterator[CheckedLine]:
        """One line for those that are sound, one for each that is not; one for each of what compiles."""
        sound = []
        for name in names:
            problem = make(name)
            finding = None if problem is None else self._finding(kind, name, problem)
            if finding is not None:
                yield finding
            elif problem is not None and self.implementation.support.compiles:
                yield CheckedLine(OK, f"{kind} {name}")  # at once: each call may take as long as a line may
            elif problem is not None:
                sound.append(name)
        if sound:
            yield CheckedLine(OK, f"{kind}s", ", ".join(sound))

    def _finding(self, kind: str, name: str, problem: Problem) -> CheckedLine | None:
        """What is wrong with a call; None where nothing is, or where it cannot be asked by itself."""
        try:
            judgement = self.judge.values(self.subject, self.subject.fitted(problem))
        except Unsupported as lacking:
            return CheckedLine(NOTE, f"{kind} {name}", f"declared, but never asked for, since the declaration excludes {lacking}")
        if judgement.verdict.outcome not in UNSOUND:
            if kind != "layout":
                self.seconds.append(judgement.seconds)
            return None
        message = self.trial.explained(judgement).rstrip(".")
        forms = self._in_other_forms(name, problem) if kind == "feature" and name in ("mask", "bias") else ""
        return CheckedLine(FAIL, f"{kind} {name}", f"{message}{forms}." if forms else f"{message}. Fix it, or {WAYS_OUT[kind]}.")

    def _in_other_forms(self, name: str, problem: Problem) -> str:
        """Which forms of a mask or a bias work, where it is not all that fail."""
        recipe = getattr(problem, name)
        forms = self.implementation.support.mask_forms
        tried = {form: self.judge.values(self.subject, problem.but(**{name: replace(recipe, form=form)})) for form in forms}
        sound = [form for form, judgement in tried.items() if judgement.verdict.outcome not in UNSOUND]
        if not sound:
            return ""
        others = ", ".join(form for form in forms if form not in sound)
        return (
            f", in the form {others}, and works in {', '.join(sound)}: broadcast it, or leave that form out of Support.mask_forms"
        )

    def in_dtype(self, name: str) -> Problem:
        assert self.base is not None
        return self.base.but(dtype=name)

    def in_layout(self, name: str) -> Problem:
        assert self.base is not None
        return self.base.but(layout=name)

    def with_mask_form(self, form: str) -> Problem | None:
        if self.base is None or "mask" not in self.implementation.features:
            return None
        return self.base.but(mask=Recipe("random", form=form))

    def with_feature(self, feature: str) -> Problem | None:
        """The plainest problem that needs ``feature`` and nothing that is not offered."""
        assert self.base is not None
        offered = self.implementation.features
        form = next(iter(self.implementation.support.mask_forms), None)
        candidates = [p for p in variants(self.base, form) if feature in p.features and p.features <= offered]
        return min(candidates, key=lambda p: len(p.features), default=None)

    def manners(self) -> Iterator[CheckedLine]:
        """What is no fault of the adapter, and good to know: outputs that share memory, inputs that change, read-only outputs."""
        assert self.base is not None
        route = self.subject.route(self.base)
        try:
            first = self.judge.run(self.subject, self.base, route)
            second = self.judge.run_prepared(first.prepared, self.subject)
        except Failed as failure:
            yield CheckedLine(FAIL, "a second call", failure.verdict.message)
            return
        notes = list(self._memory(first, second))
        if changed := first.changed or second.changed:
            notes.append(changed[0].lower() + changed[1:].rstrip("."))
        yield from self._compilation(second.seconds)
        yield from (CheckedLine(NOTE, "memory", note) for note in notes)
        if not notes:
            yield CheckedLine(OK, "memory", "outputs are writable and their own, inputs stay as they were")

    def _compilation(self, again: float) -> Iterator[CheckedLine]:
        """A note where new shapes cost much more than a call like an earlier one, which took ``again`` seconds."""
        usual = statistics.median(self.seconds) if self.seconds else 0.0
        if usual > COMPILATION and usual > 10 * again and not self.implementation.support.compiles:
            message = (
                f"a call with another shape or dtype takes {usual:.2g} s, one like an earlier call {again:.1g} s: if each is "
                "compiled anew, declare Support(compiles=True)"
            )
            yield CheckedLine(NOTE, "time", message)

    def _memory(self, first: CompletedCall, second: CompletedCall) -> Iterator[str]:
        framework = self.implementation.framework
        if first.prepared.aliases(first.raw):
            yield "the output shares memory with an input"
        if framework.shares_memory(first.raw, second.raw):
            yield "two calls return the same memory, so that the second overwrites the output of the first"
        if isinstance(first.raw, np.ndarray) and not first.raw.flags.writeable:
            yield "the output is read-only"

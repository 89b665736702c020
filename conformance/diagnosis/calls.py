"""What shows over several calls, or beside the output: answers that wander or belong to other calls, changed inputs, shared
memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformance.adapter.routes import Route
from conformance.checks.procedures import PROCEDURES
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, agree, worst
from conformance.judging.verdict import Outcome, judge
from conformance.oracle.expected import Expected
from conformance.problem import Problem

Array = np.ndarray
CALLS = 8  # of the same problem: enough to see a period of 4 twice
CONSTANT = "one answer to other values of the same shapes"
CLOSE = 0.01  # relative deviation of an output that counts as a multiple of what is expected


@dataclass(frozen=True)
class Probe:
    """One problem put to an implementation again and again."""

    subject: Subject
    judging: Judge
    problem: Problem
    route: Route
    expected: Expected
    profile: str

    def symptoms(self) -> dict[str, str]:
        """The symptoms that are there, each with how it shows."""
        found: dict[str, str] = {}
        if wandering := self._repeated():
            found["repeat"] = wandering
        elif others := self._with_others():
            found["constant" if others == CONSTANT else "stale"] = others
        for check in ("untouched", "unaliased"):
            verdict = worst(PROCEDURES[check](self.judging, self.subject, self.problem)).verdict
            if verdict.outcome is Outcome.MUTATED_INPUT:
                found[check] = verdict.message
        return found

    def _repeated(self) -> str:
        """The kinds of answers to one call again and again, from the smallest turn on; nothing where all agree."""
        outputs = [self._output(self.problem) for _ in range(CALLS)]
        first = outputs[0]
        if all(one is not None and first is not None and agree(first, one, self.expected) for one in outputs):
            return ""
        if all(one is None for one in outputs):
            return ""
        kinds = [self._kind(one, before) for one, before in zip(outputs, [None, *outputs], strict=False)]
        turns = [kinds[start:] + kinds[:start] for start in range(CALLS)]
        return ", ".join(min(turns))

    def _kind(self, output: Array | None, before: Array | None) -> str:
        """What an answer is in a word, beside the answer ``before``."""
        if output is None:
            return "an exception"
        if judge(output, self.expected).outcome is Outcome.PASS:
            return "right"
        if output.shape != self.expected.shape or self.expected.rows is not None:
            return "wrong"
        got, want = output.astype(np.float64).ravel(), self.expected.output.astype(np.float64).ravel()
        if not got.any():
            return "zeros"
        if not np.isfinite(got).all():
            return "not finite"
        if before is not None and before.shape == output.shape and _close(got - before.astype(np.float64).ravel(), want):
            return "added to the last one"
        factor = float(got @ want / (want @ want)) if want.any() else 0.0
        return "a multiple" if _close(got, factor * want) else "wrong"

    def _with_others(self) -> str:
        """Whose answer each of three calls gives, the second with other values in the same shapes; nothing where each gives its
        own, or none gives any that is known."""
        other = self.problem.but(values=replace(self.problem.values, seed=self.problem.values.seed + 1))
        if self.problem.values.name == "golden":
            return ""
        right = [self.expected, self.judging.expected(other, self.profile, self.subject.implementation.support)]
        if right[1].shape != right[0].shape or (right[0].output == right[1].output).all():
            return ""  # as with a table, which has no inputs
        outputs = [self._output(turn) for turn in (self.problem, other, self.problem)]
        if any(output is None for output in outputs):
            return ""
        given = [self._whose(output, right) for output in outputs if output is not None]
        if given == ["first", "second", "first"]:
            return "an output is overwritten by the next call" if self._overwrites(other) else ""
        same = len({output.tobytes() for output in outputs if output is not None}) == 1
        if "none" in given:
            kept = same and outputs[0] is not None and not _is_constant(outputs[0])
            return CONSTANT if kept else "an answer that changes" if given[0] != given[2] else ""
        return f"answers of the {', '.join(given)} problem"

    @staticmethod
    def _whose(output: Array, right: Sequence[Expected]) -> str:
        names = ("first", "second")
        return next((n for n, e in zip(names, right, strict=True) if judge(output, e).outcome is Outcome.PASS), "none")

    def _overwrites(self, other: Problem) -> bool:
        """Whether the output of a call changes when another one follows."""
        try:
            first = self.judging.run(self.subject, self.problem, self.route).output
            before = first.copy()
            self.judging.run(self.subject, other, self.route)
        except Failed:
            return False
        return first.tobytes() != before.tobytes()

    def _output(self, problem: Problem) -> Array | None:
        try:
            return self.judging.run(self.subject, problem, self.route).output.copy()
        except Failed:
            return None


def _close(got: Array, want: Array) -> bool:
    return bool(np.linalg.norm(got - want) <= CLOSE * np.linalg.norm(want))


def _is_constant(output: Array) -> bool:
    return output.size == 0 or bool((output == output.flat[0]).all()) or bool(np.isnan(output.astype(np.float64)).all())

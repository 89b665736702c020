"""What is known of an implementation on one problem: what it was given, what it gave, and in which ways that is wrong."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from conformance.adapter.routes import Route, fold
from conformance.diagnosis.calls import Probe
from conformance.diagnosis.clock import OutOfTime, TimedJudge
from conformance.errors import Unsupported
from conformance.features import features
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge
from conformance.judging.verdict import Outcome, Verdict, judge, overflowed
from conformance.numerics.dtypes import float_type, round_to
from conformance.operations import operation_of
from conformance.oracle.expected import Expected
from conformance.problem import Problem
from conformance.problem.inputs import Inputs

Array = np.ndarray

# The ways in which a result can be wrong. The last four show over several calls, or beside the output.
SYMPTOMS: dict[str, str] = {
    "values": "wrong values",
    "raises": "an exception",
    "shape": "the wrong shape",
    "dtype": "the wrong dtype",
    "repeat": "another answer to the same call",
    "stale": "the answer of another call",
    "untouched": "a changed input",
    "unaliased": "an output that shares memory with an input",
    "constant": "an answer that does not depend on the values",
}
OF_ONE_CALL = ("values", "raises", "shape")  # what the output of one call shows, and faults of arithmetic mostly do
BESIDE = ("repeat", "stale", "untouched", "unaliased")  # what shows beside the output of one call
OVER_CALLS = ("repeat", "stale")  # what these show makes every output depend on the calls before


@dataclass(frozen=True, eq=False)
class Evidence:
    """One problem on one implementation.

    ``inputs`` are as the implementation got them, after the suite's rewriting; ``expected`` is right under ``profile``.
    ``output`` has the expected dtype (another one was rounded to it) and shape; it is None where there is none to compare.
    ``symptoms`` says by SIGNS what is wrong and how, as text that is equal for equal faults; it is empty where the problem
    passes. ``probed``: the symptoms that several calls show were looked for. ``claim``: the looser accuracy by which it is
    judged, where that is not what the implementation says of itself.
    """

    problem: Problem
    inputs: Inputs
    features: frozenset[str]
    expected: Expected
    profile: str
    route: Route
    output: Array | None = None
    symptoms: Mapping[str, str] = field(default_factory=dict)
    probed: bool = False
    message: str = ""
    claim: str = ""

    @property
    def by_profile(self) -> bool:
        """Whether how accurate it is to be is said by a profile, and not by a dtype."""
        return operation_of(self.problem).by_profile

    @property
    def passes(self) -> bool:
        return not self.symptoms

    def excess(self) -> Array:
        """error / budget of each judged element, infinite where a non-finite element is wrong, 0 where nothing is judged."""
        assert self.output is not None
        return excess(self.output, self.expected)


def excess(output: Array, expected: Expected, near_overflow: bool = False) -> Array:
    """error / budget by element, infinite where the pattern of non-finite elements is wrong, 0 where nothing is judged.

    With ``near_overflow``, what is as close to the largest number as its budget may overflow or not.
    """
    got = expected.rows_of(output)
    want = expected.output
    got = got.astype(want.dtype)
    kind = float_type(expected.dtype)
    with np.errstate(all="ignore"):
        target = overflowed(want, expected.dtype)
        finite = np.isfinite(got) & np.isfinite(target)
        same = (np.isnan(got) & np.isnan(target)) | (got == target)
        ratio = np.where(finite, np.abs(got - want) / expected.budget, np.where(same, 0.0, np.inf))
        if near_overflow:
            near = (np.abs(np.abs(want) - kind.largest) <= expected.budget) & (np.sign(got) == np.sign(want))
            ratio = np.where(near, np.where(np.isfinite(got), np.abs(got - want) / expected.budget, 0.0), ratio)
    return np.where(expected.judged & ~np.isnan(ratio), ratio, 0.0).astype(np.float64)


Probing = Callable[[Evidence], bool]


@dataclass(frozen=True)
class Examiner:
    """Puts problems to one implementation again."""

    subject: Subject
    judging: Judge
    raised: list[str] = field(default_factory=list)  # what came of problems that gave no evidence

    def look(self, problem: Problem, probe: Probing, until: float = 1.0) -> Evidence | None:
        """What it gives by the problem's default route. Where ``probe`` says so of what is seen then, its other routes are
        tried, if that one is right, and several calls are looked at, ``until`` this share of the time is spent. None where it is
        not offered or memory runs out."""
        with np.errstate(all="ignore"):
            try:
                evidence = self._called(self.prepared(problem))
                return evidence if evidence is None or not probe(evidence) else self._probed(evidence, until)
            except Unsupported as error:
                self.raised.append(f"not supported: {error}")
                return None

    def prepared(self, problem: Problem, route: Route | None = None) -> Evidence:
        """The evidence without an output, before any call. Raises Unsupported."""
        problem = self.subject.resolve(problem)
        route = self.subject.route(problem) if route is None else route
        profile = self.judging.profile(self.subject, problem)
        inputs = fold(self.judging.inputs(problem), route, self.subject.implementation.support.mask_forms)
        expected = self.judging.expected(problem, profile, self.subject.implementation.support)
        return Evidence(problem, inputs, features_of(problem, inputs), expected, profile, route)

    def _called(self, evidence: Evidence) -> Evidence | None:
        try:
            run = self.judging.run(self.subject, evidence.problem, evidence.route)
        except Failed as failure:
            if failure.verdict.outcome is Outcome.OUT_OF_MEMORY:
                self.raised.append(failure.verdict.message)
                return None
            kind = "dtype" if failure.verdict.outcome is Outcome.WRONG_DTYPE else "raises"
            return replace(evidence, symptoms={kind: _kind_of(failure.verdict)}, message=failure.verdict.message)
        seen = with_output(evidence, run.output.copy())
        return replace(seen, symptoms={**seen.symptoms, "untouched": run.changed}) if run.changed else seen

    def _probed(self, evidence: Evidence, until: float) -> Evidence:
        """What is seen over several calls too; the evidence as it is where there is no time for them."""
        try:
            with self.judging.until(until) if isinstance(self.judging, TimedJudge) else nullcontext():
                return self._seen_again(evidence)
        except OutOfTime:
            return evidence

    def _seen_again(self, evidence: Evidence) -> Evidence:
        if evidence.passes:
            routes = self.subject.routes(evidence.problem)[1:]
            others = (self._called(self.prepared(evidence.problem, route)) for route in routes)
            evidence = next((other for other in others if other is not None and not other.passes), evidence)
        if evidence.output is None:
            return replace(evidence, probed=True)
        probe = Probe(self.subject, self.judging, evidence.problem, evidence.route, evidence.expected, evidence.profile)
        return replace(evidence, symptoms={**evidence.symptoms, **probe.symptoms()}, probed=True)


def _kind_of(verdict: Verdict) -> str:
    """The exception's name without its text, which is everybody's own."""
    return verdict.message.partition(":")[0]


def with_output(evidence: Evidence, output: Array) -> Evidence:
    """``evidence`` with the symptoms that ``output`` shows."""
    expected = evidence.expected
    if output.shape != expected.shape:
        return replace(evidence, output=None, symptoms={"shape": f"{output.shape} in place of {expected.shape}"})
    symptoms: dict[str, str] = {}
    if output.dtype != float_type(expected.dtype).numpy:
        symptoms["dtype"] = f"{output.dtype.name} in place of {expected.dtype}"
        output = round_to(output.real, expected.dtype)
    verdict = judge(output, expected)
    if verdict.outcome.is_failure:
        symptoms["values"] = str(verdict.outcome)
    return replace(evidence, output=output, symptoms=symptoms, message=verdict.message)


def features_of(problem: Problem, inputs: Inputs) -> frozenset[str]:
    """The features of the problem as the implementation was asked for it, which may be another way than the problem's own."""
    asked = {one.name: one.is_asked(inputs) for one in features(inputs.operation) if one.field is not None}
    asked |= inputs.asked_by_sizes()
    return frozenset(name for name in problem.features | set(asked) if asked.get(name, True))

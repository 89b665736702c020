"""Judges problems on implementations: problem → oracle and adapter → verdict, with the oracle's answers kept for a while."""

import contextlib
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache

from conformance.adapter import Support
from conformance.adapter.routes import Route
from conformance.errors import Declined, ProblemError, Unsupported, demand_own, told
from conformance.harness.prepared import OtherPartsError, PreparedCall
from conformance.harness.subject import Subject
from conformance.judging.scale import rounded_scale
from conformance.judging.systematic_error import Direction, directions
from conformance.judging.verdict import Outcome, Verdict, judge, worst_of
from conformance.numerics.dtypes import float_type
from conformance.numerics.profiles import DECLARABLE, FLUSHING, TIGHTEST_FIRST, UNDECLARED, looser
from conformance.operations import operation_of
from conformance.oracle import Expected, Truth, expect, truth_of
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.problem.returned import IGNORED, OUTPUT, being
from conformance.system.resources import shown
from conformance.values import materialise
from conformance.values.golden import golden_output

CACHE_BYTES = 48 << 20
FOR_EXPECTED = 5  # times as many: all that the largest requirement of layers asks, for the next implementation in turn
MOST_PARTS = 4  # of a result that are listed
MOST_OF_LSE = 1e6  # of r: a wrong formula is farther off than a log-sum-exp of any score that is tested
_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


class _Cache(LRUCache[_Key, _Kept]):
    """Says little of itself: pytest prints the arguments of an interrupted call, and so many arrays would take a minute."""

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self)} entries"


@dataclass(frozen=True)
class Judgement:
    """What became of one problem on one implementation, put by one route; ``seconds`` were spent inside the implementation.
    ``others``: what was returned beside the output, by name."""

    problem: Problem
    route: str
    verdict: Verdict
    profile: str = UNDECLARED
    seconds: float = 0.0
    bitwise: bool | None = None  # for repetitions: whether they agreed to the last bit
    output: np.ndarray | None = None
    prepared: PreparedCall | None = None
    others: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """All that was returned and is judged, by name."""
        return dict(self.others) if self.output is None else {OUTPUT: self.output, **self.others}


@dataclass(frozen=True)
class CompletedCall:
    """One call that returned: its output as the framework has it and as NumPy, and ``others`` beside it, by name. ``changed``
    names the inputs that it has changed, in a sentence, and is empty where there are none."""

    prepared: PreparedCall
    raw: Any
    output: np.ndarray
    seconds: float
    changed: str = ""
    others: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """All that is judged, by name."""
        return {OUTPUT: self.output, **self.others}

    def settled(self, verdict: Verdict) -> Verdict:
        """``verdict`` of the output, MUTATED_INPUT in place of a pass where the call has changed an input."""
        if not self.changed or verdict.outcome is not Outcome.PASS:
            return verdict
        return replace(verdict, outcome=Outcome.MUTATED_INPUT, message=self.changed)


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """The one that counts: of the worst outcome, and among those the largest r."""
    return max(judgements, key=lambda judgement: (judgement.verdict.outcome.severity, judgement.verdict.r or 0.0))


class Failed(Exception):
    """The call gave no output to compare; ``verdict`` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


class Judge:
    """Runs problems and judges outputs. Holds a bounded cache of inputs and expected values, shared by all implementations: its
    own, or that of the judge whose it ``shares``."""

    def __init__(self, cache_bytes: int = CACHE_BYTES, *, shares: "Judge | None" = None) -> None:
        self._inputs: _Cache[str, Inputs]
        self._truths: _Cache[str, Truth]  # by problem alone,
        self._expected: _Cache[tuple[str, str], Expected]  # by problem and profile
        self._directions: _Cache[tuple[str, str, str | None], tuple[Direction, ...]]  # and by the dtype of the scale
        if shares is not None:
            self._inputs, self._truths, self._expected = shares._inputs, shares._truths, shares._expected
            self._directions = shares._directions
        else:
            self._truths = _Cache(cache_bytes, getsizeof=lambda kept: _bytes((kept.output, kept.judged)) + kept.kept)
            self._directions = _Cache(cache_bytes, getsizeof=lambda kept: _bytes(direction.slope for direction in kept))
            self._inputs = _Cache(cache_bytes, getsizeof=lambda kept: _bytes(kept.arrays().values()))
            of_expected = FOR_EXPECTED * cache_bytes
            self._expected = _Cache(of_expected, getsizeof=lambda kept: _bytes((kept.output, kept.budget, kept.judged)))

    def inputs(self, problem: Problem) -> Inputs:
        """Raises ProblemError for values that do not exist, or do not fit into memory."""
        try:
            return _keep(self._inputs, problem.text, lambda: materialise(problem))
        except (MemoryError, OverflowError, ValueError) as error:
            raise ProblemError(f"The arrays of {problem.text} cannot be made here: {told(error)}.") from None

    def expected(
        self, problem: Problem, profile: str, support: Support | None = None, output: str = OUTPUT, dtype: str = ""
    ) -> Expected:
        """What the oracle says; for a golden case the expected output is the stored one, made with 50 digits. Where ``support``
        declares a less exact dtype of the scale, it is that of the scale rounded so. Of another ``output`` than the first, what
        is expected where it is returned in ``dtype``."""
        inputs = self.inputs(problem)
        scale = None if support is None else rounded_scale(inputs, support.scale_dtype)
        name = problem.text if scale is None else f"{problem.text} *{scale!r}"

        def make() -> Truth:
            truth = truth_of(inputs if scale is None else inputs.but(scale=scale))
            if problem.values.name != "golden" or scale is not None:
                return truth
            return replace(truth, output=golden_output(problem))

        def bounded() -> Expected:
            truth = _keep(self._truths, name, make)
            if output != OUTPUT:
                truth = truth.of(output, dtype)
            return truth.expected(truth.bound(profile))

        return _keep(self._expected, (name if output == OUTPUT else f"{name} {output} {dtype}", profile), bounded)

    def expected_output(self, output: str, dtype: str, subject: Subject, problem: Problem, profile: str) -> Expected:
        """What the oracle says of the output of that name of an implementation that returns it in ``dtype``, and by its own
        conventions."""
        found = self.expected(problem, profile, subject.implementation.support, output, dtype)
        factor = 1.0 if output == OUTPUT else subject.unit_of(output)
        return found if factor == 1.0 else replace(found, output=found.output * factor, budget=found.budget * factor)

    def verdict_of(self, output: str, array: np.ndarray, subject: Subject, problem: Problem, profile: str) -> Verdict:
        """Whether that output is within its budget."""
        return judge(array, self.expected_output(output, array.dtype.name, subject, problem, profile))

    def verdict(self, outputs: Mapping[str, np.ndarray], subject: Subject, problem: Problem, profile: str) -> Verdict:
        """Whether all ``outputs`` are within their budgets."""
        return worst_of(self.verdict_of(name, array, subject, problem, profile) for name, array in outputs.items())

    def directions(self, problem: Problem, profile: str, support: Support) -> tuple[Direction, ...]:
        """Along which errors of ``problem`` are looked through; none of an encoding."""
        inputs = self.inputs(problem)
        if not inputs.attends:
            return ()
        expected = self.expected(problem, profile, support)
        key = problem.text, profile, support.scale_dtype
        return _keep(self._directions, key, lambda: tuple(directions(inputs, expected, profile)))

    def run(self, subject: Subject, problem: Problem, route: Route) -> CompletedCall:
        """One call. Raises Failed where it raises or returns no array; Unsupported where the mask's form is not taken."""
        return self.run_prepared(self.prepare(subject, problem, route), subject)

    def prepare(self, subject: Subject, problem: Problem, route: Route, inputs: Inputs | None = None) -> PreparedCall:
        """The converted and bound call for a problem, with other ``inputs`` than its own where they are given. Raises Failed
        where conversion or binding raises, ProblemError where there is no such problem."""
        inputs = self.inputs(problem) if inputs is None else inputs
        subject.announce(problem, "")
        try:
            prepared = subject.prepare(inputs, route)
        except Unsupported:
            raise
        except BaseException as error:
            raise _failure(error, subject) from None
        subject.announce(problem, "")  # again: a convention may have been observed on the way
        return prepared

    def run_prepared(self, prepared: PreparedCall, subject: Subject) -> CompletedCall:
        depth = sys.getrecursionlimit()
        try:
            start = time.perf_counter()
            raw = subject.call(prepared)
            seconds = time.perf_counter() - start
        except BaseException as error:
            sys.setrecursionlimit(depth)  # before the exception is looked at
            raise _failure(error, subject) from None
        finally:
            sys.setrecursionlimit(depth)
        try:
            parts = prepared.parts(raw)
        except OtherPartsError as error:
            raise Failed(Verdict(Outcome.WRONG_DTYPE, str(error))) from None
        read = {name: _read(name, part, prepared, subject) for name, part in parts.items()}
        return CompletedCall(prepared, parts[OUTPUT], read.pop(OUTPUT), seconds, prepared.changed(), read)

    def values(
        self, subject: Subject, problem: Problem, route: Route | None = None, in_memory_of: PreparedCall | None = None
    ) -> Judgement:
        """Whether the output for ``problem`` is within its budget. Raises Unsupported, with what is lacking.

        ``in_memory_of``: the call whose arrays are written over and given again, where the framework has such and they fit.
        """
        problem = subject.resolve(problem)
        route = subject.route(problem) if route is None else route
        profile = self.profile(subject, problem)
        try:
            prepared = self.prepare(subject, problem, route)
            prepared = (in_memory_of and in_memory_of.overwritten(prepared)) or prepared
            run = self.run_prepared(prepared, subject)
        except Failed as failure:
            return Judgement(problem, str(route), failure.verdict, profile)
        verdict = self.verdict(run.outputs, subject, problem, profile)
        if verdict.outcome is Outcome.WRONG_VALUE and verdict.output == OUTPUT:
            verdict = self._with_additions(verdict, run.output, subject, problem, profile)
        verdict = run.settled(verdict)
        return Judgement(problem, str(route), verdict, profile, run.seconds, None, run.output, prepared, run.others)

    def _with_additions(self, verdict: Verdict, output: np.ndarray, subject: Subject, problem: Problem, profile: str) -> Verdict:
        """Says so where the output is right for weights that are normalised, or merged, through a rounded log-sum-exp."""
        if not operation_of(problem).by_profile or (verdict.r or 0.0) > MOST_OF_LSE:
            return verdict
        for other in looser(profile):
            if judge(output, self.expected(problem, other, subject.implementation.support)).outcome is Outcome.PASS:
                name = other.removesuffix(FLUSHING)
                return replace(verdict, message=f"{verdict.message} It is within the budget of {name}: {DECLARABLE[name]}.")
        return verdict

    def profile(self, subject: Subject, problem: Problem) -> str:
        """The declared numerics profile, else ``unfused``; with +flushes where that is declared."""
        return subject.implementation.support.judged_by(problem.dtype)

    def r_under_other_profiles(self, subject: Subject, judgement: Judgement) -> dict[str, float]:
        """r by profile, for an implementation that declares none for the dtype; nothing where it declares one or has failed."""
        problem = judgement.problem
        if judgement.output is None or judgement.verdict.r is None or subject.implementation.support.profile_for(problem.dtype):
            return {}
        support = subject.implementation.support
        flushing = FLUSHING if problem.dtype in support.flushes else ""
        others = [name + flushing for name in TIGHTEST_FIRST[problem.dtype] if name + flushing != judgement.profile]
        verdicts = {profile: self.verdict(judgement.outputs, subject, problem, profile) for profile in others}
        return {profile: verdict.r for profile, verdict in verdicts.items() if verdict.r is not None}


def _failure(error: BaseException, subject: Subject) -> Exception:
    """What an exception of the call is to be raised as: LeftOut where the implementation declares that it declines so."""
    if isinstance(error, subject.implementation.support.declines):
        return Declined(f"declined: {told(error)}")
    return Failed(verdict_of_exception(error))


def verdict_of_exception(error: BaseException) -> Verdict:
    """ERROR, or OUT_OF_MEMORY, with the exception's type, text and the line that raised it. Raises what is the user's."""
    demand_own(error)
    text = told(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({shown(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    exhausted = isinstance(error, MemoryError) or "out of memory" in text.lower() or "RESOURCE_EXHAUSTED" in text
    return Verdict(Outcome.OUT_OF_MEMORY if exhausted else Outcome.ERROR, f"{text}{place}")


def _read(output: str, part: Any, prepared: PreparedCall, subject: Subject) -> np.ndarray:
    """The output of that name as NumPy. Raises Failed where ``part`` is no array."""
    try:
        return prepared.read_as(output, part)
    except BaseException as error:
        demand_own(error)
        raise Failed(Verdict(Outcome.WRONG_DTYPE, _no_array(output, part, subject, error), output=output)) from None


def _no_array(output: str, part: Any, subject: Subject, error: BaseException) -> str:
    if inspect.iscoroutine(part):
        part.close()
        return f"The {being(output)} a coroutine: an async function is not awaited, so give a plain one that awaits it."
    framework = subject.implementation.framework.name
    message = f"The {being(output)} of type {type(part).__name__}, which is no array of {framework}: {told(error)}"
    if not isinstance(part, tuple | list) or len(subject.implementation.support.returns) > 1:
        return message
    names = ", ".join(f'"{name}"' for name in (OUTPUT, *([IGNORED] * (len(part) - 1)))[:MOST_PARTS])
    return f"{message.rstrip('.')}. Support.returns names the parts of a result, such as returns=({names})."


def expected_of(inputs: Inputs, profile: str, support: Support | None = None) -> Expected:
    """What the oracle says of inputs; where ``support`` declares a less exact dtype of the scale, with the scale rounded so."""
    scale = None if support is None else rounded_scale(inputs, support.scale_dtype)
    return expect(inputs if scale is None else inputs.but(scale=scale), profile)


def agree(first: np.ndarray, second: np.ndarray, expected: Expected) -> bool:
    """Whether two outputs of one problem differ by no more than twice its budget where it is judged."""
    if first.shape != second.shape or first.dtype != second.dtype or first.shape != expected.shape:
        return first.shape == second.shape and first.tobytes() == second.tobytes()
    a, b = (expected.rows_of(output).astype(np.float64) for output in (first, second))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= 2.0 * expected.budget + float_type(expected.dtype).subnormal
    return bool((near | (a == b) | (np.isnan(a) & np.isnan(b)) | ~expected.judged).all())


def _bytes(arrays: Any) -> int:
    return sum(array.nbytes for array in arrays) + 1


def _keep(cache: _Cache[Any, Any], key: Any, make: Callable[[], _Kept]) -> _Kept:
    try:
        kept: _Kept = cache[key]
        return kept
    except KeyError:
        value = make()
        with contextlib.suppress(ValueError):  # larger than the whole cache
            cache[key] = value
        return value

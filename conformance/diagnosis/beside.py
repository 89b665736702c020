"""Which fault explains what is wrong beside a right output: the log-sum-exp, or the weights.

The faults are those of the catalogue that return such an output. What they give is compared with what the implementation gives
element by element; nothing is combined, and nothing fresh is drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conformance.diagnosis.choice import varied
from conformance.errors import ProblemError, Unsupported
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.faults.functions import implementation_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge
from conformance.oracle import Expected
from conformance.problem import Problem
from conformance.problem.returned import WEIGHTS

Array = np.ndarray
FAILING, PASSING = 24, 24  # problems that are looked at
NEARLY_ALL = 0.9
REST = 0.02  # of the distance between what is right and what a fault gives, which may be left beside roundings


@dataclass(frozen=True)
class Beside:
    """``faults`` that explain ``explained`` of ``failing`` problems of the output called ``output``, and that none of ``passing``
    contradicts; all of them as well."""

    output: str
    faults: tuple[Fault, ...]
    explained: int
    failing: int
    passing: int

    @property
    def sentence(self) -> str:
        first, *others = self.faults
        told = (
            f"the {self.output} {'match' if self.output == WEIGHTS else 'matches'} fault {first.id} on {self.explained} of "
            f"{self.failing} failing and 0 contradicting cases of {self.passing} that pass: {first.sentence}"
        )
        alike = "; ".join(f"{fault.id} ({fault.sentence})" for fault in others)
        return f"{told}; outputs do not tell it from {alike}." if alike else f"{told}."


@dataclass(frozen=True, eq=False)
class _GivenAndRight:
    """What was given for a problem, and what is right."""

    problem: Problem
    given: Array
    expected: Expected


def explained_beside(
    subject: Subject, judging: Judge, output: str, failing: Sequence[Problem], passing: Sequence[Problem]
) -> Beside | None:
    """The fault that explains nearly all failures of ``output``; None where there is none."""
    with np.errstate(all="ignore"):
        wrong = list(_seen(subject, judging, output, varied(failing, FAILING)))
        right = list(_seen(subject, judging, output, varied(passing, PASSING)))
        found: dict[int, list[Fault]] = {}
        for fault in catalogue().values():
            if output in fault.returns[1:] and fault.operation == subject.implementation.operation:
                explained = sum(_gives(fault, subject, judging, output, one) for one in wrong)
                enough = explained and explained >= NEARLY_ALL * len(wrong)
                if enough and all(_gives(fault, subject, judging, output, one) for one in right):
                    found.setdefault(explained, []).append(fault)
    if not found:
        return None
    most = max(found)
    return Beside(output, tuple(found[most]), most, len(wrong), len(right))


def _seen(subject: Subject, judging: Judge, output: str, problems: Sequence[Problem]) -> Iterator[_GivenAndRight]:
    for problem in problems:
        try:
            problem = subject.resolve(problem)
            given = judging.run(subject, problem, subject.route(problem)).outputs[output]
        except (Failed, Unsupported, ProblemError):
            continue
        profile = judging.profile(subject, problem)
        expected = judging.expected_output(output, given.dtype.name, subject, problem, profile)
        if given.shape == expected.shape:
            yield _GivenAndRight(problem, expected.rows_of(given).astype(np.float64), expected)


def _gives(fault: Fault, subject: Subject, judging: Judge, output: str, seen: _GivenAndRight) -> bool:
    """Whether the fault gives for a problem what was given, but for roundings; what is right, where it does not show."""
    target, budget = seen.expected.output.astype(np.float64), seen.expected.budget
    faulty = target
    if seen.problem.dtype in fault.dtypes and fault.needs <= seen.problem.features:
        other = Subject(implementation_of(fault, seen.problem.dtype))
        try:
            run = judging.run(other, seen.problem, other.route(seen.problem))
        except (Failed, Unsupported):
            return False
        faulty = seen.expected.rows_of(run.outputs[output]).astype(np.float64) * subject.unit_of(output)
    same = (seen.given == faulty) | (np.isnan(seen.given) & np.isnan(faulty))
    near = np.abs(seen.given - faulty) <= 2.0 * budget + REST * np.abs(faulty - target)
    return bool((same | near | ~seen.expected.judged).all())

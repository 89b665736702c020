"""Where a fault shows among problems, and where it must not."""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.judging.verdict import Outcome, judge
from conformance.oracle import Expected, expect
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.values import materialise


@cache
def tried(problem: Problem) -> tuple[Inputs, np.ndarray]:
    """The inputs of a problem and the right output."""
    inputs = materialise(problem)
    return inputs, compute(inputs)


@cache
def expected(problem: Problem) -> Expected:
    return expect(tried(problem)[0], "strict")


def shows(fault: Fault, problem: Problem) -> bool:
    """Whether the fault's output is beyond the budget of the right one."""
    return judge(fault.output(tried(problem)[0]), expected(problem)).outcome is not Outcome.PASS


def assert_shows_only_where_it_can(fault: Fault, problems: Sequence[Problem]) -> None:
    """It shows on a problem that has what it needs, and changes not a bit where that is missing; equivalent ones never show."""
    for problem in problems:
        inputs, right = tried(problem)
        if not fault.needs <= problem.features:
            assert fault.output(inputs).tobytes() == right.tobytes(), problem.text
    able = [problem for problem in problems if fault.needs <= problem.features]
    assert any(shows(fault, problem) for problem in able) != bool(fault.equivalent), fault.id


def assert_known_to_the_oracle(fault: Fault, problems: Iterable[Problem]) -> None:
    """What a rewriting fault gives is within the oracle's budget for the rewritten inputs: diagnosis compares the two."""
    assert fault.rewrite is not None
    for problem in problems:
        inputs, _ = tried(problem)
        verdict = judge(fault.output(inputs), expect(fault.rewrite(inputs), "strict"))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"


def assert_leaves_inputs_alone(fault: Fault, problems: Iterable[Problem]) -> None:
    for problem in problems:
        inputs, _ = tried(problem)
        before = {name: array.tobytes() for name, array in inputs.arrays().items()}
        fault.output(inputs)
        assert {name: array.tobytes() for name, array in inputs.arrays().items()} == before, problem.text

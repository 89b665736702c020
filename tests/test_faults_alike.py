"""Which faults are alike is found by their outputs, and what the catalogue says of it is that."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from conformance.faults import catalogue
from conformance.faults.alike import ALIKE
from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.problem import Problem, SinusoidalProblem
from conformance.specification import requirements
from conformance.values import materialise

ORDER = ("float32", "float16", "float64", "bfloat16")
LARGEST = 20_000  # pairs of a problem that is looked at
APART = 0.02  # of the problems on which one of two shows: as many, and they are not alike
EACH, FAR = 4, 0.1  # one in so many problems is looked at first, and so much is far apart there


def size(problem: Problem) -> int:
    if isinstance(problem, SinusoidalProblem):
        return problem.length * problem.width
    return problem.batch * problem.heads * problem.query_length * problem.key_length


@cache
def problems(identifier: str, dtype: str) -> tuple[Problem, ...]:
    designed = requirements()[identifier].designed()
    return tuple(problem for problem in designed if problem.dtype == dtype and size(problem) <= LARGEST)


@cache
def inputs_of(problem: Problem):
    return materialise(problem)


@cache
def right(problem: Problem) -> object:
    return kept(compute(inputs_of(problem)))


def kept(output: np.ndarray) -> object:
    return output.shape, output.tobytes()


def given(fault: Fault, problem: Problem) -> object:
    try:
        return kept(np.asarray(fault.output(inputs_of(problem))))
    except Exception as error:
        return type(error)


def asked(faults: tuple[Fault, ...], identifiers: tuple[str, ...]) -> list[Problem]:
    """Problems of the requirements on which all of the faults can show, in one dtype."""
    dtype = next((one for one in ORDER if all(one in fault.dtypes for fault in faults)), "")
    return [
        problem
        for identifier in identifiers
        for problem in problems(identifier, dtype)
        if all(fault.needs <= problem.features for fault in faults)
    ]


def candidates() -> list[tuple[Fault, Fault]]:
    """Pairs that a few problems of the requirement that both name first do not tell apart, nor any of all that they name."""
    groups: dict[object, list[Fault]] = {}
    for fault in catalogue().values():
        if fault.behaviour is None and fault.requirements:
            few = asked((fault,), fault.requirements[:1])[:4]
            if few:
                groups.setdefault((few[0], *(given(fault, problem) for problem in few)), []).append(fault)
    pairs = [pair for group in groups.values() for pair in combinations(group, 2)]
    return [pair for pair in pairs if not told_apart(pair, asked(pair, (*pair[0].requirements, *pair[1].requirements)))]


def told_apart(pair: tuple[Fault, Fault], problems: list[Problem]) -> bool:
    return any(given(pair[0], problem) != given(pair[1], problem) for problem in problems)


def are_alike(pair: tuple[Fault, Fault]) -> bool:
    """Whether almost all designed problems of the operation on which one of the two shows leave them alike; a few are looked at
    first, which are enough for most."""
    known = tuple(one.id for one in requirements().values() if one.operation == pair[0].operation)
    all_of_them = list(dict.fromkeys(asked(pair, known)))
    return share_apart(pair, all_of_them[::EACH]) <= FAR and share_apart(pair, all_of_them) <= APART


def share_apart(pair: tuple[Fault, Fault], problems: list[Problem]) -> float:
    """Of the problems on which one of the two shows, how many tell them apart."""
    outputs = [(right(one), given(pair[0], one), given(pair[1], one)) for one in problems]
    showing = [(one, other) for expected, one, other in outputs if not one == expected == other]
    return sum(one != other for one, other in showing) / max(len(showing), 1)


@pytest.fixture(scope="module")
def found():
    with np.errstate(all="ignore"):
        return {frozenset((one.id, other.id)) for one, other in candidates() if are_alike((one, other))}


def test_faults_that_are_said_to_be_alike_are(found):
    said = {frozenset(pair) for group in ALIKE for pair in combinations(group, 2)}
    assert said == found


def test_the_catalogue_knows_them_from_both_sides():
    for group in ALIKE:
        for fault in group:
            assert set(catalogue()[fault].alike) == set(group) - {fault}

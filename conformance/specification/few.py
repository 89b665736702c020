"""What the quick tier asks where each shape costs a compilation: the few problems of a requirement, most of them in float32."""

from collections.abc import Iterator

from conformance.problem import Problem
from conformance.specification.palette import SHAPES
from conformance.specification.requirement import Requirement

_COMMON = SHAPES["wide"]  # of most problems, so that all dtypes are compiled at it anyway
_FIRST = "float32"


def few(requirement: Requirement) -> Iterator[Problem]:
    """Its problems for the few, the same one in several dtypes at one shape only; a requirement without that has its first."""
    problems = list((requirement.few or requirement.designed)())
    in_first = {problem for problem in problems if problem.dtype == _FIRST}
    at_common = any(_is_common(problem) for problem in problems)
    chosen = None
    for problem in problems:
        twin = problem.but(dtype=_FIRST)
        if problem.dtype == _FIRST or twin not in in_first or not _is_of_palette(problem) or _is_common(problem):
            yield problem
        elif not at_common:
            chosen = chosen or twin
            if twin == chosen:
                yield problem


def _is_common(problem: Problem) -> bool:
    return _is_of_palette(problem) and all(getattr(problem, name) == size for name, size in _COMMON.fields.items())


def _is_of_palette(problem: Problem) -> bool:
    return _COMMON.fields.keys() == set(problem.sizes)

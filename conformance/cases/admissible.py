"""Whether a problem can tell a right implementation from one that does hardly anything: the null models of the specification.

A fixed tolerance may accept an output of zeros. Here each problem must put the null models far outside of its budget, under
the reference profile of its dtype, or it does not count as a test of values. Under coarser profiles, by which outputs are judged
that declare them or declare nothing, a requirement needs one problem for each null model.
"""

from collections.abc import Iterable

import numpy as np

from conformance.judging.verdict import judge
from conformance.numerics.dtypes import float_type, round_to
from conformance.numerics.profiles import TIGHTEST_FIRST
from conformance.operations import operation_of
from conformance.oracle import Expected, expect
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.values import materialise

LEAST_RATIO = 10.0  # error / budget that a null model must reach
LEAST_RATIO_BFLOAT16 = 3.0  # for values drawn at random in bfloat16
LEAST_RATIO_COARSE = 3.0  # where sums are held in 16 bits, or bfloat16 rounds scores or queries too


def reference_profile(dtype: str) -> str:
    """The profile under which problems must be admissible."""
    return "fused" if float_type(dtype).is_16_bit else "strict"


def least_ratio(dtype: str, profile: str) -> float:
    """The error in budgets of ``profile`` that a null model must reach on some problem of a requirement."""
    coarse = profile == "low" or (dtype == "bfloat16" and profile not in ("inner32", "fused"))
    return LEAST_RATIO_COARSE if coarse else LEAST_RATIO


def indistinguishable(problem: Problem, least: float = LEAST_RATIO, profile: str = "") -> tuple[str, ...]:
    """The names of the null models whose error is less than ``least`` budgets on ``problem``, under the reference profile or
    another."""
    inputs = materialise(problem)
    return _within(least, _rounded(inputs, problem), expect(inputs, profile or reference_profile(problem.dtype)))


def told_by_none(problems: Iterable[Problem]) -> dict[tuple[str, str], frozenset[str]]:
    """By dtype and by profile of that dtype, the null models that not one of ``problems`` tells from the truth."""
    met: dict[tuple[str, str], set[str]] = {}
    told: dict[tuple[str, str], set[str]] = {}
    for problem in problems:
        inputs = materialise(problem)
        outputs = _rounded(inputs, problem)
        for profile in TIGHTEST_FIRST[problem.dtype]:
            judged = problem.dtype, profile
            met.setdefault(judged, set()).update(outputs)
            known = told.setdefault(judged, set())
            if not known >= outputs.keys():
                known |= outputs.keys() - set(_within(least_ratio(*judged), outputs, expect(inputs, profile)))
    return {judged: frozenset(met[judged] - told[judged]) for judged in met}


def _rounded(inputs: Inputs, problem: Problem) -> dict[str, np.ndarray]:
    return {name: round_to(output, problem.dtype) for name, output in null_outputs(inputs).items()}


def _within(least: float, outputs: dict[str, np.ndarray], expected: Expected) -> tuple[str, ...]:
    """The names of the ``outputs`` whose error is less than ``least`` budgets everywhere."""
    ratios = {name: judge(output, expected).r for name, output in outputs.items()}
    return tuple(name for name, r in ratios.items() if r is not None and r < least)


def null_outputs(inputs: Inputs) -> dict[str, np.ndarray]:
    """What the null models give, in float64; those that are no models of the operation, or of its shapes, are absent."""
    with np.errstate(invalid="ignore", over="ignore"):
        return operation_of(inputs).nulls(inputs)

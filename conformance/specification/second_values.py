"""Designed problems that are asked twice, with other values the second time: without that a known fault would hang on one case.

Shapes and arguments stay, so that nothing is compiled for it. ``attention-conformance faults --thin`` says which faults a single
case catches.
"""

from collections.abc import Iterable
from dataclasses import replace

from conformance.problem import Problem
from conformance.specification.build import joined
from conformance.specification.requirement import Requirement

LATER = 1000  # by which the second seed is larger
LATER_OF = {"ATT-OUT-034": 2000}  # where those values would not tell the null models from the truth
# By requirement, the seeds of those problems.
SECOND: dict[str, tuple[int, ...]] = {
    "ATT-OUT-027": (40, 41, 44),
    "ATT-OUT-029": (1,),
    "ATT-OUT-030": (28,),
    "ATT-OUT-034": (29,),
    "ATT-OUT-037": (1,),
    "ATT-OUT-043": (110,),
    "ATT-OUT-044": (110,),
    "ATT-OUT-045": (130,),
    "ATT-OUT-047": (28,),
    "ATT-SCALE-005": (68, 69),
    "ATT-SCALE-006": (10,),
    "ATT-SCALE-015": (28,),
    "ATT-MASK-001": (1,),
    "ATT-MASK-006": (1,),
    "ATT-MASK-007": (1, 5),
    "ATT-MASK-014": (12,),
    "ATT-MASK-017": (24,),
    "ATT-MASK-024": (80,),
    "ATT-MASK-032": (54,),
    "ATT-MASK-033": (57,),
    "ATT-MASK-036": (88, 91),
    "ATT-MASK-041": (84, 85),
    "ATT-MASK-043": (87, 88, 89, 91),
    "ATT-MASK-044": (96,),
    "ATT-MASK-047": (113,),
    "ATT-MASK-048": (122,),
    "ATT-MASK-052": (136,),
    "ATT-HEAD-004": (7, 12),
    "ATT-HEAD-033": (60,),
    "ATT-HEAD-035": (78,),
    "ATT-NUM-001": (1,),
    "ATT-NUM-002": (3,),
    "ATT-NUM-003": (4,),
    "ATT-NUM-004": (5,),
    "ATT-NUM-006": (9,),
    "ATT-NUM-007": (11,),
    "ATT-NUM-009": (13,),
}


def with_second_values(requirement: Requirement) -> Requirement:
    """``requirement``, its problems of the seeds in SECOND asked again with other values."""
    if requirement.id not in SECOND:
        return requirement
    seeds, first = SECOND[requirement.id], requirement.designed
    by = LATER_OF.get(requirement.id, LATER)

    def designed() -> Iterable[Problem]:
        problems = list(first())
        return joined(problems, (_later(problem, by) for problem in problems if problem.values.seed in seeds))

    return replace(requirement, designed=designed)


def _later(problem: Problem, by: int) -> Problem:
    return problem.but(values=replace(problem.values, seed=problem.values.seed + by))

"""Which of many problems are looked at again: few, cheap, and as different as they come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from conformance.numerics.dtypes import FLOAT_TYPES
from conformance.problem import Problem, Recipe

LARGEST = 1e7  # products of one call; beyond, a problem is looked at only where all are as large
LARGE = 100.0  # a number of a recipe that may be made smaller
WEAKER = (1e-2, 1e-4, 1e-6, 1e-8, 1e-12, 1e-16)
FURTHER, KINDS = 4, 6  # problems for each further kind of failure, and kinds for which there are such
FRESH_SEEDS = 7919  # added to seeds


def varied(problems: Sequence[Problem], limit: int) -> list[Problem]:
    """At most ``limit`` of ``problems``: dtypes, features and sizes in turn, within them distributions and transformations in
    turn; the cheapest first, but golden ones, which cannot be made anew with other numbers, last."""
    unique = sorted(dict.fromkeys(problems), key=lambda problem: (problem.values.name == "golden", problem.cost))
    affordable = [problem for problem in unique if problem.cost <= LARGEST] or unique[:limit]
    buckets: dict[object, list[Problem]] = {}
    for problem in affordable:
        buckets.setdefault((problem.dtype, problem.features, _size(problem)), []).append(problem)
    rows = _in_turn(list(_in_turn(_by_content(bucket))) for bucket in buckets.values())
    return [problem for problem, _ in zip(rows, range(limit), strict=False)]


def of_all_kinds(failing: Mapping[Problem, str], limit: int) -> list[Problem]:
    """At most ``limit`` of the failing problems, and a few more for every further kind of failure, the kinds in turn."""
    kinds: dict[str, list[Problem]] = {}
    for problem, kind in failing.items():
        kinds.setdefault(kind, []).append(problem)
    most = limit + FURTHER * min(len(kinds) - 1, KINDS)
    return [problem for problem, _ in zip(_in_turn(varied(group, limit) for group in kinds.values()), range(most), strict=False)]


def _size(problem: Problem) -> int:
    """A class of lengths: to 3, to 15, to 63, to 255 and so on."""
    return (problem.longest.bit_length() + 1) // 2


def _by_content(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Problems with values of the same distribution, the same kinds of mask and transformations, together."""
    kinds: dict[object, list[Problem]] = {}
    for problem in problems:
        recipes = (problem.mask, problem.bias, *problem.transformations)
        kinds.setdefault((problem.values.name, *(recipe and recipe.name for recipe in recipes)), []).append(problem)
    return list(kinds.values())


def _in_turn(lists: Iterable[Sequence[Problem]]) -> Iterator[Problem]:
    """One of each, then another of each."""
    waiting = [iter(members) for members in lists]
    while waiting:
        going_on = []
        for members in waiting:
            for problem in members:
                yield problem
                going_on.append(members)
                break
        waiting = going_on


def of_same_sizes(problem: Problem, problems: Iterable[Problem], limit: int) -> list[Problem]:
    """Some of ``problems`` that are of the sizes and the dtype of ``problem`` but ask for other features."""
    alike = [other for other in problems if _sizes(other) == _sizes(problem) and other.features != problem.features]
    return varied(alike, limit)


def _sizes(problem: Problem) -> tuple[object, ...]:
    return problem.dtype, *(getattr(problem, name) for name in problem.sizes)


def renewed(problem: Problem, number: int) -> Problem | None:
    """``problem`` with other seeds, so that it holds other numbers; None where it has no seeds to change."""
    if not problem.is_drawn:
        return None
    changes = {}
    for name in ("values", "mask", "bias"):
        recipe = getattr(problem, name)
        if recipe is not None:
            changes[name] = replace(recipe, seed=recipe.seed + FRESH_SEEDS * number)
    return problem.but(**changes)


def sharpened(problem: Problem, dtypes: Sequence[str]) -> list[Problem]:
    """``problem`` in the dtypes with more digits than its own: there budgets are smaller, and faults further apart."""
    own = FLOAT_TYPES[problem.dtype].unit_roundoff
    finer = sorted(
        (dtype for dtype in dtypes if FLOAT_TYPES[dtype].unit_roundoff < own), key=lambda d: -FLOAT_TYPES[d].unit_roundoff
    )
    return [] if problem.values.name == "golden" else [problem.but(dtype=dtype) for dtype in finer]


def weakened(problem: Problem) -> list[Problem]:
    """``problem`` with the numbers of its transformations and values, where they are large, made smaller by and by: what is lost
    at −1e10 may be lost at −1e6 or not."""
    transformations = problem.transformations
    found = []
    for factor in WEAKER:
        fewer = tuple(_weaker(transformation, factor) for transformation in transformations)
        values = _weaker(problem.values, factor)
        if (fewer, values) != (transformations, problem.values) and problem.values.name != "golden":
            found.append(problem.but(values=values, transformations=fewer) if transformations else problem.but(values=values))
    return found


def _weaker(recipe: Recipe, factor: float) -> Recipe:
    argument = recipe.argument
    if argument is None or not abs(argument) * factor >= LARGE or abs(argument) == float("inf"):
        return recipe
    return replace(recipe, argument=argument * factor)


def enlarged(problem: Problem) -> list[Problem]:
    """``problem`` with lengths beyond one tile and beyond two, in the relation that its own have."""
    if not problem.attends or problem.values.name == "golden" or problem.key_lengths is not None:
        return []
    query, key = problem.query_length, problem.key_length
    sizes = [(67, 67), (133, 133)] if query == key else [(66, 131), (67, 269)] if query < key else [(131, 66), (269, 67)]
    return [problem.but(query_length=1 if query == 1 else lq, key_length=lk) for lq, lk in sizes]

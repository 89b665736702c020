"""The company that a problem is put in: other problems, each of which differs from it in one respect, for calls in between.

Shapes are those of the palette, so that what compiles for each shape has mostly compiled them already.
"""

from conformance.features import features
from conformance.operations import operation_of
from conformance.problem import Problem, Recipe

_DTYPES = {"float32": "bfloat16", "bfloat16": "float32", "float16": "float32", "float64": "float32"}


def company(problem: Problem) -> list[Problem]:
    """Some dozen problems like ``problem``, in other shapes with its arguments, in its shape with other arguments, and in
    another dtype; each with values of its own."""
    others = [] if problem.values.name == "golden" else list(operation_of(problem).company(problem))
    if not others:
        return []
    asked = ((one, getattr(problem, one.argument)) for one in features(problem.operation) if one.example is not None)
    further = (problem.but(**{one.argument: one.example if value == one.default else one.default}) for one, value in asked)
    alike = [*others, *further, problem.but(dtype=_DTYPES[problem.dtype])]
    numbered = (_with_seed(other, problem.values.seed + number) for number, other in enumerate(alike, 1))
    return [other for other in numbered if other.but(values=problem.values) != problem]


def difference(other: Problem, problem: Problem) -> str:
    """In the words of their texts, what is asked for in ``other`` and not in ``problem``, its values aside; what lacks there."""
    theirs, ours = (dict(word.partition("=")[::2] for word in one.text.split()[1:]) for one in (other, problem))
    asked = [f"{name}={word}" for name, word in theirs.items() if name != "values" and ours.get(name) != word]
    without = [f"no {name}" for name in ours if name not in theirs]
    return " ".join([*asked, *without]) or "other values"


def _with_seed(problem: Problem, seed: int) -> Problem:
    return problem.but(values=Recipe(problem.values.name, seed, problem.values.form, problem.values.argument))

"""Problems: attention computations as data, with a text form from which each can be rebuilt bit for bit."""

from conformance.errors import ProblemError, quoted
from conformance.problem.attention import LAYOUTS, AttentionProblem
from conformance.problem.base import Problem
from conformance.problem.forms import MASK_FORMS
from conformance.problem.multihead import MultiHeadProblem
from conformance.problem.recipe import Cookbook, Recipe
from conformance.problem.sinusoidal import ARRANGEMENTS, FREQUENCIES, SinusoidalProblem

PROBLEM_TYPES: dict[str, type[Problem]] = {
    kind.operation: kind for kind in (AttentionProblem, MultiHeadProblem, SinusoidalProblem)
}


def parse(text: str) -> Problem:
    """The problem that ``text`` describes; ``parse(problem.text) == problem``.

    Raises ProblemError, with what is wrong, for text that describes none.
    """
    operation = text.split(maxsplit=1)[0] if text.strip() else ""
    if operation not in PROBLEM_TYPES:
        raise ProblemError(f"A problem text begins with one of {', '.join(PROBLEM_TYPES)}, not with {quoted(operation)}.")
    return PROBLEM_TYPES[operation].from_text(text)


__all__ = [
    "ARRANGEMENTS", "FREQUENCIES", "LAYOUTS", "MASK_FORMS", "AttentionProblem", "Cookbook", "MultiHeadProblem",
    "Problem", "ProblemError", "Recipe", "SinusoidalProblem", "parse",
]  # fmt: skip

"""Problems: attention computations as data, with a text form from which each can be rebuilt bit for bit."""

from conformance.errors import ProblemError, quoted
from conformance.problem.attention import LAYOUTS, AttentionProblem
from conformance.problem.base import KeyProblem, Problem
from conformance.problem.forms import MASK_FORMS
from conformance.problem.multihead import MultiHeadProblem
from conformance.problem.recipe import Cookbook, Recipe
from conformance.problem.sinusoidal import ARRANGEMENTS, FREQUENCIES, SinusoidalProblem


def parse(text: str) -> Problem:
    """The problem that ``text`` describes; ``parse(problem.text) == problem``.

    Raises ProblemError, with what is wrong, for text that describes none.
    """
    from conformance.operations import operations  # which have problems, and are looked for when there is a text

    name = text.split(maxsplit=1)[0] if text.strip() else ""
    if name not in operations():
        raise ProblemError(f"A problem text begins with one of {', '.join(operations())}, not with {quoted(name)}.")
    return operations()[name].problem.from_text(text)


__all__ = [
    "ARRANGEMENTS", "FREQUENCIES", "LAYOUTS", "MASK_FORMS", "AttentionProblem", "Cookbook", "KeyProblem", "MultiHeadProblem",
    "Problem", "ProblemError", "Recipe", "SinusoidalProblem", "parse",
]  # fmt: skip

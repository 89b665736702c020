"""Makes the arrays of a problem: distribution → rounding to the dtype → mask, bias, lengths → transformations → memory layout."""

import numpy as np

from conformance.errors import ProblemError
from conformance.features import features
from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem
from conformance.problem.inputs import AttentionInputs, Inputs, SinusoidalInputs
from conformance.values import contents, masks, single_elements  # noqa: F401  (register their transformations and kinds)
from conformance.values.distributions import DISTRIBUTIONS
from conformance.values.golden import golden_inputs
from conformance.values.layouts import laid_out, shared
from conformance.values.multihead import multi_head
from conformance.values.transformations import TRANSFORMATIONS, transformed


def materialise(problem: Problem) -> Inputs:
    """The inputs that ``problem`` describes: equal problems give equal bits on every machine.

    Raises ProblemError where a recipe is unknown, of another version, or does not fit the shapes.
    """
    if problem.values.name == "golden":
        return golden_inputs(problem)
    if isinstance(problem, AttentionProblem):
        return _attention(problem)
    if isinstance(problem, MultiHeadProblem):
        return multi_head(problem)
    return _sinusoidal(problem)


def _attention(problem: AttentionProblem) -> AttentionInputs:
    distribution = DISTRIBUTIONS.find(problem.values)
    seed = problem.values.seed
    query, key, value = distribution(problem, Stream(seed, "query"), Stream(seed, "key"), Stream(seed, "value"))
    if problem.layout == "expanded":  # one batch row, seen through stride 0 by all
        query, key, value = (np.repeat(array[:1], problem.batch, axis=0) for array in (query, key, value))
    query, key, value = (round_to(array, problem.dtype) for array in (query, key, value))
    if problem.values.argument is not None and not all(np.isfinite(array).all() for array in (query, key, value)):
        raise ProblemError(f"values={problem.values} makes numbers beyond {problem.dtype}: make its argument smaller.")
    given = {feature.argument: feature.given(problem) for feature in features(problem.operation)}
    given |= {name: shared(given[name], problem.layout) for name in ("mask", "bias")}
    inputs = AttentionInputs(query=query, key=key, value=value, **given)
    for recipe in problem.transformations:
        inputs = transformed(TRANSFORMATIONS, recipe, inputs)
    lengths = inputs.query.shape[2], inputs.key.shape[2]
    moved = [one for one in features(problem.operation) if one.positional and one.name in problem.features]
    if moved and lengths != (problem.query_length, problem.key_length):
        raise ProblemError(
            f"edits={','.join(map(str, problem.transformations))} changes the lengths to {lengths[0]} and {lengths[1]}, "
            f"which does not go with {moved[0].name}: its alignment is meant for the lengths that the problem names."
        )
    return laid_out(inputs, problem.layout)


def _sinusoidal(problem: Problem) -> SinusoidalInputs:
    x = None
    if problem.batch:
        if problem.values.name != "gaussian" or problem.values.argument is not None:
            raise ProblemError(
                f"sinusoidal_encoding has the value distribution gaussian only, without an argument, not {problem.values}."
            )
        DISTRIBUTIONS.find(problem.values)
        x = round_to(Stream(problem.values.seed, "value").normal(problem.batch, problem.length, problem.width), problem.dtype)
    return SinusoidalInputs(
        length=problem.length, width=problem.width, dtype=problem.dtype, arrangement=problem.arrangement,
        frequencies=problem.frequencies, rows=problem.rows, x=x,
    )  # fmt: skip

"""Makes the arrays of a problem: law → rounding to the dtype → mask, bias, lengths → edits → memory layout."""

from dataclasses import replace

import numpy as np

from conformance.cases.golden import golden_inputs
from conformance.dtypes import round_to
from conformance.errors import ProblemError
from conformance.inputs import AttentionInputs, Inputs, SinusoidalInputs
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, SinusoidalProblem
from conformance.values import contents, single_elements  # noqa: F401  (register their edits)
from conformance.values.edits import EDITS
from conformance.values.laws import LAWS
from conformance.values.masks import BIASES, form_shape, made_mask
from conformance.values.multihead import multi_head
from conformance.values.stream import Stream


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
    law = LAWS.find(problem.values)
    seed = problem.values.seed
    query, key, value = law(problem, Stream(seed, "query"), Stream(seed, "key"), Stream(seed, "value"))
    if problem.layout == "expanded":  # one batch row, seen through stride 0 by all
        query, key, value = (np.repeat(array[:1], problem.batch, axis=0) for array in (query, key, value))
    inputs = AttentionInputs(
        query=round_to(query, problem.dtype),
        key=round_to(key, problem.dtype),
        value=round_to(value, problem.dtype),
        mask=made_mask(problem),
        bias=_bias(problem),
        causal=problem.causal,
        key_lengths=None if problem.key_lengths is None else np.array(problem.key_lengths, dtype=np.int64),
        scale=problem.scale,
    )
    for recipe in problem.edits:
        inputs = EDITS.find(recipe)(inputs, Stream(recipe.seed, "edit"), recipe.argument)
    lengths = inputs.query.shape[2], inputs.key.shape[2]
    if problem.causal != "none" and lengths != (problem.query_length, problem.key_length):
        raise ProblemError(
            f"edits={','.join(map(str, problem.edits))} changes the lengths to {lengths[0]} and {lengths[1]}, "
            "which does not go with causal: its alignment is meant for the lengths that the problem names."
        )
    others, key = ("contiguous", "transposed") if problem.layout == "mixed" else (problem.layout, problem.layout)
    if inputs.query is inputs.key is inputs.value and others == key:
        one = lay_out(inputs.query, key)
        return replace(inputs, query=one, key=one, value=one)
    return replace(inputs, query=lay_out(inputs.query, others), key=lay_out(inputs.key, key), value=lay_out(inputs.value, others))


def _bias(problem: AttentionProblem) -> np.ndarray | None:
    recipe = problem.bias
    if recipe is None:
        return None
    shape = form_shape(recipe.form, problem.batch, problem.heads, problem.query_length, problem.key_length)
    return round_to(BIASES.find(recipe)(shape, Stream(recipe.seed, "bias"), recipe.argument), problem.dtype)


def lay_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same numbers in the memory layout asked for; gaps in the memory are filled with NaN, so that reading them shows.

    transposed: length before heads in memory; strided: every second element along the width, one row of slack at the end;
    expanded: stride 0 over the batch, in memory for all of it; reversed: negative stride over the length.
    """
    if layout == "transposed":
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
    if layout == "strided":
        buffer = np.full((*array.shape[:2], array.shape[2] + 1, 2 * array.shape[3]), np.nan, dtype=array.dtype)
        view = buffer[:, :, : array.shape[2], ::2]
        view[...] = array
        return view
    if layout == "expanded":
        memory = np.full(array.shape, np.nan, dtype=array.dtype)
        memory[0] = array[0]
        view = np.ndarray(array.shape, array.dtype, memory, strides=(0, *memory.strides[1:]))
        view.flags.writeable = False
        return view
    if layout == "reversed":
        return np.ascontiguousarray(array[:, :, ::-1])[:, :, ::-1]
    return np.ascontiguousarray(array)


def _sinusoidal(problem: SinusoidalProblem) -> SinusoidalInputs:
    x = None
    if problem.batch:
        if problem.values.name != "gaussian" or problem.values.argument is not None:
            raise ProblemError(f"sinusoidal_encoding has the value law gaussian only, without an argument, not {problem.values}.")
        LAWS.find(problem.values)
        x = round_to(Stream(problem.values.seed, "value").normal(problem.batch, problem.length, problem.width), problem.dtype)
    return SinusoidalInputs(
        length=problem.length, width=problem.width, dtype=problem.dtype, arrangement=problem.arrangement,
        frequencies=problem.frequencies, rows=problem.rows, x=x,
    )  # fmt: skip

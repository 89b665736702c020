"""Makes the arrays of a problem: law → rounding to the dtype → mask, bias, lengths → edits → memory layout."""

from dataclasses import replace

import numpy as np

from conformance.dtypes import float_type, round_to
from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs, Weights
from conformance.problem import AttentionProblem, MultiHeadProblem, Problem, ProblemError, Recipe, SinusoidalProblem
from conformance.values.edits import EDITS
from conformance.values.laws import LAWS
from conformance.values.masks import BIASES, MASKS, form_shape
from conformance.values.stream import Stream


def materialise(problem: Problem) -> Inputs:
    """The inputs that ``problem`` describes: equal problems give equal bits on every machine.

    Raises ProblemError where a recipe is unknown, of another version, or does not fit the shapes.
    """
    if problem.values.name == "golden":
        from conformance.cases.golden import golden_inputs  # the loader knows problems, so it cannot be imported above

        return golden_inputs(problem)
    if isinstance(problem, AttentionProblem):
        return _attention(problem)
    if isinstance(problem, MultiHeadProblem):
        return _multihead(problem)
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
        mask=None if problem.mask is None else _mask(problem, problem.mask),
        bias=None if problem.bias is None else _bias(problem, problem.bias),
        causal=problem.causal,
        key_lengths=None if problem.key_lengths is None else np.array(problem.key_lengths, dtype=np.int64),
        scale=problem.scale,
    )
    for recipe in problem.edits:
        inputs = EDITS.find(recipe)(inputs, Stream(recipe.seed, "edit"), recipe.argument)
    if problem.layout == "contiguous":
        return inputs
    return replace(
        inputs,
        query=lay_out(inputs.query, problem.layout),
        key=lay_out(inputs.key, problem.layout),
        value=lay_out(inputs.value, problem.layout),
    )


def _mask(problem: AttentionProblem | MultiHeadProblem, recipe: Recipe) -> np.ndarray:
    shape = form_shape(recipe.form, problem.batch, problem.heads, problem.query_length, problem.key_length)
    return MASKS.find(recipe)(shape, Stream(recipe.seed, "mask"), recipe.argument)


def _bias(problem: AttentionProblem, recipe: Recipe) -> np.ndarray:
    shape = form_shape(recipe.form, problem.batch, problem.heads, problem.query_length, problem.key_length)
    return round_to(BIASES.find(recipe)(shape, Stream(recipe.seed, "bias"), recipe.argument), problem.dtype)


def lay_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same numbers in another memory layout; gaps in the memory are filled with NaN, so that reading them shows.

    transposed: length before heads in memory; strided: every second element along the width, one row of slack at the end;
    expanded: stride 0 over the batch; reversed: negative stride over the length.
    """
    if layout == "transposed":
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
    if layout == "strided":
        buffer = np.full((*array.shape[:2], array.shape[2] + 1, 2 * array.shape[3]), np.nan, dtype=array.dtype)
        view = buffer[:, :, : array.shape[2], ::2]
        view[...] = array
        return view
    if layout == "expanded":
        return np.broadcast_to(np.ascontiguousarray(array[:1]), array.shape)
    if layout == "reversed":
        return np.ascontiguousarray(array[:, :, ::-1])[:, :, ::-1]
    return np.ascontiguousarray(array)


def _multihead(problem: MultiHeadProblem) -> MultiHeadInputs:
    """Inputs of variance 1, weights of variance 1/in and off centre, biases of deviation 1/2."""
    if problem.values.name != "gaussian":
        raise ProblemError(f"multi_head_attention has the value law gaussian only, not {problem.values.name!r}.")
    LAWS.find(problem.values)
    if problem.edits:
        raise ProblemError("multi_head_attention takes no edits.")
    seed, dtype, model = problem.values.seed, problem.dtype, problem.model_width
    amplitude = 1.0 if problem.values.argument is None else problem.values.argument
    query = round_to(Stream(seed, "query").normal(problem.batch, problem.query_length, model), dtype)
    if problem.source == "self":
        key = value = query
    else:
        key = round_to(Stream(seed, "key").normal(problem.batch, problem.key_length, model), dtype)
        value = round_to(Stream(seed, "value").normal(problem.batch, problem.key_length, model), dtype)
    stream = Stream(seed, "weights")

    def matrix(rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        if problem.weights == "shared":
            width = rows // problem.heads
            block = stream.normal(width, columns // problem.heads) * (factor / np.sqrt(float(width)))
            full = np.zeros((rows, columns))
            for head in range(problem.heads):
                full[head * width : (head + 1) * width, head * width : (head + 1) * width] = block
            return round_to(full, dtype)
        return round_to(stream.normal(rows, columns) * (factor / np.sqrt(float(rows))), dtype)

    def vector(size: int, wanted: bool) -> np.ndarray | None:
        return round_to(stream.normal(size) * 0.5, dtype) if wanted else None

    inner, value_inner = problem.inner_width, problem.value_inner_width
    w_query = matrix(model, inner, 1.5 * amplitude)
    w_key, w_value = matrix(model, inner, 1.5), matrix(model, value_inner)
    # the output projection mixes heads also where the other weights are shared by them
    output = None
    if problem.output != "none":
        output = round_to(stream.normal(value_inner, model) * (1.0 / np.sqrt(float(value_inner))), dtype)
    return MultiHeadInputs(
        query=query,
        key=key,
        value=value,
        weights=Weights(
            query=w_query,
            key=w_key,
            value=w_value,
            output=output,
            query_bias=vector(inner, problem.projection_bias),
            key_bias=vector(inner, problem.projection_bias),
            value_bias=vector(value_inner, problem.projection_bias),
            output_bias=vector(model, problem.output == "bias"),
        ),
        num_heads=problem.heads,
        mask=None if problem.mask is None else _mask(problem, problem.mask),
        causal=problem.causal,
        key_lengths=None if problem.key_lengths is None else np.array(problem.key_lengths, dtype=np.int64),
    )


def _sinusoidal(problem: SinusoidalProblem) -> SinusoidalInputs:
    float_type(problem.dtype)
    x = None
    if problem.batch:
        LAWS.find(problem.values)
        x = round_to(Stream(problem.values.seed, "value").normal(problem.batch, problem.length, problem.width), problem.dtype)
    return SinusoidalInputs(
        length=problem.length, width=problem.width, dtype=problem.dtype, arrangement=problem.arrangement, rows=problem.rows, x=x
    )

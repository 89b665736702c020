"""The inputs and weights of multi-head attention, and the edits that they take."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.dtypes import round_to
from conformance.inputs import AttentionInputs, MultiHeadInputs, Weights
from conformance.problem import Cookbook, MultiHeadProblem, ProblemError
from conformance.values.laws import LAWS
from conformance.values.masks import made_mask
from conformance.values.stream import Stream
from conformance.visibility import visible_pairs

MULTI_HEAD_EDITS = Cookbook("edit of multi-head attention")


def multi_head(problem: MultiHeadProblem) -> MultiHeadInputs:
    """Inputs of variance 1, weights of variance 1/in, biases of deviation 1/2; ``gaussian*a`` multiplies W_q."""
    if problem.values.name != "gaussian":
        raise ProblemError(f"multi_head_attention has the value law gaussian only, not {problem.values.name!r}.")
    LAWS.find(problem.values)
    seed, dtype, model = problem.values.seed, problem.dtype, problem.model_width
    query = round_to(Stream(seed, "query").normal(problem.batch, problem.query_length, model), dtype)
    key = value = query
    if problem.source == "cross":
        key = round_to(Stream(seed, "key").normal(problem.batch, problem.key_length, model), dtype)
        value = round_to(Stream(seed, "value").normal(problem.batch, problem.key_length, model), dtype)
    inputs = MultiHeadInputs(
        query=query,
        key=key,
        value=value,
        weights=_weights(problem, Stream(seed, "weights")),
        num_heads=problem.heads,
        mask=made_mask(problem),
        causal=problem.causal,
        key_lengths=None if problem.key_lengths is None else np.array(problem.key_lengths, dtype=np.int64),
    )
    for recipe in problem.edits:
        inputs = MULTI_HEAD_EDITS.find(recipe)(inputs, Stream(recipe.seed, "edit"), recipe.argument)
    return inputs


def _weights(problem: MultiHeadProblem, stream: Stream) -> Weights:
    model, inner, value_inner = problem.model_width, problem.inner_width, problem.value_inner_width
    amplitude = 1.0 if problem.values.argument is None else problem.values.argument

    def matrix(rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        if problem.weights == "full":
            return round_to(stream.normal(rows, columns) * (factor / np.sqrt(float(rows))), problem.dtype)
        width = rows // problem.heads
        block = stream.normal(width, width) * (factor / np.sqrt(float(width)))
        return round_to(np.kron(np.eye(problem.heads), block), problem.dtype)

    def vector(size: int, wanted: bool) -> np.ndarray | None:
        return round_to(stream.normal(size) * 0.5, problem.dtype) if wanted else None

    w_query = matrix(model, inner, 1.5 * amplitude)
    w_key, w_value = matrix(model, inner, 1.5), matrix(model, value_inner)
    output = None
    if problem.output != "none":  # it mixes heads also where they share the other weights
        output = round_to(stream.normal(value_inner, model) * (1.0 / np.sqrt(float(value_inner))), problem.dtype)
    return Weights(
        query=w_query,
        key=w_key,
        value=w_value,
        output=output,
        query_bias=vector(inner, problem.projection_bias),
        key_bias=vector(inner, problem.projection_bias),
        value_bias=vector(value_inner, problem.projection_bias),
        output_bias=vector(model, problem.output == "bias"),
    )


@MULTI_HEAD_EDITS.entry("permute-heads")
def permute_heads(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The heads in another order: their columns of W_q, W_k, W_v and biases, their rows of W_o, their masks. The output stays."""
    order = stream.permutation(inputs.num_heads)
    weights = inputs.weights

    def columns(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:-1], inputs.num_heads, -1)[..., order, :].reshape(array.shape)

    mask = inputs.mask
    if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
        mask = mask[:, order]
    moved: dict[str, Any] = {name: columns(array) for name, array in weights.arrays().items() if not name.startswith("output")}
    if weights.output is not None:
        moved["output"] = np.ascontiguousarray(columns(weights.output.T).T)
    return replace(inputs, weights=replace(weights, **moved), mask=mask)


@MULTI_HEAD_EDITS.entry("batch-row")
def batch_row(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """One batch row alone, number ``*n`` (the last unless said)."""
    row = np.array([-1 if argument is None else int(argument) % inputs.query.shape[0]])
    mask = inputs.mask
    return replace(
        _tokens(inputs, lambda array: array[row]),
        mask=mask[row] if mask is not None and mask.ndim == 4 and mask.shape[0] > 1 else mask,
        key_lengths=None if inputs.key_lengths is None else inputs.key_lengths[row],
    )


@MULTI_HEAD_EDITS.entry("loud-hidden")
def loud_hidden(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Tokens that no query of any head sees made ``*a`` (64 unless said) times louder: what they say must not be heard."""
    factor = 64.0 if argument is None else argument
    hidden = _hidden_tokens(inputs)[..., None]
    dtype = inputs.key.dtype.name
    return _tokens(inputs, lambda array: np.where(hidden, round_to(array.astype(np.float64) * factor, dtype), array), query=False)


@MULTI_HEAD_EDITS.entry("scale-output")
def scale_output(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The output projection times ``*a`` (2 unless said); a power of two keeps every bit."""
    weights = inputs.weights
    if weights.output is None:
        raise ProblemError("The edit scale-output needs an output projection.")
    factor = 2.0 if argument is None else argument
    return replace(
        inputs, weights=replace(weights, output=round_to(weights.output.astype(np.float64) * factor, inputs.query.dtype.name))
    )


def _tokens(inputs: MultiHeadInputs, change: Callable[[np.ndarray], np.ndarray], query: bool = True) -> MultiHeadInputs:
    """``change`` applied to key and value, and to the query if wanted; in self-attention the three stay one array."""
    if inputs.query is inputs.key:
        one = change(inputs.key)
        return replace(inputs, query=one, key=one, value=one)
    changed = change(inputs.query) if query else inputs.query
    return replace(inputs, query=changed, key=change(inputs.key), value=change(inputs.value))


def _hidden_tokens(inputs: MultiHeadInputs) -> Bool[np.ndarray, "b lk"]:
    batch, query_length, width = inputs.query.shape
    shell = AttentionInputs(
        query=np.broadcast_to(inputs.query[:, None], (batch, inputs.num_heads, query_length, width)),
        key=inputs.key[:, None],
        value=inputs.value[:, None],
        mask=inputs.mask,
        causal=inputs.causal,
        key_lengths=inputs.key_lengths,
    )
    return np.logical_not(visible_pairs(shell).any(axis=(1, 2)))

"""The inputs and weights of multi-head attention."""

import numpy as np

from conformance.errors import quoted
from conformance.features import features
from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import MultiHeadProblem, ProblemError
from conformance.problem.inputs import MultiHeadInputs, Weights
from conformance.values.distributions import DISTRIBUTIONS
from conformance.values.multihead_transformations import MULTI_HEAD_TRANSFORMATIONS
from conformance.values.transformations import transformed


def multi_head(problem: MultiHeadProblem) -> MultiHeadInputs:
    """Inputs of variance 1, W_v and W_o of variance 1/in, W_q and W_k of 2.25/in (a factor of 1.5), biases of deviation 1/2;
    ``gaussian*a`` multiplies W_q."""
    if problem.values.name != "gaussian":
        raise ProblemError(f"multi_head_attention has the value distribution gaussian only, not {quoted(problem.values.name)}.")
    DISTRIBUTIONS.find(problem.values)
    seed, dtype, model = problem.values.seed, problem.dtype, problem.model_width
    query = round_to(Stream(seed, "query").normal(problem.batch, problem.query_length, model), dtype)
    key = value = query
    if problem.source != "self":
        key = value = round_to(Stream(seed, "key").normal(problem.batch, problem.key_length, model), dtype)
    if problem.source == "cross":
        value = round_to(Stream(seed, "value").normal(problem.batch, problem.key_length, model), dtype)
    inputs = MultiHeadInputs(
        query=query,
        key=key,
        value=value,
        weights=_weights(problem, Stream(seed, "weights")),
        num_heads=problem.heads,
        **{feature.argument: feature.given(problem) for feature in features(problem.operation)},
    )
    for recipe in problem.transformations:
        inputs = transformed(MULTI_HEAD_TRANSFORMATIONS, recipe, inputs)
    return inputs


def _weights(problem: MultiHeadProblem, stream: Stream) -> Weights:
    model, inner, value_inner = problem.model_width, problem.inner_width, problem.value_inner_width
    amplitude = 1.0 if problem.values.argument is None else problem.values.argument

    def matrix(rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        if problem.weights == "full":
            return round_to(stream.normal(rows, columns) * (factor / np.sqrt(float(rows))), problem.dtype)
        width = max(1, rows // problem.heads)
        block = stream.normal(width, width) * (factor / np.sqrt(float(width)))
        blocks = -(-rows // width)  # more than heads where they do not divide the width: the last one is cut off
        return round_to(np.kron(np.eye(blocks), block)[:rows, :columns], problem.dtype)

    def vector(size: int, wanted: bool) -> np.ndarray | None:
        return round_to(stream.normal(size) * 0.5, problem.dtype) if wanted else None

    w_query = matrix(model, inner, 1.5 * amplitude)
    if problem.values.argument is not None and not np.isfinite(w_query).all():
        raise ProblemError(f"values={problem.values} makes numbers beyond {problem.dtype}: make its argument smaller.")
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

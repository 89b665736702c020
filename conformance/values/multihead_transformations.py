"""Transformations of multi-head attention: changes made to its inputs and weights after they were drawn, in the order of the
problem.

Each is one function of (inputs, stream, argument) that returns new inputs, as for attention
(conformance/values/transformations.py).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import Cookbook, ProblemError
from conformance.problem.inputs import MultiHeadInputs
from conformance.problem.visibility import visible_pairs
from conformance.values.transformations import index_named, whole

MULTI_HEAD_TRANSFORMATIONS = Cookbook("transformation of multi-head attention")


@MULTI_HEAD_TRANSFORMATIONS.entry("permute-heads")
def permute_heads(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The heads in another order: their columns of W_q, W_k, W_v and biases, their rows of W_o, their masks. The output stays."""
    order = stream.permutation(inputs.num_heads)
    weights = inputs.weights

    def columns(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:-1], inputs.num_heads, -1)[..., order, :].reshape(array.shape)

    moved: dict[str, Any] = {name: columns(array) for name, array in weights.arrays().items() if not name.startswith("output")}
    if weights.output is not None:
        moved["output"] = np.ascontiguousarray(columns(weights.output.T).T)
    return inputs.but(weights=weights.but(**moved), **inputs.along(-3, order))


@MULTI_HEAD_TRANSFORMATIONS.entry("batch-row")
def batch_row(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """One batch row alone, number ``*n`` (the last unless said)."""
    row = np.array([index_named(argument, inputs.query.shape[0])])
    return _tokens(inputs, lambda array: array[row]).but(**inputs.along(-4, row))


@MULTI_HEAD_TRANSFORMATIONS.entry("loud-hidden")
def loud_hidden(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Tokens that no query of any head sees made ``*a`` (64 unless said) times louder: what they say must not be heard."""
    factor = 64.0 if argument is None else argument
    hidden = _hidden_tokens(inputs)[..., None]
    dtype = inputs.key.dtype.name
    return _tokens(inputs, lambda array: np.where(hidden, round_to(array.astype(np.float64) * factor, dtype), array), query=False)


@MULTI_HEAD_TRANSFORMATIONS.entry("hidden-key")
def hidden_key(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The key of every token that no query of any head sees set to ``*a`` (100 unless said; inf and nan too)."""
    return inputs.but(key=_where_hidden(inputs, inputs.key, 1e2 if argument is None else argument))


@MULTI_HEAD_TRANSFORMATIONS.entry("hidden-value")
def hidden_value(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The value of every token that no query of any head sees set to ``*a`` (1e4 unless said; inf and nan too)."""
    return inputs.but(value=_where_hidden(inputs, inputs.value, 1e4 if argument is None else argument))


@MULTI_HEAD_TRANSFORMATIONS.entry("low-visible")
def low_visible(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Scores of all visible keys near ``*a`` (−2e4 unless said), under the default scale.

    A channel of the tokens for each head is √|a|·⁴√d, d the width of a head, but 0 in tokens that no query of any head sees.
    W_q leads it to the first channel of the head, W_k too, with the sign of ``a``, and W_v nowhere. A finite fill for hidden
    keys that is not lower than this lets them win.
    """
    weights, model, inner = inputs.weights, inputs.query.shape[-1], inputs.weights.query.shape[1]
    if model < inputs.num_heads:
        raise ProblemError(
            f"The transformation low-visible needs a channel for each of {inputs.num_heads} heads, not {model} in all."
        )
    amount = (-2e4 if argument is None else argument) * np.sqrt(inner / inputs.num_heads)
    channels = np.arange(inputs.num_heads) * (model // inputs.num_heads)
    firsts = np.arange(inputs.num_heads) * (inner // inputs.num_heads)

    def led(matrix: np.ndarray, entry: float) -> np.ndarray:
        matrix = matrix.copy()
        matrix[channels], matrix[:, firsts] = 0, 0
        matrix[channels, firsts] = entry
        return matrix

    def lowered(tokens: np.ndarray, where: Any) -> np.ndarray:
        tokens = tokens.copy()
        tokens[..., channels] = round_to(np.where(where, np.sqrt(abs(amount)), 0.0), tokens.dtype.name)
        return tokens

    value = weights.value.copy()
    value[channels] = 0
    own = replace(weights, query=led(weights.query, 1.0), key=led(weights.key, np.sign(amount)), value=value)
    seen = np.logical_not(_hidden_tokens(inputs))[..., None]
    if inputs.query is not inputs.key:
        inputs = inputs.but(query=lowered(inputs.query, True))
    return _tokens(inputs, lambda array: lowered(array, seen), query=False).but(weights=own)


@MULTI_HEAD_TRANSFORMATIONS.entry("suffix")
def suffix(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Tokens from number ``*t`` on (the second half unless said) replaced by other, louder ones.

    Causal rows before t must not move.
    """
    length = inputs.key.shape[1]
    start = (length + 1) // 2 if argument is None else whole(argument)
    later = (np.arange(length) >= start)[:, None]

    def replaced(array: np.ndarray) -> np.ndarray:
        return np.where(later, round_to(2.0 * stream.normal(*array.shape), array.dtype.name), array)

    return _tokens(inputs, replaced, query=False)


@MULTI_HEAD_TRANSFORMATIONS.entry("scale-output")
def scale_output(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """The output projection times ``*a`` (2 unless said); a power of two keeps every bit."""
    weights = inputs.weights
    if weights.output is None:
        raise ProblemError("The transformation scale-output needs an output projection.")
    factor = 2.0 if argument is None else argument
    return inputs.but(
        weights=replace(weights, output=round_to(weights.output.astype(np.float64) * factor, inputs.query.dtype.name))
    )


def _tokens(inputs: MultiHeadInputs, change: Callable[[np.ndarray], np.ndarray], query: bool = True) -> MultiHeadInputs:
    """``change`` applied to key and value, and to the query if wanted; arrays that are one stay one."""
    if inputs.query is inputs.key:
        one = change(inputs.key)
        return inputs.but(query=one, key=one, value=one)
    changed = change(inputs.query) if query else inputs.query
    key = change(inputs.key)
    return inputs.but(query=changed, key=key, value=key if inputs.value is inputs.key else change(inputs.value))


def _where_hidden(inputs: MultiHeadInputs, tokens: np.ndarray, number: float) -> np.ndarray:
    """``tokens`` with ``number`` in those that no query of any head sees."""
    if inputs.value is inputs.key:
        raise ProblemError(
            "The transformations hidden-key and hidden-value need source=cross: otherwise key and value are one array."
        )
    return np.where(_hidden_tokens(inputs)[..., None], round_to(np.asarray(number, np.float64), tokens.dtype.name), tokens)


def _hidden_tokens(inputs: MultiHeadInputs) -> Bool[np.ndarray, "b lk"]:
    return np.logical_not(visible_pairs(inputs).any(axis=(1, 2)))

"""Transformations of content: what lies behind masks, and special numbers in query, key and value."""

import numpy as np
from jaxtyping import Bool

from conformance.numerics.dtypes import float_type, round_to
from conformance.numerics.philox import Stream
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs
from conformance.values.transformations import TRANSFORMATIONS


def _number(inputs: AttentionInputs, argument: float | None, default: float) -> np.ndarray:
    """The number that a transformation's argument names, in the dtype of the inputs."""
    return round_to(np.asarray(default if argument is None else argument, dtype=np.float64), inputs.query.dtype.name)


def hidden_keys(inputs: AttentionInputs) -> Bool[np.ndarray, "b hkv lk"]:
    """The keys that no query of their group sees."""
    visible = visible_pairs(inputs)
    batch, heads, _, key_length = visible.shape
    kv_heads = inputs.key.shape[1]
    seen = visible.any(axis=2).reshape(batch, kv_heads, heads // kv_heads, key_length).any(axis=2)
    return np.logical_not(seen)


@TRANSFORMATIONS.entry("loud-value")
def loud_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V of one key in each head, drawn at random, set to ``*a`` (1e4 unless said): rows that do not see it must not move."""
    batch, kv_heads, key_length, _ = inputs.value.shape
    chosen = np.arange(key_length) == stream.below(key_length, batch, kv_heads, 1)
    return inputs.but(value=np.where(chosen[..., None], _number(inputs, argument, 1e4), inputs.value))


@TRANSFORMATIONS.entry("hidden-value")
def hidden_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V of every key that no query sees set to ``*a`` (1e4 unless said; inf and nan too)."""
    value = inputs.value.copy()
    value[hidden_keys(inputs)] = _number(inputs, argument, 1e4)
    return inputs.but(value=value)


@TRANSFORMATIONS.entry("hidden-key")
def hidden_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every key that no query sees set to ``*a`` in all channels (100 unless said; inf and nan too)."""
    key = inputs.key.copy()
    key[hidden_keys(inputs)] = _number(inputs, argument, 1e2)
    return inputs.but(key=key)


@TRANSFORMATIONS.entry("loud-hidden")
def loud_hidden(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every key that no query sees made ``*a`` times (4 unless said) its group's first query: its score would be the largest."""
    group = inputs.query.shape[1] // inputs.key.shape[1]
    loud = inputs.query[:, ::group, :1].astype(np.float64) * (4.0 if argument is None else argument)
    return inputs.but(key=np.where(hidden_keys(inputs)[..., None], round_to(loud, inputs.query.dtype.name), inputs.key))


@TRANSFORMATIONS.entry("low-visible")
def low_visible(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Scores of all visible keys near ``*a`` (−2e4 unless said), under the default scale.

    The last channel is √|a|·⁴√d in q, and as much with the sign of ``a`` in k, but 0 in keys that no query sees. A finite fill
    for hidden keys that is not lower than this lets them win.
    """
    amount = (-2e4 if argument is None else argument) * np.sqrt(float(inputs.query.shape[3]))
    root = _number(inputs, np.sqrt(abs(amount)), 0.0)
    query, key = inputs.query.copy(), inputs.key.copy()
    query[..., -1] = root
    key[..., -1] = np.where(hidden_keys(inputs), np.zeros_like(root), -root if amount < 0 else root)
    return inputs.but(query=query, key=key)


@TRANSFORMATIONS.entry("put-query")
def put_query(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the query, in the middle row of each head of the first batch row, set to ``*a`` (nan unless said)."""
    return inputs.but(query=_put(inputs, inputs.query, argument))


@TRANSFORMATIONS.entry("put-key")
def put_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the key, in the middle row of each head of the first batch row, set to ``*a`` (nan unless said)."""
    return inputs.but(key=_put(inputs, inputs.key, argument))


@TRANSFORMATIONS.entry("put-value")
def put_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the value, in the middle row of each head of the first batch row, set to ``*a`` (nan unless said)."""
    return inputs.but(value=_put(inputs, inputs.value, argument))


def _put(inputs: AttentionInputs, array: np.ndarray, argument: float | None) -> np.ndarray:
    changed = array.copy()
    changed[0, :, array.shape[2] // 2, array.shape[3] // 2] = _number(inputs, argument, np.nan)
    return changed


@TRANSFORMATIONS.entry("put-zeros")
def put_zeros(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """A quarter of the entries of query, key and value set to −0.0 (``*1`` to +0.0): a zero has no sign that matters."""
    zero = _number(inputs, -0.0 if argument is None else 0.0, 0.0)

    def sprinkled(array: np.ndarray) -> np.ndarray:
        return np.where(stream.below(4, *array.shape) == 0, zero, array)

    return inputs.but(query=sprinkled(inputs.query), key=sprinkled(inputs.key), value=sprinkled(inputs.value))


@TRANSFORMATIONS.entry("zero-key")
def zero_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The key in the middle of each head set to 0 in all channels, its V left: whoever infers padding from zeros drops it."""
    key = inputs.key.copy()
    key[:, :, key.shape[2] // 2] = 0
    return inputs.but(key=key)


@TRANSFORMATIONS.entry("shrink-query")
def shrink_query(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every second channel of the query in the subnormal range of the dtype: those may count as 0."""
    query = inputs.query.copy()
    kind = float_type(inputs.query.dtype.name)
    query[..., ::2] = round_to(query[..., ::2].astype(np.float64) * (kind.tiny / 8.0), kind.name)
    return inputs.but(query=query)


@TRANSFORMATIONS.entry("value-between")
def value_between(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V drawn evenly from ``*a`` (1 unless said) to twice that: its mean, and no other number, is far from 0."""
    drawn = (1.0 + stream.uniform(*inputs.value.shape)) * (1.0 if argument is None else argument)
    return inputs.but(value=round_to(drawn, inputs.query.dtype.name))

"""Edits: changes made to a problem's arrays after they were drawn, in the order in which the problem lists them.

Each edit is one function of (inputs, stream, argument) that returns new inputs. They express the relations that an
attention must satisfy (a permuted key, a row alone, a perturbed suffix) and the content behind masks.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from conformance.dtypes import round_to
from conformance.inputs import AttentionInputs
from conformance.problem import Cookbook
from conformance.values.stream import Stream
from conformance.visibility import visible_pairs

EDITS = Cookbook("edit")


def _axis(array: np.ndarray | None, axis: int, index: np.ndarray) -> np.ndarray | None:
    """``array`` indexed along ``axis`` (negative), unless it is absent, broadcasts there or has no such axis."""
    if array is None or array.ndim < -axis or array.shape[axis] == 1:
        return array
    return np.take(array, index, axis=axis)


def _in_dtype(inputs: AttentionInputs, array: np.ndarray) -> np.ndarray:
    return array.astype(inputs.query.dtype)


def hidden_keys(inputs: AttentionInputs) -> Bool[np.ndarray, "b hkv lk"]:
    """The keys that no query of their group sees."""
    visible = visible_pairs(inputs)
    batch, heads, _, key_length = visible.shape
    kv_heads = inputs.key.shape[1]
    seen = visible.any(axis=2).reshape(batch, kv_heads, heads // kv_heads, key_length).any(axis=2)
    return ~seen


@EDITS.entry("permute-batch")
def permute_batch(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The batch rows in another order."""
    order = stream.permutation(inputs.query.shape[0])
    return _reorder(inputs, -4, order, order, lengths=order)


@EDITS.entry("batch-row")
def batch_row(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One batch row alone, number ``*n``."""
    row = np.array([int(argument or 0)])
    return _reorder(inputs, -4, row, row, lengths=row)


@EDITS.entry("permute-heads")
def permute_heads(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The kv heads in another order, each with its group of query heads."""
    kv_heads = inputs.key.shape[1]
    group = inputs.query.shape[1] // kv_heads
    kv_order = stream.permutation(kv_heads)
    order = (kv_order[:, None] * group + np.arange(group)).reshape(-1)
    return _reorder(inputs, -3, order, kv_order)


def _reorder(
    inputs: AttentionInputs, axis: int, query: np.ndarray, key: np.ndarray, lengths: np.ndarray | None = None
) -> AttentionInputs:
    return replace(
        inputs,
        query=_axis(inputs.query, axis, query) if inputs.query.shape[axis] > 1 else inputs.query,
        key=_axis(inputs.key, axis, key),
        value=_axis(inputs.value, axis, key),
        mask=_axis(inputs.mask, axis, query),
        bias=_axis(inputs.bias, axis, query),
        key_lengths=inputs.key_lengths if lengths is None or inputs.key_lengths is None else inputs.key_lengths[lengths],
    )


@EDITS.entry("permute-queries")
def permute_queries(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The queries in another order, mask and bias with them."""
    order = stream.permutation(inputs.query.shape[2])
    return replace(
        inputs, query=_axis(inputs.query, -2, order), mask=_axis(inputs.mask, -2, order), bias=_axis(inputs.bias, -2, order)
    )


@EDITS.entry("query-row")
def query_row(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One query alone, number ``*n``, with its row of mask and bias."""
    row = np.array([int(argument or 0)])
    return replace(
        inputs, query=inputs.query[:, :, row], mask=_axis(inputs.mask, -2, row), bias=_axis(inputs.bias, -2, row)
    )  # fmt: skip


@EDITS.entry("permute-keys")
def permute_keys(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Keys, values and the columns of mask and bias in another order."""
    order = stream.permutation(inputs.key.shape[2])
    return replace(
        inputs,
        key=_axis(inputs.key, -2, order),
        value=_axis(inputs.value, -2, order),
        mask=_axis(inputs.mask, -1, order),
        bias=_axis(inputs.bias, -1, order),
    )


@EDITS.entry("scale-value")
def scale_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V times ``*a``; a power of two keeps every bit."""
    return replace(inputs, value=_in_dtype(inputs, inputs.value.astype(np.float64) * (2.0 if argument is None else argument)))


@EDITS.entry("negate-query-and-key")
def negate_query_and_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """−Q and −K: the scores stay."""
    return replace(inputs, query=-inputs.query, key=-inputs.key)


@EDITS.entry("equal-keys")
def equal_keys(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """All keys of a head equal to its first: equal weights whatever the query."""
    return replace(inputs, key=np.repeat(inputs.key[:, :, :1], inputs.key.shape[2], axis=2))


@EDITS.entry("suffix")
def suffix(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Keys and values from number ``*t`` on replaced by other, louder ones: causal rows before t must not move."""
    start = int(argument or 0)
    key, value = inputs.key.copy(), inputs.value.copy()
    key[:, :, start:] = _in_dtype(inputs, 2.0 * stream.normal(*key[:, :, start:].shape))
    value[:, :, start:] = _in_dtype(inputs, 8.0 * stream.normal(*value[:, :, start:].shape))
    return replace(inputs, key=key, value=value)


@EDITS.entry("perturb-head")
def perturb_head(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The kv head ``*h`` gets other, louder keys and values: the other heads must not move."""
    head = int(argument or 0) % inputs.key.shape[1]
    key, value = inputs.key.copy(), inputs.value.copy()
    key[:, head] = _in_dtype(inputs, 2.0 * stream.normal(*key[:, head].shape))
    value[:, head] = _in_dtype(inputs, 8.0 * stream.normal(*value[:, head].shape))
    return replace(inputs, key=key, value=value)


@EDITS.entry("hidden-value")
def hidden_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V of every key that no query sees set to ``*a`` (1e4 unless said; inf and nan too)."""
    value = inputs.value.copy()
    value[hidden_keys(inputs)] = round_to(np.float64(1e4 if argument is None else argument)[None], _name(inputs))[0]
    return replace(inputs, value=value)


@EDITS.entry("hidden-key")
def hidden_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every key that no query sees set to ``*a`` in all channels (inf and nan too)."""
    key = inputs.key.copy()
    key[hidden_keys(inputs)] = round_to(np.float64(1e2 if argument is None else argument)[None], _name(inputs))[0]
    return replace(inputs, key=key)


@EDITS.entry("loud-hidden")
def loud_hidden(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every key that no query sees made ``*a`` times (4 unless said) its group's first query: its score would be the largest."""
    kv_heads = inputs.key.shape[1]
    group = inputs.query.shape[1] // kv_heads
    loud = inputs.query[:, ::group, :1].astype(np.float64) * (4.0 if argument is None else argument)
    hidden = hidden_keys(inputs)[..., None]
    return replace(inputs, key=np.where(hidden, _in_dtype(inputs, loud), inputs.key))


@EDITS.entry("low-visible")
def low_visible(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Scores of all visible keys near ``*a`` (−2e4 unless said): the last channel of q is 1 and of k the amount, 0 where hidden.

    A finite fill value for hidden keys that is not lower than this lets them win. The scale is the default one.
    """
    amount = (-2e4 if argument is None else argument) * np.sqrt(float(inputs.query.shape[3]))
    query, key = inputs.query.copy(), inputs.key.copy()
    root = np.sqrt(abs(amount))
    query[..., -1] = _in_dtype(inputs, np.array(root))
    key[..., -1] = _in_dtype(inputs, np.where(hidden_keys(inputs), 0.0, -root if amount < 0 else root))
    return replace(inputs, query=query, key=key)


@EDITS.entry("put-query")
def put_query(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the query, in the middle row of each head's first batch row, set to ``*a`` (nan, inf, −0 …)."""
    return replace(inputs, query=_put(inputs.query, argument, _name(inputs)))


@EDITS.entry("put-key")
def put_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the key, in the middle row of each head's first batch row, set to ``*a`` (nan, inf, −0 …)."""
    return replace(inputs, key=_put(inputs.key, argument, _name(inputs)))


@EDITS.entry("put-value")
def put_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One entry of the value, in the middle row of each head's first batch row, set to ``*a`` (nan, inf, −0 …)."""
    return replace(inputs, value=_put(inputs.value, argument, _name(inputs)))


def _put(array: np.ndarray, argument: float | None, dtype: str) -> np.ndarray:
    changed = array.copy()
    number = np.nan if argument is None else argument
    changed[0, :, array.shape[2] // 2, array.shape[3] // 2] = round_to(np.float64(number)[None], dtype)[0]
    return changed


def _name(inputs: AttentionInputs) -> str:
    return inputs.query.dtype.name

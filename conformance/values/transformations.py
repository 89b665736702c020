"""Transformations: changes made to a problem's arrays after they were drawn, in the order in which the problem lists them.

Each transformation is one function of (inputs, stream, argument) that returns new inputs. They express the relations that an
attention must satisfy: a permuted key, a row alone, a perturbed suffix. What lies behind masks and which special numbers
stand where is in ``conformance/values/contents.py``.
"""

import math
from typing import Any, TypeVar

import numpy as np

from conformance.errors import ProblemError, told
from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import Cookbook, Recipe
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs

TRANSFORMATIONS = Cookbook("transformation")
_Inputs = TypeVar("_Inputs", AttentionInputs, MultiHeadInputs)


def index_named(argument: float | None, count: int) -> int:
    """The index that a transformation's argument names, the last of ``count`` if it names none."""
    return count - 1 if argument is None else whole(argument) % count


def transformed(cookbook: Cookbook, recipe: Recipe, inputs: _Inputs) -> _Inputs:
    """The inputs after the transformation; raises ProblemError where it fits neither their shapes nor their number."""
    transformation = cookbook.find(recipe)
    try:
        changed: _Inputs = transformation(inputs, Stream(recipe.seed, "edit"), recipe.argument)
    except (ValueError, IndexError, OverflowError) as error:
        raise ProblemError(f"The transformation {recipe} does not fit this problem ({told(error)}).") from None
    return changed


def whole(argument: float) -> int:
    """The argument as a number of things; raises ProblemError where it is infinite or NaN."""
    if not math.isfinite(argument):
        raise ProblemError(f"The argument {argument} of a transformation must be a number of a row, head or key.")
    return int(argument)


def _louder(array: np.ndarray, where: Any, stream: Stream, factor: float) -> np.ndarray:
    """``array`` with its part ``where`` replaced by other bell-shaped numbers of deviation ``factor``."""
    changed = array.copy()
    changed[where] = round_to(factor * stream.normal(*changed[where].shape), array.dtype.name)
    return changed


@TRANSFORMATIONS.entry("permute-batch")
def permute_batch(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The batch rows in another order."""
    order = stream.permutation(inputs.query.shape[0])
    return _reorder(inputs, -4, order, order)


@TRANSFORMATIONS.entry("batch-row")
def batch_row(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One batch row alone, number ``*n`` (the last unless said)."""
    row = np.array([index_named(argument, inputs.query.shape[0])])
    return _reorder(inputs, -4, row, row)


@TRANSFORMATIONS.entry("perturb-batch")
def perturb_batch(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The batch row ``*n`` (the last unless said) gets other, louder inputs: the other rows must not move."""
    row = index_named(argument, inputs.query.shape[0])
    return inputs.but(
        query=_louder(inputs.query, np.s_[row], stream, 4.0),
        key=_louder(inputs.key, np.s_[row], stream, 2.0),
        value=_louder(inputs.value, np.s_[row], stream, 8.0),
    )


@TRANSFORMATIONS.entry("permute-heads")
def permute_heads(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The kv heads in another order, each with its group of query heads."""
    kv_heads = inputs.key.shape[1]
    group = inputs.query.shape[1] // kv_heads
    kv_order = stream.permutation(kv_heads)
    order = (kv_order[:, None] * group + np.arange(group)).reshape(-1)
    return _reorder(inputs, -3, order, kv_order)


def _reorder(inputs: AttentionInputs, axis: int, query: np.ndarray, key: np.ndarray) -> AttentionInputs:
    return inputs.but(
        query=np.take(inputs.query, query, axis=axis),
        key=np.take(inputs.key, key, axis=axis),
        value=np.take(inputs.value, key, axis=axis),
        **inputs.along(axis, query),
    )


@TRANSFORMATIONS.entry("permute-queries")
def permute_queries(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The queries in another order, mask and bias with them."""
    order = stream.permutation(inputs.query.shape[2])
    return inputs.but(
        query=np.take(inputs.query, order, axis=-2),
        **inputs.along(-2, order),
    )


@TRANSFORMATIONS.entry("query-row")
def query_row(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """One query alone, number ``*n`` (the last unless said), with its row of mask and bias."""
    row = np.array([index_named(argument, inputs.query.shape[2])])
    return inputs.but(query=inputs.query[:, :, row], **inputs.along(-2, row))


@TRANSFORMATIONS.entry("perturb-query")
def perturb_query(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The query ``*n`` (the last unless said) of each head made a hundred times louder than the others, which must not move.

    Softmax over the wrong axis, or a maximum taken over more than one row, shows.
    """
    row = index_named(argument, inputs.query.shape[2])
    return inputs.but(query=_louder(inputs.query, np.s_[:, :, row], stream, 100.0))


@TRANSFORMATIONS.entry("permute-keys")
def permute_keys(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Keys, values and the columns of mask and bias in another order."""
    order = stream.permutation(inputs.key.shape[2])
    return inputs.but(
        key=np.take(inputs.key, order, axis=-2),
        value=np.take(inputs.value, order, axis=-2),
        **inputs.along(-1, order),
    )


@TRANSFORMATIONS.entry("scale-value")
def scale_value(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """V times ``*a`` (2 unless said); a power of two keeps every bit."""
    return inputs.but(
        value=round_to(inputs.value.astype(np.float64) * (2.0 if argument is None else argument), inputs.query.dtype.name)
    )


@TRANSFORMATIONS.entry("negate-query-and-key")
def negate_query_and_key(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """−Q and −K: the scores stay."""
    return inputs.but(query=-inputs.query, key=-inputs.key)


@TRANSFORMATIONS.entry("equal-keys")
def equal_keys(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """All keys of a head equal to its first: equal weights whatever the query."""
    return inputs.but(key=np.repeat(inputs.key[:, :, :1], inputs.key.shape[2], axis=2))


@TRANSFORMATIONS.entry("duplicate-keys")
def duplicate_keys(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Every key, with its value and its column of mask and bias, given twice in a row: the output stays."""
    twice = np.repeat(np.arange(inputs.key.shape[2]), 2)
    return inputs.but(
        key=inputs.key[:, :, twice],
        value=inputs.value[:, :, twice],
        **inputs.along(-1, twice),
    )


@TRANSFORMATIONS.entry("permute-channels")
def permute_channels(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Channels of query and key in another common order, those of the value in another order of their own."""
    order, value_order = stream.permutation(inputs.query.shape[3]), stream.permutation(inputs.value.shape[3])
    return inputs.but(
        query=np.take(inputs.query, order, axis=-1),
        key=np.take(inputs.key, order, axis=-1),
        value=np.take(inputs.value, value_order, axis=-1),
    )


@TRANSFORMATIONS.entry("zero-channels")
def zero_channels(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The second half of the channels of query and key set to 0: they count for the default scale all the same."""
    query, key = inputs.query.copy(), inputs.key.copy()
    query[..., (query.shape[-1] + 1) // 2 :] = 0
    key[..., (key.shape[-1] + 1) // 2 :] = 0
    return inputs.but(query=query, key=key)


@TRANSFORMATIONS.entry("one-tensor")
def one_tensor(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Query, key and value are one array, the query: some code takes another path where ``query is key``."""
    shapes = inputs.query.shape, inputs.key.shape, inputs.value.shape
    if len(set(shapes)) > 1:
        raise ProblemError(
            f"The transformation one-tensor needs query, key and value of one shape, not {', '.join(map(str, shapes))}."
        )
    return inputs.but(key=inputs.query, value=inputs.query)


@TRANSFORMATIONS.entry("suffix")
def suffix(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Keys and values from number ``*t`` on (the second half unless said) replaced by other, louder ones.

    Causal rows before t must not move.
    """
    start = (inputs.key.shape[2] + 1) // 2 if argument is None else whole(argument)
    return inputs.but(
        key=_louder(inputs.key, np.s_[:, :, start:], stream, 2.0),
        value=_louder(inputs.value, np.s_[:, :, start:], stream, 8.0),
    )


@TRANSFORMATIONS.entry("perturb-head")
def perturb_head(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """The kv head ``*h`` (the last unless said) gets other, louder keys and values: the other heads must not move."""
    head = index_named(argument, inputs.key.shape[1])
    return inputs.but(
        key=_louder(inputs.key, np.s_[:, head], stream, 2.0),
        value=_louder(inputs.value, np.s_[:, head], stream, 8.0),
    )

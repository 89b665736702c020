"""Unusual but right ways to compute attention. None of them is a fault, and no check may say that it is.

Each computes float64 in float64, everything else in float32, and rounds to 16 bits where its numerics profile says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from conformance.faults.steps import default_scale, kv_heads
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_pairs

Array = np.ndarray
LOG2_E = 1.4426950408889634
KEYS, QUERIES = 7, 5  # of a tile


@dataclass(frozen=True)
class Tensors:
    """Query, key and value in the work dtype, kv heads repeated; ``visible`` of the scores' shape; ``bias`` broadcasts to it."""

    query: Float[Array, "b h lq d"]
    key: Float[Array, "b h lk d"]
    value: Float[Array, "b h lk dv"]
    scale: float
    visible: Bool[Array, "b h lq lk"]
    bias: Float[Array, "*#b_h_lq_lk"] | None

    def keys(self, part: slice) -> "Tensors":
        """The same of some keys only."""
        bias = self.bias if self.bias is None or self.bias.shape[-1] == 1 else self.bias[..., part]
        return Tensors(self.query, self.key[:, :, part], self.value[:, :, part], self.scale, self.visible[..., part], bias)

    def with_width(self, part: slice) -> "Tensors":
        """The same of some channels of query and key only."""
        return replace(self, query=self.query[..., part], key=self.key[..., part])

    def with_arrays(self, query: Array, key: Array, value: Array) -> "Tensors":
        return replace(self, query=query, key=key, value=value)

    def queries(self, part: slice) -> "Tensors":
        """The same of some queries only."""
        bias = self.bias if self.bias is None or self.bias.shape[-2] == 1 else self.bias[..., part, :]
        return Tensors(self.query[:, :, part], self.key, self.value, self.scale, self.visible[:, :, part], bias)


def tensors_of(inputs: AttentionInputs) -> Tensors:
    work = np.float64 if inputs.query.dtype == np.float64 else np.float32
    heads = kv_heads(inputs.query.shape[1], inputs.key.shape[1])
    bias = None if inputs.bias is None else inputs.bias.reshape((1,) * (4 - inputs.bias.ndim) + inputs.bias.shape).astype(work)
    return Tensors(
        inputs.query.astype(work),
        inputs.key.astype(work)[:, heads],
        inputs.value.astype(work)[:, heads],
        default_scale(inputs),
        visible_pairs(inputs),
        bias,
    )


def scores_of(tensors: Tensors, unit: float = 1.0) -> Float[Array, "b h lq lk"]:
    """The scores in multiples of 1 / ``unit``, the scale and the unit folded into the query; −inf where hidden."""
    work = tensors.query.dtype.type
    scores = (tensors.query * work(tensors.scale * unit)) @ tensors.key.swapaxes(-1, -2)
    if tensors.bias is not None:
        scores = scores + tensors.bias * work(unit)
    return np.where(tensors.visible, scores, work(-np.inf))


def top_of(scores: Array) -> Float[Array, "b h lq 1"]:
    """The largest score of each row; 0 in a row that sees no key."""
    top = scores.max(-1, keepdims=True)
    return np.where(top == -np.inf, scores.dtype.type(0), top)


def divide(output: Array, total: Array) -> Array:
    return output / np.where(total == 0, output.dtype.type(1), total)


def powers_of_two(inputs: AttentionInputs) -> Array:
    """2^(s·log₂e) for e^s, the constant folded into the scale."""
    tensors = tensors_of(inputs)
    scores = scores_of(tensors, LOG2_E)
    weights = np.exp2(scores - top_of(scores))
    return divide(weights @ tensors.value, weights.sum(-1, keepdims=True))


def log_sum_exp(inputs: AttentionInputs) -> Array:
    """Weights as exp(s − lse), lse the logarithm of the sum of e^s, counted from the largest score."""
    tensors = tensors_of(inputs)
    scores = scores_of(tensors)
    scores = scores - top_of(scores)
    return np.exp(scores - np.log(np.exp(scores).sum(-1, keepdims=True))) @ tensors.value


def odd_tiles(inputs: AttentionInputs) -> Array:
    """Online softmax over tiles of 5 queries and 7 keys, from the last key to the first."""
    tensors = tensors_of(inputs)
    return np.concatenate([_online(tensors.queries(part)) for part in parts(tensors.query.shape[2], QUERIES)], axis=2)


def parts(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _online(tensors: Tensors) -> Float[Array, "b h lq dv"]:
    rows, work = tensors.query.shape[:3], tensors.query.dtype.type
    top = np.full((*rows, 1), -np.inf, work)
    total, output = np.zeros((*rows, 1), work), np.zeros((*rows, tensors.value.shape[-1]), work)
    for part in reversed(list(parts(tensors.key.shape[2], KEYS))):
        tile = tensors.keys(part)
        scores = scores_of(tile)
        new_top = np.maximum(top, scores.max(-1, keepdims=True))
        origin = np.where(new_top == -np.inf, work(0), new_top)
        shrink, weights = np.exp(top - origin), np.exp(scores - origin)
        total, output, top = total * shrink + weights.sum(-1, keepdims=True), output * shrink + weights @ tile.value, new_top
    return divide(output, total)


def three_splits(inputs: AttentionInputs) -> Array:
    """Attention over each third of the keys, merged by maxima and normalisers."""
    tensors = tensors_of(inputs)
    outputs, tops, totals = [], [], []
    for part in parts(tensors.key.shape[2], -(-tensors.key.shape[2] // 3)):
        third = tensors.keys(part)
        scores = scores_of(third)
        weights = np.exp(scores - top_of(scores))
        totals.append(weights.sum(-1, keepdims=True))
        tops.append(scores.max(-1, keepdims=True))
        outputs.append(divide(weights @ third.value, totals[-1]))
    origin = top_of(np.concatenate(tops, axis=-1))
    shares = [total * np.exp(top - origin) for top, total in zip(tops, totals, strict=True)]
    whole = sum(share * output for share, output in zip(shares, outputs, strict=True))
    return divide(whole, sum(shares[1:], shares[0]))


def one_by_one(inputs: AttentionInputs) -> Array:
    """Products added up channel by channel from the last to the first, the output key by key."""
    tensors = tensors_of(inputs)
    scores = np.zeros(tensors.visible.shape, tensors.query.dtype)
    for channel in reversed(range(tensors.query.shape[-1])):
        scores += tensors.query[..., channel, None] * tensors.key[..., None, :, channel]
    scores *= scores.dtype.type(tensors.scale)
    if tensors.bias is not None:
        scores = scores + tensors.bias
    scores = np.where(tensors.visible, scores, scores.dtype.type(-np.inf))
    weights = np.exp(scores - top_of(scores))
    output = np.zeros((*scores.shape[:3], tensors.value.shape[-1]), scores.dtype)
    total = np.zeros((*scores.shape[:3], 1), scores.dtype)
    for key in range(scores.shape[-1]):
        output += weights[..., key, None] * tensors.value[:, :, None, key]
        total += weights[..., key, None]
    return divide(output, total)


def in_float32(inputs: AttentionInputs) -> Array:
    """The formula, 16-bit inputs taken to float32 first and the result rounded once."""
    tensors = tensors_of(inputs)
    scores = scores_of(tensors)
    weights = np.exp(scores - top_of(scores))
    return divide(weights, weights.sum(-1, keepdims=True)) @ tensors.value


def rounded_weights(inputs: AttentionInputs) -> Array:
    """Weights rounded to 16 bits before they meet V, divided by their sum afterwards."""
    tensors = tensors_of(inputs)
    scores = scores_of(tensors)
    weights = np.exp(scores - top_of(scores))
    return divide(weights.astype(inputs.query.dtype).astype(np.float32) @ tensors.value, weights.sum(-1, keepdims=True))


def rounded_query(inputs: AttentionInputs) -> Array:
    """As ``rounded_weights``, and the query multiplied by the scale is rounded to 16 bits too."""
    tensors = tensors_of(inputs)
    query = (tensors.query * np.float32(tensors.scale)).astype(inputs.query.dtype).astype(np.float32)
    scores = scores_of(Tensors(query, tensors.key, tensors.value, 1.0, tensors.visible, tensors.bias))
    weights = np.exp(scores - top_of(scores))
    return divide(weights.astype(inputs.query.dtype).astype(np.float32) @ tensors.value, weights.sum(-1, keepdims=True))

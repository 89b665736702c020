"""Unusual but right ways to compute attention. None of them is a fault, and no check may say that it is.

Each computes float64 in float64, everything else in float32, and rounds to 16 bits where its numerics profile says. Scores come
through the stages of conformance/oracle/stages.py, so that what features hide or do to scores is part of every way.
"""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from conformance.faults.steps import scored
from conformance.features import features
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Scored = tuple[Float[Array, "b h lq lk"], Float[Array, "b h lk dv"]]  # scores, −inf where hidden, and V for each query head
LOG2_E = 1.4426950408889634
KEYS, QUERIES = 7, 5  # of a tile


def scores_of(inputs: AttentionInputs, products: Callable[[Array, Array, float], Array] | None = None) -> Scored:
    """In the type of the work; ``products``: of query, key and scale, others than (scale · Q) Kᵀ."""
    return scored(inputs, np.float64 if inputs.query.dtype == np.float64 else np.float32, products)


def scores_in_base_2(inputs: AttentionInputs) -> Scored:
    """The same times log₂e, which is folded into scale and bias unless another feature does something to the scores."""
    asked = [one for one in features(inputs.operation) if one.is_asked(inputs) and not one.hides]
    if any(one.argument not in ("bias", "scale") for one in asked):
        scores, value = scores_of(inputs)
        return scores * scores.dtype.type(LOG2_E), value

    def products(query: Array, key: Array, scale: float) -> Array:
        return (query * query.dtype.type(scale * LOG2_E)) @ key.swapaxes(-1, -2)

    bias = None if inputs.bias is None else inputs.bias.astype(np.float64) * LOG2_E
    return scores_of(inputs.but(bias=bias), products)


def top_of(scores: Array) -> Float[Array, "b h lq 1"]:
    """The largest score of each row; 0 in a fully masked row."""
    top = scores.max(-1, keepdims=True)
    return np.where(top == -np.inf, scores.dtype.type(0), top)


def divide(output: Array, total: Array) -> Array:
    return output / np.where(total == 0, output.dtype.type(1), total)


def parts(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def exponentials(scores: Array) -> tuple[Array, Array]:
    """e^(s − m), m the largest of the row, and their sum."""
    weights = np.exp(scores - top_of(scores))
    return weights, weights.sum(-1, keepdims=True)


def powers_of_two(inputs: AttentionInputs) -> Array:
    """2^(s·log₂e) for e^s, the constant folded into the scale."""
    scores, value = scores_in_base_2(inputs)
    weights = np.exp2(scores - top_of(scores))
    return divide(weights @ value, weights.sum(-1, keepdims=True))


def log_sum_exp(inputs: AttentionInputs) -> Array:
    """Weights as exp(s − lse), lse the logarithm of the sum of e^s, counted from the largest score."""
    scores, value = scores_of(inputs)
    scores = scores - top_of(scores)
    return np.exp(scores - np.log(np.exp(scores).sum(-1, keepdims=True))) @ value


def odd_tiles(inputs: AttentionInputs) -> Array:
    """Online softmax over tiles of 5 queries and 7 keys, from the last key to the first."""
    scores, value = scores_of(inputs)
    return np.concatenate([_online(scores[:, :, part], value) for part in parts(scores.shape[2], QUERIES)], axis=2)


def _online(scores: Array, value: Array) -> Float[Array, "b h lq dv"]:
    rows, work = scores.shape[:3], scores.dtype.type
    top = np.full((*rows, 1), -np.inf, work)
    total, output = np.zeros((*rows, 1), work), np.zeros((*rows, value.shape[-1]), work)
    for part in reversed(list(parts(scores.shape[3], KEYS))):
        tile = scores[..., part]
        new_top = np.maximum(top, tile.max(-1, keepdims=True))
        origin = np.where(new_top == -np.inf, work(0), new_top)
        shrink, weights = np.exp(top - origin), np.exp(tile - origin)
        total, output, top = (
            total * shrink + weights.sum(-1, keepdims=True),
            output * shrink + weights @ value[:, :, part],
            new_top,
        )
    return divide(output, total)


def three_splits(inputs: AttentionInputs) -> Array:
    """Attention over each third of the keys, merged by maxima and normalisers."""
    scores, value = scores_of(inputs)
    outputs, tops, totals = [], [], []
    for part in parts(scores.shape[3], -(-scores.shape[3] // 3)):
        weights, total = exponentials(scores[..., part])
        totals.append(total)
        tops.append(scores[..., part].max(-1, keepdims=True))
        outputs.append(divide(weights @ value[:, :, part], total))
    origin = top_of(np.concatenate(tops, axis=-1))
    shares = [total * np.exp(top - origin) for top, total in zip(tops, totals, strict=True)]
    whole = sum(share * output for share, output in zip(shares, outputs, strict=True))
    return divide(whole, sum(shares[1:], shares[0]))


def one_by_one(inputs: AttentionInputs) -> Array:
    """Products added up channel by channel from the last to the first, the output key by key."""

    def products(query: Array, key: Array, scale: float) -> Array:
        scores = np.zeros((*query.shape[:3], key.shape[2]), query.dtype)
        for channel in reversed(range(query.shape[-1])):
            scores += query[..., channel, None] * key[..., None, :, channel]
        return scores * scores.dtype.type(scale)

    scores, value = scores_of(inputs, products)
    weights = np.exp(scores - top_of(scores))
    output = np.zeros((*scores.shape[:3], value.shape[-1]), scores.dtype)
    total = np.zeros((*scores.shape[:3], 1), scores.dtype)
    for key in range(scores.shape[-1]):
        output += weights[..., key, None] * value[:, :, None, key]
        total += weights[..., key, None]
    return divide(output, total)


def in_float32(inputs: AttentionInputs) -> Array:
    """The formula, 16-bit inputs taken to float32 first and the result rounded once."""
    scores, value = scores_of(inputs)
    return divide(*exponentials(scores)) @ value


def _with_short_weights(inputs: AttentionInputs, scores: Array, value: Array) -> Array:
    weights, total = exponentials(scores)
    return divide(weights.astype(inputs.query.dtype).astype(np.float32) @ value, total)


def rounded_weights(inputs: AttentionInputs) -> Array:
    """Weights rounded to 16 bits before they meet V, divided by their sum afterwards."""
    return _with_short_weights(inputs, *scores_of(inputs))


def rounded_query(inputs: AttentionInputs) -> Array:
    """As ``rounded_weights``, and the query multiplied by the scale is rounded to 16 bits too."""

    def products(query: Array, key: Array, scale: float) -> Array:
        short = (query * np.float32(scale)).astype(inputs.query.dtype).astype(np.float32)
        return short @ key.swapaxes(-1, -2)

    return _with_short_weights(inputs, *scores_of(inputs, products))

"""More right ways to compute attention: base-2 exponentials of biased scores, merges by log-sum-exp, other sums, split products.

As in ``correct_variants``, each computes float64 in float64, everything else in float32, unless it says otherwise.
"""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from jaxtyping import Float

from conformance.evaluation.correct_variants import (
    LOG2_E,
    Scored,
    divide,
    exponentials,
    parts,
    scores_in_base_2,
    scores_of,
    top_of,
)
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
LAZY = 8.0  # a maximum that grows by less, in powers of two, rescales nothing


def biased_powers_of_two(inputs: AttentionInputs) -> Array:
    """2^((s + bias)·log₂e): the biased scores are multiplied, as in templates that let a function change the score."""
    scores, value = scores_of(inputs)
    scores = scores * scores.dtype.type(LOG2_E)
    weights = np.exp2(scores - top_of(scores))
    return divide(weights @ value, weights.sum(-1, keepdims=True))


def _lse(scores: Float[Array, "b h lq lk"]) -> Float[Array, "b h lq 1"]:
    """log Σ e^s as one number, −∞ for a fully masked row."""
    top = top_of(scores)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(scores - top).sum(-1, keepdims=True))


def _splits(scored: Scored) -> Iterator[tuple[Array, Array]]:
    """Output and log-sum-exp over each third of the keys."""
    scores, value = scored
    for part in parts(scores.shape[3], -(-scores.shape[3] // 3)):
        weights, total = exponentials(scores[..., part])
        yield divide(weights @ value[:, :, part], total), _lse(scores[..., part])


def merged_by_lse(inputs: AttentionInputs) -> Array:
    """Each third of the keys alone, merged by their rounded log-sum-exps, of which the shares are divided by their sum."""
    outputs, sums = zip(*_splits(scores_of(inputs)), strict=True)
    origin = top_of(np.concatenate(sums, axis=-1))
    shares = [np.exp(lse - origin) for lse in sums]
    whole = sum(share * output for share, output in zip(shares, outputs, strict=True))
    return divide(whole, sum(shares[1:], shares[0]))


def weighed_by_lse(inputs: AttentionInputs) -> Array:
    """The same, merged by e^(lse_i − lse), which nothing divides by its sum."""
    outputs, sums = zip(*_splits(scores_of(inputs)), strict=True)
    whole = _lse(np.concatenate(sums, axis=-1))
    whole = np.where(whole == -np.inf, whole.dtype.type(0), whole)
    parts_weighed = [np.exp(lse - whole) * output for lse, output in zip(sums, outputs, strict=True)]
    return sum(parts_weighed[1:], parts_weighed[0])


def moved_by_sigmoids(inputs: AttentionInputs) -> Array:
    """The same, each moved towards the next one by a sigmoid, as attention over a ring of devices does: o − σ(Δ)(o − o₂)."""
    (output, lse), *others = _splits(scores_of(inputs))
    for other, its_lse in others:
        low = np.where(its_lse == -np.inf, its_lse, its_lse - lse)
        output = output - (1 / (1 + np.exp(-low))).astype(lse.dtype) * (output - other)
        lse = np.logaddexp(lse, its_lse)
    return output


def normalised_by_lse(inputs: AttentionInputs) -> Array:
    """Weights as e^(s − lse), both as they are: what a backward pass makes of a log-sum-exp that was kept."""
    scores, value = scores_of(inputs)
    lse = _lse(scores)
    return np.exp(scores - np.where(lse == -np.inf, lse.dtype.type(0), lse)) @ value


def compensated(inputs: AttentionInputs) -> Array:
    """Kahan's sums over keys, of the normaliser and of the output."""
    scores, value = scores_of(inputs)
    weights = np.exp(scores - top_of(scores))
    output = np.zeros((*scores.shape[:3], value.shape[-1]), scores.dtype)
    total, lost_total, lost = np.zeros((*scores.shape[:3], 1), scores.dtype), 0.0, 0.0
    for key in range(scores.shape[-1]):
        term = weights[..., key, None] * value[:, :, None, key] - lost
        output, lost = output + term, (output + term) - output - term
        term = weights[..., key, None] - lost_total
        total, lost_total = total + term, (total + term) - total - term
    return divide(output, total)


def fused_multiply_add(inputs: AttentionInputs) -> Array:
    """2^(s·c − m·c), c = log₂e, the product m·c rounded and the other one not, as by one instruction."""
    scores, value = scores_of(inputs)
    work = scores.dtype.type
    shift = top_of(scores) * work(LOG2_E)
    wide = scores.astype(np.longdouble) * np.longdouble(work(LOG2_E)) - shift.astype(np.longdouble)
    weights = np.exp2(wide.astype(work))
    return divide(weights @ value, weights.sum(-1, keepdims=True))


def lazily_rescaled(inputs: AttentionInputs) -> Array:
    """Online softmax over tiles of keys that takes a new maximum only where it grew by much."""
    scores, value = scores_in_base_2(inputs)
    rows, work = scores.shape[:3], scores.dtype.type
    top = np.full((*rows, 1), -np.inf, work)
    total, output = np.zeros((*rows, 1), work), np.zeros((*rows, value.shape[-1]), work)
    for part in parts(scores.shape[3], 5):
        tile = scores[..., part]
        highest = tile.max(-1, keepdims=True)
        new_top = np.where(highest > top + LAZY, highest, top)
        origin = np.where(new_top == -np.inf, work(0), new_top)
        shrink, weights = np.exp2(top - origin), np.exp2(tile - origin)
        total, output, top = (
            total * shrink + weights.sum(-1, keepdims=True),
            output * shrink + weights @ value[:, :, part],
            new_top,
        )
    return divide(output, total)


def channels_in_halves(inputs: AttentionInputs) -> Array:
    """Products of the even channels and of the odd ones, added, and the normaliser as a reciprocal."""

    def products(query: Array, key: Array, scale: float) -> Array:
        starts = [start for start in (0, 1) if start < query.shape[-1]]
        halves = [query[..., start::2] @ key[..., start::2].swapaxes(-1, -2) for start in starts]
        return sum(halves[1:], halves[0]) * query.dtype.type(scale)

    scores, value = scores_of(inputs, products)
    weights, total = exponentials(scores)
    return (weights @ value) * divide(scores.dtype.type(1), total)


def keys_first(inputs: AttentionInputs) -> Array:
    """The scores as K Qᵀ, softmax over the first of their axes, the output as Vᵀ Pᵀ."""
    scores, value = scores_of(inputs)
    scores = np.ascontiguousarray(scores.swapaxes(-1, -2))
    top = scores.max(-2, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, scores.dtype.type(0), top))
    weights = divide(weights, weights.sum(-2, keepdims=True))
    return (value.swapaxes(-1, -2) @ weights).swapaxes(-1, -2)


def pairs_of_sums(inputs: AttentionInputs) -> Array:
    """Partial results of single keys, merged two by two, by their maxima, until one is left."""
    scores, value = scores_of(inputs)
    ones = np.ones((*scores.shape[:3], 1), scores.dtype)
    nodes = [
        (scores[..., j, None], ones, np.broadcast_to(value[:, :, None, j], (*scores.shape[:3], value.shape[-1])))
        for j in range(scores.shape[-1])
    ]
    while len(nodes) > 1:
        merged = [_merged(left, right) for left, right in zip(nodes[::2], nodes[1::2], strict=False)]
        nodes = merged + nodes[2 * len(merged) :]
    _, total, output = nodes[0]
    return divide(output, total)


def _merged(left: tuple[Array, Array, Array], right: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    top = np.maximum(left[0], right[0])
    origin = np.where(top == -np.inf, top.dtype.type(0), top)
    shares = [np.exp(node[0] - origin) for node in (left, right)]
    total, output = (shares[0] * a + shares[1] * b for a, b in zip(left[1:], right[1:], strict=True))
    return top, total, output


def _split_product(left: Array, right: Array) -> Array:
    """A product of float32 matrices made of three of bfloat16 numbers, summed in float32."""

    def two(array: Array) -> tuple[Array, Array]:
        high = array.astype(ml_dtypes.bfloat16).astype(np.float32)
        return high, (array - high).astype(ml_dtypes.bfloat16).astype(np.float32)

    (high, low), (other_high, other_low) = two(left), two(right)
    return (low @ other_high + high @ other_low) + high @ other_high


def three_products(inputs: AttentionInputs) -> Array:
    """Each product of matrices as three of bfloat16 numbers."""

    def products(query: Array, key: Array, scale: float) -> Array:
        return _split_product(query * np.float32(scale), key.swapaxes(-1, -2))

    scores, value = scores_of(inputs, products)
    weights, total = exponentials(scores)
    return divide(_split_product(weights, value), total)


def _short(array: Array) -> Array:
    """Rounded to the eleven significant bits of TensorFloat-32."""
    bits = array.astype(np.float32).view(np.uint32)
    last_kept = (bits >> np.uint32(13)) & np.uint32(1)  # ties go to even
    rounded = (bits + np.uint32(0xFFF) + last_kept) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(array), rounded.view(np.float32), array)


def short_products(inputs: AttentionInputs) -> Array:
    """Products of matrices whose entries are rounded to TensorFloat-32."""

    def products(query: Array, key: Array, scale: float) -> Array:
        return (_short(query) @ _short(key.swapaxes(-1, -2))) * np.float32(scale)

    scores, value = scores_of(inputs, products)
    weights, total = exponentials(scores)
    return divide(_short(weights) @ _short(value), total)


def flushing(inputs: AttentionInputs) -> Array:
    """Weights rounded to float16, whose subnormal numbers count as 0 in inputs, weights and output."""

    def flushed(array: Array) -> Array:
        return np.where(np.abs(array) < np.float32(2.0**-14), np.float32(0), array)

    def products(query: Array, key: Array, scale: float) -> Array:
        return (flushed(query) * np.float32(scale)) @ flushed(key).swapaxes(-1, -2)

    scores, value = scores_of(inputs, products)
    weights, total = exponentials(scores)
    short = flushed(weights.astype(np.float16).astype(np.float32))
    return flushed(divide(short @ flushed(value), total).astype(np.float16).astype(np.float32))

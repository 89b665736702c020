"""The honest computation cut into steps, each of which a fault may replace by its own.

Everything is computed in float64 and rounded once at the end, so that what a fault changes is all that is wrong:
``attend(inputs, scale=lambda inputs: 1.0)`` is attention without its scale, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.dtypes import float_type
from conformance.inputs import AttentionInputs, MultiHeadInputs, SinusoidalInputs
from conformance.visibility import visible_pairs

Array = np.ndarray


def default_scale(inputs: AttentionInputs) -> float:
    """The scale that is given, else 1/√d of the key width."""
    return 1.0 / np.sqrt(inputs.key.shape[-1]) if inputs.scale is None else inputs.scale


def kv_heads(heads: int, kv: int) -> Int[Array, " h"]:
    """The kv head that each query head reads: ⌊h · Hkv / Hq⌋."""
    return np.arange(heads) * kv // heads


def products(query: Float[Array, "b h lq d"], key: Float[Array, "b h lk d"], scale: float) -> Float[Array, "b h lq lk"]:
    """scale · Q Kᵀ."""
    return (query @ key.swapaxes(-1, -2)) * scale


def add_bias(scores: Float[Array, "b h lq lk"], inputs: AttentionInputs) -> Float[Array, "b h lq lk"]:
    """The scores with the bias, where there is one."""
    return scores if inputs.bias is None else scores + inputs.bias.astype(np.float64)


def hide(scores: Float[Array, "b h lq lk"], visible: Bool[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
    """−inf where a pair is hidden."""
    return np.where(visible, scores, -np.inf)


def softmax(scores: Float[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
    """Weights of the keys; 0 in a row that sees none."""
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total == 0.0, 1.0, total)


def mix(weights: Float[Array, "b h lq lk"], value: Float[Array, "b h lk dv"]) -> Float[Array, "b h lq dv"]:
    """The weighted sum of V."""
    return weights @ value


@dataclass(frozen=True)
class AttentionSteps:
    """The steps of attention in the order in which data flows."""

    heads: Callable[[int, int], Array] = kv_heads
    scale: Callable[[AttentionInputs], float] = default_scale
    products: Callable[[Array, Array, float], Array] = products
    add_bias: Callable[[Array, AttentionInputs], Array] = add_bias
    visible: Callable[[AttentionInputs], Array] = visible_pairs
    hide: Callable[[Array, Array], Array] = hide
    softmax: Callable[[Array], Array] = softmax
    mix: Callable[[Array, Array], Array] = mix


def attend(inputs: AttentionInputs, **changes: Any) -> Float[Array, "b hq lq dv"]:
    """Attention with some steps changed, in the dtype of the query."""
    steps = replace(AttentionSteps(), **changes)
    with np.errstate(all="ignore"):
        query, key, value = (array.astype(np.float64) for array in (inputs.query, inputs.key, inputs.value))
        chosen = steps.heads(query.shape[1], key.shape[1])
        key, value = key[:, chosen], value[:, chosen]
        scores = steps.add_bias(steps.products(query, key, steps.scale(inputs)), inputs)
        weights = steps.softmax(steps.hide(scores, steps.visible(inputs)))
        return steps.mix(weights, value).astype(inputs.query.dtype)


def project(x: Float[Array, "b l model"], matrix: Array, bias: Array | None) -> Float[Array, "b l inner"]:
    """x W + b."""
    product = x.astype(np.float64) @ matrix.astype(np.float64)
    return product if bias is None else product + bias.astype(np.float64)


def split(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    """The heads: contiguous slices of the last axis."""
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def merge(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    """The heads side by side, in their order."""
    return array.swapaxes(1, 2).reshape(array.shape[0], array.shape[2], -1)


@dataclass(frozen=True)
class MultiHeadSteps:
    """The steps of multi-head attention; ``attention`` takes AttentionInputs in float64."""

    project: Callable[[Array, Array, Array | None], Array] = project
    split: Callable[[Array, int], Array] = split
    attention: Callable[[AttentionInputs], Array] = attend
    merge: Callable[[Array], Array] = merge


def multi_head(inputs: MultiHeadInputs, **changes: Any) -> Float[Array, "b lq out"]:
    """Multi-head attention with some steps changed, in the dtype of the query."""
    steps, weights = replace(MultiHeadSteps(), **changes), inputs.weights
    with np.errstate(all="ignore"):
        query = steps.split(steps.project(inputs.query, weights.query, weights.query_bias), inputs.num_heads)
        key = steps.split(steps.project(inputs.key, weights.key, weights.key_bias), inputs.num_heads)
        value = steps.split(steps.project(inputs.value, weights.value, weights.value_bias), inputs.num_heads)
        inner = AttentionInputs(
            query=query, key=key, value=value, mask=inputs.mask, causal=inputs.causal, key_lengths=inputs.key_lengths
        )
        output = steps.merge(steps.attention(inner))
        if weights.output is not None:
            output = steps.project(output, weights.output, weights.output_bias)
        return output.astype(inputs.query.dtype)


def frequencies(width: int) -> Float[Array, " pairs"]:
    """ω_i = 10000^(−2i/width), one for each pair of columns."""
    return 10000.0 ** (-2.0 * np.arange((width + 1) // 2) / width)


def frequencies_asked(inputs: SinusoidalInputs) -> Float[Array, " pairs"]:
    """Those of ``frequencies``, or where d/2-1 is asked for as many that fall from 1 to 1/10000 by equal factors."""
    pairs = (inputs.width + 1) // 2
    if inputs.frequencies == "d/2-1":
        return 10000.0 ** (-np.arange(pairs) / max(pairs - 1, 1))
    return frequencies(inputs.width)


def sinusoidal(
    inputs: SinusoidalInputs,
    frequencies: Callable[[int], Array] | None = None,
    positions: Callable[[int], Array] = lambda length: np.arange(length, dtype=np.float64),
) -> Float[Array, "..."]:
    """The table, or x with the table added, in the problem's dtype."""
    rates = frequencies_asked(inputs) if frequencies is None else frequencies(inputs.width)
    angles = positions(inputs.length)[:, None] * rates[None, :]
    table = np.empty((inputs.length, inputs.width))
    sines, cosines = np.sin(angles), np.cos(angles)[:, : inputs.width // 2]
    if inputs.arrangement == "concatenated":
        table[:, : sines.shape[1]], table[:, sines.shape[1] :] = sines, cosines
    else:
        table[:, 0::2], table[:, 1::2] = sines, cosines
    total = table if inputs.x is None else inputs.x.astype(np.float64) + table
    return total.astype(float_type(inputs.dtype).numpy)

"""Steps of attention in NumPy that the implementations of this folder share: what is visible, scaling, softmax, heads."""

import ml_dtypes
import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray
FLOAT32, BFLOAT16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
Window = tuple[int | None, int | None]  # how many keys before and behind each query; None: all


def visible_pairs(
    query_length: int,
    key_length: int,
    mask: Bool[Array, "*#b_hq_lq #lk"] | None,
    causal: bool,
    alignment: str,
    key_lengths: Int[Array, " b"] | None,
    window: Window | None = None,
) -> Bool[Array, "*#b_hq_lq #lk"] | None:
    """Where a query may attend, in a shape that broadcasts over the scores; None where everywhere."""
    conditions = [] if mask is None else [mask]
    diagonal = key_length - query_length if alignment == "bottom-right" else 0
    if window is not None:
        left, right = (key_length + query_length if side is None else side for side in window)
        distance = np.arange(key_length) - np.arange(query_length)[:, None] - diagonal
        conditions.append((-left <= distance) & (distance <= right))
    if causal:
        conditions.append(np.tri(query_length, key_length, diagonal, dtype=bool))
    if key_lengths is not None:
        conditions.append((np.arange(key_length) < key_lengths[:, None])[:, None, None, :])
    if not conditions:
        return None
    visible = conditions[0]
    for condition in conditions[1:]:
        visible = visible & condition
    return visible


def computable(array: Array) -> Array:
    """``array`` in a dtype that NumPy can calculate with: bfloat16 becomes float32."""
    return array.astype(FLOAT32) if array.dtype == BFLOAT16 else array


def scaled(products: Array, scale: float | None, width: int) -> Array:
    """The products times the scale, which is not rounded to 16 bits first."""
    factor = 1.0 / np.sqrt(width) if scale is None else scale
    if products.dtype == np.float16:
        return (products * np.float32(factor)).astype(np.float16)
    return products * products.dtype.type(factor)


def capped(scores: Array, cap: float | None) -> Array:
    """cap · tanh(scores / cap), where there is a cap."""
    return scores if cap is None else scores.dtype.type(cap) * np.tanh(scores / scores.dtype.type(cap))


def with_sinks(scores: Float[Array, "*h lq lk"], sinks: Float[Array, "*h"] | None) -> Array:
    """The scores with a column of sinks behind them, where there are any."""
    if sinks is None:
        return scores
    column = np.broadcast_to(computable(sinks).astype(scores.dtype)[..., None, None], (*scores.shape[:-1], 1))
    return np.concatenate([scores, column], axis=-1)


def softmax_with_zeros(scores: Array) -> Array:
    """Softmax over the last axis; 0 throughout where every score is −inf."""
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - np.where(top == -np.inf, scores.dtype.type(0), top))
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total == 0, scores.dtype.type(1), total)


def demand_groups(heads: int, kv_heads: int) -> None:
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot be shared out over {kv_heads} key heads")


def repeat_heads(array: Array, heads: int) -> Array:
    """(b, hkv, l, d) as (b, heads, l, d), each kv head repeated for the query heads of its group."""
    demand_groups(heads, array.shape[1])
    return array if array.shape[1] == heads else np.repeat(array, heads // array.shape[1], axis=1)


def affine(x: Array, matrix: Array, bias: Array | None) -> Array:
    product = x @ matrix
    return product if bias is None else product + bias


def split_heads(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    if array.shape[-1] % heads:
        raise ValueError(f"a width of {array.shape[-1]} cannot be split into {heads} heads")
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)

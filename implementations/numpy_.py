"""NumPy: attention written out, by online softmax and with einsum; multi-head attention; sinusoidal encoding.

``numpy-direct`` and ``numpy-einsum`` round each step to the dtype of the inputs; NumPy has no bfloat16 arithmetic of its own, so
there all of them compute in float32 and round once.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.adapter import Implementation, Support
from conformance.numerics.dtypes import float_type
from conformance.problem import LAYOUTS
from conformance.problem.inputs import Weights

from .numpy_steps import (
    FLOAT32,
    Array,
    Window,
    affine,
    capped,
    computable,
    demand_groups,
    repeat_heads,
    scaled,
    softmax_with_zeros,
    split_heads,
    visible_pairs,
    with_sinks,
)

TILE = 29  # keys per step of the online softmax: odd, so that a short last tile is common


class NumpyFramework:
    """NumPy arrays go in as they are, strides and all."""

    name = "numpy"

    def missing(self, device: str) -> str | None:
        return None if device == "cpu" else f"NumPy has no device {device!r}."

    def version(self) -> str:
        return np.__version__

    def from_numpy(self, array: Array, device: str) -> Array:
        return array

    def to_numpy(self, array: Array) -> Array:
        if not isinstance(array, np.ndarray | np.generic):
            raise TypeError(f"expected a NumPy array, got {type(array).__name__}")
        return np.asarray(array)

    def dtype_of(self, name: str) -> np.dtype:
        return float_type(name).numpy

    def wait(self, result: Array) -> Array:
        return result

    def shares_memory(self, first: Array, second: Array) -> bool:
        return bool(np.may_share_memory(first, second) and np.shares_memory(first, second))

    def overwrite(self, array: Array, contents: Array) -> None:
        array[...] = contents


FRAMEWORK = NumpyFramework()


def direct(
    query: Float[Array, "b hq lq d"],
    key: Float[Array, "b hkv lk d"],
    value: Float[Array, "b hkv lk dv"],
    *,
    mask: Bool[Array, "*#b_hq_lq #lk"] | None = None,
    bias: Float[Array, "*#b_hq_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: Int[Array, " b"] | None = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> Float[Array, "b hq lq dv"]:
    """softmax(scale · Q Kᵀ + bias) V with all scores in memory. A fully masked row gets zeros."""
    dtype = query.dtype
    query, key, value = computable(query), computable(key), computable(value)
    key, value = repeat_heads(key, query.shape[1]), repeat_heads(value, query.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        scores = capped(scaled(query @ key.swapaxes(-1, -2), scale, query.shape[-1]), softcap)
        if bias is not None:
            scores = scores + computable(bias)
        visible = visible_pairs(query.shape[2], key.shape[2], mask, causal, alignment, key_lengths, window)
        if visible is not None:
            scores = np.where(visible, scores, scores.dtype.type(-np.inf))
        output = softmax_with_zeros(with_sinks(scores, sinks))[..., : key.shape[2]] @ value
    return output.astype(dtype, copy=False)


def blocked(
    query: Float[Array, "b hq lq d"],
    key: Float[Array, "b hkv lk d"],
    value: Float[Array, "b hkv lk dv"],
    *,
    mask: Bool[Array, "*#b_hq_lq #lk"] | None = None,
    bias: Float[Array, "*#b_hq_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: Int[Array, " b"] | None = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> Float[Array, "b hq lq dv"]:
    """Online softmax over tiles of keys (Milakov & Gimelshein 2018; Dao et al. 2022): never more than a tile of scores.

    16-bit inputs are computed in float32. Query heads of a group share their key head through an axis of their own.
    A fully masked row gets zeros.
    """
    visible = visible_pairs(query.shape[2], key.shape[2], mask, causal, alignment, key_lengths, window)
    return _online(query, key, value, visible, bias, scale, softcap, sinks)[0]


def blocked_with_lse(
    query: Float[Array, "b hq lq d"],
    key: Float[Array, "b hkv lk d"],
    value: Float[Array, "b hkv lk dv"],
    *,
    mask: Bool[Array, "*#b_hq_lq #lk"] | None = None,
    bias: Float[Array, "*#b_hq_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: Int[Array, " b"] | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> tuple[Float[Array, "b hq lq dv"], Float[Array, "b hq lq"]]:
    """The same, and the log-sum-exp of each row, in float32 beside 16-bit inputs; −∞ of a fully masked row."""
    visible = visible_pairs(query.shape[2], key.shape[2], mask, causal, alignment, key_lengths)
    output, top, total = _online(query, key, value, visible, bias, scale, sinks=sinks)
    with np.errstate(divide="ignore"):
        return output, (top + np.log(total)).reshape(query.shape[:3])


def einsum(
    query: Float[Array, "b hq lq d"],
    key: Float[Array, "b hkv lk d"],
    value: Float[Array, "b hkv lk dv"],
    *,
    mask: Bool[Array, "*#b_hq_lq #lk"] | None = None,
    bias: Float[Array, "*#b_hq_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: Int[Array, " b"] | None = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> Float[Array, "b hq lq dv"]:
    """The formula as two calls of ``np.einsum``. A fully masked row gets NaN, as softmax over nothing but −inf gives."""
    dtype = query.dtype
    query, key, value = computable(query), computable(key), computable(value)
    batch, heads, query_length, width = query.shape
    demand_groups(heads, key.shape[1])
    grouped = query.reshape(batch, key.shape[1], -1, query_length, width)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = capped(scaled(np.einsum("bngqd,bnkd->bngqk", grouped, key), scale, width), softcap)
        full = (batch, heads, query_length, key.shape[2])
        if bias is not None:
            scores = scores + np.broadcast_to(computable(bias), full).reshape(scores.shape)
        visible = visible_pairs(query_length, key.shape[2], mask, causal, alignment, key_lengths, window)
        if visible is not None:
            scores = np.where(np.broadcast_to(visible, full).reshape(scores.shape), scores, scores.dtype.type(-np.inf))
        scores = with_sinks(scores, None if sinks is None else sinks.reshape(scores.shape[1:3]))
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (exponentials / exponentials.sum(-1, keepdims=True))[..., : key.shape[2]]
        output = np.einsum("bngqk,bnkv->bngqv", weights, value)
    return output.reshape(batch, heads, query_length, -1).astype(dtype, copy=False)


def multi_head(
    query: Float[Array, "b lq model"],
    key: Float[Array, "b lk model"],
    value: Float[Array, "b lk model"],
    weights: Weights,
    *,
    num_heads: int,
    mask: Bool[Array, "*#b_h_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    key_lengths: Int[Array, " b"] | None = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> Float[Array, "b lq model"]:
    """Projects, splits into heads, attends as ``direct`` does, merges and projects. Raises ValueError if heads do not divide."""
    with np.errstate(over="ignore", invalid="ignore"):
        q, k, v, outward = _heads(query, key, value, weights, num_heads)
        heads = direct(
            q, k, v, mask=mask, causal=causal, alignment=alignment, key_lengths=key_lengths, window=window,
            softcap=softcap, sinks=sinks,
        )  # fmt: skip
        return outward(heads)


def multi_head_with_weights(
    query: Float[Array, "b lq model"],
    key: Float[Array, "b lk model"],
    value: Float[Array, "b lk model"],
    weights: Weights,
    *,
    num_heads: int,
    mask: Bool[Array, "*#b_h_lq #lk"] | None = None,
    causal: bool = False,
    alignment: str = "top-left",
    key_lengths: Int[Array, " b"] | None = None,
) -> tuple[Float[Array, "b lq model"], Float[Array, "b h lq"], Float[Array, "b h lq lk"]]:
    """The same, with the log-sum-exp of each row of each head, and its weights, in float32 beside 16-bit inputs."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        q, k, v, outward = _heads(query, key, value, weights, num_heads)
        heads, lse = blocked_with_lse(q, k, v, mask=mask, causal=causal, alignment=alignment, key_lengths=key_lengths)
        scores = scaled(q @ k.swapaxes(-1, -2), None, q.shape[-1])
        visible = visible_pairs(q.shape[2], k.shape[2], mask, causal, alignment, key_lengths)
        scores = scores if visible is None else np.where(visible, scores, scores.dtype.type(-np.inf))
        return outward(heads), lse, softmax_with_zeros(scores)


def sinusoidal(
    length: int,
    d_model: int,
    *,
    dtype: np.dtype = FLOAT32,
    arrangement: str = "interleaved",
    x: Float[Array, "b length d_model"] | None = None,
) -> Float[Array, "length d_model"] | Float[Array, "b length d_model"]:
    """The table in float64, rounded to ``dtype`` once; or x + table. An odd width keeps its last sine without a cosine."""
    half = (d_model + 1) // 2
    angles = np.arange(length)[:, None] * 10000.0 ** (-2.0 * np.arange(half) / d_model)
    sines, cosines = np.sin(angles), np.cos(angles[:, : d_model // 2])
    table = np.empty((length, d_model))
    if arrangement == "interleaved":
        table[:, 0::2], table[:, 1::2] = sines, cosines
    else:
        table[:, :half], table[:, half:] = sines, cosines
    rounded = table.astype(dtype)
    return rounded if x is None else (x + rounded).astype(dtype, copy=False)


def _online(
    query: Float[Array, "b hq lq d"],
    key: Float[Array, "b hkv lk d"],
    value: Float[Array, "b hkv lk dv"],
    visible: Bool[Array, "*#b_hq_lq #lk"] | None,
    bias: Float[Array, "*#b_hq_lq #lk"] | None,
    scale: float | None,
    softcap: float | None = None,
    sinks: Float[Array, " hq"] | None = None,
) -> tuple[Array, Array, Array]:
    """The output, and for each row the largest score and the sum of e^(score − that), in the type of the work."""
    dtype = query.dtype
    work = FLOAT32 if dtype.itemsize == 2 else dtype
    (batch, heads, query_length, width), (kv_heads, key_length) = query.shape, key.shape[1:3]
    demand_groups(heads, kv_heads)
    group = (batch, kv_heads, heads // kv_heads, query_length)
    query = query.astype(work).reshape(*group, width)
    query = query * work.type(1.0 / np.sqrt(width) if scale is None else scale)
    full = (batch, heads, query_length, key_length)
    visible = None if visible is None else np.broadcast_to(visible, full).reshape(*group, key_length)
    bias = None if bias is None else np.broadcast_to(bias, full).reshape(*group, key_length)

    top = np.full((*group, 1), -np.inf, work)
    total = np.zeros((*group, 1), work)
    if sinks is not None:  # as of a tile that was there before, of one key with V = 0
        top[...] = sinks.astype(work).reshape(kv_heads, -1, 1, 1)
        total[...] = 1
    output = np.zeros((*group, value.shape[3]), work)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, key_length, TILE):
            tile = slice(start, start + TILE)
            scores = capped(query @ key[:, :, None, tile].astype(work).swapaxes(-1, -2), softcap)
            if bias is not None:
                scores = scores + bias[..., tile].astype(work)
            if visible is not None:
                scores = np.where(visible[..., tile], scores, work.type(-np.inf))
            new_top = np.maximum(top, scores.max(-1, keepdims=True))
            origin = np.where(new_top == -np.inf, work.type(0), new_top)  # −inf − (−inf) would be NaN
            shrink, weights = np.exp(top - origin), np.exp(scores - origin)
            total = total * shrink + weights.sum(-1, keepdims=True)
            output = output * shrink + weights @ value[:, :, None, tile].astype(work)
            top = new_top
        output = output / np.where(total == 0, work.type(1), total)
    return output.reshape(batch, heads, query_length, -1).astype(dtype, copy=False), top, total


def _heads(
    query: Array, key: Array, value: Array, weights: Weights, num_heads: int
) -> tuple[Array, Array, Array, Callable[[Array], Array]]:
    """Query, key and value of the heads, and what becomes of their outputs: merged, projected, in the dtype of the query."""
    weights = Weights(**{name: computable(array) for name, array in weights.arrays().items()})
    q, k, v = (
        split_heads(affine(computable(x), matrix, bias), num_heads)
        for x, matrix, bias in (
            (query, weights.query, weights.query_bias),
            (key, weights.key, weights.key_bias),
            (value, weights.value, weights.value_bias),
        )
    )

    def outward(heads: Array) -> Array:
        output = heads.swapaxes(1, 2).reshape(*query.shape[:2], -1)
        if weights.output is not None:
            output = affine(output, weights.output, weights.output_bias)
        return output.astype(query.dtype, copy=False)

    return q, k, v, outward


_MASKING = {
    "CON-EMPTY-ROW": "zeros",
    "CON-NAN-BEHIND-MASK-K": "contained",
    "CON-NAN-BEHIND-MASK-V": "leaks",
    "CON-INF-BEHIND-MASK-V": "leaks",
    "CON-ALIGNMENT": "top-left",
    "CON-WINDOW": "inclusive",
    "CON-WINDOW-ALIGNMENT": "top-left",
    "CON-POLARITY": "true-attends",
}
_CONVENTIONS = _MASKING | {
    "CON-ZERO-SCALE": "ordinary",
    "CON-NEGATIVE-SCALE": "ordinary",
    "CON-GROUPS-REFUSED": "refused",
}
_LSE = {"CON-LSE-BASE": "natural", "CON-LSE-EMPTY-ROW": "minus-infinity"}
_STEP_BY_STEP = {"float64": "strict", "float32": "strict", "float16": "unfused", "bfloat16": "inner32"}
_IN_FLOAT32 = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}

IMPLEMENTATIONS = (
    Implementation(
        "numpy-direct",
        direct,
        Support(layouts=LAYOUTS, profile=_STEP_BY_STEP, conventions=_CONVENTIONS),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-blocked",
        blocked,
        Support(layouts=LAYOUTS, profile=_IN_FLOAT32, conventions=_CONVENTIONS),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-blocked-lse",
        blocked_with_lse,
        Support(returns=("output", "lse"), layouts=LAYOUTS, profile=_IN_FLOAT32, conventions=_CONVENTIONS | _LSE),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-einsum",
        einsum,
        Support(
            layouts=LAYOUTS,
            profile=_STEP_BY_STEP | {"float16": "low"},  # np.einsum keeps its running sums in the dtype of its operands
            conventions=_CONVENTIONS | {"CON-EMPTY-ROW": "nan"},
        ),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-multi-head",
        multi_head,
        Support(
            operation="multi_head_attention",
            profile=_STEP_BY_STEP,
            conventions={**_MASKING, "CON-WIDTH-REFUSED": "refused"},
        ),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-multi-head-weights",
        multi_head_with_weights,
        Support(
            operation="multi_head_attention",
            returns=("output", "lse", "weights"),
            profile=_STEP_BY_STEP,
            conventions={**_MASKING, **_LSE, "CON-WEIGHTS-EMPTY-ROW": "zeros", "CON-WIDTH-REFUSED": "refused"},
        ),
        FRAMEWORK,
    ),
    Implementation(
        "numpy-sinusoidal",
        sinusoidal,
        Support(
            operation="sinusoidal_encoding",
            conventions={
                "CON-SINUSOID-ARRANGEMENT": "interleaved",
                "CON-SINUSOID-FREQUENCIES": "d",
                "CON-ODD-WIDTH": "extra-sine",
                "CON-BEYOND-MAX-LEN": "extends",
            },
        ),
        FRAMEWORK,
    ),
)

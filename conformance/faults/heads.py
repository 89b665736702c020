"""Faults of heads in plain attention: which key and value head a query head reads, and heads taken for another axis.

Most say for each query head which key head it reads instead of ⌊h · Hkv / Hq⌋. Those that need ``grouped-heads`` are right for
as many key heads as query heads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from conformance.faults.model import Fault, Rewrite
from conformance.faults.steps import attend, kv_heads
from conformance.inputs import AttentionInputs
from conformance.problem.forms import along

Array = np.ndarray
HeadMap = Callable[[int, int], Int[Array, " h"]]  # (query heads, key heads) → the head that each query head reads

_GROUPED = frozenset({"grouped-heads"})
_READS = ("ATT-HEAD-001", "ATT-OUT-020", "ATT-OUT-003")
_TILED = (
    "onnx: https://github.com/onnx/onnx/pull/7274",
    "axlearn: https://github.com/apple/axlearn/pull/842",
)
_TILE = ("FreeToken kernel: https://github.com/FlashML-org/FreeToken/pull/177",)
_STRIDE = ("pytorch (MPS): https://github.com/pytorch/pytorch/issues/174861",)
_LAYOUT = ("jax: https://github.com/jax-ml/jax/issues/35916",)


def chosen(
    inputs: AttentionInputs,
    key: Array | None = None,
    value: Array | None = None,
    query: Array | None = None,
    mask: Array | None = None,
    bias: Array | None = None,
) -> AttentionInputs:
    """As many key heads as query heads: head h works with the key head ``key[h]``, the mask ``mask[h]`` and so on.

    What is not given is what is right.
    """
    heads = np.arange(inputs.query.shape[1])
    right = kv_heads(len(heads), inputs.key.shape[1])
    return inputs.but(
        query=inputs.query[:, heads if query is None else query],
        key=inputs.key[:, right if key is None else key],
        value=inputs.value[:, right if value is None else value],
        mask=along(inputs.mask, -3, heads if mask is None else mask),
        bias=along(inputs.bias, -3, heads if bias is None else bias),
    )


def _reads(
    identifier: str,
    sentence: str,
    to: HeadMap,
    *,
    of: tuple[str, ...] = ("key", "value"),
    when: Callable[[AttentionInputs], bool] = lambda inputs: True,
    **fields: Any,
) -> Fault:
    """Query head h works with the key head, the value head, or both (``of``), number ``to``."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if not when(inputs):
            return inputs
        other = to(inputs.query.shape[1], inputs.key.shape[1])
        return chosen(inputs, **dict.fromkeys(of, other))

    fields = {"sources": (), "needs": _GROUPED, "requirements": ("ATT-HEAD-001",), **fields}
    return Fault(id=identifier, sentence=sentence, rewrite=rewrite, **fields)


def _tiled(heads: int, kv: int) -> Array:
    return np.arange(heads) % kv


def _in_groups(inputs: AttentionInputs) -> bool:
    return inputs.query.shape[1] > inputs.key.shape[1]


def _by_tile(size: int) -> HeadMap:
    """All query heads of a tile of ``size`` read the key head of the first."""
    return lambda heads, kv: kv_heads(heads, kv)[np.arange(heads) // size * size]


_MAPS = (
    _reads("heads-tiled", "lets query head h read key head h mod Hkv", _tiled, sources=_TILED),
    _reads("heads-tiled-in-keys", "lets query head h read key head h mod Hkv, and the right value head", _tiled, of=("key",)),
    _reads("heads-tiled-in-values", "lets query head h read value head h mod Hkv, and the right key head", _tiled, of=("value",)),
    _reads(
        "heads-tiled-for-one-query",
        "lets query head h read key head h mod Hkv where there is a single query",
        _tiled,
        when=lambda inputs: inputs.query.shape[2] == 1,
    ),
    _reads(
        "heads-divided-by-key-heads",
        "lets query head h read key head ⌊h / Hkv⌋, which is right only where Hq / Hkv = Hkv",
        lambda heads, kv: np.minimum(np.arange(heads) // kv, kv - 1) if heads > kv else np.arange(heads),
        sources=("native-sparse-attention-triton: https://github.com/XunhaoLai/native-sparse-attention-triton/issues/27",),
    ),
    _reads(
        "heads-from-tile-of-4",
        "takes the key head of a tile of 4 query heads from the first of them",
        _by_tile(4),
        when=_in_groups,
        sources=_TILE,
    ),
    _reads(
        "heads-from-tile-of-16",
        "takes the key head of a tile of 16 query heads from the first of them",
        _by_tile(16),
        when=_in_groups,
        sources=_TILE,
    ),
    _reads(
        "heads-group-begins-early",
        "lets the last query head of a group read the key head of the next",
        lambda heads, kv: np.minimum((np.arange(heads) + 1) // (heads // kv), kv - 1) if heads > kv else np.arange(heads),
    ),
    _reads(
        "heads-group-begins-late",
        "lets the first query head of a group read the key head of the one before",
        lambda heads, kv: np.maximum(np.arange(heads) - 1, 0) // (heads // kv) if heads > kv else np.arange(heads),
    ),
    *(
        _reads(identifier, sentence, to, needs=frozenset(), requirements=_READS)
        for identifier, sentence, to in (
            ("heads-all-first", "lets every query head read the first key head", lambda heads, kv: np.zeros(heads, int)),
            ("heads-all-last", "lets every query head read the last key head", lambda heads, kv: np.full(heads, kv - 1)),
            ("heads-reversed", "reads the key heads in reverse order", lambda heads, kv: kv - 1 - kv_heads(heads, kv)),
            ("heads-next", "reads the key head after the right one", lambda heads, kv: (kv_heads(heads, kv) + 1) % kv),
            ("heads-previous", "reads the key head before the right one", lambda heads, kv: (kv_heads(heads, kv) - 1) % kv),
        )
    ),
)


def _flat(index: Callable[[Array, Array, int], Array]) -> Rewrite:
    """Key and value heads read at ``index`` (batch row, query head, group) of all heads of all batch rows one after the other."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        (batch, kv), heads = inputs.key.shape[:2], inputs.query.shape[1]
        place = np.minimum(index(np.arange(batch)[:, None], np.arange(heads), heads // kv), batch * kv - 1)
        key, value = (array.reshape(-1, *array.shape[2:])[place] for array in (inputs.key, inputs.value))
        return inputs.but(key=key, value=value)

    return rewrite


def _batch_for_head(inputs: AttentionInputs) -> AttentionInputs:
    if inputs.key.shape[0] != inputs.key.shape[1]:
        return inputs
    return inputs.but(key=inputs.key.swapaxes(0, 1), value=inputs.value.swapaxes(0, 1))


def _over_heads(guessed: bool) -> Callable[[AttentionInputs], Float[Array, "b h l dv"]]:
    """(B, H, L, d) read as (B, L, H, d); ``guessed``: only where H = L, so that the sizes do not say which is which."""

    def compute(inputs: AttentionInputs) -> Array:
        (heads, query_length), (kv, key_length) = inputs.query.shape[1:3], inputs.key.shape[1:3]
        masks = (inputs.mask, inputs.bias, inputs.key_lengths)
        fits = inputs.causal == "none" and all(mask is None for mask in masks) and heads == kv and query_length == key_length
        if not fits or (guessed and heads != query_length):
            return attend(inputs)
        swapped = {name: getattr(inputs, name).swapaxes(1, 2) for name in ("query", "key", "value")}
        return attend(inputs.but(**swapped)).swapaxes(1, 2)

    return compute


_STRIDES = (
    Fault(
        id="heads-batch-stride-of-query",
        sentence="counts query heads, not key heads, from one batch row of the keys to the next",
        requirements=("ATT-HEAD-001",),
        sources=_STRIDE,
        needs=_GROUPED,
        rewrite=_flat(lambda row, head, group: row * head.size + head // group),
    ),
    Fault(
        id="heads-flat-without-groups",
        sentence="reads the keys at (batch row · Hq + query head), as if there were no groups",
        requirements=("ATT-HEAD-001",),
        sources=_STRIDE,
        needs=_GROUPED,
        rewrite=_flat(lambda row, head, group: row * head.size + head),
    ),
    Fault(
        id="heads-and-batch-exchanged",
        sentence="exchanges batch rows and heads of key and value where there are as many of each",
        requirements=("ATT-HEAD-001", "ATT-OUT-034"),
        sources=(),
        rewrite=_batch_for_head,
    ),
    Fault(
        id="heads-and-length-exchanged",
        sentence="takes (batch, heads, length, width) for (batch, length, heads, width) and attends over heads",
        requirements=("ATT-OUT-020", "ATT-OUT-004", "ATT-OUT-003", "ATT-OUT-005", "ATT-OUT-006"),
        sources=_LAYOUT,
        compute=_over_heads(guessed=False),
    ),
    Fault(
        id="heads-and-length-guessed",
        sentence="takes heads for length where there are as many of each",
        requirements=("ATT-OUT-034",),
        sources=_LAYOUT,
        compute=_over_heads(guessed=True),
    ),
)

FAULTS: tuple[Fault, ...] = (*_MAPS, *_STRIDES)

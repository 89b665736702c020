"""Faults at the edges of key tiles: keys that are left out or read twice, and what fills a last tile up."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from conformance.faults.model import Fault, Rewrite
from conformance.inputs import AttentionInputs
from conformance.problem.forms import along
from conformance.visibility import visible_pairs

Array = np.ndarray

EDGE = ("ATT-OUT-036", "ATT-OUT-037", "ATT-OUT-035", "ATT-OUT-003")
_STALE_TAIL = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/pull/169222",
    "cutlass: https://github.com/NVIDIA/cutlass/issues/2428",
    "pytorch: https://github.com/pytorch/pytorch/issues/191937",
)
_SHORT = ("Megatron-LM: https://github.com/NVIDIA/Megatron-LM/issues/132",)
_LAST = ("Megatron-LM: https://github.com/NVIDIA/Megatron-LM/issues/1425",)


def fault(identifier: str, sentence: str, rewrite: Rewrite, *requirements: str, **fields: Any) -> Fault:
    return Fault(id=identifier, sentence=sentence, rewrite=rewrite, requirements=requirements, **{"sources": (), **fields})


def folded(inputs: AttentionInputs, visible: Bool[Array, "#b #h lq lk"] | bool = True) -> AttentionInputs:
    """Mask, causal and key lengths in one full mask, narrowed to ``visible`` pairs."""
    return inputs.but(mask=visible_pairs(inputs) & visible, causal="none", key_lengths=None)


def reading(inputs: AttentionInputs, index: Int[Array, " n"]) -> AttentionInputs:
    """The keys at ``index`` in the place of all, with their values and columns of mask and bias."""
    if np.array_equal(index, np.arange(inputs.key.shape[2])):
        return inputs
    inputs = folded(inputs)
    return inputs.but(
        key=inputs.key[:, :, index],
        value=inputs.value[:, :, index],
        mask=along(inputs.mask, -1, index),
        bias=along(inputs.bias, -1, index),
    )


def _only(wanted: Callable[[Int[Array, " lk"]], Bool[Array, " lk"]]) -> Rewrite:
    """Keys that are not ``wanted`` by their number are left out."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        kept = wanted(np.arange(inputs.key.shape[2]))
        return inputs if kept.all() or not kept.any() else folded(inputs, kept)

    return rewrite


def _at(index: Callable[[int], Int[Array, " n"]]) -> Rewrite:
    return lambda inputs: reading(inputs, index(inputs.key.shape[2]))


def whole(length: int, size: int) -> int:
    """How far whole tiles of ``size`` reach; all of it where there is none."""
    return length // size * size or length


def _tail_dropped(size: int) -> Rewrite:
    return _only(lambda j: j < whole(len(j), size))


def _no_more_than(size: int) -> Rewrite:
    return _only(lambda j: j < size)


def _tail_twice(size: int) -> Rewrite:
    return _at(lambda length: np.concatenate([np.arange(length), np.arange(whole(length, size), length)]))


def _edges_twice(size: int) -> Rewrite:
    """Tiles that overlap by one key."""
    return _at(lambda length: np.sort(np.concatenate([np.arange(length), np.arange(size, length, size)])))


def _padded(size: int, fill: Callable[[Array, int], Array]) -> Rewrite:
    """The last tile of ``size`` filled up with ``fill`` (tensor, how many), seen by every row that sees a key."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        missing = -inputs.key.shape[2] % size
        if not missing:
            return inputs
        inputs = folded(inputs)
        assert inputs.mask is not None
        seen = np.repeat(inputs.mask.any(-1, keepdims=True), missing, axis=-1)
        bias = inputs.bias
        if bias is not None and bias.shape[-1] > 1:
            bias = np.concatenate([bias, np.zeros((*bias.shape[:-1], missing), bias.dtype)], axis=-1)
        key, value = (np.concatenate([array, fill(array, missing)], axis=2) for array in (inputs.key, inputs.value))
        return inputs.but(key=key, value=value, mask=np.concatenate([inputs.mask, seen], axis=-1), bias=bias)

    return rewrite


def _zeros(array: Array, count: int) -> Array:
    return np.zeros_like(array[:, :, :1]).repeat(count, axis=2)


def _last_again(array: Array, count: int) -> Array:
    return array[:, :, -1:].repeat(count, axis=2)


def _behind(array: Array, count: int) -> Array:
    """What lies behind in memory: the next head's first rows."""
    flat = np.roll(array.reshape(-1, *array.shape[2:]), -1, axis=0)
    return flat[:, np.arange(count) % array.shape[2]].reshape(*array.shape[:2], count, array.shape[3])


_TAILS = (
    *(
        fault(
            f"keys-tail-of-{size}-dropped",
            f"leaves out the keys behind the last whole tile of {size}",
            _tail_dropped(size),
            *EDGE,
            sources=_SHORT,
        )
        for size in (4, 16, 64)
    ),
    *(
        fault(
            f"keys-tail-of-{size}-twice", f"reads the keys behind the last whole tile of {size} twice", _tail_twice(size), *EDGE
        )
        for size in (4, 64)
    ),
    *(
        fault(
            f"keys-tail-of-{size}-{word}",
            f"fills the last tile of {size} keys up with {shown}, and attends to that",
            _padded(size, fill),
            *EDGE,
            sources=sources,
        )
        for size in (4, 64)
        for word, shown, fill, sources in (
            ("zeros", "zeros", _zeros, ()),
            ("last-again", "the last key", _last_again, ()),
            ("behind", "what lies behind in memory", _behind, _STALE_TAIL),
        )
    ),
    fault("keys-tile-edges-twice", "reads the first key of each tile of 16 twice", _edges_twice(16), *EDGE),
    fault("keys-tile-edges-dropped", "leaves out the last key of each whole tile of 16", _only(lambda j: j % 16 != 15), *EDGE),
    fault("keys-last-dropped", "leaves out the last key", _only(lambda j: j < len(j) - 1), "ATT-OUT-034", *EDGE, sources=_LAST),
    fault("keys-first-dropped", "leaves out the first key", _only(lambda j: j > 0), "ATT-OUT-034", *EDGE),
    *(
        fault(
            f"keys-beyond-{size}-dropped",
            f"reads no more than {size} keys",
            _no_more_than(size),
            *(("ATT-OUT-036",) if size < 256 else ()),
            "ATT-OUT-037",
            "ATT-OUT-038",
        )
        for size in (64, 128, 256, 1024)
    ),
)

FAULTS: tuple[Fault, ...] = _TAILS

"""Faults that begin at a size: right below it, where most tests are, and wrong from there on, or on whole tiles alone.

They are said to show in float32: the quick tier asks sizes in that dtype, the full one in 16 bit too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.faults.model import Fault
from conformance.faults.steps import attend, multi_head
from conformance.faults.tails import folded
from conformance.inputs import AttentionInputs, MultiHeadInputs

Array = np.ndarray
SIZES, MASKS, CAUSAL, LENGTHS, LAYERS = "ATT-OUT-042", "ATT-MASK-053", "ATT-MASK-055", "ATT-MASK-056", "ATT-HEAD-037"


def _fault(identifier: str, sentence: str, *requirements: str, sources: tuple[str, ...] = (), **fields: Any) -> Fault:
    return Fault(
        id=f"from-a-size-{identifier}",
        sentence=sentence,
        requirements=requirements,
        sources=sources,
        dtypes=("float32",),
        **fields,
    )


def _zeros(where: Callable[[AttentionInputs, Array], Array]) -> Callable[[AttentionInputs], Array]:
    """Zeros where the mask over the output says so."""

    def compute(inputs: AttentionInputs) -> Array:
        output = attend(inputs)
        return np.where(np.broadcast_to(where(inputs, output), output.shape), np.zeros_like(output), output)

    return compute


def _rows(output: Array, axis: int) -> Array:
    """The index along an axis, broadcast over the others."""
    shape = [1] * output.ndim
    shape[axis] = -1
    return np.arange(output.shape[axis]).reshape(shape)


def _narrowed(change: Callable[[AttentionInputs, Array], Array]) -> Callable[[AttentionInputs], AttentionInputs]:
    """Another visibility of keys, made of the right one."""
    return lambda inputs: folded(inputs, change(inputs, np.arange(inputs.key.shape[2])))


def _unless(condition: Callable[[AttentionInputs], bool], change: Callable[[AttentionInputs], AttentionInputs]) -> Any:
    return lambda inputs: change(inputs) if condition(inputs) else inputs


def _whole(size: int, tile: int) -> bool:
    return size % tile == 0


def _without_last_tile(inputs: AttentionInputs) -> AttentionInputs:
    keys = inputs.key.shape[2]
    return folded(inputs, np.arange(keys) < keys - 16) if keys > 16 and _whole(keys, 16) else inputs


def _heads_wrapped(inputs: AttentionInputs) -> AttentionInputs:
    """Query heads from 64 on read key heads from 0 on."""
    heads, kv = inputs.query.shape[1], inputs.key.shape[1]
    if heads <= 64:
        return inputs
    chosen = (np.arange(heads) * kv // heads) % 64
    return inputs.but(key=inputs.key[:, chosen], value=inputs.value[:, chosen])


def _groups_of_eight(inputs: AttentionInputs) -> AttentionInputs:
    """A group of more than 8 query heads goes on with the next key heads after 8 of them."""
    heads, kv = inputs.query.shape[1], inputs.key.shape[1]
    if heads <= 8 * kv:
        return inputs
    chosen = (np.arange(heads) // 8) % kv if kv > 1 else None
    if chosen is None:
        return inputs
    return inputs.but(key=inputs.key[:, chosen], value=inputs.value[:, chosen])


def _bias_in_tiles(inputs: AttentionInputs) -> AttentionInputs:
    """The bias of keys from 64 on is that of the first tile again."""
    if inputs.bias is None or inputs.bias.shape[-1] <= 64:
        return inputs
    return inputs.but(bias=inputs.bias[..., np.arange(inputs.bias.shape[-1]) % 64])


def _aligned_otherwise(inputs: AttentionInputs) -> AttentionInputs:
    return inputs.but(causal="top-left") if inputs.causal == "bottom-right" and inputs.key.shape[2] >= 64 else inputs


def _triangle_off(inputs: AttentionInputs) -> AttentionInputs:
    """Causal heads of 64 channels and more see one key more."""
    if inputs.causal == "none" or inputs.query.shape[3] < 64:
        return inputs
    queries, keys = inputs.query.shape[2], inputs.key.shape[2]
    offset = 1 + (keys - queries if inputs.causal == "bottom-right" else 0)
    wider = inputs.but(causal="none")
    return folded(wider, np.arange(keys) <= np.arange(queries)[:, None] + offset).but()


def _mask_lost(inputs: AttentionInputs) -> AttentionInputs:
    """A mask over whole tiles of 8 queries and 8 keys is taken for one that hides nothing."""
    whole = _whole(inputs.query.shape[2], 8) and _whole(inputs.key.shape[2], 8)
    return inputs.but(mask=None) if inputs.mask is not None and whole else inputs


def _lengths_of_tiles(inputs: AttentionInputs) -> AttentionInputs:
    """A length that ends with a tile of 8 keys leaves the last of them out."""
    if inputs.key_lengths is None:
        return inputs
    return inputs.but(key_lengths=np.where(inputs.key_lengths % 8 == 0, inputs.key_lengths - 1, inputs.key_lengths))


def _layer_zeros(wrong: Callable[[MultiHeadInputs], Array | bool]) -> Callable[[MultiHeadInputs], Array]:
    def compute(inputs: MultiHeadInputs) -> Array:
        output = multi_head(inputs)
        return np.where(np.broadcast_to(wrong(inputs), output.shape), np.zeros_like(output), output)

    return compute


def _head_width(inputs: MultiHeadInputs) -> int:
    return int(inputs.weights.query.shape[1]) // inputs.num_heads


def _columns(inputs: MultiHeadInputs) -> int:
    """Of the output."""
    last = inputs.weights.value if inputs.weights.output is None else inputs.weights.output
    return int(last.shape[1])


FAULTS: tuple[Fault, ...] = (
    _fault(
        "batch-of-8",
        "gives zeros for batch rows from the ninth on",
        SIZES,
        compute=_zeros(lambda inputs, output: _rows(output, 0) >= 8),
    ),
    _fault(
        "64-channels",
        "gives zeros where heads are wider than 64",
        SIZES,
        compute=_zeros(lambda inputs, output: np.array(inputs.query.shape[3] > 64)),
    ),
    _fault(
        "128-channels",
        "gives zeros from the 129th channel on",
        SIZES,
        compute=_zeros(lambda inputs, output: _rows(output, 3) >= 128),
    ),
    _fault(
        "whole-tiles", "leaves out the last tile where there are whole tiles of 16 keys alone", SIZES, rewrite=_without_last_tile
    ),
    _fault(
        "decoding",
        "sees the first 64 keys alone where there is one query",
        SIZES,
        rewrite=_unless(lambda inputs: inputs.query.shape[2] == 1, _narrowed(lambda inputs, key: key < 64)),
    ),
    _fault("64-heads", "counts key heads modulo 64", SIZES, rewrite=_heads_wrapped),
    _fault(
        "groups-of-8",
        "shares a key head between 8 query heads at most",
        SIZES,
        needs=frozenset({"grouped-heads"}),
        rewrite=_groups_of_eight,
    ),
    _fault(
        "grid",
        "computes 100 batch rows and heads together at most",
        SIZES,
        compute=_zeros(lambda inputs, output: _rows(output, 0) * output.shape[1] + _rows(output, 1) >= 100),
    ),
    _fault(
        "pairs",
        "counts pairs of a query and a key up to 4,096",
        SIZES,
        rewrite=_unless(
            lambda inputs: inputs.query.shape[2] * inputs.key.shape[2] > 4096,
            lambda inputs: folded(
                inputs,
                (np.arange(inputs.query.shape[2])[:, None] * inputs.key.shape[2] + np.arange(inputs.key.shape[2]) < 4096)
                | (np.arange(inputs.key.shape[2]) == 0),
            ),
        ),
    ),
    _fault("masked-tiles", "ignores a mask over whole tiles", MASKS, needs=frozenset({"mask"}), rewrite=_mask_lost),
    _fault(
        "bias",
        "reads the bias of the first 64 keys again for those behind",
        "ATT-MASK-054",
        needs=frozenset({"bias"}),
        rewrite=_bias_in_tiles,
    ),
    _fault(
        "causal-64-channels",
        "shows one key more where causal heads are 64 wide or wider",
        CAUSAL,
        needs=frozenset({"causal"}),
        rewrite=_triangle_off,
    ),
    _fault(
        "alignment",
        "aligns the triangle at the top left from 64 keys on",
        CAUSAL,
        needs=frozenset({"causal"}),
        rewrite=_aligned_otherwise,
    ),
    _fault(
        "lengths",
        "leaves out the last key of a length of whole tiles",
        LENGTHS,
        needs=frozenset({"key-lengths"}),
        rewrite=_lengths_of_tiles,
    ),
    _fault(
        "head-as-wide-as-the-model",
        "gives zeros where a head is as wide as the model",
        LAYERS,
        operation="multi_head_attention",
        compute=_layer_zeros(lambda inputs: _head_width(inputs) == inputs.query.shape[-1] and inputs.num_heads > 1),
    ),
    _fault(
        "64-wide-model",
        "gives zeros from the 65th column of the model on",
        LAYERS,
        operation="multi_head_attention",
        compute=_layer_zeros(lambda inputs: np.arange(_columns(inputs)) >= 64),
    ),
    _fault(
        "layer-batch-of-8",
        "gives zeros for batch rows from the ninth on, in a layer",
        LAYERS,
        operation="multi_head_attention",
        compute=_layer_zeros(lambda inputs: np.arange(inputs.query.shape[0])[:, None, None] >= 8),
    ),
)

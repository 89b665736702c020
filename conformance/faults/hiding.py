"""Rewrites of what a query sees, for the kinds of faults that concern masks, causal limits, key lengths and biases."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from conformance.faults.model import Fault, Rewrite
from conformance.inputs import AttentionInputs, MultiHeadInputs
from conformance.visibility import tokens_as_heads

Array = np.ndarray


def four_axes(array: Array) -> Array:
    """A mask or bias with axes of size 1 for those that it lacks."""
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def full_size(array: Array, inputs: AttentionInputs) -> Array:
    """A mask or bias at its full size (B, Hq, Lq, Lk), to be written to."""
    return np.broadcast_to(array, (*inputs.query.shape[:3], inputs.key.shape[2])).copy()


def has_axes(array: Array, inputs: AttentionInputs, axes: str) -> bool:
    """Whether a mask or bias of four axes has all those of ``axes`` ("bhqk") in full and broadcasts over none of them."""
    return all(array.shape["bhqk".index(axis)] == full_size(array, inputs).shape["bhqk".index(axis)] for axis in axes)


def narrowed(inputs: AttentionInputs, visible: Bool[Array, "#b #h #lq #lk"]) -> AttentionInputs:
    """The inputs with a mask that hides, beside what it hid before, the pairs where ``visible`` is False."""
    return inputs.but(mask=visible if inputs.mask is None else four_axes(inputs.mask) & visible)


def in_multi_head(rewrite: Callable[[AttentionInputs], AttentionInputs]) -> Rewrite:
    """What ``rewrite`` makes of mask, causal limit and key lengths, done to those of multi-head attention."""

    def rewritten(inputs: MultiHeadInputs) -> MultiHeadInputs:
        seen = rewrite(tokens_as_heads(inputs))
        return inputs.but(mask=seen.mask, causal=seen.causal, key_lengths=seen.key_lengths)

    return rewritten


def multi_head_sibling(fault: Fault, requirement: str) -> Fault:
    """The same fault of visibility in multi-head attention, where ``requirement`` speaks of it."""
    assert fault.rewrite is not None
    return replace(
        fault,
        id=f"multi-head-{fault.id}",
        sentence=f"{fault.sentence}, in multi-head attention",
        operation="multi_head_attention",
        requirements=(requirement,),
        rewrite=in_multi_head(fault.rewrite),
        alike=tuple(f"multi-head-{other}" for other in fault.alike),
    )

"""Faults of indices that are too narrow and begin at 0 again."""

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.faults.tails import fault
from conformance.inputs import AttentionInputs

_OFFSET = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)


def _wrapped(name: str, bits: int) -> Rewrite:
    """Rows of one tensor read at their number in ``bits`` bits."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array = getattr(inputs, name)
        return inputs.but(**{name: array[:, :, np.arange(array.shape[2]) % 2**bits]})

    return rewrite


def _mask_wrapped(name: str, bits: int) -> Rewrite:
    """A mask of rows and keys read at row · Lk + key in ``bits`` bits."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array = getattr(inputs, name)
        if array is None or 1 in array.shape[-2:]:
            return inputs
        flat = array.reshape(*array.shape[:-2], -1)
        return inputs.but(**{name: flat[..., np.arange(flat.shape[-1]) % 2**bits].reshape(array.shape)})

    return rewrite


def _key_offset_wrapped(inputs: AttentionInputs) -> AttentionInputs:
    """Keys read at key · width in 16 bits."""
    length, width = inputs.key.shape[2:]
    return inputs.but(key=inputs.key[:, :, np.arange(length) * width % 2**16 // width])


_WRAPPING = (
    *(
        fault(
            f"{name}-number-in-{bits}-bits",
            f"counts rows of the {name} in {bits} bits",
            _wrapped(name, bits),
            "ATT-OUT-036",
            "ATT-OUT-037",
            "ATT-OUT-038",
        )
        for name in ("query", "key", "value")
        for bits in (7, 8)
    ),
    *(
        fault(
            f"{name}-offset-in-{bits}-bits",
            f"counts row · Lk + key of the {name} in {bits} bits",
            _mask_wrapped(name, bits),
            requirement,
            needs=frozenset({name}),
            sources=_OFFSET,
        )
        for name, requirement in (("mask", "ATT-MASK-001"), ("bias", "ATT-MASK-007"))
        for bits in (8, 16)
    ),
    fault("key-offset-in-16-bits", "counts key · width in 16 bits", _key_offset_wrapped, "ATT-OUT-037", sources=_OFFSET),
)

FAULTS: tuple[Fault, ...] = _WRAPPING

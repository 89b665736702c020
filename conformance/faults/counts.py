"""Faults of what is hidden as a whole: numbers of visible keys that wrap, far first keys, and the lowest finite bias."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.dtypes import float_type
from conformance.faults.model import Fault
from conformance.faults.steps import attend
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_block, visible_pairs

Array = np.ndarray
Rows = Callable[[AttentionInputs], Bool[Array, "#b #h #lq"]]

_INDICES = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)
_FIRST = (
    "flash-attention: https://github.com/Dao-AILab/flash-attention/issues/2082",
    "flashinfer: https://github.com/flashinfer-ai/flashinfer/issues/1178",
)
_FILLS = ("transformers: https://github.com/huggingface/transformers/issues/38690",)


def _giving(number: float, rows: Rows) -> Callable[[AttentionInputs], Array]:
    """The output with ``number`` throughout ``rows``."""

    def compute(inputs: AttentionInputs) -> Array:
        output = attend(inputs)
        output[np.broadcast_to(rows(inputs), output.shape[:3])] = number
        return output

    return compute


def _count_wraps(bits: int) -> Rows:
    def rows(inputs: AttentionInputs) -> Array:
        count = visible_pairs(inputs).sum(-1)
        return np.asarray((count > 0) & (count % 2**bits == 0))

    return rows


def _first_hidden(tile: int) -> Rows:
    """Rows that see keys, but none of the first ``tile``."""

    def rows(inputs: AttentionInputs) -> Array:
        visible = visible_pairs(inputs)
        return np.asarray(visible.any(-1) & ~visible[..., :tile].any(-1))

    return rows


def _doubly_low(inputs: AttentionInputs) -> Array:
    """Rows with a key that the mask hides and whose bias is the lowest finite number."""
    visible = visible_block(inputs, 0, inputs.query.shape[2])
    if inputs.bias is None or visible is None:
        return np.zeros((1, 1, 1), bool)
    lowest = inputs.bias == -float_type(inputs.bias.dtype.name).largest
    return np.asarray((lowest & ~visible).any(-1))


def _reading_bias(function: Callable[..., Array]) -> Callable[..., Array]:
    """Takes the first half of the memory of a float32 bias for its numbers."""

    def faulty(query: Array, key: Array, value: Array, *, bias: Array | None = None, **named: Any) -> Array:
        if bias is not None and bias.dtype.itemsize > query.dtype.itemsize:
            bias = np.ascontiguousarray(bias).view(query.dtype).ravel()[: bias.size].reshape(bias.shape)
        return function(query, key, value, bias=bias, **named)

    return faulty


def _reading_lengths(function: Callable[..., Array]) -> Callable[..., Array]:
    """Takes two int32 lengths for one int64, and nothing for what lies beyond them."""

    def faulty(query: Array, key: Array, value: Array, *, key_lengths: Array | None = None, **named: Any) -> Array:
        if key_lengths is not None and key_lengths.dtype == np.int32:
            key_lengths = np.append(key_lengths, np.zeros_like(key_lengths)).view(np.int64)[: key_lengths.size]
        return function(query, key, value, key_lengths=key_lengths, **named)

    return faulty


FAULTS: tuple[Fault, ...] = (
    *(
        Fault(
            id=f"visible-count-in-{bits}-bits",
            sentence=f"counts the visible keys of a row in {bits} bits, and gives zeros where the count is 0",
            requirements=("ATT-MASK-049", "ATT-OUT-045"),
            sources=_INDICES,
            dtypes=("float32",) if bits == 16 else ("float64", "float32", "float16", "bfloat16"),
            compute=_giving(0.0, _count_wraps(bits)),
        )
        for bits in (8, 9, 16)
    ),
    Fault(
        id="key-count-in-16-bits",
        sentence="counts the keys in 16 bits, and gives zeros where the count is 0",
        requirements=("ATT-OUT-045",),
        sources=_INDICES,
        dtypes=("float32",),
        compute=_giving(0.0, lambda inputs: np.full((1, 1, 1), inputs.key.shape[2] % 2**16 == 0)),
    ),
    *(
        Fault(
            id=f"first-tile-of-{tile}-hidden-gives-nan",
            sentence=f"gives NaN in a row that sees none of the first {tile} keys",
            requirements=("ATT-MASK-048",),
            sources=_FIRST,
            compute=_giving(np.nan, _first_hidden(tile)),
        )
        for tile in (256, 512, 1024)
    ),
    Fault(
        id="lowest-bias-beside-mask-gives-nan",
        sentence="hides by adding the lowest finite number, which gives −∞ beside a bias as low, and NaN in that row",
        requirements=("ATT-MASK-047",),
        sources=_FILLS,
        needs=frozenset({"mask", "bias"}),
        compute=_giving(np.nan, _doubly_low),
    ),
    Fault(
        id="bias-read-in-dtype-of-query",
        sentence="reads a bias of another dtype as if it were in that of the inputs",
        requirements=("ATT-MASK-051",),
        sources=(),
        dtypes=("float16", "bfloat16"),
        needs=frozenset({"bias"}),
        behaviour=_reading_bias,
    ),
    Fault(
        id="int32-lengths-read-as-int64",
        sentence="reads key lengths in int32 as if they were int64",
        requirements=("ATT-MASK-052",),
        sources=(),
        needs=frozenset({"key-lengths"}),
        behaviour=_reading_lengths,
    ),
)

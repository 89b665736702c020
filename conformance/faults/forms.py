"""Faults of form: an output of another dtype, shape or type, or one that is not written in full."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.faults.behaviours import OPERATIONS, Act, fault
from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.steps import attend
from conformance.inputs import AttentionInputs

Array = np.ndarray
_SHAPE = ("ATT-OUT-001",)
_TAILS = ("ATT-OUT-036", "ATT-OUT-035", "ATT-OUT-003")
_WIDTH = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/176767",
    "transformers: https://github.com/huggingface/transformers/issues/44554",
)


def _as(dtype: type[np.floating]) -> Act:
    return lambda call, memory: call.right().astype(dtype)


_FORMS: tuple[tuple[str, str, Act, tuple[str, ...]], ...] = (
    ("returns-float64", "returns float64 whatever the inputs are", _as(np.float64), ("float32", "float16", "bfloat16")),
    ("returns-float32", "returns float32 whatever the inputs are", _as(np.float32), ("float64", "float16", "bfloat16")),
    ("returns-float16", "returns float16 whatever the inputs are", _as(np.float16), ("float64", "float32", "bfloat16")),
    ("returns-tuple", "returns the output and something else beside it", lambda call, memory: (call.right(), None), ALL_DTYPES),
    ("returns-nothing", "writes the output to a buffer that nobody gets", lambda call, memory: None, ALL_DTYPES),
)
_TYPES = tuple(
    fault(operation, identifier, sentence, act, operation.form, dtypes=dtypes)
    for operation in OPERATIONS
    for identifier, sentence, act, dtypes in _FORMS
)


def _fault(
    identifier: str, sentence: str, change: Callable[[AttentionInputs, Array], Array], *requirements: str, **fields: Any
) -> Fault:
    """Attention whose right output is ``change``d."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements,
        compute=lambda inputs: change(inputs, attend(inputs)),
        **{"sources": (), **fields},
    )


def _in_width_of_query(inputs: AttentionInputs, right: Array) -> Array:
    """The output in a buffer as wide as the query: cut off, or filled up with zeros."""
    width = inputs.query.shape[3]
    missing = max(0, width - right.shape[3])
    return np.pad(right, ((0, 0), (0, 0), (0, 0), (0, missing)))[..., :width]


_SHAPES = (
    _fault("output-length-first", "returns (batch, length, heads, width)", lambda inputs, right: right.swapaxes(1, 2), *_SHAPE),
    _fault("output-heads-first", "returns (heads, batch, length, width)", lambda inputs, right: right.swapaxes(0, 1), *_SHAPE),
    _fault(
        "output-width-before-length", "returns (batch, heads, width, length)", lambda inputs, right: right.swapaxes(2, 3), *_SHAPE
    ),
    _fault(
        "output-heads-merged",
        "returns (batch, length, heads · width)",
        lambda inputs, right: right.swapaxes(1, 2).reshape(right.shape[0], right.shape[2], -1),
        *_SHAPE,
    ),
    _fault("output-squeezed", "drops axes of size 1", lambda inputs, right: right.squeeze(), "ATT-OUT-034"),
    _fault(
        "output-squeezed-for-one-query",
        "drops the axis of the query length where it is 1",
        lambda inputs, right: right.squeeze(2) if right.shape[2] == 1 else right,
        "ATT-OUT-023",
        "ATT-OUT-037",
    ),
    _fault(
        "output-squeezed-for-one-batch-row",
        "drops the axis of the batch where it is 1",
        lambda inputs, right: right.squeeze(0) if right.shape[0] == 1 else right,
        "ATT-OUT-022",
    ),
    _fault(
        "output-in-width-of-query",
        "returns an output as wide as the query, though V is not",
        _in_width_of_query,
        *_SHAPE,
        needs=frozenset({"value-width"}),
        sources=_WIDTH,
    ),
    Fault(
        id="returns-weights",
        sentence="returns the weights instead of the output",
        requirements=_SHAPE,
        sources=(),
        compute=lambda inputs: attend(inputs, mix=lambda weights, value: weights),
    ),
)


def _unwritten(axis: int, multiple: int, number: float) -> Callable[[AttentionInputs, Array], Array]:
    """``number`` behind the last whole tile of ``multiple`` along ``axis``, where there is a whole one."""

    def change(inputs: AttentionInputs, right: Array) -> Array:
        whole = right.shape[axis] // multiple * multiple
        output = np.moveaxis(right.copy(), axis, 0)
        if whole:
            output[whole:] = number
        return np.moveaxis(output, 0, axis)

    return change


_UNWRITTEN = tuple(
    _fault(
        f"{place}-tail-of-{multiple}-{word}",
        f"leaves {verb} in the {shown} behind the last whole tile of {multiple}",
        _unwritten(axis, multiple, number),
        *_TAILS,
    )
    for place, shown, axis, multiples in (("row", "rows", 2, (4, 16, 64)), ("channel", "channels", 3, (4, 8)))
    for multiple in multiples
    for word, verb, number in (("zero", "zeros", 0.0), ("nan", "NaN", np.nan))
    if word == "zero" or multiple == 4
)

FAULTS: tuple[Fault, ...] = (*_TYPES, *_SHAPES, *_UNWRITTEN)

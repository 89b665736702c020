"""Faults of the output as a whole: another dtype, shape or type, one that is not written in full, or relations of the formula
broken (order of queries and channels, common signs, range of V)."""

from collections.abc import Callable

import numpy as np

from conformance.faults.calls import OPERATIONS, Act, called
from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import OUT, Way, argument, computed, fault, output, stages
from conformance.faults.steps import attend, products
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
SHAPE, TAILS, VALUES = OUT(1), OUT(36, 35, 3), OUT(3, 5)
WIDTH = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/176767",
    "transformers: https://github.com/huggingface/transformers/issues/44554",
)


def _as(dtype: str) -> Act:
    return lambda call, memory: call.right().astype(dtype)


def _shaped(change: Callable[[Array], Array]) -> Way:
    """The right output in another shape."""
    return output(lambda inputs, right: change(right))


def _squeezed_for_one(axis: int) -> Way:
    return _shaped(lambda right: right.squeeze(axis) if right.shape[axis] == 1 else right)


def _in_width_of_query(inputs: AttentionInputs, right: Array) -> Array:
    """The output in a buffer as wide as the query: cut off, or filled up with zeros."""
    width = inputs.query.shape[3]
    missing = max(0, width - right.shape[3])
    return np.pad(right, ((0, 0), (0, 0), (0, 0), (0, missing)))[..., :width]


def _unwritten(axis: int, multiple: int, number: float) -> Way:
    """``number`` behind the last whole tile of ``multiple`` along ``axis``, where there is a whole one."""

    def change(right: Array) -> Array:
        whole = right.shape[axis] // multiple * multiple
        changed = np.moveaxis(right.copy(), axis, 0)
        if whole:
            changed[whole:] = number
        return np.moveaxis(changed, 0, axis)

    return _shaped(change)


def _overshooting(inputs: AttentionInputs) -> Array:
    """Twice the output less the mean of V: a step beyond it."""
    mean = attend(inputs.but(query=np.zeros_like(inputs.query))).astype(np.float64)
    return (2.0 * attend(inputs).astype(np.float64) - mean).astype(inputs.query.dtype)


def _growing(query: Array, key: Array, scale: float) -> Array:
    """Scores grow with the logarithm of the row's number, as some models have it for long texts."""
    return products(query, key, scale) * (1.0 + np.log1p(np.arange(query.shape[2]))[:, None])


def _halves(array: Array, inputs: AttentionInputs) -> Array:
    """Channels 0, 2, 4 … first, then 1, 3, 5 …"""
    return np.concatenate([array[..., 0::2], array[..., 1::2]], axis=-1)


FAULTS: tuple[Fault, ...] = (
    *(
        called(of, f"returns-{name}", sentence, act, (of.form,), dtypes=dtypes)
        for of in OPERATIONS
        for name, sentence, act, dtypes in (
            *(
                (dtype, f"returns {dtype} whatever the inputs are", _as(dtype), tuple(one for one in ALL_DTYPES if one != dtype))
                for dtype in ("float64", "float32", "float16")
            ),
            ("tuple", "returns the output and something else beside it", lambda call, memory: (call.right(), None), ALL_DTYPES),
            ("nothing", "writes the output to a buffer that nobody gets", lambda call, memory: None, ALL_DTYPES),
        )
    ),
    # Shapes
    *(
        fault(name, sentence, way, requirements)
        for name, sentence, requirements, way in (
            ("output-length-first", "returns (batch, length, heads, width)", SHAPE, _shaped(lambda right: right.swapaxes(1, 2))),
            ("output-heads-first", "returns (heads, batch, length, width)", SHAPE, _shaped(lambda right: right.swapaxes(0, 1))),
            ("output-width-before-length", "returns (batch, heads, width, length)", SHAPE,
             _shaped(lambda right: right.swapaxes(2, 3))),
            ("output-heads-merged", "returns (batch, length, heads · width)", SHAPE,
             _shaped(lambda right: right.swapaxes(1, 2).reshape(right.shape[0], right.shape[2], -1))),
            ("output-squeezed", "drops axes of size 1", OUT(34), _shaped(np.squeeze)),
            ("output-squeezed-for-one-query", "drops the axis of the query length where it is 1", OUT(23, 37),
             _squeezed_for_one(2)),
            ("output-squeezed-for-one-batch-row", "drops the axis of the batch where it is 1", OUT(22), _squeezed_for_one(0)),
            ("returns-weights", "returns the weights instead of the output", SHAPE, stages(mix=lambda weights, value: weights)),
        )
    ),
    fault("output-in-width-of-query", "returns an output as wide as the query, though V is not", output(_in_width_of_query),
          SHAPE, WIDTH, "value-width"),
    *(
        fault(f"{place}-tail-of-{multiple}-{word}", f"leaves {verb} in the {shown} behind the last whole tile of {multiple}",
              _unwritten(axis, multiple, number), TAILS)
        for place, shown, axis, multiples in (("row", "rows", 2, (4, 16, 64)), ("channel", "channels", 3, (4, 8)))
        for multiple in multiples
        for word, verb, number in (("zero", "zeros", 0.0), ("nan", "NaN", np.nan))
        if word == "zero" or multiple == 4
    ),
    # Relations
    fault("output-beyond-the-mean", "goes twice as far from the mean of V as is expected", computed(_overshooting),
          OUT(11) + VALUES),
    fault("scale-by-row-number", "multiplies the scores by the logarithm of the row's number", stages(products=_growing),
          OUT(16) + VALUES),
    fault("query-channels-in-halves", "has the even channels of the query before the odd ones, and not those of the key",
          argument("query", _halves), OUT(18) + VALUES),
    fault("query-without-signs", "takes the sizes of the query's entries",
          stages(products=lambda query, key, scale: products(np.abs(query), key, scale)), OUT(25) + VALUES),
)  # fmt: skip

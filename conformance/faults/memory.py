"""Faults of memory: strides that are assumed, half obeyed or taken from another tensor, and widths taken from another tensor.

A read beyond the memory of a tensor gives NaN, so that nothing foreign is touched.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.grammar import MASK, OUT, SCALE, Way, fault, inputs
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Strides = Callable[[Array], Sequence[int]]  # tensor → elements from one index to the next along each axis

LAYOUTS = OUT(30, 31, 32, 33)
CONTIGUOUS = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/181133",
    "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4331",
)
VALUE = ("ROCm/pytorch: https://github.com/ROCm/pytorch/issues/3230",)
WIDTH = (
    "xformers: https://github.com/facebookresearch/xformers/issues/1090",
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/176767",
)
BROADCAST = ("pytorch: https://github.com/pytorch/pytorch/issues/191937",)
TENSORS = ("query", "key", "value")


def own(array: Array) -> list[int]:
    """The strides in elements."""
    return [stride // array.itemsize for stride in array.strides]


def contiguous(shape: Sequence[int]) -> list[int]:
    """The strides of an array without gaps."""
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


def read(array: Array, strides: Sequence[int], before: int = 0) -> Array:
    """The numbers at ``strides`` (in elements) from where ``array`` begins, or ``before`` elements from there, in the memory that
    it lies in; NaN beyond that."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    flat = owner.reshape(-1)
    start = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // array.itemsize + before
    place = start + np.tensordot(np.array(strides), np.indices(array.shape), 1)
    inside = (place >= 0) & (place < flat.size)
    return np.where(inside, flat[np.where(inside, place, 0)], array.dtype.type(np.nan))


def _reading(strides: Strides, *names: str) -> Way:
    """The arrays ``names`` read with other strides than their own, where there are such."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        arrays = {name: getattr(inputs, name) for name in names}
        changed: dict[str, Any] = {name: read(array, strides(array)) for name, array in arrays.items() if array is not None}
        return inputs.but(**changed)

    return inputs(rewrite)


def _packed(array: Array) -> list[int]:
    return contiguous(array.shape)


def _from_multiple_of(alignment: int) -> Way:
    """The tensors read from the last multiple of so many bytes before them."""

    def down(array: Array) -> Array:
        return read(array, own(array), -(array.__array_interface__["data"][0] % alignment) // array.itemsize)

    return inputs(lambda x: x.but(query=down(x.query), key=down(x.key), value=down(x.value)))


def _strides_of(source: str, name: str) -> Way:
    """The tensor ``name`` read with the strides of ``source`` where both have the same shape."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array, other = getattr(inputs, name), getattr(inputs, source)
        changed: dict[str, Any] = {name: read(array, own(other))} if array.shape == other.shape else {}
        return inputs.but(**changed)

    return inputs(rewrite)


def _width_of(source: str, name: str) -> Way:
    """The tensor ``name`` read as if its rows were as wide as those of ``source``."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array, width = getattr(inputs, name), getattr(inputs, source).shape[3]
        if array.shape[3] == width:
            return inputs
        changed: dict[str, Any] = {name: read(array, contiguous((*array.shape[:3], width)))}
        return inputs.but(**changed)

    return inputs(rewrite)


def _value_cut(inputs: AttentionInputs) -> AttentionInputs:
    value = inputs.value.copy()
    value[..., inputs.key.shape[3] :] = 0
    return inputs.but(value=value)


def _length_of_query(inputs: AttentionInputs) -> AttentionInputs:
    """Heads of key and value begin Lq rows apart, not Lk."""

    def moved(array: Array) -> Array:
        head = inputs.query.shape[2] * array.shape[3]
        return read(np.ascontiguousarray(array), [inputs.key.shape[1] * head, head, array.shape[3], 1])

    return inputs.but(key=moved(inputs.key), value=moved(inputs.value))


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"{name}-taken-for-contiguous", f"reads the {shown} without their strides", _reading(_packed, *names), LAYOUTS,
              CONTIGUOUS)
        for name, shown, names in (
            ("inputs", "inputs", TENSORS), ("query", "queries", TENSORS[:1]), ("key", "keys", TENSORS[1:2]),
            ("value", "values", TENSORS[2:]),
        )
    ),
    fault("stride-of-width-taken-for-1", "takes neighbours in memory for neighbouring channels",
          _reading(lambda array: [*own(array)[:-1], 1], *TENSORS), OUT(31)),
    fault("strides-in-heads-assumed", "reads each head as a block without gaps",
          _reading(lambda array: [*own(array)[:2], *contiguous(array.shape)[2:]], *TENSORS), LAYOUTS, CONTIGUOUS),
    fault("stride-sign-ignored", "takes negative strides for positive ones",
          _reading(lambda array: [abs(stride) for stride in own(array)], *TENSORS), OUT(33)),
    fault("stride-of-batch-assumed", "expects memory of its own for each batch row",
          _reading(lambda array: [contiguous(array.shape)[0], *own(array)[1:]], *TENSORS), OUT(32), BROADCAST),
    *(
        fault(f"{name}-strides-of-{source}", f"reads the {name} with the strides of the {source}", _strides_of(source, name),
              LAYOUTS, VALUE)
        for name, source in (("value", "key"), ("key", "query"), ("key", "value"))
    ),
    fault("value-rows-as-wide-as-key", "reads V in rows as wide as those of the keys", _width_of("key", "value"), SCALE(2), WIDTH,
          "value-width"),
    fault("key-rows-as-wide-as-value", "reads the keys in rows as wide as those of V", _width_of("value", "key"), SCALE(2), WIDTH,
          "value-width"),
    fault("value-cut-to-key-width", "leaves out channels of V beyond the width of the keys", inputs(_value_cut), SCALE(2), WIDTH,
          "value-width"),
    fault("key-heads-apart-by-query-length", "takes the query length for the key length from one head to the next",
          inputs(_length_of_query), OUT(37), WIDTH, "cross-length"),
    fault("key-width-taken-for-fastest", "reads the keys of a head in rows without gaps, whatever axis is fastest in memory",
          _reading(lambda array: [*own(array)[:2], array.shape[3], 1], "key"), OUT(46), VALUE),
    fault("inputs-expected-at-16-bytes", "reads the inputs from the last multiple of 16 bytes", _from_multiple_of(16), OUT(47),
          CONTIGUOUS),
    *(
        fault(f"{name}-taken-for-contiguous", f"reads the {name} without its strides", _reading(_packed, name), MASK(50),
              BROADCAST, name)
        for name in ("mask", "bias")
    ),
)  # fmt: skip

"""Faults of memory: strides that are assumed, half obeyed or taken from another tensor, and widths taken from another tensor.

A read beyond the memory of a tensor gives NaN, so that nothing foreign is touched.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.inputs import AttentionInputs

Array = np.ndarray
Strides = Callable[[Array], Sequence[int]]  # tensor → elements from one index to the next along each axis

_LAYOUTS = ("ATT-OUT-030", "ATT-OUT-031", "ATT-OUT-032", "ATT-OUT-033")
_WIDTH_OF_VALUE = ("ATT-SCALE-002",)
_CONTIGUOUS = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/181133",
    "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4331",
)
_VALUE = ("ROCm/pytorch: https://github.com/ROCm/pytorch/issues/3230",)
_WIDTH = (
    "xformers: https://github.com/facebookresearch/xformers/issues/1090",
    "pytorch (MPS): https://github.com/pytorch/pytorch/issues/176767",
)
_BROADCAST = ("pytorch: https://github.com/pytorch/pytorch/issues/191937",)


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


def _reading(strides: Strides, *names: str) -> Rewrite:
    """The tensors ``names`` read with other strides than their own."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        changed: dict[str, Any] = {name: read(getattr(inputs, name), strides(getattr(inputs, name))) for name in names}
        return inputs.but(**changed)

    return rewrite


def _packed(array: Array) -> list[int]:
    return contiguous(array.shape)


def _packed_rows(array: Array) -> list[int]:
    """Its own strides but that of the last axis, which is taken for 1."""
    return [*own(array)[:-1], 1]


def _packed_heads(array: Array) -> list[int]:
    """Its own strides but those within a head."""
    return [*own(array)[:2], *contiguous(array.shape)[2:]]


def _upwards(array: Array) -> list[int]:
    return [abs(stride) for stride in own(array)]


def _own_batch(array: Array) -> list[int]:
    """Its own strides, but memory of its own for each batch row."""
    return [contiguous(array.shape)[0], *own(array)[1:]]


def _width_fastest(array: Array) -> list[int]:
    """Its own strides from head to head, but rows without gaps within a head."""
    return [*own(array)[:2], array.shape[3], 1]


def _from_multiple_of(alignment: int) -> Rewrite:
    """The tensors read from the last multiple of so many bytes before them."""

    def down(array: Array) -> Array:
        return read(array, own(array), -(array.__array_interface__["data"][0] % alignment) // array.itemsize)

    return lambda inputs: inputs.but(query=down(inputs.query), key=down(inputs.key), value=down(inputs.value))


def _of_masks(name: str) -> Rewrite:
    """A mask or bias read without its strides."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array = getattr(inputs, name)
        changed: dict[str, Any] = {} if array is None else {name: read(array, contiguous(array.shape))}
        return inputs.but(**changed)

    return rewrite


_TENSORS = ("query", "key", "value")
_ASSUMED = (
    *(
        Fault(
            id=f"{name}-taken-for-contiguous",
            sentence=f"reads the {shown} without their strides",
            requirements=_LAYOUTS,
            sources=_CONTIGUOUS,
            rewrite=_reading(_packed, *names),
        )
        for name, shown, names in (
            ("inputs", "inputs", _TENSORS),
            ("query", "queries", ("query",)),
            ("key", "keys", ("key",)),
            ("value", "values", ("value",)),
        )
    ),
    *(
        Fault(id=identifier, sentence=sentence, requirements=requirements, sources=sources, rewrite=_reading(strides, *_TENSORS))
        for identifier, sentence, strides, requirements, sources in (
            (
                "stride-of-width-taken-for-1",
                "takes neighbours in memory for neighbouring channels",
                _packed_rows,
                ("ATT-OUT-031",),
                (),
            ),
            ("strides-in-heads-assumed", "reads each head as a block without gaps", _packed_heads, _LAYOUTS, _CONTIGUOUS),
            ("stride-sign-ignored", "takes negative strides for positive ones", _upwards, ("ATT-OUT-033",), ()),
            ("stride-of-batch-assumed", "expects memory of its own for each batch row", _own_batch, ("ATT-OUT-032",), _BROADCAST),
        )
    ),
)


def _strides_of(source: str, name: str) -> Rewrite:
    """The tensor ``name`` read with the strides of ``source`` where both have the same shape."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array, other = getattr(inputs, name), getattr(inputs, source)
        changed: dict[str, Any] = {name: read(array, own(other))} if array.shape == other.shape else {}
        return inputs.but(**changed)

    return rewrite


def _width_of_key(inputs: AttentionInputs) -> AttentionInputs:
    """V read as if its rows were as wide as those of the keys."""
    assumed = contiguous((*inputs.value.shape[:3], inputs.key.shape[3]))
    return inputs if inputs.key.shape[3] == inputs.value.shape[3] else inputs.but(value=read(inputs.value, assumed))


def _width_of_value(inputs: AttentionInputs) -> AttentionInputs:
    """Keys read as if their rows were as wide as those of V."""
    assumed = contiguous((*inputs.key.shape[:3], inputs.value.shape[3]))
    return inputs if inputs.key.shape[3] == inputs.value.shape[3] else inputs.but(key=read(inputs.key, assumed))


def _value_cut(inputs: AttentionInputs) -> AttentionInputs:
    value = inputs.value.copy()
    value[..., inputs.key.shape[3] :] = 0
    return inputs.but(value=value)


def _length_of_query(inputs: AttentionInputs) -> AttentionInputs:
    """Heads of key and value begin Lq rows apart, not Lk."""
    heads = inputs.key.shape[1]

    def moved(array: Array) -> Array:
        head = inputs.query.shape[2] * array.shape[3]
        return read(np.ascontiguousarray(array), [heads * head, head, array.shape[3], 1])

    return inputs.but(key=moved(inputs.key), value=moved(inputs.value))


_TAKEN = (
    *(
        Fault(
            id=f"{name}-strides-of-{source}",
            sentence=f"reads the {name} with the strides of the {source}",
            requirements=_LAYOUTS,
            sources=_VALUE,
            rewrite=_strides_of(source, name),
        )
        for name, source in (("value", "key"), ("key", "query"), ("key", "value"))
    ),
    *(
        Fault(
            id=identifier,
            sentence=sentence,
            requirements=_WIDTH_OF_VALUE,
            sources=sources,
            needs=frozenset({"value-width"}),
            rewrite=rewrite,
        )
        for identifier, sentence, rewrite, sources in (
            ("value-rows-as-wide-as-key", "reads V in rows as wide as those of the keys", _width_of_key, _WIDTH),
            ("key-rows-as-wide-as-value", "reads the keys in rows as wide as those of V", _width_of_value, _WIDTH),
            ("value-cut-to-key-width", "leaves out channels of V beyond the width of the keys", _value_cut, _WIDTH),
        )
    ),
    Fault(
        id="key-heads-apart-by-query-length",
        sentence="takes the query length for the key length from one head to the next",
        requirements=("ATT-OUT-037",),
        sources=_WIDTH,
        needs=frozenset({"cross-length"}),
        rewrite=_length_of_query,
    ),
)

_BUFFERS = (
    Fault(
        id="key-width-taken-for-fastest",
        sentence="reads the keys of a head in rows without gaps, whatever axis is fastest in memory",
        requirements=("ATT-OUT-046",),
        sources=_VALUE,
        rewrite=_reading(_width_fastest, "key"),
    ),
    Fault(
        id="inputs-expected-at-16-bytes",
        sentence="reads the inputs from the last multiple of 16 bytes",
        requirements=("ATT-OUT-047",),
        sources=_CONTIGUOUS,
        rewrite=_from_multiple_of(16),
    ),
    *(
        Fault(
            id=f"{name}-taken-for-contiguous",
            sentence=f"reads the {name} without its strides",
            requirements=("ATT-MASK-050",),
            sources=_BROADCAST,
            needs=frozenset({name}),
            rewrite=_of_masks(name),
        )
        for name in ("mask", "bias")
    ),
)

FAULTS: tuple[Fault, ...] = (*_ASSUMED, *_TAKEN, *_BUFFERS)

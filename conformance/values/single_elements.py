"""Transformations of a single element, in the middle of one array, and of an order alone: what an answer kept from a call with
other inputs cannot have noticed by their shapes, corners, sums or addresses.

For attention and multi-head attention alike; arrays that are one object stay one.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from conformance.errors import ProblemError
from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem import Cookbook
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, Weights
from conformance.values.multihead_transformations import MULTI_HEAD_TRANSFORMATIONS
from conformance.values.transformations import TRANSFORMATIONS

_AMOUNT = 8.0  # what the element becomes: far from most that is drawn
_Inputs = TypeVar("_Inputs", AttentionInputs, MultiHeadInputs)
_Change = Callable[[np.ndarray], np.ndarray]


def _middle(array: np.ndarray) -> tuple[int, ...]:
    return tuple(size // 2 for size in array.shape)


def _element(array: np.ndarray, argument: float | None) -> np.ndarray:
    """``array`` with its middle element turned round, if boolean; else set to ``*a``, or −a where that is what it is nearly."""
    changed, place = array.copy(), _middle(array)
    if array.dtype == bool:
        changed[place] = not array[place]
        return changed
    amount = _AMOUNT if argument is None else argument
    near = abs(float(array[place]) - amount) <= abs(amount) / 2
    changed[place] = round_to(np.asarray(-amount if near else amount), array.dtype.name)
    return changed


def _exchanged(array: np.ndarray) -> np.ndarray:
    """``array`` with the largest and the smallest element of its middle row exchanged: all sums over rows stay."""
    changed = array.copy()
    row = changed[_middle(array)[:-1]]
    largest, smallest = int(row.argmax()), int(row.argmin())
    row[[largest, smallest]] = row[[smallest, largest]]
    return changed


def _changed(inputs: _Inputs, name: str, change: _Change) -> _Inputs:
    """``inputs`` with the array ``name`` changed, in all places where it is that object."""
    array = getattr(inputs, name)
    if array is None:
        raise ProblemError(f"The transformation middle-{name} needs a {name}.")
    one = change(array)
    same = {other: one for other in ("query", "key", "value", "mask", "bias") if getattr(inputs, other, None) is array}
    return inputs.but(**cast(dict[str, Any], same))


def _register(cookbook: Cookbook, name: str) -> None:
    def transformation(inputs: _Inputs, stream: Stream, argument: float | None) -> _Inputs:
        return _changed(inputs, name, lambda array: _element(array, argument))

    flip = "turned round" if name == "mask" else "set to ``*a`` (8 unless said)"
    transformation.__doc__ = f"The element in the middle of the {name} {flip}; all others stay as they are."
    cookbook.entry(f"middle-{name}")(transformation)


def _register_weight(name: str) -> None:
    def transformation(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
        array = getattr(inputs.weights, name)
        if array is None:
            raise ProblemError(f"The transformation middle-weights-{name.replace('_', '-')} needs those weights.")
        return inputs.but(weights=inputs.weights.but(**{name: _element(array, argument)}))

    transformation.__doc__ = (
        f"The element in the middle of the weights {name} set to ``*a`` (8 unless said); all others stay as they are."
    )
    MULTI_HEAD_TRANSFORMATIONS.entry(f"middle-weights-{name.replace('_', '-')}")(transformation)


for _name in ("query", "key", "value", "mask", "bias"):
    _register(TRANSFORMATIONS, _name)
for _name in ("query", "key", "value", "mask"):
    _register(MULTI_HEAD_TRANSFORMATIONS, _name)
for _name in Weights.__dataclass_fields__:
    if _name != "key_bias":  # it adds one number to all scores of a row, which softmax does not notice
        _register_weight(_name)


@TRANSFORMATIONS.entry("exchange-elements")
def exchange_elements(inputs: AttentionInputs, stream: Stream, argument: float | None) -> AttentionInputs:
    """Largest and smallest element of the middle row of query, key and value exchanged: no sum, and no extreme, tells."""
    return _all_exchanged(inputs)


@MULTI_HEAD_TRANSFORMATIONS.entry("exchange-elements")
def exchange_tokens(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Largest and smallest element of the middle row of query, key and value exchanged: no sum, and no extreme, tells."""
    return _all_exchanged(inputs)


@MULTI_HEAD_TRANSFORMATIONS.entry("exchange-weights")
def exchange_weights(inputs: MultiHeadInputs, stream: Stream, argument: float | None) -> MultiHeadInputs:
    """Largest and smallest element of the middle row of each matrix exchanged: no sum, and no extreme, tells."""
    matrices = {name: _exchanged(array) for name, array in inputs.weights.arrays().items() if array.ndim == 2}
    return inputs.but(weights=inputs.weights.but(**matrices))


def _all_exchanged(inputs: _Inputs) -> _Inputs:
    """Each of query, key and value exchanged, once where they are one."""
    done: dict[int, np.ndarray] = {}
    for array in (inputs.query, inputs.key, inputs.value):
        done.setdefault(id(array), _exchanged(array))
    return inputs.but(query=done[id(inputs.query)], key=done[id(inputs.key)], value=done[id(inputs.value)])

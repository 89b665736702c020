"""Faults in dealing with the caller's memory: inputs that are changed, outputs that lie in an input."""

from collections.abc import Iterable, Iterator

import numpy as np

from conformance.faults.behaviours import ATTENTION, MULTI_HEAD, SINUSOIDAL, Act, Call, Memory, Operation, fault
from conformance.faults.model import Fault

Array = np.ndarray


def _changing(name: str) -> Act:
    """The input ``name`` is changed by the call, whose output is right."""

    def act(call: Call, memory: Memory) -> Array:
        right, array = call.right(), call.arrays().get(name)
        if array is not None:
            array[...] = ~array if array.dtype == bool else array * array.dtype.type(2)
        return right

    return act


def _borrowing(call: Call, memory: Memory) -> Array:
    query = call.arrays()["query"]
    np.negative(query, out=query)
    np.negative(query, out=query)
    return call.right()


def _into(name: str) -> Act:
    """The output is written over the input ``name`` where it fits, and that is returned."""

    def act(call: Call, memory: Memory) -> Array:
        right, array = call.right(), call.arrays().get(name)
        if array is None or array.shape != right.shape:
            return right
        array[...] = right
        return array

    return act


def _value_itself(call: Call, memory: Memory) -> Array:
    query, key, value = call.arguments
    if key.shape[2] > 1 or query.shape[1] != key.shape[1] or call.named:
        return call.right()
    return np.broadcast_to(value, (*query.shape[:3], value.shape[3]))


def _changes(operation: Operation, names: Iterable[tuple[str, str]]) -> Iterator[Fault]:
    """One fault for each input that is changed: its name, and the feature that brings it."""
    for name, feature in names:
        identifier, needs = f"changes-{name.replace('.', '-').replace('_', '-')}", frozenset({feature} if feature else ())
        yield fault(operation, identifier, f"changes its input {name}", _changing(name), operation.untouched, needs=needs)


_MASKS = (("mask", "mask"), ("key_lengths", "key-lengths"))
_TENSORS = (("query", ""), ("key", ""), ("value", ""))
_MEMORY = (
    *_changes(ATTENTION, (*_TENSORS, *_MASKS, ("bias", "bias"))),
    *_changes(
        MULTI_HEAD,
        (("query", ""), *_MASKS, ("weights.query", ""), ("weights.output", ""), ("weights.output_bias", "output-bias")),
    ),
    *_changes(SINUSOIDAL, (("x", "addition"),)),
    fault(
        ATTENTION,
        "borrows-query",
        "writes to the query while it works, and puts it back",
        _borrowing,
        equivalent="Nobody reads the inputs between the beginning and the end of a call.",
    ),
    *(
        fault(
            one,
            f"writes-over-{name}",
            f"returns the memory of {name} with the output in it, where it fits",
            _into(name),
            one.unaliased,
            one.untouched,
        )
        for one, name in ((ATTENTION, "query"), (MULTI_HEAD, "query"), (SINUSOIDAL, "x"))
    ),
    fault(ATTENTION, "hands-out-value", "returns a view of V where there is a single key", _value_itself, ATTENTION.unaliased),
)

FAULTS: tuple[Fault, ...] = _MEMORY

"""The arrays that were given to an implementation, beside what they were made from: whether a call has left them alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.adapter import Framework
from conformance.values.layouts import address

SMALL = 1 << 18  # bytes that are compared through copies of them, which is quicker
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes of an element


@dataclass(frozen=True, eq=False)
class Given:
    """One array of the framework, ``array``; ``source`` is what the suite keeps of it, and ``copy``, in the same memory layout,
    is what the framework was given."""

    array: Any
    source: np.ndarray
    copy: np.ndarray

    def changed(self, framework: Framework) -> str:
        """What became of it, as a verb phrase that the name of the input ends; empty where it has the bits that it had."""
        try:
            now = framework.to_numpy(self.array)
        except Exception:  # of the framework: memory that was given away holds nothing any more
            return "took away the memory of"
        if not same_bits(now, self.source):
            return "changed"
        if self.copy.base is None:
            return ""
        before, after = memory_of(self.source), memory_of(self.copy)
        alike = before.shape == after.shape and address(self.source) - address(before) == address(self.copy) - address(after)
        return "" if not alike or same_bits(before, after) else "wrote between the elements of"


def complaint(given: Sequence[Given], named: dict[str, Any], framework: Framework) -> str:
    """A sentence that names what a call has done to the arrays that it was given, ``named`` by argument; empty for nothing."""
    verbs = {id(one.array): verb for one in given if (verb := one.changed(framework))}
    if not verbs:
        return ""
    done: dict[str, list[str]] = {}
    for name, array in named.items():
        if id(array) in verbs:
            done.setdefault(verbs[id(array)], []).append(name)
    return f"The call {' and '.join(f'{verb} its input {_listed(names)}' for verb, names in done.items())}."


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays hold the same bits, NaN included; where a framework has narrowed the dtype, the same numbers."""
    if first.dtype != second.dtype:
        return np.array_equal(first, second.astype(first.dtype))
    if first.nbytes <= SMALL:
        return first.shape == second.shape and first.tobytes() == second.tobytes()
    bits = _BITS[first.dtype.itemsize]
    return first.shape == second.shape and bool((first.view(bits) == second.view(bits)).all())


def memory_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of which ``array`` is a view: ``array`` itself where that is its own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _listed(names: Sequence[str]) -> str:
    *front, last = names
    return f"{', '.join(front)} and {last}" if front else last

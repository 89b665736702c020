"""A call that is ready: arrays converted to the framework and bound, in the surroundings that the framework wants."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from conformance.adapter import Framework, Overwrites, Surrounds
from conformance.adapter.parameters import parameter_features
from conformance.harness.given import Given, complaint, memory_of
from conformance.operations import operation_of
from conformance.problem.inputs import Inputs, Weights
from conformance.problem.returned import IGNORED, OUTPUT
from conformance.values.layouts import address, misaligned

_ALIGNED = 16  # bytes: memory begins at a multiple of so many wherever NumPy gets it


class OtherPartsError(Exception):
    """A result of other parts than ``Support.returns`` names, in a sentence."""


@dataclass
class PreparedCall:
    """A converted and bound call: what is left to do is the implementation's own work. ``returns`` names the parts of its result,
    which is a tuple where there are several."""

    framework: Framework
    call: Callable[[], Any]
    arrays: dict[str, Any]
    swap: bool = False  # the implementation has length before heads
    unbound: partial[Any] | None = None  # the implementation's function with its arguments, before any binding
    around: Callable[[], AbstractContextManager[None]] | None = None  # what the framework sets for the dtype at hand
    given: tuple[Given, ...] = ()  # the arrays, each once, beside what they were made from
    returns: tuple[str, ...] = (OUTPUT,)

    def run(self) -> Any:
        """Calls the implementation and waits for its result, which is returned as the framework has it."""
        if self.around is None:
            return self.framework.wait(self.call())
        with self.around():
            return self.framework.wait(self.call())

    def inputs(self) -> dict[str, np.ndarray]:
        """The inputs read back from the framework, by name, to see whether they were changed."""
        return {name: self.framework.to_numpy(array) for name, array in self.arrays.items()}

    def changed(self) -> str:
        """A sentence that names the inputs that are no longer what they were; empty where they are."""
        return complaint(self.given, self.arrays, self.framework)

    def overwritten(self, other: "PreparedCall") -> "PreparedCall | None":
        """The call ``other``, in the memory of this one: the same array objects with other contents. None where the framework's
        arrays cannot be written to, or those of the two differ in number or form."""
        contents = [one.source for one in other.given]
        alike = [(a.shape, a.dtype) for a in contents] == [(one.source.shape, one.source.dtype) for one in self.given]
        if not alike or not _overwrites(type(self.framework)) or self.unbound is None or other.unbound is None:
            return None
        assert isinstance(self.framework, Overwrites)
        for one, new in zip(self.given, contents, strict=True):
            self.framework.overwrite(one.array, new)
        mine, theirs = ({id(one.array) for one in call.given} for call in (self, other))
        numbers = {name: argument for name, argument in other.unbound.keywords.items() if id(argument) not in theirs}
        own = {name: argument for name, argument in self.unbound.keywords.items() if id(argument) in mine}
        unbound = partial(self.unbound.func, *self.unbound.args, **numbers, **own)
        return replace(
            self,
            call=unbound if self.call is self.unbound else lambda: unbound()(),
            unbound=unbound,
            given=tuple(replace(one, source=new) for one, new in zip(self.given, contents, strict=True)),
        )

    def aliases(self, output: Any) -> bool:
        """Whether the output shares memory with an input."""
        return any(self.framework.shares_memory(output, array) for array in self.arrays.values())

    def parts(self, result: Any) -> dict[str, Any]:
        """What is judged of a result, by name, as the framework has it. Raises OtherPartsError where its parts are others."""
        if len(self.returns) == 1:
            return {OUTPUT: result}
        names = ", ".join(self.returns)
        if not isinstance(result, tuple | list):
            kind = type(result).__name__
            raise OtherPartsError(
                f"The result is of type {kind}, where Support.returns names the {len(self.returns)} parts {names}."
            )
        if len(result) != len(self.returns):
            raise OtherPartsError(
                f"The result has {len(result)} part{'' if len(result) == 1 else 's'}, where Support.returns names "
                f"{len(self.returns)}: {names}."
            )
        return {name: part for name, part in zip(self.returns, result, strict=True) if name != IGNORED}

    def read(self, output: Any) -> np.ndarray:
        """The output, that part alone, as NumPy, axes in canonical order. Raises TypeError if it is no array of the framework."""
        array = self.framework.to_numpy(output)
        return array.swapaxes(1, 2) if self.swap and array.ndim == 4 else array

    def read_as(self, name: str, part: Any) -> np.ndarray:
        """The part of that name, likewise; the others have no other order of axes."""
        return self.read(part) if name == OUTPUT else self.framework.to_numpy(part)


def surroundings(framework: Framework, inputs: Inputs) -> Callable[[], AbstractContextManager[None]] | None:
    """Makes what the framework sets for calls in the dtype of the inputs; None where there is nothing to set."""
    if not _surrounds(type(framework)):
        return None
    assert isinstance(framework, Surrounds)
    if framework.surroundings(inputs.dtype) is None:
        return None
    return lambda: framework.surroundings(inputs.dtype) or nullcontext()


@cache
def _surrounds(framework: type) -> bool:
    """Whether a class of frameworks is Surrounds, which is asked before each call and takes long to find out."""
    return issubclass(framework, Surrounds)


@cache
def _overwrites(framework: type) -> bool:
    return issubclass(framework, Overwrites)


_PLAIN = (bool, int, float, str, tuple)  # what arguments are that are no arrays


class Copies:
    """Copies of arrays in the same memory layout, gaps and stride 0 included, so that whoever writes to them harms nobody else.

    Arrays of one buffer are copied into one buffer, and what begins between two multiples of 16 bytes does so again.
    """

    def __init__(self) -> None:
        # what was copied, so that its id stays its own, and the copy
        self._buffers: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def of(self, array: np.ndarray) -> np.ndarray:
        owner = memory_of(array)
        if array.flags.c_contiguous:
            return misaligned(array) if address(array) % _ALIGNED else array.copy()
        if not owner.flags.c_contiguous:
            return array.copy()
        if id(owner) not in self._buffers:
            self._buffers[id(owner)] = owner, owner.copy()
        copy = self._buffers[id(owner)][1]
        return np.ndarray(array.shape, array.dtype, copy, address(array) - address(owner), array.strides)


def length_first(array: np.ndarray) -> np.ndarray:
    """(B, H, L, d) as (B, L, H, d); contiguous if it was, aligned or not, another memory layout kept."""
    swapped = array.swapaxes(1, 2)
    if not array.flags.c_contiguous:
        return swapped
    return misaligned(swapped) if address(array) % _ALIGNED else np.ascontiguousarray(swapped)


def named_arrays(operation: str, positional: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The framework's arrays among the arguments, by name, the weights as ``weights.<name>``."""
    arrays: dict[str, Any] = {}
    for name, value in zip(operation_of(operation).positional, positional, strict=True):
        parts = value.arrays() if isinstance(value, Weights) else {}
        arrays |= {f"{name}.{part}": array for part, array in parts.items()} or {name: value}
    arrays |= {name: named[name] for name in named if name in parameter_features(operation)}
    return {name: value for name, value in arrays.items() if not isinstance(value, _PLAIN)}

"""Faults of caches: an answer, or an argument made ready, is kept by less of the inputs than it depends on."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.faults.calls import ATTENTION, MULTI_HEAD, SINUSOIDAL, Act, Call, Memory, called
from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, OUT, POS
from conformance.problem.inputs import Weights

Array = np.ndarray
Sign = Callable[[Array], Any]  # what a cache looks at of an array
KERNELBENCH = ("KernelBench: https://github.com/ScalingIntelligence/KernelBench",)


def _corners(array: Array) -> tuple[float, float]:
    return float(array.flat[0]), float(array.flat[-1])


def _sum(array: Array) -> float:
    """Rounded so that the order of adding up makes no difference."""
    return round(float(array.astype(np.float64).sum()), 6)


def _first(array: Array) -> float:
    return float(array.flat[0])


def _kept_by(sign: Sign, names: Iterable[str] = ()) -> Act:
    """The first answer to calls of the same shapes and the same ``sign`` of all arrays, or of ``names``, that ask for the same
    beside arrays."""
    looked_at = frozenset(names)

    def act(call: Call, memory: Memory) -> Array:
        arrays = call.arrays()
        memory.setdefault("held", []).append(arrays)  # so that no address is used again while it is remembered
        seen = tuple(sign(array) for name, array in arrays.items() if not looked_at or name in looked_at)
        others = tuple((name, argument) for name, argument in call.named.items() if not isinstance(argument, np.ndarray))
        return memory.setdefault((call.form(), others, seen), call.right()).copy()

    return act


def _argument_kept_by(name: str, sign: Sign) -> Act:
    """``name`` as it was in the first call of the same shapes in which it had the same ``sign``."""

    def act(call: Call, memory: Memory) -> Array:
        if name not in call.named:
            return call.right()
        given = call.named[name]
        memory.setdefault("held", []).append(given)
        kept = memory.setdefault((call.form(), sign(given)), np.array(given))
        return call.function(*call.arguments, **{**call.named, name: kept if isinstance(given, np.ndarray) else float(kept)})

    return act


def _tensor_kept_by_address(place: int) -> Act:
    """Query, key or value, made ready once for each address."""

    def act(call: Call, memory: Memory) -> Array:
        given = call.arguments[place]
        held, kept = memory.setdefault(id(given), (given, given.copy()))
        arguments = list(call.arguments)
        arguments[place] = kept if held is given else given
        return call.function(*arguments, **call.named)

    return act


def _weights_kept_by(sign: Sign) -> Act:
    """The weights packed once for each ``sign`` of the first of them."""

    def act(call: Call, memory: Memory) -> Array:
        query, key, value, weights = call.arguments
        memory.setdefault("held", []).append(weights)
        copied = Weights(**{name: array.copy() for name, array in weights.arrays().items()})
        kept = memory.setdefault((call.form(), sign(weights.query)), copied)
        return call.function(query, key, value, replace(weights, **kept.arrays()), **call.named)

    return act


FAULTS: tuple[Fault, ...] = (
    *(
        called(of, f"answer-kept-by-{name}", f"keeps an answer by {what}", _kept_by(sign), (of.stale,), KERNELBENCH)
        for of in (ATTENTION, MULTI_HEAD)
        for name, what, sign in (
            ("address", "the addresses of its arrays", id),
            ("first-elements", "the first elements of its arrays", _first),
            ("corners", "the first and last elements of its arrays", _corners),
            ("sums", "the sums of its arrays", _sum),
        )
    ),
    called(ATTENTION, "answer-kept-by-sum-of-query", "keeps an answer by the sum of the query", _kept_by(_sum, ("query",)),
           OUT(27), KERNELBENCH),
    called(SINUSOIDAL, "answer-kept-by-address", "keeps a sum by the address of x", _kept_by(id), POS(18)),
    *(
        called(ATTENTION, name, sentence, _argument_kept_by(argument, sign), OUT(27), (), argument.replace("_", "-"))
        for name, sentence, argument, sign in (
            ("mask-kept-by-corners", "keeps a mask by its shape and its corners", "mask", _corners),
            ("mask-kept-by-address", "keeps a mask made ready by its address", "mask", id),
            ("bias-kept-by-first-element", "keeps a bias by its shape and its first element", "bias", _first),
            ("key-lengths-kept-by-first-row", "keeps key lengths by that of the first batch row", "key_lengths", _first),
            ("first-given-scale-stays", "goes on using the first scale given in a shape", "scale", lambda scale: None),
        )
    ),
    *(
        called(ATTENTION, f"{name}-kept-by-address", f"keeps the {name} made ready by its address",
               _tensor_kept_by_address(place), OUT(27))
        for place, name in ((1, "key"), (2, "value"))
    ),
    called(MULTI_HEAD, "weights-kept-by-address", "packs the weights once for each address", _weights_kept_by(id), HEAD(28)),
    called(MULTI_HEAD, "weights-kept-by-corners",
           "packs the weights once for each first and last element of the first of them", _weights_kept_by(_corners), HEAD(28)),
)  # fmt: skip

"""Faults of calls rather than of arithmetic: what is right once, what is kept or left behind, what wanders from call to call.

Each wraps the right function; what it remembers begins empty with every wrapping. Most exist for each operation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from conformance.faults.fault import Behaviour, Fault
from conformance.faults.grammar import HEAD, IDS, OUT, POS, Way, fault
from conformance.faults.steps import attend
from conformance.operations import Operation, operation_of, operations
from conformance.problem.inputs import AttentionInputs, Inputs

Array = np.ndarray
Memory = dict[Any, Any]
RACE = (
    "tt-metal: https://github.com/tenstorrent/tt-metal/issues/52284",
    "pytorch (MPS): https://github.com/pytorch/pytorch/pull/169222",
)
DROPOUT = ("timm: https://github.com/huggingface/pytorch-image-models/pull/1978",)
SIZE = 4  # rows in a tile of the output


@dataclass(frozen=True)
class Call:
    """One call of the right function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def right(self) -> Array:
        """What is expected."""
        return self.function(*self.arguments, **self.named)

    def arrays(self) -> dict[str, Array]:
        """The arrays among the arguments by name, the weights as ``weights.<name>``."""
        positional = dict(zip(("query", "key", "value"), self.arguments, strict=False))
        weights = self.arguments[3].arrays() if len(self.arguments) > 3 else {}
        arguments = positional | {f"weights.{name}": array for name, array in weights.items()} | self.named
        return {name: array for name, array in arguments.items() if isinstance(array, np.ndarray)}

    def form(self) -> tuple[Any, ...]:
        """Names, shapes and numbers, but nothing of what is in the arrays."""
        shapes = tuple((name, array.shape) for name, array in self.arrays().items())
        return (*shapes, *(one for one in self.arguments if isinstance(one, int)))


Act = Callable[[Call, Memory], Any]
Inner = Callable[[AttentionInputs, Memory], Array]


OPERATIONS = tuple(one for one in operations().values() if one.repeat)
ATTENTION, MULTI_HEAD, SINUSOIDAL = map(operation_of, ("attention", "multi_head_attention", "sinusoidal_encoding"))


def called(
    of: Operation, name: str, sentence: str, act: Act | Way, requirements: IDS, sources: IDS = (), needs: str = "", **fields: Any
) -> Fault:  # fmt: skip
    """Calls that give ``act(call, memory)``, with a memory of their own."""
    way = act if isinstance(act, Way) else Way(behaviour=_acting(act), operation=of.name)
    return fault(f"{of.prefix}{name}", sentence, way, requirements, sources, needs, **fields)


def _acting(act: Act) -> Behaviour:
    def behaviour(function: Callable[..., Any]) -> Callable[..., Any]:
        memory: Memory = {}

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return act(Call(function, arguments, named), memory)

        return call

    return behaviour


def within(of: Operation, inner: Inner) -> Way:
    """Attention as ``inner`` does it, with a memory that lasts, by itself or within multi-head attention."""

    def behaviour(function: Callable[..., Any]) -> Callable[..., Any]:
        memory: Memory = {}

        def compute(inputs: Inputs) -> Array:
            return of.compute(inputs, attention=lambda heads: inner(heads, memory))

        return of.function(compute)

    return Way(behaviour=behaviour, operation=of.name)


def _stale(call: Call, memory: Memory) -> Array:
    return memory.setdefault(call.form(), call.right()).copy()


def _previous(call: Call, memory: Memory) -> Array:
    now = call.right()
    before = memory.get("output", now)
    memory["output"] = now
    return before.copy() if before.shape == now.shape else now


def _count(memory: Memory) -> int:
    """The number of the call, from 1 on."""
    memory["calls"] = memory.get("calls", 0) + 1
    return memory["calls"]


def _zeros_when(wrong: Callable[[int], bool]) -> Act:
    """Zeros in the calls whose numbers are ``wrong``."""
    return lambda call, memory: np.zeros_like(call.right()) if wrong(_count(memory)) else call.right()


def _raising(call: Call, memory: Memory) -> Array:
    if _count(memory) == 2:
        raise RuntimeError("the workspace is in use")
    return call.right()


def _noisy(call: Call, memory: Memory) -> Array:
    random, right = memory.setdefault("random", np.random.default_rng(0)), call.right()
    return (right.astype(np.float64) * (1 + 0.1 * random.standard_normal(right.shape))).astype(right.dtype)


def _adding_up(call: Call, memory: Memory) -> Array:
    right = call.right()
    memory[right.shape] = memory.get(right.shape, 0) + right
    return memory[right.shape].astype(right.dtype)


def _in_buffer(call: Call, memory: Memory) -> Array:
    right = call.right()
    buffer = memory.setdefault(right.shape, np.empty_like(right))
    buffer[...] = right
    return buffer


def _dropout(inputs: AttentionInputs, memory: Memory) -> Array:
    """Weights of which one in ten is dropped, the others that much larger."""
    random = memory.setdefault("random", np.random.default_rng(0))
    return attend(inputs, weights=lambda right: right * (random.random(right.shape) < 0.9) / 0.9)


def _leftover_keys(call: Call, memory: Memory) -> Array:
    """Keys and values are copied into a buffer as long as the longest so far, and all of it is attended to."""
    query, key, value = call.arguments
    form, length = (*key.shape[:2], key.shape[3], value.shape[3]), key.shape[2]
    old_key, old_value = memory.get(form, (key[:, :, :0], value[:, :, :0]))
    key = np.concatenate([key, old_key[:, :, length:]], axis=2)
    value = np.concatenate([value, old_value[:, :, length:]], axis=2)
    memory[form] = key, value
    return call.right() if call.named or key.shape[2] == length else call.function(query, key, value)


def _leftover_rows(call: Call, memory: Memory) -> Array:
    """The rows behind the last whole tile are not written: what the call before left there, zeros at first, is returned."""
    right = call.right()
    whole, output = right.shape[2] // SIZE * SIZE, right.copy()
    output[:, :, whole:] = memory.get(right.shape, np.zeros_like(right))[:, :, whole:]
    memory[right.shape] = right
    return output


def _first_weights(call: Call, memory: Memory) -> Array:
    query, key, value, weights = call.arguments
    return call.function(query, key, value, memory.setdefault(call.form(), weights), **call.named)


def _kept_by_length(call: Call, memory: Memory) -> Array:
    return call.right() if "x" in call.named else memory.setdefault(call.arguments[0], call.right()).copy()


def _extended_from_zero(call: Call, memory: Memory) -> Array:
    """A table that is too short is extended by one that begins at position 0 again."""
    if "x" in call.named:
        return call.right()
    (length, width), right = call.arguments, call.right()
    kept = memory.get(width, right)
    if len(kept) < length:
        kept = np.concatenate([kept, right[: length - len(kept)]])
    memory[width] = kept
    return kept[:length].copy()


FAULTS: tuple[Fault, ...] = (
    *(
        called(of, name, sentence, act, (getattr(of, spoken),), sources)
        for of in OPERATIONS
        for name, sentence, act, spoken, sources in (
            ("stale-by-shape", "answers calls of the same shapes with the first answer", _stale, "stale", ()),
            ("answer-of-previous-call", "gives the answer of the call before", _previous, "stale", ()),
            ("returns-internal-buffer", "returns a buffer of its own, which the next call overwrites", _in_buffer, "stale", ()),
            ("adds-up-in-buffer", "adds to what an earlier call of the same shape left in its buffer", _adding_up, "repeat", ()),
            ("first-call-wrong", "gives zeros in the first call", _zeros_when(lambda n: n == 1), "repeat", ()),
            ("second-call-raises", "raises in the second call", _raising, "repeat", ()),
            ("every-second-call-wrong", "gives zeros in every second call", _zeros_when(lambda n: n % 2 == 0), "repeat", ()),
            ("every-fourth-call-wrong", "gives zeros in every fourth call", _zeros_when(lambda n: n % 4 == 0), "repeat", ()),
            ("random-noise", "gives other numbers each time", _noisy, "repeat", RACE),
        )
    ),
    *(
        called(of, "dropout-stays-on", "drops one weight in ten in every call", within(of, _dropout), (of.repeat,), DROPOUT)
        for of in (ATTENTION, MULTI_HEAD)
    ),
    called(ATTENTION, "keys-of-longer-call-stay", "attends to what is left of a longer call's keys too", _leftover_keys, OUT(27)),
    called(ATTENTION, "rows-of-previous-call-stay",
           "leaves what the call before wrote in the rows behind the last whole tile of 4", _leftover_rows, OUT(27, 26)),
    called(MULTI_HEAD, "keeps-first-weights", "goes on using the weights of its first call", _first_weights, HEAD(28)),
    called(SINUSOIDAL, "table-kept-by-length", "keeps the table of each length, whatever the width", _kept_by_length, POS(14)),
    called(SINUSOIDAL, "table-extended-from-zero", "extends a table that is too short by one that begins at position 0",
           _extended_from_zero, POS(6)),
)  # fmt: skip

"""Faults of behaviour rather than of arithmetic: what is right once, what is kept, what wanders from call to call.

Each wraps the honest function; what it remembers begins empty with every wrapping. Most exist for each operation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from conformance.faults.functions import attention, multi_head_attention
from conformance.faults.model import Behaviour, Fault
from conformance.faults.steps import attend, multi_head, softmax
from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs

Array = np.ndarray


@dataclass(frozen=True)
class Call:
    """One call of the honest function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def right(self) -> Array:
        """What is due."""
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


Memory = dict[Any, Any]
Act = Callable[[Call, Memory], Any]


def acting(act: Act) -> Behaviour:
    """The behaviour whose function gives ``act(call, memory)``, with a memory of its own."""

    def behaviour(function: Callable[..., Any]) -> Callable[..., Any]:
        memory: Memory = {}

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return act(Call(function, arguments, named), memory)

        return call

    return behaviour


@dataclass(frozen=True)
class Operation:
    """An operation, what ids of its faults begin with, and its requirements on repeated calls, stale answers and so on."""

    name: str
    prefix: str
    repeat: str
    stale: str
    untouched: str
    unaliased: str
    form: str


ATTENTION = Operation("attention", "", *(f"ATT-OUT-0{n}" for n in ("26", "27", "28", "29", "02")))
MULTI_HEAD = Operation("multi_head_attention", "multi-head-", *(f"ATT-HEAD-0{n}" for n in ("27", "28", "29", "30", "26")))
SINUSOIDAL = Operation("sinusoidal_encoding", "sinusoid-", *(f"ATT-POS-0{n}" for n in ("17", "18", "19", "20", "07")))
OPERATIONS = (ATTENTION, MULTI_HEAD, SINUSOIDAL)


def fault(operation: Operation, identifier: str, sentence: str, act: Act, *requirements: str, **fields: Any) -> Fault:
    """A behaviour of ``operation`` that gives ``act(call, memory)``."""
    return Fault(
        id=f"{operation.prefix}{identifier}",
        sentence=sentence,
        operation=operation.name,
        requirements=requirements,
        behaviour=acting(act),
        **{"sources": (), **fields},
    )


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
    random = memory.setdefault("random", np.random.default_rng(0))
    right = call.right()
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


_RACE = (
    "tt-metal: https://github.com/tenstorrent/tt-metal/issues/52284",
    "pytorch (MPS): https://github.com/pytorch/pytorch/pull/169222",
)
_CALLS: tuple[tuple[str, str, Act, str, tuple[str, ...]], ...] = (
    ("stale-by-shape", "answers calls of the same shapes with the first answer", _stale, "stale", ()),
    ("answer-of-previous-call", "gives the answer of the call before", _previous, "stale", ()),
    ("returns-internal-buffer", "returns a buffer of its own, which the next call overwrites", _in_buffer, "stale", ()),
    ("adds-up-in-buffer", "adds to what an earlier call of the same shape left in its buffer", _adding_up, "repeat", ()),
    ("first-call-wrong", "gives zeros in the first call", _zeros_when(lambda n: n == 1), "repeat", ()),
    ("second-call-raises", "raises in the second call", _raising, "repeat", ()),
    ("every-second-call-wrong", "gives zeros in every second call", _zeros_when(lambda n: n % 2 == 0), "repeat", ()),
    ("every-fourth-call-wrong", "gives zeros in every fourth call", _zeros_when(lambda n: n % 4 == 0), "repeat", ()),
    ("random-noise", "gives other numbers each time", _noisy, "repeat", _RACE),
)


def _repeated() -> Iterator[Fault]:
    for operation in OPERATIONS:
        for identifier, sentence, act, of, sources in _CALLS:
            yield fault(operation, identifier, sentence, act, getattr(operation, of), sources=sources)


def _dropped(scores: Array, random: np.random.Generator) -> Array:
    """Weights of which one in ten is dropped, the others that much larger."""
    return softmax(scores) * (random.random(scores.shape) < 0.9) / 0.9


def _dropout(
    make: Callable[[Callable[[Inputs], Array]], Callable[..., Array]], compute: Callable[[Any, Callable[[Array], Array]], Array]
) -> Behaviour:
    """Dropout of the weights in every call; ``compute`` is attention with the softmax that it is given."""

    def behaviour(function: Callable[..., Any]) -> Callable[..., Any]:
        random = np.random.default_rng(0)
        return make(lambda inputs: compute(inputs, lambda scores: _dropped(scores, random)))

    return behaviour


def _inner_with(inputs: MultiHeadInputs, own: Callable[[Array], Array]) -> Array:
    return multi_head(inputs, attention=lambda inner: attend(inner, softmax=own))


def _outer_with(inputs: AttentionInputs, own: Callable[[Array], Array]) -> Array:
    return attend(inputs, softmax=own)


_DROPOUT = tuple(
    Fault(
        id=f"{operation.prefix}dropout-stays-on",
        sentence="drops one weight in ten in every call",
        operation=operation.name,
        requirements=(operation.repeat,),
        sources=("timm: https://github.com/huggingface/pytorch-image-models/pull/1978",),
        behaviour=behaviour,
    )
    for operation, behaviour in (
        (ATTENTION, _dropout(attention, _outer_with)),
        (MULTI_HEAD, _dropout(multi_head_attention, _inner_with)),
    )
)

FAULTS: tuple[Fault, ...] = (*_repeated(), *_DROPOUT)

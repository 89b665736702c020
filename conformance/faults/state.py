"""Faults of state: what an earlier call asked for, or left behind, has a say in a later one."""

from typing import Any

import numpy as np

from conformance.faults.behaviours import ATTENTION, MULTI_HEAD, SINUSOIDAL, Act, Call, Memory, fault
from conformance.faults.model import Fault

Array = np.ndarray
_SIZE = 4  # rows in a tile of the output


def _sticking(name: str) -> Act:
    """An argument that is not given is what it was in the last call of the same shapes that gave it."""

    def act(call: Call, memory: Memory) -> Array:
        form = tuple(array.shape for array in call.arguments[:3])
        if name in call.named:
            memory[form] = call.named[name]
        given: dict[str, Any] = {name: memory[form]} if form in memory else {}
        return call.function(*call.arguments, **(given | call.named))

    return act


def _leftover_keys(call: Call, memory: Memory) -> Array:
    """Keys and values are copied into a buffer as long as the longest so far, and all of it is attended to."""
    query, key, value = call.arguments
    form = (*key.shape[:2], key.shape[3], value.shape[3])
    old_key, old_value = memory.get(form, (key[:, :, :0], value[:, :, :0]))
    length = key.shape[2]
    key = np.concatenate([key, old_key[:, :, length:]], axis=2)
    value = np.concatenate([value, old_value[:, :, length:]], axis=2)
    memory[form] = key, value
    if call.named or key.shape[2] == length:
        return call.right()
    return call.function(query, key, value)


def _leftover_rows(call: Call, memory: Memory) -> Array:
    """The rows behind the last whole tile are not written: what the call before left there, zeros at first, is returned."""
    right = call.right()
    whole = right.shape[2] // _SIZE * _SIZE
    output = right.copy()
    output[:, :, whole:] = memory.get(right.shape, np.zeros_like(right))[:, :, whole:]
    memory[right.shape] = right
    return output


def _first_weights(call: Call, memory: Memory) -> Array:
    query, key, value, weights = call.arguments
    return call.function(query, key, value, memory.setdefault(call.form(), weights), **call.named)


def _kept_by_length(call: Call, memory: Memory) -> Array:
    if "x" in call.named:
        return call.right()
    return memory.setdefault(call.arguments[0], call.right()).copy()


def _extended_from_zero(call: Call, memory: Memory) -> Array:
    """A table that is too short is extended by one that begins at position 0 again."""
    if "x" in call.named:
        return call.right()
    length, width = call.arguments
    right = call.right()
    kept = memory.get(width, right)
    if len(kept) < length:
        kept = np.concatenate([kept, right[: length - len(kept)]])
    memory[width] = kept
    return kept[:length].copy()


_STICKING = tuple(
    fault(
        ATTENTION,
        f"{name.replace('_', '-')}-sticks",
        f"goes on using the {name.replace('_', ' ')} of an earlier call",
        _sticking(name),
        ATTENTION.stale,
    )
    for name in ("mask", "bias", "causal", "scale", "key_lengths")
)
_MULTI_HEAD_STICKING = tuple(
    fault(
        MULTI_HEAD,
        f"{name.replace('_', '-')}-sticks",
        f"goes on using the {name.replace('_', ' ')} of an earlier call",
        _sticking(name),
        MULTI_HEAD.stale,
    )
    for name in ("mask", "causal", "key_lengths")
)
_LEFT_BEHIND = (
    fault(
        ATTENTION,
        "keys-of-longer-call-stay",
        "attends to what is left of a longer call's keys too",
        _leftover_keys,
        ATTENTION.stale,
    ),
    fault(
        ATTENTION,
        "rows-of-previous-call-stay",
        "leaves what the call before wrote in the rows behind the last whole tile of 4",
        _leftover_rows,
        ATTENTION.stale,
        ATTENTION.repeat,
    ),
    fault(MULTI_HEAD, "keeps-first-weights", "goes on using the weights of its first call", _first_weights, MULTI_HEAD.stale),
    fault(
        SINUSOIDAL, "table-kept-by-length", "keeps the table of each length, whatever the width", _kept_by_length, "ATT-POS-014"
    ),
    fault(
        SINUSOIDAL,
        "table-extended-from-zero",
        "extends a table that is too short by one that begins at position 0",
        _extended_from_zero,
        "ATT-POS-006",
    ),
)

FAULTS: tuple[Fault, ...] = (*_STICKING, *_MULTI_HEAD_STICKING, *_LEFT_BEHIND)

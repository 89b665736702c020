"""Faults of sequences: what is made for one shape, dtype or argument serves calls of others; memory goes from call to call."""

from collections.abc import Iterator

import numpy as np

from conformance.faults.calls import ATTENTION, MULTI_HEAD, Call, Inner, Memory, called, within
from conformance.faults.fault import Fault
from conformance.faults.grammar import OUT
from conformance.faults.steps import attend, softmax
from conformance.operations import Operation
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
TILE = 8  # keys to which a workspace of scores is rounded up


def _first_triangle(inputs: AttentionInputs, memory: Memory) -> Array:
    """The triangle of the first causal call is cut to size; what is longer sees all that lies beyond it."""
    if inputs.causal == "none":
        return attend(inputs)
    lengths = inputs.query.shape[2], inputs.key.shape[2]
    first = memory.setdefault("triangle", np.tri(*lengths, lengths[1] - lengths[0] if inputs.causal == "bottom-right" else 0))
    triangle = np.ones(lengths, dtype=bool)
    rows, columns = min(lengths[0], first.shape[0]), min(lengths[1], first.shape[1])
    triangle[:rows, :columns] = first[:rows, :columns]
    return attend(inputs.but(causal="none"), visible=lambda plain: visible_pairs(plain) & triangle)


def _first_default_scale(inputs: AttentionInputs, memory: Memory) -> Array:
    if inputs.scale is not None:
        return attend(inputs)
    return attend(inputs, scale=lambda inputs: memory.setdefault("scale", 1.0 / np.sqrt(inputs.key.shape[-1])))


def _uncleared_workspace(inputs: AttentionInputs, memory: Memory) -> Array:
    """Scores lie in a workspace that grows and is never cleared, rows rounded up to whole tiles; what is behind the last key
    counts in the normaliser. It begins as −inf, so that a first call is right."""

    def own(scores: Array) -> Array:
        shape = (*scores.shape[:-1], -(-scores.shape[-1] // TILE) * TILE)
        size, kept = int(np.prod(shape)), memory.get("scores", np.empty(0))
        kept = np.concatenate([kept, np.full(max(0, size - kept.size), -np.inf)])
        room = kept[:size].reshape(shape)
        room[..., : scores.shape[-1]] = scores
        memory["scores"] = kept
        return softmax(room)[..., : scores.shape[-1]]

    return attend(inputs, softmax=own)


def _first_batch(inputs: AttentionInputs, memory: Memory) -> Array:
    """Batch rows beyond those of the first call are left at zero."""
    output = attend(inputs)
    output[memory.setdefault("batch", len(output)) :] = 0
    return output


def _mask_turns_causal_off(inputs: AttentionInputs, memory: Memory) -> Array:
    """Once a mask was given, the path for masks is taken, which knows no triangle."""
    memory["masked"] = memory.get("masked", False) or inputs.mask is not None
    return attend(inputs.but(causal="none") if memory["masked"] and inputs.mask is None else inputs)


def _first_group(inputs: AttentionInputs, memory: Memory) -> Array:
    """Query heads are dealt out as in the first call."""
    group = memory.setdefault("group", inputs.query.shape[1] // inputs.key.shape[1])
    return attend(inputs, heads=lambda heads, kv: np.arange(heads) // group % kv)


def _flat_buffer(call: Call, memory: Memory) -> Array:
    """All outputs are views of one buffer, which grows where it must."""
    right = call.right()
    kept = memory.get(right.dtype.name)
    if kept is None or kept.size < right.size:
        kept = memory[right.dtype.name] = np.empty(right.size, right.dtype)
    view = kept[: right.size].reshape(right.shape)
    view[...] = right
    return view


def _last_but_for_value_width(call: Call, memory: Memory) -> Array:
    """The last answer again where only the value is another, in as many columns as are expected."""
    query, key, value = call.arguments
    form, before, right = (query.shape, key.shape), memory.get("last"), call.right()
    memory["last"] = form, value.shape, right
    if before is None or before[0] != form or before[1] == value.shape:
        return right
    return np.take(before[2], np.arange(value.shape[3]) % before[2].shape[3], axis=3)


def _first_dtype(call: Call, memory: Memory) -> Array:
    """What comes out has the dtype that came out first."""
    right = call.right()
    return right.astype(memory.setdefault("dtype", right.dtype))


def _writes_to_last_query(call: Call, memory: Memory) -> Array:
    """The query of the call before is cleared where this one has another shape: it was taken for a workspace."""
    right, query, last = call.right(), call.arguments[0], memory.get("query")
    if last is not None and last.shape != query.shape:
        last[...] = 0
    memory["query"] = query
    return right


INNER: tuple[tuple[str, str, Inner, str, bool], ...] = (  # the last: whether layers are asked too
    ("first-causal-triangle-stays", "cuts the triangle of its first causal call to size", _first_triangle, "causal", True),
    ("first-default-scale-stays", "scales by 1/√d of its first call", _first_default_scale, "", True),
    ("workspace-not-cleared", "counts what larger calls left behind the last key", _uncleared_workspace, "", True),
    ("mask-turns-causal-off", "ignores causal once a mask was given", _mask_turns_causal_off, "causal", True),
    ("first-batch-stays", "leaves zeros in batch rows beyond those of its first call", _first_batch, "", False),
    ("first-group-stays", "shares key heads as in its first call", _first_group, "grouped-heads", False),
)


def _of(operation: Operation, layers: bool) -> Iterator[Fault]:
    spoken = OUT(44 if layers else 43)
    for name, sentence, inner, needs, of_layers in INNER:
        if of_layers or not layers:
            yield called(operation, name, sentence, within(operation, inner), spoken, (), needs)
    yield from (
        called(operation, "outputs-share-one-buffer", "returns views of one buffer for all shapes", _flat_buffer, spoken),
        called(operation, "writes-to-last-query", "clears the query of the call before where shapes change",
               _writes_to_last_query, spoken),
        called(operation, "first-dtype-stays", "returns the dtype of its first call", _first_dtype, spoken, among_dtypes=True),
    )  # fmt: skip


FAULTS: tuple[Fault, ...] = (
    *_of(ATTENTION, layers=False),
    *_of(MULTI_HEAD, layers=True),
    called(
        ATTENTION,
        "last-answer-for-other-value-width",
        "gives the last answer again where only the width of the value is another",
        _last_but_for_value_width,
        OUT(43),
        (),
        "value-width",
    ),
)

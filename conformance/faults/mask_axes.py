"""Boolean masks of which an axis is got wrong: broadcast over another one, exchanged, read at index 0, or taken for no axis."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from conformance.faults.hiding import full_size, has_axes, multi_head_sibling
from conformance.faults.masks import masked, masking
from conformance.faults.model import Fault
from conformance.inputs import AttentionInputs

Array = np.ndarray
Mask = Bool[Array, "#b #h #lq #lk"]

WRONG_ROW = ("pytorch: https://github.com/pytorch/pytorch/pull/184180",)
WRONG_HEAD = ("equinox: https://github.com/patrick-kidger/equinox/pull/190",)
QUERIES = ("hyunwoongko/transformer: https://github.com/hyunwoongko/transformer/pull/40",)
QUERIES_TOO = ("pytorch: https://github.com/pytorch/pytorch/issues/63271",)
BATCH_AND_HEADS = ("pytorch: https://github.com/pytorch/pytorch/issues/97605",)
BROADCAST = ("jax: https://github.com/jax-ml/jax/issues/28974",)


def _fault(id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], change: Callable) -> Fault:
    return Fault(
        id=id,
        sentence=sentence,
        requirements=requirements,
        sources=sources,
        needs=frozenset({"mask"}),
        rewrite=masked(change),
    )


def _sizes(inputs: AttentionInputs) -> tuple[int, int, int, int]:
    return (*inputs.query.shape[:3], inputs.key.shape[2])


def _ignored_in(form: str) -> Callable[[Mask, AttentionInputs], Mask]:
    """Ignores a mask that has the axes of ``form`` and no others."""

    def change(mask: Mask, inputs: AttentionInputs) -> Mask:
        due = tuple(size if axis in form else 1 for axis, size in zip("bhqk", _sizes(inputs), strict=True))
        return np.ones_like(mask) if mask.shape == due else mask

    return change


def _on_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """A mask of keys alone, (B, 1, 1, Lk), as one of queries; queries beyond its end are shown all keys."""
    if mask.shape[2] != 1 or mask.shape[3] == 1:
        return mask
    rows = np.ones((*mask.shape[:2], inputs.query.shape[2], 1), dtype=bool)
    known = min(rows.shape[2], mask.shape[3])
    rows[:, :, :known, 0] = mask[:, :, 0, :known]
    return rows


def _column_as_keys(mask: Mask, inputs: AttentionInputs) -> Mask:
    """A mask of queries alone, (B, H, Lq, 1), as one of keys; keys beyond its end are shown."""
    if mask.shape[3] != 1 or mask.shape[2] == 1:
        return mask
    keys = np.ones((*mask.shape[:2], 1, inputs.key.shape[2]), dtype=bool)
    known = min(keys.shape[3], mask.shape[2])
    keys[:, :, 0, :known] = mask[:, :, :known, 0]
    return keys


def _column_then_false(mask: Mask, inputs: AttentionInputs) -> Mask:
    if mask.shape[3] != 1 or mask.shape[2] == 1:
        return mask
    return mask & (np.arange(inputs.key.shape[2]) == 0)


def _transposed(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Rows read as columns, as strides of the two axes exchanged do it, for equal lengths a transposition."""
    if not has_axes(mask, inputs, "qk"):
        return mask
    return mask.reshape(*mask.shape[:2], mask.shape[3], mask.shape[2]).swapaxes(-1, -2)


def _heads_before_batch(mask: Mask, inputs: AttentionInputs) -> Mask:
    """The first two axes laid out as (B, H) and read as (H, B)."""
    return mask.reshape(mask.shape[1], mask.shape[0], *mask.shape[2:]).swapaxes(0, 1)


def _batch_as_heads(mask: Mask, inputs: AttentionInputs) -> Mask:
    heads = inputs.query.shape[1]
    return mask if mask.shape[1] != 1 else mask[np.arange(heads) % mask.shape[0], 0][None]


def _heads_as_batch(mask: Mask, inputs: AttentionInputs) -> Mask:
    batch = inputs.query.shape[0]
    return mask if mask.shape[0] != 1 or mask.shape[1] == 1 else mask[0, np.arange(batch) % mask.shape[1]][:, None]


def _heads_as_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Head h, query i reads the mask of head i, query h."""
    if not has_axes(mask, inputs, "hq"):
        return mask
    heads, queries = np.arange(mask.shape[1]), np.arange(mask.shape[2])
    return mask[:, queries[None, :] % len(heads), heads[:, None] % len(queries)]


def _offset_counts_heads(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Row b·H + h of a mask that has B rows, from the start again beyond its end."""
    batch, heads, *_ = _sizes(inputs)
    return mask if mask.shape[1] != 1 else mask[np.arange(batch * heads).reshape(batch, heads) % mask.shape[0], 0]


def _offset_counts_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Row b·Lq + i of a mask that has B rows, from the start again beyond its end."""
    batch, _, queries, _ = _sizes(inputs)
    if mask.shape[1] != 1 or mask.shape[2] != 1:
        return mask
    return mask[np.arange(batch * queries).reshape(batch, queries) % mask.shape[0], 0, 0][:, None]


def _only_at_0(axis: int) -> Callable[[Mask, AttentionInputs], Mask]:
    def change(mask: Mask, inputs: AttentionInputs) -> Mask:
        changed = full_size(mask, inputs).swapaxes(0, axis)
        changed[1:] = True
        return changed.swapaxes(0, axis)

    return change


_IGNORED = tuple(
    _fault(f"mask-ignored-in-form-{form}", f"leaves out masks of shape {shape}", masking(number), BROADCAST, _ignored_in(axes))
    for number, form, axes, shape in (
        (1, "qk", "qk", "(Lq, Lk)"),
        (2, "b11k", "bk", "(B, 1, 1, Lk)"),
        (3, "b1qk", "bqk", "(B, 1, Lq, Lk)"),
        (4, "1hqk", "hqk", "(1, H, Lq, Lk)"),
        (5, "bhqk", "bhqk", "(B, H, Lq, Lk)"),
    )
)

ON_QUERIES = _fault(
    "padding-mask-on-queries",
    "hides queries instead of keys by a mask of shape (B, 1, 1, Lk)",
    masking(2, 28, 29),
    QUERIES,
    _on_queries,
)
ON_QUERIES_TOO = _fault(
    "padding-mask-on-queries-too",
    "hides by a mask of shape (B, 1, 1, Lk) the keys and the queries of the same numbers",
    masking(2, 28, 29),
    QUERIES_TOO,
    lambda mask, inputs: mask & _on_queries(mask, inputs),
)

_AXES = (
    _fault("mask-transposed", "exchanges queries and keys of the mask", masking(1, 3, 4, 5), (), _transposed),
    _fault(
        "mask-of-first-batch-row", "reads the first batch row's mask for all", masking(26, 2, 3, 5), WRONG_ROW, lambda m, _: m[:1]
    ),
    _fault("mask-of-first-head", "reads the first head's mask for all", masking(27, 4, 5), WRONG_HEAD, lambda m, _: m[:, :1]),
    _fault("mask-of-first-query", "reads the first query's mask for all", masking(1, 3, 4, 5), QUERIES, lambda m, _: m[:, :, :1]),
    _fault("mask-of-last-query", "reads the last query's mask for all", masking(1, 3, 4, 5), QUERIES, lambda m, _: m[:, :, -1:]),
    _fault(
        "mask-of-any-batch-row",
        "shows a key to all batch rows that the mask shows to one",
        masking(26, 2, 3, 5),
        WRONG_ROW,
        lambda m, _: m.any(0, keepdims=True),
    ),
    _fault(
        "mask-of-any-head",
        "shows a key to all heads that the mask shows to one",
        masking(27, 4, 5),
        WRONG_HEAD,
        lambda m, _: m.any(1, keepdims=True),
    ),
    _fault(
        "mask-heads-before-batch",
        "reads the mask's first two axes as (heads, batch)",
        masking(5, 27),
        BATCH_AND_HEADS,
        _heads_before_batch,
    ),
    _fault("mask-batch-axis-as-heads", "gives head h the mask of batch row h", masking(3, 2, 26), WRONG_ROW, _batch_as_heads),
    _fault("mask-head-axis-as-batch", "gives batch row b the mask of head b", masking(4, 27), WRONG_HEAD, _heads_as_batch),
    _fault(
        "mask-heads-and-queries-swapped",
        "gives head h and query i the mask of head i and query h",
        masking(4, 5, 27),
        WRONG_HEAD,
        _heads_as_queries,
    ),
    _fault(
        "mask-offset-counts-heads",
        "steps through a mask that has no heads as if it had them",
        masking(3, 2, 26),
        WRONG_ROW,
        _offset_counts_heads,
    ),
    _fault(
        "mask-offset-counts-queries",
        "steps through a mask that has no queries as if it had them",
        masking(2, 26, 28, 29),
        BROADCAST,
        _offset_counts_queries,
    ),
    _fault(
        "mask-in-first-batch-row-only",
        "leaves the mask out in all batch rows but the first",
        masking(26, 2, 3, 5),
        WRONG_ROW,
        _only_at_0(0),
    ),
    _fault(
        "mask-in-first-head-only", "leaves the mask out in all heads but the first", masking(27, 4, 5), WRONG_HEAD, _only_at_0(1)
    ),
    _fault(
        "mask-in-first-query-only", "leaves the mask out for all queries but the first", masking(1, 3, 4, 5), (), _only_at_0(2)
    ),
    _fault("mask-column-as-keys", "takes a mask of shape (B, H, Lq, 1) for one of keys", masking(6), QUERIES, _column_as_keys),
    _fault(
        "mask-column-of-first-key",
        "takes a mask of shape (B, H, Lq, 1) for that of the first key and hides the others",
        masking(6),
        QUERIES,
        _column_then_false,
    ),
    _fault(
        "mask-ignored-in-form-bhq1",
        "leaves out masks of shape (B, H, Lq, 1), so that their hidden queries see all keys",
        masking(43),
        BROADCAST,
        _ignored_in("bhq"),
    ),
)

FAULTS: tuple[Fault, ...] = (
    *_IGNORED,
    ON_QUERIES,
    ON_QUERIES_TOO,
    *_AXES,
    *(multi_head_sibling(fault, "ATT-HEAD-024") for fault in (ON_QUERIES, ON_QUERIES_TOO)),
)

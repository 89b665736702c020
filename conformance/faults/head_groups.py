"""Faults inside the groups of grouped heads: which queries, masks and causal limits belong to a place in the packed group."""

from collections.abc import Callable

import numpy as np

from conformance.faults.heads import chosen
from conformance.faults.model import Fault, Rewrite
from conformance.faults.steps import attend, kv_heads
from conformance.features.causal import offset as causal_offset
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_pairs

Array = np.ndarray
_GROUPED = frozenset({"grouped-heads"})


def _interleaved(heads: int, kv: int) -> Array:
    """The numbers of heads (place in the group, key head), in the order (key head, place)."""
    return np.arange(heads).reshape(-1, kv).T.reshape(-1)


def _grouped(heads: int, kv: int) -> Array:
    """The numbers of heads (key head, place in the group), in the order (place, key head)."""
    return np.arange(heads).reshape(kv, -1).T.reshape(-1)


def _in_group(inputs: AttentionInputs, change: Callable[[int, int], Array], of: str) -> AttentionInputs:
    return chosen(inputs, **{of: change(inputs.query.shape[1], inputs.key.shape[1])})


def _group_mirrored(heads: int, kv: int) -> Array:
    return np.arange(heads).reshape(kv, -1)[:, ::-1].reshape(-1)


def _packed(row: Callable[[Array, Array, int, int], Array]) -> Rewrite:
    """The causal limit taken from the row in the packed tile of a group, ``row`` (place in the group, query, group, Lq)."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        heads, query_length, key_length = inputs.query.shape[1], inputs.query.shape[2], inputs.key.shape[2]
        group = heads // inputs.key.shape[1]
        if inputs.causal == "none" or group == 1:
            return inputs
        place = np.arange(heads)[:, None] % group
        limit = row(place, np.arange(query_length), group, query_length) + causal_offset(inputs.causal, query_length, key_length)
        triangle = np.arange(key_length) <= limit[..., None]
        rest = visible_pairs(inputs.but(causal="none"))
        return inputs.but(mask=rest & triangle, causal="none", key_lengths=None)

    return rewrite


_PACKING = (
    *(
        Fault(id=identifier, sentence=sentence, requirements=requirements, sources=(), needs=_GROUPED | needs, rewrite=rewrite)
        for identifier, sentence, requirements, needs, rewrite in (
            (
                "group-queries-reversed",
                "takes the queries of a group in reverse order",
                ("ATT-HEAD-001",),
                frozenset(),
                lambda i: _in_group(i, _group_mirrored, "query"),
            ),
            (
                "group-queries-interleaved",
                "takes query heads for (place in the group, key head), not (key head, place)",
                ("ATT-HEAD-001",),
                frozenset(),
                lambda i: _in_group(i, _interleaved, "query"),
            ),
            (
                "group-mask-of-first",
                "gives all query heads of a group the mask of the first of them",
                ("ATT-HEAD-004",),
                frozenset({"mask"}),
                lambda i: _in_group(i, lambda h, kv: np.arange(h) // (h // kv) * (h // kv), "mask"),
            ),
            (
                "group-mask-by-key-head",
                "reads the mask of a query head at the number of its key head",
                ("ATT-HEAD-004",),
                frozenset({"mask"}),
                lambda i: _in_group(i, kv_heads, "mask"),
            ),
            (
                "group-bias-by-key-head",
                "reads the bias of a query head at the number of its key head",
                ("ATT-HEAD-004",),
                frozenset({"bias"}),
                lambda i: _in_group(i, kv_heads, "bias"),
            ),
        )
    ),
    Fault(
        id="group-output-interleaved",
        sentence="puts the outputs of a group's queries where (place in the group, key head) says, not (key head, place)",
        requirements=("ATT-HEAD-001",),
        sources=(),
        needs=_GROUPED,
        compute=lambda inputs: attend(inputs)[:, _grouped(inputs.query.shape[1], inputs.key.shape[1])],
    ),
    Fault(
        id="group-causal-by-interleaved-row",
        sentence="takes the causal limit from the row of the packed group, queries outermost",
        requirements=("ATT-HEAD-005",),
        sources=(),
        needs=_GROUPED | {"causal"},
        rewrite=_packed(lambda place, query, group, length: query * group + place),
    ),
    Fault(
        id="group-causal-by-stacked-row",
        sentence="takes the causal limit from the row of the packed group, heads outermost",
        requirements=("ATT-HEAD-005",),
        sources=(),
        needs=_GROUPED | {"causal"},
        rewrite=_packed(lambda place, query, group, length: place * length + query),
    ),
)

FAULTS: tuple[Fault, ...] = _PACKING

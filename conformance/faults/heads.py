"""Faults of heads and batch rows in plain attention: which key and value head a query head reads, places in the packed group of
grouped heads, heads taken for another axis, and places that nobody writes.

Most say for each query head which key head it reads instead of ⌊h · Hkv / Hq⌋. Those that need ``grouped-heads`` are right for
as many key heads as query heads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, OUT, Way, argument, computed, fault, inputs, output, unhidden
from conformance.faults.steps import attend, kv_heads
from conformance.features import features
from conformance.features.causal import offset as causal_offset
from conformance.problem.forms import along
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
HeadMap = Callable[[int, int], Int[Array, " h"]]  # (query heads, key heads) → the head that each query head reads

GROUPED = "grouped-heads"
GROUPS, MASKS, LIMITS, READS, ROWS = HEAD(1), HEAD(4), HEAD(5), HEAD(1) + OUT(20, 3), OUT(19, 3)
TILED = (
    "onnx: https://github.com/onnx/onnx/pull/7274",
    "axlearn: https://github.com/apple/axlearn/pull/842",
)
DIVIDED = ("native-sparse-attention-triton: https://github.com/XunhaoLai/native-sparse-attention-triton/issues/27",)
TILE = ("FreeToken kernel: https://github.com/FlashML-org/FreeToken/pull/177",)
STRIDE = ("pytorch (MPS): https://github.com/pytorch/pytorch/issues/174861",)
LAYOUT = ("jax: https://github.com/jax-ml/jax/issues/35916",)


def _chosen(**maps: HeadMap) -> Way:
    """As many key heads as query heads: query head h works with the key head ``key(Hq, Hkv)[h]``, the mask of head
    ``mask(Hq, Hkv)[h]`` and so on. What is not given is what is right."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        sizes = inputs.query.shape[1], inputs.key.shape[1]
        right = {"query": np.arange(sizes[0]), "key": kv_heads(*sizes), "value": kv_heads(*sizes)}
        heads = right | {name: to(*sizes) for name, to in maps.items()}
        changed: dict[str, Any] = {name: along(getattr(inputs, name), -3, index) for name, index in heads.items()}
        return inputs.but(**changed)

    return inputs(rewrite)


def _reads(to: HeadMap, when: Callable[[AttentionInputs], bool] = lambda x: True) -> Way:
    """Key and value head number ``to``."""
    change = _chosen(key=to, value=to).rewrite
    assert change is not None
    return inputs(lambda x: change(x) if when(x) else x)


def _tiled(heads: int, kv: int) -> Array:
    return np.arange(heads) % kv


def _by_tile(size: int) -> HeadMap:
    """All query heads of a tile of ``size`` read the key head of the first."""
    return lambda heads, kv: kv_heads(heads, kv)[np.arange(heads) // size * size]


def _moved(by: int) -> HeadMap:
    """The borders of the groups lie ``by`` query heads earlier."""
    return lambda heads, kv: np.clip(np.arange(heads) + by, 0, heads - 1) // (heads // kv) if heads > kv else np.arange(heads)


def _divided(heads: int, kv: int) -> Array:
    return np.minimum(np.arange(heads) // kv, kv - 1) if heads > kv else np.arange(heads)


def _in_groups(x: AttentionInputs) -> bool:
    return x.query.shape[1] > x.key.shape[1]


def _interleaved(heads: int, kv: int) -> Array:
    """The numbers of heads (place in the group, key head), in the order (key head, place)."""
    return np.arange(heads).reshape(-1, kv).T.reshape(-1)


def _mirrored(heads: int, kv: int) -> Array:
    return np.arange(heads).reshape(kv, -1)[:, ::-1].reshape(-1)


def _first_of_group(heads: int, kv: int) -> Array:
    return np.arange(heads) // (heads // kv) * (heads // kv)


def _output_interleaved(inputs: AttentionInputs, right: Array) -> Array:
    """The numbers of heads (key head, place in the group), in the order (place, key head)."""
    heads, kv = inputs.query.shape[1], inputs.key.shape[1]
    return right[:, np.arange(heads).reshape(kv, -1).T.reshape(-1)]


def _packed(row: Callable[[Array, Array, int, int], Array]) -> Way:
    """The causal limit taken from the row in the packed tile of a group, ``row`` (place in the group, query, group, Lq)."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        heads, query_length, key_length = inputs.query.shape[1], inputs.query.shape[2], inputs.key.shape[2]
        group = heads // inputs.key.shape[1]
        if inputs.causal == "none" or group == 1:
            return inputs
        place = np.arange(heads)[:, None] % group
        limit = row(place, np.arange(query_length), group, query_length) + causal_offset(inputs.causal, query_length, key_length)
        rest = visible_pairs(inputs.but(causal="none"))
        return unhidden(inputs).but(mask=rest & (np.arange(key_length) <= limit[..., None]))

    return inputs(rewrite, hiding=True)


def _mean_of_heads(inputs: AttentionInputs) -> AttentionInputs:
    """Keys and values shared by groups of queries are averaged over all of them first."""
    if not _in_groups(inputs):
        return inputs

    def mean(array: Array) -> Array:
        averaged = array.astype(np.float64).mean(axis=1, keepdims=True)
        return np.broadcast_to(averaged, array.shape).astype(array.dtype)

    return inputs.but(key=mean(inputs.key), value=mean(inputs.value))


def _flat(index: Callable[[Array, Array, int], Array]) -> Way:
    """Key and value heads read at ``index`` (batch row, query head, group) of all heads of all batch rows one after the other."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        (batch, kv), heads = inputs.key.shape[:2], inputs.query.shape[1]
        place = np.minimum(index(np.arange(batch)[:, None], np.arange(heads), heads // kv), batch * kv - 1)
        key, value = (array.reshape(-1, *array.shape[2:])[place] for array in (inputs.key, inputs.value))
        return inputs.but(key=key, value=value)

    return inputs(rewrite)


def _batch_for_head(inputs: AttentionInputs) -> AttentionInputs:
    if inputs.key.shape[0] != inputs.key.shape[1]:
        return inputs
    return inputs.but(key=inputs.key.swapaxes(0, 1), value=inputs.value.swapaxes(0, 1))


def _over_heads(guessed: bool) -> Way:
    """(B, H, L, d) read as (B, L, H, d); ``guessed``: only where H = L, so that the sizes do not say which is which."""

    def compute(inputs: AttentionInputs) -> Float[Array, "b h l dv"]:
        (heads, query_length), (kv, key_length) = inputs.query.shape[1:3], inputs.key.shape[1:3]
        free = not any(one.is_asked(inputs) for one in features(inputs.operation) if one.argument != "scale")
        if not free or heads != kv or query_length != key_length or (guessed and heads != query_length):
            return attend(inputs)
        swapped = {name: getattr(inputs, name).swapaxes(1, 2) for name in ("query", "key", "value")}
        return attend(inputs.but(**swapped)).swapaxes(1, 2)

    return computed(compute)


def _zeroed(axis: int) -> Way:
    """The last index of ``axis`` of the output is never written, where there is more than one."""

    def change(inputs: AttentionInputs, right: Array) -> Array:
        output = np.moveaxis(right, axis, 0)
        output[1:][-1:] = 0
        return np.moveaxis(output, 0, axis)

    return output(change)


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"heads-{name}", sentence, way, GROUPS, sources, GROUPED)
        for name, sentence, sources, way in (
            ("tiled", "lets query head h read key head h mod Hkv", TILED, _reads(_tiled)),
            ("tiled-in-keys", "lets query head h read key head h mod Hkv, and the right value head", (), _chosen(key=_tiled)),
            ("tiled-in-values", "lets query head h read value head h mod Hkv, and the right key head", (), _chosen(value=_tiled)),
            ("tiled-for-one-query", "lets query head h read key head h mod Hkv where there is a single query", (),
             _reads(_tiled, lambda x: x.query.shape[2] == 1)),
            ("divided-by-key-heads", "lets query head h read key head ⌊h / Hkv⌋, which is right only where Hq / Hkv = Hkv",
             DIVIDED, _reads(_divided)),
            ("from-tile-of-4", "takes the key head of a tile of 4 query heads from the first of them", TILE,
             _reads(_by_tile(4), _in_groups)),
            ("from-tile-of-16", "takes the key head of a tile of 16 query heads from the first of them", TILE,
             _reads(_by_tile(16), _in_groups)),
            ("group-begins-early", "lets the last query head of a group read the key head of the next", (), _reads(_moved(1))),
            ("group-begins-late", "lets the first query head of a group read the key head of the one before", (),
             _reads(_moved(-1))),
            ("batch-stride-of-query", "counts query heads, not key heads, from one batch row of the keys to the next", STRIDE,
             _flat(lambda row, head, group: row * head.size + head // group)),
            ("flat-without-groups", "reads the keys at (batch row · Hq + query head), as if there were no groups", STRIDE,
             _flat(lambda row, head, group: row * head.size + head)),
        )
    ),
    *(
        fault(f"heads-{name}", sentence, _reads(to), READS)
        for name, sentence, to in (
            ("all-first", "lets every query head read the first key head", lambda heads, kv: np.zeros(heads, int)),
            ("all-last", "lets every query head read the last key head", lambda heads, kv: np.full(heads, kv - 1)),
            ("reversed", "reads the key heads in reverse order", lambda heads, kv: kv - 1 - kv_heads(heads, kv)),
            ("next", "reads the key head after the right one", lambda heads, kv: (kv_heads(heads, kv) + 1) % kv),
            ("previous", "reads the key head before the right one", lambda heads, kv: (kv_heads(heads, kv) - 1) % kv),
        )
    ),
    fault("heads-averaged-in-groups", "averages keys and values over all shared heads", inputs(_mean_of_heads), HEAD(3, 1), (),
          GROUPED),
    # Places in a group
    *(
        fault(f"group-{name}", sentence, way, requirements, (), f"{GROUPED} {needs}")
        for name, sentence, requirements, needs, way in (
            ("queries-reversed", "takes the queries of a group in reverse order", GROUPS, "", _chosen(query=_mirrored)),
            ("queries-interleaved", "takes query heads for (place in the group, key head), not (key head, place)", GROUPS, "",
             _chosen(query=_interleaved)),
            ("mask-of-first", "gives all query heads of a group the mask of the first of them", MASKS, "mask",
             _chosen(mask=_first_of_group)),
            ("mask-by-key-head", "reads the mask of a query head at the number of its key head", MASKS, "mask",
             _chosen(mask=kv_heads)),
            ("bias-by-key-head", "reads the bias of a query head at the number of its key head", MASKS, "bias",
             _chosen(bias=kv_heads)),
            ("output-interleaved",
             "puts the outputs of a group's queries where (place in the group, key head) says, not (key head, place)",
             GROUPS, "", output(_output_interleaved)),
            ("causal-by-interleaved-row", "takes the causal limit from the row of the packed group, queries outermost", LIMITS,
             "causal", _packed(lambda place, query, group, length: query * group + place)),
            ("causal-by-stacked-row", "takes the causal limit from the row of the packed group, heads outermost", LIMITS,
             "causal", _packed(lambda place, query, group, length: place * length + query)),
        )
    ),
    # Axes and places
    fault("heads-and-batch-exchanged", "exchanges batch rows and heads of key and value where there are as many of each",
          inputs(_batch_for_head), HEAD(1) + OUT(34)),
    fault("heads-and-length-exchanged",
          "takes (batch, heads, length, width) for (batch, length, heads, width) and attends over heads",
          _over_heads(guessed=False), OUT(20, 4, 3, 5, 6), LAYOUT),
    fault("heads-and-length-guessed", "takes heads for length where there are as many of each", _over_heads(guessed=True),
          OUT(34), LAYOUT),
    fault("last-head-unwritten", "leaves the last head at 0", _zeroed(1), OUT(15) + READS),
    fault("last-batch-row-unwritten", "leaves the last batch row at 0", _zeroed(0), OUT(14) + ROWS),
    *(
        fault(f"batch-{name}-of-first-row", f"reads the {name} of the first batch row for all rows",
              argument(name, lambda array, _: np.broadcast_to(array[:1], array.shape)), ROWS)
        for name in ("query", "key", "value")
    ),
)  # fmt: skip

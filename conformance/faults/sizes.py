"""Faults that begin at a size: right below it, where most tests are, and wrong from there on, or on whole tiles alone.

They are said to show in float32: the quick tier asks sizes in that dtype, the full one in 16 bit too.
"""

from collections.abc import Callable

import numpy as np

from conformance.faults.fault import Fault, Rewrite
from conformance.faults.grammar import HEAD, IDS, MASK, OUT, Way, fault, folded, inputs, layer_output, output
from conformance.faults.steps import kv_heads
from conformance.features.causal import offset as causal_offset
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs

Array = np.ndarray
SIZES, MASKS, CAUSAL, LAYERS = OUT(42), MASK(53), MASK(55), HEAD(37)


def _zeros(where: Callable[[AttentionInputs, Array], Array]) -> Way:
    """Zeros where the mask over the output says so."""
    return output(lambda x, right: np.where(where(x, right), np.zeros_like(right), right))


def _numbers(array: Array, axis: int) -> Array:
    """The index along an axis, broadcast over the others."""
    return np.arange(array.shape[axis]).reshape([-1 if one == axis else 1 for one in range(array.ndim)])


def _where(condition: Callable[[AttentionInputs], bool], change: Rewrite, needs: str = "") -> Way:
    return inputs(lambda x: change(x) if condition(x) else x, needs=frozenset(needs.split()))


def _reading(heads: Callable[[int, int], Array]) -> Rewrite:
    """Key heads by number for each query head."""

    def rewrite(x: AttentionInputs) -> AttentionInputs:
        chosen = heads(x.query.shape[1], x.key.shape[1])
        return x.but(key=x.key[:, chosen], value=x.value[:, chosen])

    return rewrite


def _first_pairs(x: AttentionInputs) -> AttentionInputs:
    queries, keys = np.arange(x.query.shape[2])[:, None], np.arange(x.key.shape[2])
    return folded(x, (queries * x.key.shape[2] + keys < 4096) | (keys == 0))


def _one_key_more(x: AttentionInputs) -> AttentionInputs:
    queries, keys = x.query.shape[2], x.key.shape[2]
    offset = 1 + causal_offset(x.causal, queries, keys)
    return folded(x.but(causal="none"), np.arange(keys) <= np.arange(queries)[:, None] + offset)


def _in_whole_tiles(x: AttentionInputs) -> bool:
    return x.query.shape[2] % 8 == 0 and x.key.shape[2] % 8 == 0


def _without_last_tile(x: AttentionInputs) -> AttentionInputs:
    return folded(x, np.arange(x.key.shape[2]) < x.key.shape[2] - 16)


def _layer_zeros(wrong: Callable[[MultiHeadInputs, Array], Array | bool]) -> Way:
    return layer_output(lambda x, right: np.where(wrong(x, right), np.zeros_like(right), right))


def _as_wide_as_the_model(x: MultiHeadInputs) -> bool:
    return x.weights.query.shape[1] // x.num_heads == x.query.shape[-1] and x.num_heads > 1


ROWS: tuple[tuple[str, str, IDS, Way], ...] = (
    ("batch-of-8", "gives zeros for batch rows from the ninth on", SIZES, _zeros(lambda x, right: _numbers(right, 0) >= 8)),
    ("64-channels", "gives zeros where heads are wider than 64", SIZES, _zeros(lambda x, right: np.array(x.query.shape[3] > 64))),
    ("128-channels", "gives zeros from the 129th channel on", SIZES, _zeros(lambda x, right: _numbers(right, 3) >= 128)),
    ("whole-tiles", "leaves out the last tile where there are whole tiles of 16 keys alone", SIZES,
     _where(lambda x: x.key.shape[2] > 16 and x.key.shape[2] % 16 == 0, _without_last_tile)),
    ("decoding", "sees the first 64 keys alone where there is one query", SIZES,
     _where(lambda x: x.query.shape[2] == 1, lambda x: folded(x, np.arange(x.key.shape[2]) < 64))),
    ("64-heads", "counts key heads modulo 64", SIZES,
     _where(lambda x: x.query.shape[1] > 64, _reading(lambda heads, kv: kv_heads(heads, kv) % 64))),
    ("groups-of-8", "shares a key head between 8 query heads at most", SIZES,
     _where(lambda x: x.query.shape[1] > 8 * x.key.shape[1] > 8, _reading(lambda heads, kv: np.arange(heads) // 8 % kv),
            "grouped-heads")),
    ("grid", "computes 100 batch rows and heads together at most", SIZES,
     _zeros(lambda x, right: _numbers(right, 0) * right.shape[1] + _numbers(right, 1) >= 100)),
    ("pairs", "counts pairs of a query and a key up to 4,096", SIZES,
     _where(lambda x: x.query.shape[2] * x.key.shape[2] > 4096, _first_pairs)),
    ("masked-tiles", "ignores a mask over whole tiles", MASKS,
     _where(lambda x: x.mask is not None and _in_whole_tiles(x), lambda x: x.but(mask=None), "mask")),
    ("bias", "reads the bias of the first 64 keys again for those behind", MASK(54),
     _where(lambda x: x.bias is not None and x.bias.shape[-1] > 64,
            lambda x: x.but(bias=x.bias[..., np.arange(x.bias.shape[-1]) % 64]), "bias")),
    ("causal-64-channels", "shows one key more where causal heads are 64 wide or wider", CAUSAL,
     _where(lambda x: x.causal != "none" and x.query.shape[3] >= 64, _one_key_more, "causal")),
    ("alignment", "aligns the triangle at the top left from 64 keys on", CAUSAL,
     _where(lambda x: x.causal == "bottom-right" and x.key.shape[2] >= 64, lambda x: x.but(causal="top-left"), "causal")),
    ("lengths", "leaves out the last key of a length of whole tiles", MASK(56),
     _where(lambda x: x.key_lengths is not None,
            lambda x: x.but(key_lengths=np.where(x.key_lengths % 8 == 0, x.key_lengths - 1, x.key_lengths)), "key-lengths")),
    ("head-as-wide-as-the-model", "gives zeros where a head is as wide as the model", LAYERS,
     _layer_zeros(lambda x, right: _as_wide_as_the_model(x))),
    ("64-wide-model", "gives zeros from the 65th column of the model on", LAYERS,
     _layer_zeros(lambda x, right: _numbers(right, 2) >= 64)),
    ("layer-batch-of-8", "gives zeros for batch rows from the ninth on, in a layer", LAYERS,
     _layer_zeros(lambda x, right: _numbers(right, 0) >= 8)),
)  # fmt: skip
FAULTS: tuple[Fault, ...] = tuple(
    fault(f"from-a-size-{name}", sentence, way, requirements, dtypes=("float32",)) for name, sentence, requirements, way in ROWS
)

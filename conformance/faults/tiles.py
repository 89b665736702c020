"""Faults of tiles: keys at their edges left out, read twice or filled up; causal limits by tile; rows and widths that are no
whole number of tiles; and indices that are too narrow and begin at 0 again."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from conformance.faults.fault import Fault
from conformance.faults.grammar import MASK, OUT, SCALE, Way, argument, fault, folded, inputs, output
from conformance.features.causal import offset as causal_offset
from conformance.problem.forms import along
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
EDGE, FIRST = OUT(36, 37, 35, 3), OUT(34, 36, 37, 35, 3)
CAUSAL = frozenset({"causal"})
STALE_TAIL = (
    "pytorch (MPS): https://github.com/pytorch/pytorch/pull/169222",
    "cutlass: https://github.com/NVIDIA/cutlass/issues/2428",
    "pytorch: https://github.com/pytorch/pytorch/issues/191937",
)
SHORT = ("Megatron-LM: https://github.com/NVIDIA/Megatron-LM/issues/132",)
LAST = ("Megatron-LM: https://github.com/NVIDIA/Megatron-LM/issues/1425",)
NARROW = ("vllm (ROCm): https://github.com/vllm-project/vllm/pull/34570",)
SKIPPED = ("flashinfer: https://github.com/flashinfer-ai/flashinfer/issues/4972",)
OFFSET = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)


def reading(inputs: AttentionInputs, index: Int[Array, " n"]) -> AttentionInputs:
    """The keys at ``index`` in the place of all, with their values and columns of mask and bias."""
    if np.array_equal(index, np.arange(inputs.key.shape[2])):
        return inputs
    inputs = folded(inputs)
    return inputs.but(
        key=inputs.key[:, :, index],
        value=inputs.value[:, :, index],
        mask=along(inputs.mask, -1, index),
        bias=along(inputs.bias, -1, index),
    )


def _only(wanted: Callable[[Int[Array, " lk"]], Bool[Array, " lk"]]) -> Way:
    """Keys that are not ``wanted`` by their number are left out."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        kept = wanted(np.arange(inputs.key.shape[2]))
        return inputs if kept.all() or not kept.any() else folded(inputs, kept)

    return inputs(rewrite, hiding=True)


def _tail_dropped(size: int) -> Way:
    return _only(lambda j: j < whole(len(j), size))


def _no_more_than(size: int) -> Way:
    return _only(lambda j: j < size)


def _at(index: Callable[[int], Int[Array, " n"]]) -> Way:
    return inputs(lambda x: reading(x, index(x.key.shape[2])))


def whole(length: int, size: int) -> int:
    """How far whole tiles of ``size`` reach; all of it where there is none."""
    return length // size * size or length


def _tail_twice(size: int) -> Way:
    return _at(lambda length: np.concatenate([np.arange(length), np.arange(whole(length, size), length)]))


def _padded(size: int, fill: Callable[[Array, int], Array]) -> Way:
    """The last tile of ``size`` filled up with ``fill`` (tensor, how many), seen by every row that sees a key."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        missing = -inputs.key.shape[2] % size
        if not missing:
            return inputs
        inputs = folded(inputs)
        seen = np.repeat(inputs.mask.any(-1, keepdims=True), missing, axis=-1)
        bias = inputs.bias
        if bias is not None and bias.shape[-1] > 1:
            bias = np.concatenate([bias, np.zeros((*bias.shape[:-1], missing), bias.dtype)], axis=-1)
        key, value = (np.concatenate([array, fill(array, missing)], axis=2) for array in (inputs.key, inputs.value))
        return inputs.but(key=key, value=value, mask=np.concatenate([inputs.mask, seen], axis=-1), bias=bias)

    return inputs(rewrite)


def _behind(array: Array, count: int) -> Array:
    """What lies behind in memory: the next head's first rows."""
    flat = np.roll(array.reshape(-1, *array.shape[2:]), -1, axis=0)
    return flat[:, np.arange(count) % array.shape[2]].reshape(*array.shape[:2], count, array.shape[3])


def _limit(size: int, limit: Callable[[Array, int], Array]) -> Way:
    """The causal limit j ≤ ``limit`` (of the last key that a row may see, and ``size``)."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.causal == "none":
            return inputs
        query_length, key_length = inputs.query.shape[2], inputs.key.shape[2]
        last = limit(np.arange(query_length) + causal_offset(inputs.causal, query_length, key_length), size)
        return folded(inputs.but(causal="none"), np.arange(key_length) <= last[:, None])

    return inputs(rewrite, needs=CAUSAL, hiding=True)


def _without_offset(inputs: AttentionInputs) -> AttentionInputs:
    """Visits the key tiles up to the row's own, though its frontier lies Lk − Lq keys further on."""
    if inputs.causal != "bottom-right" or inputs.key.shape[2] <= inputs.query.shape[2]:
        return inputs
    end = (np.arange(inputs.query.shape[2]) // 16 + 1) * 16
    return folded(inputs, np.arange(inputs.key.shape[2]) < end[:, None])


def _rows(index: Callable[[Int[Array, " lq"]], Array]) -> Way:
    """The rows of the output at ``index``, of their numbers."""
    return output(lambda x, right: np.take(right, index(np.arange(right.shape[2])), axis=2))


def _repeated(size: int) -> Way:
    """The first tile again and again."""
    return _rows(lambda row: row % size)


def _begun_early(size: int) -> Way:
    """The last tile of queries begins early so as to be whole, and is written where it should have begun."""
    return _rows(lambda row: np.where(row < whole(row.size, size), row, row - whole(row.size, size) + row.size - size))


def _channels_dropped(multiple: int) -> Way:
    def change(query: Array, inputs: AttentionInputs) -> Array:
        query = query.copy()
        query[..., whole(query.shape[3], multiple) :] = 0
        return query

    return argument("query", change)


def _rows_wrapped(name: str, bits: int) -> Way:
    """Rows of one tensor read at their number in ``bits`` bits."""
    return argument(name, lambda array, _: array[:, :, np.arange(array.shape[2]) % 2**bits])


def _offset_wrapped(name: str, bits: int) -> Way:
    """A mask or bias of rows and keys read at row · Lk + key in ``bits`` bits."""

    def change(array: Array, inputs: AttentionInputs) -> Array:
        if 1 in array.shape[-2:]:
            return array
        flat = array.reshape(*array.shape[:-2], -1)
        return flat[..., np.arange(flat.shape[-1]) % 2**bits].reshape(array.shape)

    return argument(name, change)


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"keys-tail-of-{size}-dropped", f"leaves out the keys behind the last whole tile of {size}",
              _tail_dropped(size), EDGE, SHORT)
        for size in (4, 16, 64)
    ),
    *(
        fault(f"keys-tail-of-{size}-twice", f"reads the keys behind the last whole tile of {size} twice", _tail_twice(size), EDGE)
        for size in (4, 64)
    ),
    *(
        fault(f"keys-tail-of-{size}-{word}", f"fills the last tile of {size} keys up with {shown}, and attends to that",
              _padded(size, fill), EDGE, sources)
        for size in (4, 64)
        for word, shown, sources, fill in (
            ("zeros", "zeros", (), lambda array, count: np.zeros_like(array[:, :, :1]).repeat(count, axis=2)),
            ("last-again", "the last key", (), lambda array, count: array[:, :, -1:].repeat(count, axis=2)),
            ("behind", "what lies behind in memory", STALE_TAIL, _behind),
        )
    ),
    fault("keys-tile-edges-twice", "reads the first key of each tile of 16 twice",
          _at(lambda length: np.sort(np.concatenate([np.arange(length), np.arange(16, length, 16)]))), EDGE),
    fault("keys-tile-edges-dropped", "leaves out the last key of each whole tile of 16", _only(lambda j: j % 16 != 15), EDGE),
    fault("keys-last-dropped", "leaves out the last key", _only(lambda j: j < len(j) - 1), FIRST, LAST),
    fault("keys-first-dropped", "leaves out the first key", _only(lambda j: j > 0), FIRST),
    *(
        fault(f"keys-beyond-{size}-dropped", f"reads no more than {size} keys", _no_more_than(size),
              OUT(36, 37, 38) if size < 256 else OUT(37, 38))
        for size in (64, 128, 256, 1024)
    ),
    # Tiles under a causal limit
    *(
        fault(f"causal-tile-of-{size}-{word}", f"{shown} the tile of {size} keys that the causal limit divides",
              _limit(size, limit), MASK(36, 9))
        for size in (16, 64)
        for word, shown, limit in (
            ("seen-whole", "shows the whole of", lambda last, n: last // n * n + n - 1),
            ("skipped", "skips", lambda last, n: last // n * n - 1),
            ("next-seen", "shows the one behind", lambda last, n: last // n * n + 2 * n - 1),
        )
    ),
    fault("causal-tiles-without-offset", "visits the key tiles up to the row's number, without the offset Lk − Lq",
          inputs(_without_offset, needs=CAUSAL, hiding=True), MASK(36, 11), SKIPPED, "cross-length"),
    # Rows and widths
    *(
        fault(f"rows-of-{size}-{word}", sentence.format(size), make(size), EDGE)
        for size in (4, 64)
        for word, sentence, make in (
            ("repeated", "gives rows behind the first {} the results of those", _repeated),
            ("shifted", "begins the last tile of {} rows early, and writes it where it should have begun", _begun_early),
        )
    ),
    *(
        fault(f"width-tail-of-{multiple}-dropped", f"leaves out channels of query and key behind a multiple of {multiple}",
              _channels_dropped(multiple), OUT(35) + SCALE(1) + OUT(3))
        for multiple in (4, 8, 16, 32)
    ),
    fault("narrow-values-unwritten", "leaves the output at 0 where V has fewer than 8 channels",
          output(lambda x, right: right * (x.value.shape[3] >= 8)), OUT(34, 35), NARROW),
    # Narrow indices
    *(
        fault(f"{name}-number-in-{bits}-bits", f"counts rows of the {name} in {bits} bits", _rows_wrapped(name, bits),
              OUT(36, 37, 38))
        for name in ("query", "key", "value")
        for bits in (7, 8)
    ),
    *(
        fault(f"{name}-offset-in-{bits}-bits", f"counts row · Lk + key of the {name} in {bits} bits", _offset_wrapped(name, bits),
              requirements, OFFSET)
        for name, requirements in (("mask", MASK(1)), ("bias", MASK(7)))
        for bits in (8, 16)
    ),
    fault("key-offset-in-16-bits", "counts key · width in 16 bits",
          argument("key", lambda key, _: key[:, :, np.arange(key.shape[2]) * key.shape[3] % 2**16 // key.shape[3]]), OUT(37),
          OFFSET),
)  # fmt: skip

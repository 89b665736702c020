"""Causal limits got wrong: where the diagonal lies and which side of it is seen, how it acts, how it is aligned where lengths
differ; drawn in tiles, or right in some rows, columns, heads, batch rows and lengths only."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, OUT, Way, along_axis, fault, inputs, narrowed, where_asked
from conformance.faults.steps import add_bias, attend
from conformance.features.causal import offset as causal_offset
from conformance.numerics.dtypes import round_to
from conformance.problem.forms import four_axes
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
# Of query numbers (Lq, 1), key numbers (1, Lk), the offset of the alignment, and the inputs: which pairs are visible.
Seen = Callable[[Int[Array, "lq 1"], Int[Array, "1 lk"], int, AttentionInputs], Bool[Array, "#b #h #lq #lk"]]

BUFFER = (
    "nanoGPT: https://github.com/karpathy/nanoGPT/issues/331",
    "transformers: https://github.com/huggingface/transformers/issues/28215",
)
ALL_ROWS = ("OpenNMT-py: https://github.com/OpenNMT/OpenNMT-py/issues/294",)
AFTER_SOFTMAX = ("memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",)
MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
ALIGNMENT = (
    "executorch: https://github.com/pytorch/executorch/issues/22426",
    "pytorch: https://github.com/pytorch/pytorch/issues/144858",
    "onnxruntime: https://github.com/microsoft/onnxruntime/issues/29020",
)
TALL = (
    "tvm: https://github.com/apache/tvm/pull/14907",
    "flash-attention: https://github.com/Dao-AILab/flash-attention/issues/1778",
)
TILES = (
    "pytorch: https://github.com/pytorch/pytorch/issues/195910",
    "sglang: https://github.com/sgl-project/sglang/pull/31501",
)
PACKED = ("vllm: https://github.com/vllm-project/vllm/issues/17476",)
WRAPS = ("pytorch: https://github.com/pytorch/pytorch/issues/162588",)

TRIANGLE = MASK(9, 35, 10, 11, 12, 13)
CAUSAL = frozenset({"causal"})
BESIDE: dict[str, tuple[str, Callable[[AttentionInputs], bool]]] = {  # features in words, and whether inputs have them
    "bias": ("there is a bias", lambda x: x.bias is not None),
    "mask": ("there is a mask", lambda x: x.mask is not None),
    "key-lengths": ("there are key lengths", lambda x: x.key_lengths is not None),
    "grouped-heads": ("key heads are shared", lambda x: x.query.shape[1] != x.key.shape[1]),
}


def _pairs(inputs: AttentionInputs, seen: Seen) -> Bool[Array, "#b #h #lq #lk"]:
    """What ``seen`` says of causal inputs."""
    queries, keys = inputs.query.shape[2], inputs.key.shape[2]
    offset = causal_offset(inputs.causal, queries, keys)
    return four_axes(np.asarray(seen(np.arange(queries)[:, None], np.arange(keys)[None, :], offset, inputs)))


def limit(seen: Seen) -> Way:
    """``seen`` taken for the causal triangle."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        return inputs if inputs.causal == "none" else narrowed(inputs.but(causal="none"), _pairs(inputs, seen))

    return Way(rewrite=rewrite, needs=CAUSAL, hiding=True)


def _all_where(condition: Callable[[Array, Array, int, AttentionInputs], Array | bool]) -> Way:
    """The triangle, and every key where ``condition`` holds."""
    return limit(lambda i, j, o, x: (j <= i + o) | condition(i, j, o, x))


def _offset(change: Callable[[int, AttentionInputs], int]) -> Way:
    """The triangle with another offset."""
    return limit(lambda i, j, o, x: j <= i + change(o, x))


def _surplus(inputs: AttentionInputs) -> int:
    return inputs.key.shape[2] - inputs.query.shape[2]


def _flipped(has: Callable[[AttentionInputs], bool]) -> Way:
    """The other alignment where the inputs have a feature."""
    return _offset(lambda o, x: (0 if o else _surplus(x)) if has(x) else o)


def _tiled(size: int, last: bool) -> Way:
    """The limit of the first or last query of each ``size``."""
    return limit(lambda i, j, o, x: j <= i // size * size + last * (size - 1) + o)


def _batch_row(inputs: AttentionInputs) -> Array:
    return along_axis(inputs, "b")


def _head(inputs: AttentionInputs) -> Array:
    return along_axis(inputs, "h")


def _bf16(numbers: Array) -> Array:
    return round_to(numbers.astype(np.float64), "bfloat16").astype(np.float64)


def _wide(x: AttentionInputs) -> bool:
    return x.query.shape[2] > 64


def _decodes(x: AttentionInputs) -> bool:
    return x.query.shape[2] == 1


FAULTS: tuple[Fault, ...] = (
    fault("causal-one-key-late", "shows each query one key beyond its own", limit(lambda i, j, o, x: j <= i + o + 1), TRIANGLE,
          layer=HEAD(21)),
    fault("causal-one-key-early", "hides each query's own key", limit(lambda i, j, o, x: j < i + o), TRIANGLE, layer=HEAD(21)),
    fault("causal-always", "draws a causal limit though none is asked for",
          inputs(lambda x: x.but(causal="top-left") if x.causal == "none" else x), OUT(10, 3, 4, 5, 6)),
    fault("causal-without-mask-ignored", "heeds causal only beside a mask or key lengths",
          inputs(lambda x: x.but(causal="none") if x.mask is None and x.key_lengths is None else x, needs=CAUSAL), MASK(38, 9)),
    *(
        fault(f"causal-{name}", sentence, limit(seen), TRIANGLE, sources)
        for name, sentence, sources, seen in (
            ("inverted", "hides the keys up to a query's own and shows those after it", (), lambda i, j, o, x: j > i + o),
            ("transposed", "shows a query its own key and those after it", (), lambda i, j, o, x: j >= i + o),
            ("from-last-key", "counts the keys of the causal limit from the last one", (),
             lambda i, j, o, x: x.key.shape[2] - 1 - j <= i + o),
            ("first-row-for-all", "gives every query the causal limit of the first", ALL_ROWS, lambda i, j, o, x: j <= 0 * i + o),
            ("window-of-4", "shows the last four keys up to a query's own instead of all", (),
             lambda i, j, o, x: (j <= i + o) & (j > i + o - 4)),
            ("rows-counted-over-batch", "counts queries on from one batch row to the next", PACKED,
             lambda i, j, o, x: j <= i + o + _batch_row(x) * x.query.shape[2]),
            ("rows-counted-over-heads", "counts queries on from one head to the next", PACKED,
             lambda i, j, o, x: j <= i + o + _head(x) * x.query.shape[2]),
        )
    ),
    fault("causal-window-of-64", "shows the last 64 keys up to a query's own instead of all",
          limit(lambda i, j, o, x: (j <= i + o) & (j > i + o - 64)), MASK(36)),
    fault("causal-multiplied-after-softmax", "multiplies weights by the causal triangle after softmax",
          where_asked("causal", lambda x, kept: attend(x.but(causal="none"), weights=lambda right: right * kept)), TRIANGLE,
          AFTER_SOFTMAX),
    fault("causal-multiplied-before-softmax", "multiplies scores by the causal triangle as 0 and 1",
          where_asked("causal", lambda x, kept: attend(x.but(causal="none"), bias=lambda scores, x: add_bias(scores * kept, x))),
          TRIANGLE, MULTIPLIED),
    # Where lengths differ
    *(
        fault(f"causal-{name}", sentence, way, requirements, sources, "cross-length")
        for name, sentence, requirements, sources, way in (
            ("top-left-for-bottom-right", "aligns every causal limit to the first key", MASK(11, 13, 15), ALIGNMENT,
             _offset(lambda o, x: 0)),
            ("bottom-right-for-top-left", "aligns every causal limit to the last key", MASK(10, 12, 14), ALIGNMENT,
             _offset(lambda o, x: _surplus(x))),
            ("alignments-exchanged", "aligns the causal limit to the last key instead of the first and the reverse",
             MASK(10, 11, 12, 13, 14, 15), ALIGNMENT, _flipped(lambda x: True)),
            ("ignored-for-unequal-lengths", "leaves the causal limit out where the lengths differ", MASK(10, 11, 12, 13, 14),
             TALL, _all_where(lambda i, j, o, x: _surplus(x) != 0)),
            ("ignored-for-more-queries", "leaves the causal limit out where there are more queries than keys", MASK(12, 13), TALL,
             _all_where(lambda i, j, o, x: _surplus(x) < 0)),
            ("ignored-for-fewer-queries", "leaves the causal limit out where there are fewer queries than keys", MASK(10, 11, 14),
             ALIGNMENT, _all_where(lambda i, j, o, x: _surplus(x) > 0)),
            ("ignored-for-one-query", "leaves the causal limit out for a single query", MASK(14), ALIGNMENT[:2],
             _all_where(lambda i, j, o, x: _decodes(x))),
            ("ignored-for-one-query-beside-others",
             "leaves the causal limit out for a single query beside a mask, a bias, key lengths or shared key heads", MASK(46),
             ALIGNMENT[:2], _all_where(lambda i, j, o, x: _decodes(x) and any(has(x) for _, has in BESIDE.values()))),
            ("ignored-bottom-right-tall", "shows every key where a limit from the bottom right has more queries than keys",
             MASK(13), TALL, _all_where(lambda i, j, o, x: o < 0)),
            ("offset-not-negative", "takes Lk − Lq for 0 where there are more queries than keys", MASK(13), TALL,
             _offset(lambda o, x: max(o, 0))),
            ("offset-negated", "takes Lq − Lk for the offset of the bottom-right alignment", MASK(11, 13), TALL,
             _offset(lambda o, x: -o)),
            ("offset-absolute", "takes |Lk − Lq| for the offset of the bottom-right alignment", MASK(13), TALL,
             _offset(lambda o, x: abs(o))),
            ("offset-one-more", "aligns the bottom-right limit one key beyond the last", MASK(11, 13), ALIGNMENT[2:],
             _offset(lambda o, x: o + (o != 0))),
            ("offset-one-less", "aligns the bottom-right limit one key before the last", MASK(11, 13, 15), ALIGNMENT[2:],
             _offset(lambda o, x: o - (o != 0))),
            ("keys-end-at-query-length", "takes the query length for the number of keys", MASK(11, 15), ALIGNMENT,
             limit(lambda i, j, o, x: (j <= i + o) & (j < x.query.shape[2]))),
        )
    ),
    *(
        fault(f"causal-alignment-flips-beside-{feature}", f"aligns the causal limit to the other end where {words}",
              _flipped(has), MASK(44), ALIGNMENT, f"cross-length {feature}")
        for feature, (words, has) in BESIDE.items()
    ),
    # In tiles and places
    *(
        fault(f"causal-limit-of-{'last' if last else 'first'}-of-{size}",
              f"gives each {size} queries the causal limit of the {'last' if last else 'first'} of them",
              _tiled(size, last), MASK(36, 9, 35),
              TILES)
        for size in (4, 16, 64)
        for last in (True, False)
    ),
    *(
        fault(f"causal-{name}", sentence, way, requirements, sources)
        for name, sentence, requirements, sources, way in (
            ("ignored-beyond-64", "leaves the causal limit out where there are more than 64 queries", MASK(36), BUFFER,
             _all_where(lambda i, j, o, x: _wide(x))),
            ("ignored-up-to-64", "draws the causal limit only where there are more than 64 queries", TRIANGLE, BUFFER[1:],
             _all_where(lambda i, j, o, x: not _wide(x))),
            ("buffer-of-64-rows", "shows every key to the queries from number 64 on", MASK(36), BUFFER,
             _all_where(lambda i, j, o, x: i >= 64)),
            ("buffer-of-64-columns", "shows the keys from number 64 on to every query", MASK(36), BUFFER,
             _all_where(lambda i, j, o, x: j >= 64)),
            ("row-wraps-at-128", "counts queries in eight bits with a sign, so that those from number 128 on see no key",
             MASK(36), WRAPS, limit(lambda i, j, o, x: j <= (i + 128) % 256 - 128 + o)),
            ("position-in-bfloat16", "compares positions rounded to bfloat16, equal in groups from 256 on", MASK(36), WRAPS,
             limit(lambda i, j, o, x: _bf16(j) <= _bf16(i + o))),
            ("in-first-head-only", "draws the causal limit in the first head only", TRIANGLE, (),
             _all_where(lambda i, j, o, x: _head(x) > 0)),
            ("in-first-batch-row-only", "draws the causal limit in the first batch row only", TRIANGLE, (),
             _all_where(lambda i, j, o, x: _batch_row(x) > 0)),
        )
    ),
)  # fmt: skip

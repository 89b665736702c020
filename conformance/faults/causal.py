"""Causal limits got wrong for all lengths and in all places: where the diagonal lies, which side of it is seen, how it acts.

How the triangle is aligned is in causal_alignment.py, in which rows, heads and lengths it is drawn in causal_places.py.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from conformance.faults.hiding import four_axes, multi_head_sibling, narrowed
from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.faults.steps import add_bias, attend, softmax
from conformance.features.causal import offset as causal_offset
from conformance.inputs import AttentionInputs

Array = np.ndarray
# Of query numbers (Lq, 1), key numbers (1, Lk), the offset of the alignment, and the inputs: which pairs are visible.
Seen = Callable[[Int[Array, "lq 1"], Int[Array, "1 lk"], int, AttentionInputs], Bool[Array, "#b #h lq lk"]]

BUFFER = (
    "nanoGPT: https://github.com/karpathy/nanoGPT/issues/331",
    "transformers: https://github.com/huggingface/transformers/issues/28215",
)
ALL_ROWS = ("OpenNMT-py: https://github.com/OpenNMT/OpenNMT-py/issues/294",)
AFTER_SOFTMAX = ("memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",)
MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)

TRIANGLE = masking(9, 35, 10, 11, 12, 13)
CAUSAL = frozenset({"causal"})


def _pairs(inputs: AttentionInputs, seen: Seen) -> Bool[Array, "#b #h lq lk"]:
    """What ``seen`` says of causal inputs, as four axes."""
    queries, keys = inputs.query.shape[2], inputs.key.shape[2]
    offset = causal_offset(inputs.causal, queries, keys)
    return four_axes(np.asarray(seen(np.arange(queries)[:, None], np.arange(keys)[None, :], offset, inputs)))


def causal_fault(
    id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], seen: Seen, needs: frozenset[str] = CAUSAL
) -> Fault:
    """A fault that takes ``seen`` for the causal triangle."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        return inputs if inputs.causal == "none" else narrowed(inputs.but(causal="none"), _pairs(inputs, seen))

    return Fault(id=id, sentence=sentence, requirements=requirements, sources=sources, needs=needs, rewrite=rewrite)


def _triangle(i: Array, j: Array, offset: int, inputs: AttentionInputs) -> Array:
    return j <= i + offset


def all_where(condition: Callable[[Array, Array, int, AttentionInputs], Array | bool]) -> Seen:
    """The triangle, and every key where ``condition`` holds."""
    return lambda i, j, offset, inputs: (j <= i + offset) | condition(i, j, offset, inputs)


def _after_softmax(inputs: AttentionInputs) -> Array:
    if inputs.causal == "none":
        return attend(inputs)
    kept = _pairs(inputs, _triangle)
    return attend(inputs.but(causal="none"), softmax=lambda scores: softmax(scores) * kept)


def _before_softmax(inputs: AttentionInputs) -> Array:
    if inputs.causal == "none":
        return attend(inputs)
    kept = _pairs(inputs, _triangle)
    return attend(inputs.but(causal="none"), add_bias=lambda scores, inputs: add_bias(scores * kept, inputs))


LATE = causal_fault(
    "causal-one-key-late", "shows each query one key beyond its own", TRIANGLE, (), lambda i, j, o, x: j <= i + o + 1
)
EARLY = causal_fault("causal-one-key-early", "hides each query's own key", TRIANGLE, (), lambda i, j, o, x: j < i + o)
IGNORED = causal_fault("causal-ignored", "leaves the causal limit out", TRIANGLE, BUFFER, lambda i, j, o, x: j >= 0)

_DIAGONAL = (
    LATE,
    EARLY,
    IGNORED,
    Fault(
        id="causal-always",
        sentence="draws a causal limit though none is asked for",
        requirements=("ATT-OUT-010", "ATT-OUT-003", "ATT-OUT-004", "ATT-OUT-005", "ATT-OUT-006"),
        sources=(),
        rewrite=lambda inputs: inputs.but(causal="top-left") if inputs.causal == "none" else inputs,
    ),
    causal_fault(
        "causal-inverted",
        "hides the keys up to a query's own and shows those after it",
        TRIANGLE,
        (),
        lambda i, j, o, x: j > i + o,
    ),
    causal_fault(
        "causal-transposed", "shows a query its own key and those after it", TRIANGLE, (), lambda i, j, o, x: j >= i + o
    ),
    causal_fault(
        "causal-from-last-key",
        "counts the keys of the causal limit from the last one",
        TRIANGLE,
        (),
        lambda i, j, o, x: x.key.shape[2] - 1 - j <= i + o,
    ),
    causal_fault(
        "causal-first-row-for-all",
        "gives every query the causal limit of the first",
        TRIANGLE,
        ALL_ROWS,
        lambda i, j, o, x: j <= 0 * i + o,
    ),
    causal_fault(
        "causal-window-of-4",
        "shows the last four keys up to a query's own instead of all",
        TRIANGLE,
        (),
        lambda i, j, o, x: (j <= i + o) & (j > i + o - 4),
    ),
    causal_fault(
        "causal-window-of-64",
        "shows the last 64 keys up to a query's own instead of all",
        masking(36),
        (),
        lambda i, j, o, x: (j <= i + o) & (j > i + o - 64),
    ),
    Fault(
        id="causal-multiplied-after-softmax",
        sentence="multiplies weights by the causal triangle after softmax",
        requirements=TRIANGLE,
        sources=AFTER_SOFTMAX,
        needs=CAUSAL,
        compute=_after_softmax,
    ),
    Fault(
        id="causal-multiplied-before-softmax",
        sentence="multiplies scores by the causal triangle as 0 and 1",
        requirements=TRIANGLE,
        sources=MULTIPLIED,
        needs=CAUSAL,
        compute=_before_softmax,
    ),
)

FAULTS: tuple[Fault, ...] = (
    *_DIAGONAL,
    *(multi_head_sibling(fault, "ATT-HEAD-021") for fault in (LATE, EARLY, IGNORED)),
)

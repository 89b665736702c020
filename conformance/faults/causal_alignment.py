"""Causal limits aligned wrongly where query and key lengths differ."""

from collections.abc import Callable

import numpy as np

from conformance.faults.causal import Seen, all_where, causal_fault
from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.inputs import AttentionInputs

Array = np.ndarray

ALIGNMENT = (
    "executorch: https://github.com/pytorch/executorch/issues/22426",
    "pytorch: https://github.com/pytorch/pytorch/issues/144858",
    "onnxruntime: https://github.com/microsoft/onnxruntime/issues/29020",
)
TALL = (
    "tvm: https://github.com/apache/tvm/pull/14907",
    "flash-attention: https://github.com/Dao-AILab/flash-attention/issues/1778",
)

UNEQUAL = frozenset({"causal", "cross-length"})


def _offset(change: Callable[[int, AttentionInputs], int]) -> Seen:
    """The triangle with another offset."""
    return lambda i, j, offset, inputs: j <= i + change(offset, inputs)


def _surplus(inputs: AttentionInputs) -> int:
    return inputs.key.shape[2] - inputs.query.shape[2]


def _has(inputs: AttentionInputs) -> dict[str, bool]:
    """Which features the inputs have beside causal."""
    return {
        "bias": inputs.bias is not None,
        "mask": inputs.mask is not None,
        "key-lengths": inputs.key_lengths is not None,
        "grouped-heads": inputs.query.shape[1] != inputs.key.shape[1],
    }


def _flipped(feature: str) -> Seen:
    """The other alignment where the inputs have the feature."""

    def seen(i: Array, j: Array, offset: int, inputs: AttentionInputs) -> Array:
        return j <= i + ((0 if offset else _surplus(inputs)) if _has(inputs)[feature] else offset)

    return seen


FAULTS: tuple[Fault, ...] = (
    causal_fault(
        "causal-top-left-for-bottom-right",
        "aligns every causal limit to the first key",
        masking(11, 13, 15),
        ALIGNMENT,
        _offset(lambda offset, inputs: 0),
        UNEQUAL,
    ),
    causal_fault(
        "causal-bottom-right-for-top-left",
        "aligns every causal limit to the last key",
        masking(10, 12, 14),
        ALIGNMENT,
        _offset(lambda offset, inputs: _surplus(inputs)),
        UNEQUAL,
    ),
    causal_fault(
        "causal-alignments-exchanged",
        "aligns the causal limit to the last key instead of the first and the reverse",
        masking(10, 11, 12, 13, 14, 15),
        ALIGNMENT,
        _offset(lambda offset, inputs: 0 if offset else _surplus(inputs)),
        UNEQUAL,
    ),
    *(
        causal_fault(
            f"causal-alignment-flips-beside-{feature}",
            f"aligns the causal limit to the other end where {words}",
            masking(44),
            ALIGNMENT,
            _flipped(feature),
            UNEQUAL | {feature},
        )
        for feature, words in (
            ("bias", "there is a bias"),
            ("mask", "there is a mask"),
            ("key-lengths", "there are key lengths"),
            ("grouped-heads", "key heads are shared"),
        )
    ),
    causal_fault(
        "causal-ignored-for-unequal-lengths",
        "leaves the causal limit out where the lengths differ",
        masking(10, 11, 12, 13, 14),
        TALL,
        all_where(lambda i, j, o, x: _surplus(x) != 0),
        UNEQUAL,
    ),
    causal_fault(
        "causal-ignored-for-more-queries",
        "leaves the causal limit out where there are more queries than keys",
        masking(12, 13),
        TALL,
        all_where(lambda i, j, o, x: _surplus(x) < 0),
        UNEQUAL,
    ),
    causal_fault(
        "causal-ignored-for-fewer-queries",
        "leaves the causal limit out where there are fewer queries than keys",
        masking(10, 11, 14),
        ALIGNMENT,
        all_where(lambda i, j, o, x: _surplus(x) > 0),
        UNEQUAL,
    ),
    causal_fault(
        "causal-ignored-for-one-query",
        "leaves the causal limit out for a single query",
        masking(14),
        ALIGNMENT[:2],
        all_where(lambda i, j, o, x: x.query.shape[2] == 1),
        UNEQUAL,
    ),
    causal_fault(
        "causal-ignored-for-one-query-beside-others",
        "leaves the causal limit out for a single query beside a mask, a bias, key lengths or shared key heads",
        masking(46),
        ALIGNMENT[:2],
        all_where(lambda i, j, o, x: x.query.shape[2] == 1 and any(_has(x).values())),
        UNEQUAL,
    ),
    causal_fault(
        "causal-ignored-bottom-right-tall",
        "shows every key where a limit from the bottom right has more queries than keys",
        masking(13),
        TALL,
        all_where(lambda i, j, o, x: o < 0),
        UNEQUAL,
    ),
    causal_fault(
        "causal-offset-not-negative",
        "takes Lk − Lq for 0 where there are more queries than keys",
        masking(13),
        TALL,
        _offset(lambda offset, inputs: max(offset, 0)),
        UNEQUAL,
    ),
    causal_fault(
        "causal-offset-negated",
        "takes Lq − Lk for the offset of the bottom-right alignment",
        masking(11, 13),
        TALL,
        _offset(lambda offset, inputs: -offset),
        UNEQUAL,
    ),
    causal_fault(
        "causal-offset-absolute",
        "takes |Lk − Lq| for the offset of the bottom-right alignment",
        masking(13),
        TALL,
        _offset(lambda offset, inputs: abs(offset)),
        UNEQUAL,
    ),
    causal_fault(
        "causal-offset-one-more",
        "aligns the bottom-right limit one key beyond the last",
        masking(11, 13),
        ALIGNMENT[2:],
        _offset(lambda offset, inputs: offset + (offset != 0)),
        UNEQUAL,
    ),
    causal_fault(
        "causal-offset-one-less",
        "aligns the bottom-right limit one key before the last",
        masking(11, 13, 15),
        ALIGNMENT[2:],
        _offset(lambda offset, inputs: offset - (offset != 0)),
        UNEQUAL,
    ),
    causal_fault(
        "causal-keys-end-at-query-length",
        "takes the query length for the number of keys",
        masking(11, 15),
        ALIGNMENT,
        lambda i, j, o, x: (j <= i + o) & (j < x.query.shape[2]),
        UNEQUAL,
    ),
)

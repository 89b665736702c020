"""Faults of tiles of keys under a causal limit, of tiles of queries, and of widths that are no multiple of a vector."""

from collections.abc import Callable

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.faults.steps import attend
from conformance.faults.tails import EDGE, fault, folded, whole
from conformance.features.causal import offset as causal_offset
from conformance.inputs import AttentionInputs

Array = np.ndarray
_CAUSAL = ("ATT-MASK-036", "ATT-MASK-009")
_NARROW = ("vllm (ROCm): https://github.com/vllm-project/vllm/pull/34570",)
_SKIPPED = ("flashinfer: https://github.com/flashinfer-ai/flashinfer/issues/4972",)


def _per_tile(size: int, limit: Callable[[Array, int], Array]) -> Rewrite:
    """The causal limit j ≤ ``limit`` (of the last key that a row may see, and ``size``)."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.causal == "none":
            return inputs
        query_length, key_length = inputs.query.shape[2], inputs.key.shape[2]
        last = limit(np.arange(query_length) + causal_offset(inputs.causal, query_length, key_length), size)
        return folded(inputs.but(causal="none"), np.arange(key_length) <= last[:, None])

    return rewrite


def _without_offset(inputs: AttentionInputs) -> AttentionInputs:
    """Visits the key tiles up to the row's own, though its frontier lies Lk − Lq keys further on."""
    if inputs.causal != "bottom-right" or inputs.key.shape[2] <= inputs.query.shape[2]:
        return inputs
    end = (np.arange(inputs.query.shape[2]) // 16 + 1) * 16
    return folded(inputs, np.arange(inputs.key.shape[2]) < end[:, None])


_LIMITS = (
    *(
        fault(
            f"causal-tile-of-{size}-{word}",
            f"{shown} the tile of {size} keys that the causal limit divides",
            _per_tile(size, limit),
            *_CAUSAL,
            needs=frozenset({"causal"}),
        )
        for size in (16, 64)
        for word, shown, limit in (
            ("seen-whole", "shows the whole of", lambda last, n: last // n * n + n - 1),
            ("skipped", "skips", lambda last, n: last // n * n - 1),
            ("next-seen", "shows the one behind", lambda last, n: last // n * n + 2 * n - 1),
        )
    ),
    fault(
        "causal-tiles-without-offset",
        "visits the key tiles up to the row's number, without the offset Lk − Lq",
        _without_offset,
        "ATT-MASK-036",
        "ATT-MASK-011",
        needs=frozenset({"causal", "cross-length"}),
        sources=_SKIPPED,
    ),
)


def _rows_repeated(size: int) -> Callable[[AttentionInputs], Array]:
    """Query rows behind the first tile of ``size`` get the results of the first tile."""
    return lambda inputs: attend(inputs)[:, :, np.arange(inputs.query.shape[2]) % size]


def _rows_shifted(size: int) -> Callable[[AttentionInputs], Array]:
    """The last tile of queries begins early so as to be whole, and is written where it should have begun."""

    def compute(inputs: AttentionInputs) -> Array:
        length = inputs.query.shape[2]
        end, row = whole(length, size), np.arange(length)
        return attend(inputs)[:, :, np.where(row < end, row, row - end + length - size)]

    return compute


def _channels_dropped(multiple: int) -> Rewrite:
    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        query = inputs.query.copy()
        query[..., whole(query.shape[3], multiple) :] = 0
        return inputs.but(query=query)

    return rewrite


_ROWS_AND_WIDTHS = (
    *(
        Fault(id=f"rows-of-{size}-{word}", sentence=sentence, requirements=EDGE, sources=(), compute=compute)
        for size in (4, 64)
        for word, sentence, compute in (
            ("repeated", f"gives rows behind the first {size} the results of those", _rows_repeated(size)),
            (
                "shifted",
                f"begins the last tile of {size} rows early, and writes it where it should have begun",
                _rows_shifted(size),
            ),
        )
    ),
    *(
        fault(
            f"width-tail-of-{multiple}-dropped",
            f"leaves out channels of query and key behind a multiple of {multiple}",
            _channels_dropped(multiple),
            "ATT-OUT-035",
            "ATT-SCALE-001",
            "ATT-OUT-003",
        )
        for multiple in (4, 8, 16, 32)
    ),
    Fault(
        id="narrow-values-unwritten",
        sentence="leaves the output at 0 where V has fewer than 8 channels",
        requirements=("ATT-OUT-034", "ATT-OUT-035"),
        sources=_NARROW,
        compute=lambda inputs: attend(inputs) * (inputs.value.shape[3] >= 8),
    ),
)

FAULTS: tuple[Fault, ...] = (*_LIMITS, *_ROWS_AND_WIDTHS)

"""Causal limits drawn in tiles, or right in some rows, columns, heads, batch rows and lengths only."""

import numpy as np

from conformance.dtypes import round_to
from conformance.faults.causal import BUFFER, TRIANGLE, Seen, all_where, causal_fault
from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.inputs import AttentionInputs

Array = np.ndarray

TILES = (
    "pytorch: https://github.com/pytorch/pytorch/issues/195910",
    "sglang: https://github.com/sgl-project/sglang/pull/31501",
)
PACKED = ("vllm: https://github.com/vllm-project/vllm/issues/17476",)
WRAPS = ("pytorch: https://github.com/pytorch/pytorch/issues/162588",)


def _number_in(inputs: AttentionInputs, axis: int) -> Array:
    """The number of the batch row (axis 0) or query head (axis 1) of each pair."""
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    return np.arange(inputs.query.shape[axis]).reshape(shape)


def _in_bfloat16(numbers: Array) -> Array:
    return round_to(numbers.astype(np.float64), "bfloat16").astype(np.float64)


def _tiled(size: int, last: bool) -> Seen:
    """The limit of the first or last query of each ``size``."""
    return lambda i, j, o, x: j <= i // size * size + last * (size - 1) + o


_TILED = tuple(
    causal_fault(
        f"causal-limit-of-{'last' if last else 'first'}-of-{size}",
        f"gives each {size} queries the causal limit of the {'last' if last else 'first'} of them",
        masking(36, 9, 35),
        TILES,
        _tiled(size, last),
    )
    for size in (4, 16, 64)
    for last in (True, False)
)

_PLACES = (
    causal_fault(
        "causal-ignored-beyond-64",
        "leaves the causal limit out where there are more than 64 queries",
        masking(36),
        BUFFER,
        all_where(lambda i, j, o, x: x.query.shape[2] > 64),
    ),
    causal_fault(
        "causal-ignored-up-to-64",
        "draws the causal limit only where there are more than 64 queries",
        TRIANGLE,
        BUFFER[1:],
        all_where(lambda i, j, o, x: x.query.shape[2] <= 64),
    ),
    causal_fault(
        "causal-buffer-of-64-rows",
        "shows every key to the queries from number 64 on",
        masking(36),
        BUFFER,
        all_where(lambda i, j, o, x: i >= 64),
    ),
    causal_fault(
        "causal-buffer-of-64-columns",
        "shows the keys from number 64 on to every query",
        masking(36),
        BUFFER,
        all_where(lambda i, j, o, x: j >= 64),
    ),
    causal_fault(
        "causal-row-wraps-at-128",
        "counts queries in eight bits with a sign, so that those from number 128 on see no key",
        masking(36),
        WRAPS,
        lambda i, j, o, x: j <= (i + 128) % 256 - 128 + o,
    ),
    causal_fault(
        "causal-position-in-bfloat16",
        "compares positions rounded to bfloat16, equal in groups from 256 on",
        masking(36),
        WRAPS,
        lambda i, j, o, x: _in_bfloat16(j) <= _in_bfloat16(i + o),
    ),
    causal_fault(
        "causal-in-first-head-only",
        "draws the causal limit in the first head only",
        TRIANGLE,
        (),
        all_where(lambda i, j, o, x: _number_in(x, 1) > 0),
    ),
    causal_fault(
        "causal-in-first-batch-row-only",
        "draws the causal limit in the first batch row only",
        TRIANGLE,
        (),
        all_where(lambda i, j, o, x: _number_in(x, 0) > 0),
    ),
    causal_fault(
        "causal-rows-counted-over-batch",
        "counts queries on from one batch row to the next",
        TRIANGLE,
        PACKED,
        lambda i, j, o, x: j <= i + o + _number_in(x, 0) * x.query.shape[2],
    ),
    causal_fault(
        "causal-rows-counted-over-heads",
        "counts queries on from one head to the next",
        TRIANGLE,
        PACKED,
        lambda i, j, o, x: j <= i + o + _number_in(x, 1) * x.query.shape[2],
    ),
)


FAULTS: tuple[Fault, ...] = (*_TILED, *_PLACES)

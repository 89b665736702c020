"""Faults between heads or batch rows: weights, queries, keys or values of a neighbour, and places that nobody writes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.faults.steps import attend, softmax
from conformance.inputs import AttentionInputs

Array = np.ndarray
_READS = ("ATT-HEAD-001", "ATT-OUT-020", "ATT-OUT-003")
_ROWS = ("ATT-OUT-019", "ATT-OUT-003")


def _of(change: Callable[[Array], Array]) -> Callable[[AttentionInputs], Array]:
    """Attention with weights (b, h, lq, lk) exchanged for others of them."""
    return lambda inputs: attend(inputs, softmax=lambda scores: np.broadcast_to(change(softmax(scores)), scores.shape))


def _zeroed(axis: int) -> Callable[[AttentionInputs], Array]:
    """The last index of ``axis`` of the output is never written, where there is more than one."""

    def compute(inputs: AttentionInputs) -> Array:
        output = np.moveaxis(attend(inputs), axis, 0)
        output[1:][-1:] = 0
        return np.moveaxis(output, 0, axis)

    return compute


def _first_row(name: str) -> Rewrite:
    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        array = getattr(inputs, name)
        changed: dict[str, Any] = {name: np.broadcast_to(array[:1], array.shape)}
        return inputs.but(**changed)

    return rewrite


_COMPANY = (
    *(
        Fault(id=identifier, sentence=sentence, requirements=requirements, sources=(), compute=compute)
        for identifier, sentence, requirements, compute in (
            ("weights-of-first-head", "uses the weights of the first head for all", _READS, _of(lambda w: w[:, :1])),
            ("weights-averaged-over-heads", "averages the weights over heads", _READS, _of(lambda w: w.mean(1, keepdims=True))),
            ("weights-of-first-batch-row", "uses the weights of the first batch row for all", _ROWS, _of(lambda w: w[:1])),
            (
                "weights-averaged-over-batch",
                "averages the weights over the batch",
                _ROWS,
                _of(lambda w: w.mean(0, keepdims=True)),
            ),
            ("last-head-unwritten", "leaves the last head at 0", ("ATT-OUT-015", *_READS), _zeroed(1)),
            ("last-batch-row-unwritten", "leaves the last batch row at 0", ("ATT-OUT-014", *_ROWS), _zeroed(0)),
        )
    ),
    *(
        Fault(
            id=f"batch-{name}-of-first-row",
            sentence=f"reads the {name} of the first batch row for all rows",
            requirements=_ROWS,
            sources=(),
            rewrite=_first_row(name),
        )
        for name in ("query", "key", "value")
    ),
)

FAULTS: tuple[Fault, ...] = _COMPANY

"""Faults in adding the sinusoidal encoding to a batch: positions counted along another axis, a sum that is none."""

from collections.abc import Callable

import numpy as np

from conformance.dtypes import float_type
from conformance.faults.model import Compute, Fault
from conformance.faults.sinusoids import added, fault, table
from conformance.faults.steps import sinusoidal
from conformance.inputs import SinusoidalInputs

Array = np.ndarray
_ADDED = ("ATT-POS-008", "ATT-POS-009")
_X = frozenset({"addition"})
_AXIS = (
    "influenza_transformer: https://github.com/KasperGroesLudvigsen/influenza_transformer/issues/9",
    "C.Origami: https://github.com/tanjimin/C.Origami/issues/42",
)


def _of_batch(inputs: SinusoidalInputs) -> Array:
    """Batch row b gets the encoding of position b at all its positions."""
    if inputs.x is None:
        return sinusoidal(inputs)
    rows = table(inputs.but(length=len(inputs.x)))
    return added(inputs, rows[:, None])


def _summed(change: Callable[[Array, Array], Array]) -> Compute:
    """``change`` of x (b, length, width) and the table, where there is an x."""

    def compute(inputs: SinusoidalInputs) -> Array:
        if inputs.x is None:
            return sinusoidal(inputs)
        return np.asarray(change(inputs.x.astype(np.float64), table(inputs))).astype(float_type(inputs.dtype).numpy)

    return compute


def _first_row_only(x: Array, encoding: Array) -> Array:
    x[0] += encoding
    return x


_ADDITION = (
    fault(
        "positions-over-batch",
        "counts positions over the batch",
        _of_batch,
        "ATT-POS-009",
        "ATT-POS-008",
        needs=_X,
        sources=_AXIS,
    ),
    fault(
        "positions-over-batch-if-equal",
        "counts positions over the batch where it is as long as the sequence",
        lambda i: _of_batch(i) if i.x is not None and len(i.x) == i.length else sinusoidal(i),
        "ATT-POS-009",
        needs=_X,
        sources=_AXIS,
    ),
    *(
        fault(identifier, sentence, _summed(change), *_ADDED, needs=_X)
        for identifier, sentence, change in (
            ("not-added", "returns x without the encoding", lambda x, pe: x),
            ("x-dropped", "returns the encoding without x", lambda x, pe: np.broadcast_to(pe, x.shape)),
            ("added-twice", "adds the encoding twice", lambda x, pe: x + 2 * pe),
            ("subtracted", "subtracts the encoding", lambda x, pe: x - pe),
            ("multiplied", "multiplies x by the encoding", lambda x, pe: x * pe),
            ("x-times-root-width", "multiplies x by √d first", lambda x, pe: x * np.sqrt(x.shape[-1]) + pe),
            ("halved", "takes the mean of x and the encoding", lambda x, pe: (x + pe) / 2),
            ("first-batch-row-only", "adds the encoding to the first batch row only", _first_row_only),
            (
                "last-row-left-out",
                "adds the encoding to all positions but the last",
                lambda x, pe: x + np.where((np.arange(len(pe)) == len(pe) - 1)[:, None], 0, pe),
            ),
        )
    ),
)

FAULTS: tuple[Fault, ...] = _ADDITION

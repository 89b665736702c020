"""Faults of the sinusoidal encoding in its positions, in the precision of its numbers, and in adding it to a batch."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import IDS, POS, TO_16, WIDE, Way, fault
from conformance.faults.sinusoids import FIRST, added, arranged, changed_table, encoded, summed, table, with_table
from conformance.faults.steps import frequencies_asked, sinusoidal
from conformance.problem.inputs import SinusoidalInputs

Array = np.ndarray
LARGE, EACH = POS(12, 5, 13), POS(2, 1)
LOW = (
    "transformers Llama/Gemma: https://github.com/huggingface/transformers/pull/29285",
    "sglang-jax: https://github.com/sgl-project/sglang-jax/issues/1472",
)
AXIS = (
    "influenza_transformer: https://github.com/KasperGroesLudvigsen/influenza_transformer/issues/9",
    "C.Origami: https://github.com/tanjimin/C.Origami/issues/42",
)


def _at(positions: Callable[[Array, SinusoidalInputs], Array]) -> Way:
    """Other positions than 0, 1, 2 …"""

    def compute(inputs: SinusoidalInputs) -> Array:
        return added(inputs, table(inputs, positions=positions(np.arange(inputs.length, dtype=np.float64), inputs)))

    return encoded(compute)


def _limited(size: int, way: Callable[[Array, int], Array]) -> Way:
    return _at(lambda p, x: np.where(p < size, p, way(p, size)))


def _zero_beyond(positions: int | None, columns: int | None = None) -> Way:
    def change(inputs: SinusoidalInputs, encoding: Array) -> Array:
        encoding[positions:, columns:] = 0
        return encoding

    return changed_table(change)


def _with_sign(bits: int) -> Way:
    count = 2.0**bits
    return _at(lambda p, x: (p + count / 2) % count - count / 2)


def _rounded(array: Array, kind: Any) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(kind).astype(np.float64)


def _stepped(inputs: SinusoidalInputs) -> Array:
    """The angle of each position is that of the one before plus the frequency, in the precision of the table's arithmetic."""
    kind = np.float64 if inputs.dtype == "float64" else np.float32
    steps = np.broadcast_to(frequencies_asked(inputs).astype(kind), (inputs.length, (inputs.width + 1) // 2)).copy()
    steps[0] = 0
    angles = np.cumsum(steps, axis=0, dtype=kind).astype(np.float64)
    return added(inputs, arranged(inputs, np.sin(angles), np.cos(angles)[:, : inputs.width // 2]))


def _frequency_in(kind: Any) -> Way:
    return encoded(lambda inputs: added(inputs, table(inputs, sines=lambda _: _rounded(frequencies_asked(inputs), kind))))


IN: dict[str, Callable[[Any], Way]] = {
    "table": lambda kind: changed_table(lambda _, encoding: _rounded(encoding, kind)),
    "angle": lambda kind: with_table(angle=lambda angles: _rounded(angles, kind)),
    "frequency": _frequency_in,
    "positions": lambda kind: _at(lambda p, inputs: _rounded(p, kind)),
}
F32, F16, BF16 = np.float32, np.float16, ml_dtypes.bfloat16


def _over_batch(if_equal: bool) -> Way:
    """Batch row b gets the encoding of position b at all its positions."""

    def compute(inputs: SinusoidalInputs) -> Array:
        if inputs.x is None or (if_equal and len(inputs.x) != inputs.length):
            return sinusoidal(inputs)
        return added(inputs, table(inputs.but(length=len(inputs.x)))[:, None])

    return encoded(compute)


def _first_row_only(x: Array, encoding: Array) -> Array:
    x[0] += encoding
    return x


def _all_but_last(x: Array, encoding: Array) -> Array:
    return x + np.where((np.arange(len(encoding)) == len(encoding) - 1)[:, None], 0, encoding)


ROWS: tuple[tuple[str, str, IDS, Way], ...] = (
    ("positions-from-one", "counts positions from 1", EACH, _at(lambda p, x: p + 1)),
    ("positions-from-minus-one", "counts positions from −1", EACH, _at(lambda p, x: p - 1)),
    ("positions-reversed", "counts positions from the end", POS(1, 6), _at(lambda p, x: p[::-1])),
    ("positions-relative", "divides positions by the length", POS(1, 6), _at(lambda p, x: p / x.length)),
    ("positions-doubled", "counts positions by two", FIRST, _at(lambda p, x: 2 * p)),
    ("positions-accelerate", "counts positions that grow ever faster", POS(11, 5), _at(lambda p, x: p * (1.0 + p / 4096.0))),
    ("positions-in-8-bits", "counts positions in 8 bits with a sign", LARGE, _with_sign(8)),
    ("positions-in-16-bits", "counts positions in 16 bits with a sign", POS(12), _with_sign(16)),
    ("positions-in-8-bits-unsigned", "counts positions in 8 bits", LARGE, _at(lambda p, x: p % 256)),
    *(
        (f"{word}-beyond-{size}", f"{verb} beyond {size} positions", requirements, way)
        for size, requirements in ((512, LARGE), (5000, POS(12)))
        for word, verb, way in (
            ("repeats", "begins the table anew", _limited(size, lambda p, n: p % n)),
            ("stays", "repeats the last row", _limited(size, lambda p, n: np.full_like(p, n - 1))),
            ("zero", "gives zeros", _zero_beyond(size)),
        )
    ),
)  # fmt: skip
ADDED: tuple[tuple[str, str, Callable[[Array, Array], Array]], ...] = (
    ("not-added", "returns x without the encoding", lambda x, pe: x),
    ("x-dropped", "returns the encoding without x", lambda x, pe: np.broadcast_to(pe, x.shape)),
    ("added-twice", "adds the encoding twice", lambda x, pe: x + 2 * pe),
    ("subtracted", "subtracts the encoding", lambda x, pe: x - pe),
    ("multiplied", "multiplies x by the encoding", lambda x, pe: x * pe),
    ("x-times-root-width", "multiplies x by √d first", lambda x, pe: x * np.sqrt(x.shape[-1]) + pe),
    ("halved", "takes the mean of x and the encoding", lambda x, pe: (x + pe) / 2),
    ("first-batch-row-only", "adds the encoding to the first batch row only", _first_row_only),
    ("last-row-left-out", "adds the encoding to all positions but the last", _all_but_last),
)
FAULTS: tuple[Fault, ...] = (
    *(fault(f"sinusoid-{name}", sentence, way, requirements) for name, sentence, requirements, way in ROWS),
    fault("sinusoid-zero-beyond-64-columns", "gives zeros in the columns beyond the 64th", _zero_beyond(None, 64), POS(23, 1),
          dtypes=("float32",)),
    *(
        fault(f"sinusoid-{what}-in-{np.dtype(kind).name}", f"rounds the {what} to {np.dtype(kind).name}", IN[what](kind),
              FIRST if what == "table" else LARGE, LOW if kind is BF16 else (), dtypes=dtypes)
        for what, kind, dtypes in (
            ("table", F32, ("float64",)), ("table", F16, WIDE), ("table", BF16, TO_16),
            ("angle", F32, ("float64",)), ("angle", F16, ALL_DTYPES), ("angle", BF16, ALL_DTYPES),
            ("frequency", F32, ("float64",)), ("frequency", F16, ALL_DTYPES), ("frequency", BF16, ALL_DTYPES),
            ("positions", F16, ALL_DTYPES), ("positions", BF16, ALL_DTYPES),
        )
    ),
    fault("sinusoid-angle-by-steps", "adds the frequency up from position to position", encoded(_stepped), POS(12), dtypes=WIDE),
    # Addition to a batch
    fault("sinusoid-positions-over-batch", "counts positions over the batch", _over_batch(if_equal=False), POS(9, 8), AXIS,
          "addition"),
    fault("sinusoid-positions-over-batch-if-equal", "counts positions over the batch where it is as long as the sequence",
          _over_batch(if_equal=True), POS(9), AXIS, "addition"),
    *(fault(f"sinusoid-{name}", sentence, summed(change), POS(8, 9), (), "addition") for name, sentence, change in ADDED),
)  # fmt: skip

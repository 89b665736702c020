"""Makes the records of a large run that never took place, the same for the same seed; ``python -m tests.support.large_runs FILE``
writes such a file, to measure what is made from it."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from conformance.judging.verdict import Outcome
from conformance.records import Counts, Growth, Line, Picture
from conformance.records.accuracy import Accuracy
from conformance.system.exit_codes import ExitCode
from tests.support import runs

AREAS = {"OUT": 40, "SCALE": 15, "MASK": 45, "HEAD": 30, "NUM": 10, "POS": 10}
DTYPES = ("float64", "float32", "float16", "bfloat16")
CONVENTIONS = ("ALIGNMENT", "EMPTY-ROW", "NAN-BEHIND-MASK-K", "NAN-BEHIND-MASK-V", "POLARITY", "ZERO-SCALE")
SHAPES = ("short", "prefill", "decode", "grouped")
LENGTHS = (256, 512, 1024, 2048)
MESSAGE = "At (1, 2, 3, 0): got 0.5784589052200317, expected 0.6973021215513938, budget 1.1e-06, r = 1.09e+05."
FAILING = (Outcome.WRONG_VALUE, Outcome.WRONG_VALUE, Outcome.NONFINITE, Outcome.ERROR)


def large_run(records: int = 20_000, implementations: int = 25, failing: float = 1 / 12, seed: int = 0) -> Iterator[Line]:
    """A header and about as many records: 150 requirements on each implementation, of which the share
    ``failing`` fails."""
    dice = np.random.default_rng(seed)
    requirements = [f"ATT-{area}-{number:03d}" for area, count in AREAS.items() for number in range(1, count + 1)]
    names = [f"library-{number // 3}-attention-{number % 3}" for number in range(implementations)]
    profile = dict.fromkeys(DTYPES, "strict")
    yield runs.header([runs.implementation(name, dtypes=DTYPES, profile=profile) for name in names], requirements)
    cases = max((records - len(names) * len(requirements)) // (len(names) * len(requirements)), 1)
    for requirement in requirements:
        for name in names:
            yield from _item(dice, requirement, name, cases, failing)
    for name in names:
        yield from _others(dice, name, names[0])
    yield runs.self_comparison(1.004, names[0], shape="prefill")


def _item(dice: np.random.Generator, requirement: str, name: str, cases: int, share: float) -> Iterator[Line]:
    outcome = FAILING[dice.integers(len(FAILING))] if dice.random() < share else Outcome.PASS
    failing = outcome.is_failure
    accuracy = Accuracy()
    for dtype in DTYPES:
        for r in np.exp(dice.normal(-2.0, 0.8, size=8)):
            accuracy.add(dtype, "strict", float(min(r, 0.99)))
    if outcome is Outcome.WRONG_VALUE:
        accuracy.add("float32", "strict", float(10 ** dice.uniform(0.1, 8)))
    counts = Counts(designed=cases, failed=2 if failing else 0)
    status = "unexpected" if failing and dice.random() < 0.8 else "expected"
    reason = "stated in the file of known failures" if failing and status == "expected" else ""
    yield runs.item(name, requirement, outcome=outcome, status=status, reason=reason, counts=counts, accuracy=accuracy.entries())
    for number in range(cases):
        wrong = failing and number < 2
        text = (
            f"attention batch=2 heads=4/2 length={number + 3}/17 width=16 dtype=float32 causal=bottom-right mask=band.1#{number}"
        )
        yield runs.case(
            int(dice.integers(1 << 40)), name, requirement, str(outcome) if wrong else "PASS",
            text=f"{text} values=spread.1#{dice.integers(1 << 20)}",
            status=status if wrong else "expected", r=float(10 ** dice.uniform(0.1, 8)) if wrong else 0.3,
            message=MESSAGE if wrong else "",
            repro=f"attention-conformance reproduce '{text}' --implementation {name}" if wrong else "",
            picture=_picture(dice, 12) if wrong and outcome is Outcome.WRONG_VALUE else None,
        )  # fmt: skip


def _picture(dice: np.random.Generator, side: int) -> Picture:
    want = dice.normal(size=(side, side))
    r = np.where(dice.random((side, side)) < 0.3, 10 ** dice.uniform(0, 6, (side, side)), 0.4)
    cells = [tuple(tuple(float(f"{x:.4g}") for x in row) for row in matrix) for matrix in (want + r * 1e-3, want, r)]
    positions = tuple(range(side))
    visible = tuple("#" * (row + 1) + "." * (side - row - 1) for row in range(side))
    return Picture(
        head=(1, 2), size=(side, side), rows=positions, columns=positions, got=cells[0], want=cells[1], r=cells[2],
        keys=positions, visible=visible,
    )  # fmt: skip


def _others(dice: np.random.Generator, name: str, baseline: str) -> Iterator[Line]:
    for identifier in CONVENTIONS:
        yield runs.convention(name, f"CON-{identifier}", declared=None, observed=f"answer-{dice.integers(2)}", agrees=None)
    speed = float(math.exp(dice.normal(0, 0.7))) if name != baseline else 1.0
    for shape in SHAPES:
        ratio = speed * float(math.exp(dice.normal(0, 0.1)))
        yield runs.timing(
            name, shape, ratio=ratio, ratio_low=ratio * 0.95, ratio_high=ratio * 1.06, median_seconds=ratio * 0.003,
            baseline=baseline, peak_bytes=1 << 20,
        )  # fmt: skip
    exponent = float(dice.uniform(1, 2))
    yield Growth(
        implementation=name, operation="attention", dtype="float32", outcome=Outcome.PASS, lengths=LENGTHS,
        seconds=tuple(1e-3 * speed * (length / 256) ** 2 for length in LENGTHS),
        peak_bytes=tuple(int(1e5 * (length / 256) ** exponent) for length in LENGTHS), time_exponent=2.0,
        memory_exponent=exponent,
    )  # fmt: skip
    yield runs.diagnosis(name)


if __name__ == "__main__":
    runs.write(Path(sys.argv[1]), *large_run(), exit_code=ExitCode.UNEXPECTED)

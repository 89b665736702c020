"""How time and memory grow with the length: the exponents of power laws fitted to a ladder of lengths."""

from collections.abc import Iterator, Sequence

from conformance.judging.verdict import Outcome
from conformance.records import Growth, Timing
from conformance.timing.statistics import exponent

GROWTH = "growth"  # the suite that the rungs of a ladder are timed as
LEAST_BYTES = 256 << 10  # a smaller peak is lost in how the system counts pages


def growths(rungs: Sequence[Timing]) -> Iterator[Growth]:
    """One for each implementation, dtype and passes, from the timings of its rungs, each named L and its length."""
    grouped: dict[tuple[str, str, str], list[Timing]] = {}
    for timing in rungs:
        grouped.setdefault((timing.passes, timing.dtype, timing.implementation), []).append(timing)
    yield from map(_growth, grouped.values())


def _growth(rungs: Sequence[Timing]) -> Growth:
    measured = [timing for timing in rungs if timing.median_seconds is not None]
    failed = next((timing for timing in rungs if timing.median_seconds is None), None)
    lengths = tuple(int(timing.shape.removeprefix("L")) for timing in measured)
    seconds = tuple(timing.median_seconds or 0.0 for timing in measured)
    peaks = tuple(timing.peak_bytes for timing in measured)
    return Growth(
        implementation=rungs[0].implementation,
        operation=rungs[0].operation,
        dtype=rungs[0].dtype,
        passes=rungs[0].passes,
        outcome=failed.outcome if failed else Outcome.PASS,
        status=failed.status if failed else "expected",
        lengths=lengths,
        seconds=seconds,
        peak_bytes=peaks,
        time_exponent=exponent(lengths, seconds),
        memory_exponent=exponent(lengths, [peak if peak is not None and peak >= LEAST_BYTES else None for peak in peaks]),
        message=f"{failed.shape}: {failed.message}" if failed else "",
    )

"""Tables of speed: what a call takes and needs, how that grows, and whether the ratios can be trusted."""

from collections.abc import Callable, Iterator

from conformance.judging.verdict import Outcome
from conformance.records import Growth, Run, SelfComparison, Timing
from conformance.reports.format import NONE, milliseconds, percent, ratio, short, size
from conformance.reports.tables import Table

_USUAL_SUITE = "cpu-small"


def speed_tables(run: Run) -> list[Table]:
    """For each suite, operation, dtype and passes, implementation × shape: time relative to the baseline, the time, the rate."""
    note = (
        "Median time of a call relative to the baseline (below 1 is faster; ≈ where the 95 % interval holds 1), the time itself, "
        "and the arithmetic rate in percent of that of a large float32 matrix product, in the framework that is best at it here. "
        "Only what passed is timed."
    )
    tables = []
    for title, timings in groups(run):
        shapes = list(dict.fromkeys(timing.shape for timing in timings))
        cells: dict[str, dict[str, str]] = {}
        for timing in timings:
            cells.setdefault(timing.implementation, {})[timing.shape] = _pace(timing)
        rows = tuple((name, *(own.get(shape, NONE) for shape in shapes)) for name, own in cells.items())
        tables.append(Table(title, ("implementation", *shapes), rows, note + _unjudged(timings)))
    return tables


def timing_tables(run: Run) -> list[Table]:
    """The same groups with a row for each shape and implementation, and everything that was measured."""
    note = (
        "Interval: 95 %, bootstrap over rounds. GB/s: inputs and output once each. Peak: memory beyond inputs and output. First: "
        "the first call, compilation included. r: largest error / budget of the timed call's own outputs."
    )
    columns = (
        "shape", "implementation", "median", "quartiles", "ratio", "interval", "of matmul", "GB/s", "peak", "first", "calls", "r",
    )  # fmt: skip
    return [
        Table(title.replace("Speed", "Timings", 1), columns, tuple(map(_timing_row, timings)), note + _unjudged(timings))
        for title, timings in groups(run)
    ]


def growth_table(run: Run) -> Table:
    """The exponents of time and memory in the length, and what they were fitted to."""
    note = (
        "p of time or memory ∝ L^p for L = Lq = Lk, fitted by least squares of the logarithms; small lengths, at which the fixed "
        "cost of a call counts, pull it down. All scores in memory give 2, a fused kernel's memory 1 or less."
    )
    columns = (
        "implementation",
        "dtype",
        "passes",
        "lengths",
        "time: p",
        "memory: p",
        "time at the longest",
        "peak at the longest",
    )
    return Table("Growth with the length", columns, tuple(map(_growth_row, run.growths)), note)


def self_comparison_table(run: Run) -> Table:
    """Implementations timed against themselves, and the sentence that follows. One that failed was held again."""
    last = len(run.self_comparisons) - 1
    rows = tuple(
        (
            c.implementation,
            f"{c.suite} {c.shape}",
            c.dtype,
            _precise(c.ratio),
            f"{_precise(c.ratio_low)} … {_precise(c.ratio_high)}",
            _trust(c) if place == last else "held again",
        )
        for place, c in enumerate(run.self_comparisons)
    )
    columns = ("implementation", "shape", "dtype", "ratio", "interval", "result")
    return Table("A run against itself", columns, rows)


def _trust(comparison: SelfComparison) -> str:
    if comparison.is_sound:
        return f"within {100 * comparison.tolerance:.0f} %, and the interval holds 1: the ratios can be trusted to that"
    return "NOT 1: the ratios of this run are not to be trusted"


def groups(run: Run) -> Iterator[tuple[str, list[Timing]]]:
    """Timings that are compared with one another, under a title that says what they have in common."""
    grouped: dict[tuple[str, ...], list[Timing]] = {}
    for t in run.timings:
        grouped.setdefault((t.operation, t.dtype, t.suite, t.passes, t.device, t.baseline), []).append(t)
    for (operation, dtype, suite, passes, device, baseline), timings in grouped.items():
        more = [suite if suite != _USUAL_SUITE else "", passes if passes != "forward" else "", device if device != "cpu" else ""]
        about = ", ".join([f"{operation} in {dtype}", *filter(None, more)])
        yield f"Speed: {about}, " + (f"relative to {baseline}" if baseline else "without a baseline"), timings


def timed(timing: Timing | Growth) -> str:
    """Which call it was, in words that no other has in a run."""
    what = "growth with the length" if isinstance(timing, Growth) else f"{timing.suite} {timing.shape}"
    return f"{timing.operation}, {what} in {timing.dtype}, {timing.passes}"


def _unjudged(timings: list[Timing]) -> str:
    return " Of forward+backward the output alone is judged, not the gradients." if timings[0].passes != "forward" else ""


def _pace(timing: Timing) -> str:
    if timing.outcome is Outcome.UNSUPPORTED and timing.message:
        return f"{timing.outcome}: {timing.message}"
    if timing.outcome is not Outcome.PASS or timing.median_seconds is None:
        return str(timing.outcome)
    share = "" if timing.percent_of_matmul is None else f", {percent(timing.percent_of_matmul)}"
    return f"{_alike(timing)}{ratio(timing.ratio)} ({milliseconds(timing.median_seconds)}{share})"


def _alike(timing: Timing) -> str:
    low, high = timing.ratio_low, timing.ratio_high
    is_baseline = timing.implementation == timing.baseline
    return "≈ " if low is not None and high is not None and low <= 1.0 <= high and not is_baseline else ""


def _timing_row(timing: Timing) -> tuple[str, ...]:
    head, r = (timing.shape, timing.implementation), _or_none(timing.r, short)
    low, median, high = timing.low_quartile_seconds, timing.median_seconds, timing.high_quartile_seconds
    if median is None or low is None or high is None:
        return (*head, str(timing.outcome), *[""] * 8, r)
    return (
        *head,
        milliseconds(median),
        f"{milliseconds(low)} – {milliseconds(high)}",
        NONE if timing.ratio is None else ratio(timing.ratio),
        _interval(timing.ratio_low, timing.ratio_high),
        _or_none(timing.percent_of_matmul, percent),
        short(timing.bytes / median / 1e9) if timing.bytes else NONE,
        NONE if timing.peak_bytes is None else size(timing.peak_bytes),
        _or_none(timing.first_seconds, milliseconds),
        str(timing.calls),
        r,
    )


def _growth_row(growth: Growth) -> tuple[str, ...]:
    head = (growth.implementation, growth.dtype, growth.passes)
    if not growth.lengths:
        return (*head, str(growth.outcome), "", "", "", "")
    peak = growth.peak_bytes[-1]
    return (
        *head,
        f"{growth.lengths[0]} … {growth.lengths[-1]}" + ("" if growth.outcome is Outcome.PASS else f", then {growth.outcome}"),
        _or_none(growth.time_exponent, "{:.2f}".format),
        _or_none(growth.memory_exponent, "{:.2f}".format),
        milliseconds(growth.seconds[-1]),
        NONE if peak is None else size(peak),
    )


def _or_none(value: float | None, shown: Callable[[float], str]) -> str:
    return NONE if value is None else shown(value)


def _precise(value: float) -> str:
    return f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{short(low)} … {short(high)}"

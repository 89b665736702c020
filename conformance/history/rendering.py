"""Trends as tables."""

from collections.abc import Callable, Sequence

from conformance.history.trend import Point, Trend
from conformance.reports import markdown, tallies, terminal
from conformance.reports.format import NONE, ratio, short, sized
from conformance.reports.tables import Table

COLUMNS = ("started", "version", "suite", "spec.", "tier", "passed", "known", "unexpected", "unsupported")
NOTE = (
    "Number of requirements; median / largest r = error / budget by dtype; speed: geometric mean of the time relative to the "
    "baseline, over the shapes that all runs of the implementation have (their number), below 1 is faster."
)
UNALIKE = "The runs are of several specifications or tiers, so their counts do not count the same."
ELSEWHERE = "The runs took place on several machines, whose speeds do not compare."


def as_text(trends: Sequence[Trend]) -> str:
    return "\n\n".join(terminal.render_table(table) for table in tables(trends))


def as_markdown(trends: Sequence[Trend]) -> str:
    parts = ["# History"]
    for table in tables(trends):
        parts += [f"## {markdown.escaped(table.title)}", markdown.render_table(table)]
    return "\n\n".join(parts) + "\n"


FORMATS: dict[str, Callable[[Sequence[Trend]], str]] = {"text": as_text, "markdown": as_markdown}


def tables(trends: Sequence[Trend]) -> list[Table]:
    """A table for each implementation, a row for each of its runs, the oldest first."""
    return [_table(trend, NOTE if trend is trends[-1] else "") for trend in trends]


def _table(trend: Trend, note: str) -> Table:
    dtypes = sorted(trend.dtypes, key=sized)
    rows = tuple(_row(point, dtypes) for point in trend.points)
    notes = ([] if trend.asked_alike else [UNALIKE]) + ([] if trend.on_one_machine else [ELSEWHERE])
    title = f"{trend.implementation} ({trend.framework})"
    return Table(title, (*COLUMNS, *dtypes, "speed"), rows, " ".join([*notes, note]).strip())


def _row(point: Point, dtypes: Sequence[str]) -> tuple[str, ...]:
    kinds = (tallies.PASSED, tallies.KNOWN, tallies.UNEXPECTED, tallies.UNSUPPORTED)
    accuracy = (point.accuracy.get(dtype) for dtype in dtypes)
    return (
        f"{point.started:%Y-%m-%d %H:%M}",
        point.framework_version or NONE,
        point.suite,
        point.specification,
        point.tier,
        *(str(point.counts[kind]) for kind in kinds),
        *(NONE if figures is None else f"{short(figures[0])} / {short(figures[1])}" for figures in accuracy),
        NONE if point.speed is None else f"{ratio(point.speed)} ({point.shapes})",
    )

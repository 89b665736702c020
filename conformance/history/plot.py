"""Trends as a picture: what passes, how accurate, how fast, run by run."""

import io
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.history.trend import Point, Trend

SIZE = 10.0, 9.0  # inches
MARKERS = "osD^vP*X"
SMALLEST_R = 1e-3  # what is drawn of a smaller one, on the logarithmic axis


def write_plot(trends: Sequence[Trend], path: Path) -> None:
    """Writes an SVG file of three panels over the runs in time: share of requirements passed, largest r, relative time.

    Where the framework's version changed, it is written at the point. Raises UsageError without matplotlib, and where the file
    cannot be written.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("A plot needs matplotlib: pip install 'attention-conformance[report]'.") from None
    moments = sorted({point.started for trend in trends for point in trend.points})
    # equal runs give equal bytes: no date, and ids that do not change
    with matplotlib.rc_context({"svg.hashsalt": "attention-conformance", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        _draw(figure, trends, moments)
        text = io.StringIO()
        about = {"Date": None, "Title": "History", "Description": _described(trends, moments)}
        figure.savefig(text, format="svg", metadata=about)
    try:
        path.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The plot cannot be written to {path}: {error.strerror}.") from None


def _draw(figure: Any, trends: Sequence[Trend], moments: Sequence[datetime]) -> None:
    panels: tuple[tuple[str, Callable[[Point], float | None]], ...] = (
        ("requirements passed, % of judged", _share),
        ("largest r = error / budget", _largest),
        ("time relative to baseline", lambda point: point.speed),
    )
    axes = figure.subplots(len(panels), 1, sharex=True)
    for axis, (title, measure) in zip(axes, panels, strict=True):
        for trend, style in zip(trends, cycle(_styles()), strict=False):
            _line(axis, trend, measure, moments, style)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
    for axis in axes[1:]:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
    axes[1].axhline(1.0, color="black", linewidth=0.8, linestyle=":")  # the budget
    places = range(len(moments))
    axes[-1].set_xticks(places, [f"{moment:%Y-%m-%d\n%H:%M}" for moment in moments])
    axes[-1].set_xlim(-0.5, len(moments) - 0.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)


def _styles() -> list[dict[str, Any]]:
    """Colours with markers of their own, so that lines can be told apart without colour."""
    return [{"color": f"C{place % 10}", "marker": MARKERS[place % len(MARKERS)]} for place in range(40)]


def _line(
    axis: Any, trend: Trend, measure: Callable[[Point], float | None], moments: Sequence[datetime], style: dict[str, Any]
) -> None:
    values = [measure(point) for point in trend.points]
    places = [moments.index(point.started) for point in trend.points]
    axis.plot(places, [math.nan if value is None else value for value in values], label=trend.implementation, **style)
    before = None
    for place, value, point in zip(places, values, trend.points, strict=True):
        if before is not None and point.framework_version != before and value is not None:
            axis.annotate(point.framework_version or "?", (place, value), xytext=(3, 4), textcoords="offset points", fontsize=7)
        before = point.framework_version


def _share(point: Point) -> float | None:
    return None if point.share is None else 100.0 * point.share


def _largest(point: Point) -> float | None:
    finite = [largest for _, largest in point.accuracy.values() if math.isfinite(largest)]
    return max(SMALLEST_R, *finite) if finite else None


def _described(trends: Sequence[Trend], moments: Sequence[datetime]) -> str:
    """What the picture shows, for whoever cannot see it."""
    latest = ", ".join(
        f"{trend.implementation} passes {trend.points[-1].share:.0%}" for trend in trends if trend.points[-1].share is not None
    )
    return f"{len(moments)} runs, {moments[0]:%Y-%m-%d} to {moments[-1]:%Y-%m-%d}. In the last run of each: {latest}."

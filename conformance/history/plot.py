"""Trends as a picture: what passes, how accurate, how fast, run by run. A Vega-Lite specification, drawn by vl-convert."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.history.trend import Point, Trend
from conformance.page.text import NAME, clean, unique_names
from conformance.system import files

WIDTH, HEIGHT = 720, 190  # pixels of a panel
MOMENT = "%Y-%m-%d %H:%M:%S"
SMALLEST_R = 1e-3  # what is drawn of a smaller one, on the logarithmic axis


def write_plot(trends: Sequence[Trend], path: Path, inputs: Iterable[Path] = ()) -> None:
    """Writes an SVG file of three panels over the runs in time: share of requirements passed, largest r, relative time.

    Where the framework's version changed, it is written at the point. Raises UsageError without vl-convert, and where the file
    cannot be written, as over one of the ``inputs``.
    """
    try:
        import vl_convert
    except ImportError:
        raise UsageError("A plot needs vl-convert-python: pip install 'attention-conformance[report]'.") from None
    drawn: str = vl_convert.vegalite_to_svg(specification(trends))
    named = f'<svg role="graphics-document" aria-roledescription="plot" aria-label="{escape(_described(trends))}" '
    text = named + drawn.removeprefix("<svg ")
    try:
        files.write(path, text, inputs)
    except OSError as error:
        raise UsageError(f"The plot cannot be written to {path}: {error.strerror}.") from None


def specification(trends: Sequence[Trend]) -> dict[str, Any]:
    """The picture as Vega-Lite has it, data included."""
    panels: tuple[tuple[str, Callable[[Point], float | None], str], ...] = (
        ("requirements passed, % of judged", _share, "linear"),
        ("largest r = error / budget", _largest, "log"),
        ("time relative to baseline", lambda point: point.speed, "log"),
    )
    drawn = [_panel(title, scale, rows, _moments(trends)) for title, measure, scale in panels if (rows := _rows(trends, measure))]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {
            "font": "sans-serif",
            "legend": {"title": None, "labelLimit": 0, "columns": 1 + len(trends) // 14},
            "range": {"category": {"scheme": "tableau20" if len(trends) > 10 else "tableau10"}},
        },
        "vconcat": drawn,
    }


def _rows(trends: Sequence[Trend], measure: Callable[[Point], float | None]) -> list[dict[str, Any]]:
    """A row for each point that has the figure; with the version where it is another one than before."""
    rows = []
    names = _names(trends)
    for trend in trends:
        before = None
        for point in trend.points:
            value = measure(point)
            changed = before is not None and point.framework_version != before.framework_version
            before = point
            if value is not None:
                version = clean(point.framework_version or "?", NAME) if changed else ""
                rows.append(
                    {"run": f"{point.started:{MOMENT}}", "name": names[trend.implementation], "value": value, "version": version}
                )
    return rows


def _names(trends: Sequence[Trend]) -> dict[str, str]:
    """What each implementation is called in the picture, which cannot hold every character."""
    return unique_names([trend.implementation for trend in trends], NAME)


def _moments(trends: Sequence[Trend]) -> list[str]:
    return [f"{moment:{MOMENT}}" for moment in sorted({point.started for trend in trends for point in trend.points})]


def _panel(title: str, scale: str, rows: list[dict[str, Any]], moments: Sequence[str]) -> dict[str, Any]:
    """Lines told apart by colour and by the shape of their points; the axis of time names each run."""
    x = {"field": "run", "type": "ordinal", "scale": {"domain": moments}, "axis": {"title": None, "labelAngle": -35}}
    y = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"type": scale, "zero": False, "nice": scale == "linear"},
    }
    name = {"field": "name", "type": "nominal"}
    # two scales of equal colours, of which one has the legend, else there would be one for colours and one for shapes
    lines = {"mark": {"type": "line"}, "encoding": {"color": {**name, "legend": None}}}
    points = {"mark": {"type": "point", "filled": True, "size": 55}, "encoding": {"color": name, "shape": name}}
    versions = {
        "mark": {"type": "text", "align": "left", "dx": 6, "dy": -7, "fontSize": 9, "color": "#555"},
        "encoding": {"text": {"field": "version"}},
    }
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": rows},
        "encoding": {"x": x, "y": y},
        "layer": [lines, points, versions],
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def _share(point: Point) -> float | None:
    return None if point.share is None else 100.0 * point.share


def _largest(point: Point) -> float | None:
    finite = [largest for _, largest in point.accuracy.values() if math.isfinite(largest)]
    return max(SMALLEST_R, *finite) if finite else None


def _described(trends: Sequence[Trend]) -> str:
    """What the picture shows, for whoever cannot see it."""
    moments, names = _moments(trends), _names(trends)
    latest = ", ".join(
        f"{names[trend.implementation]} passes {share:.0%}" for trend in trends if (share := trend.points[-1].share) is not None
    )
    return f"{len(moments)} runs, {moments[0]} to {moments[-1]}. In the last run of each: {latest}."

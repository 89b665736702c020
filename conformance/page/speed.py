"""Speed: ratios to the baseline as bars with their intervals, and speed against accuracy."""

import math
from typing import Any

from conformance.judging.verdict import Outcome
from conformance.page.plots import BELOW, SERIES, STEP, WIDTH, Figures, Plot, draw, named, ticks
from conformance.page.text import figure, unique_names
from conformance.records import Run, Timing
from conformance.reports.format import NONE, milliseconds, percent, ratio, size
from conformance.reports.speed import groups
from conformance.reports.tables import Table
from conformance.reports.tallies import judged

PANELS = 24  # drawn at most; the tables have all
HEIGHT = 220  # pixels of a scatter plot


def speed_figures(run: Run) -> list[Figures]:
    """For each group of timings that are compared: a panel a shape, where there is a baseline to draw them relative to, and the
    table."""
    left = PANELS
    figures = []
    for title, timings in groups(run):
        shapes = list(dict.fromkeys(timing.shape for timing in timings))
        shown = unique_names(list(dict.fromkeys(timing.implementation for timing in timings)))
        plots: list[Plot] = []
        if timings[0].baseline:
            for shape in shapes[: max(left, 0)]:
                plots += _panel(shape, [t for t in timings if t.shape == shape], shown)
            left -= len(shapes)
        figures.append(Figures(title, tuple(plots), _table(title, shapes, timings)))
    return figures


def _panel(shape: str, timings: list[Timing], shown: dict[str, str]) -> tuple[Plot, ...]:
    ranked = sorted(timings, key=lambda t: (not _timed(t), t.ratio or math.inf))
    bars = [_bar(timing, shown[timing.implementation]) for timing in ranked]
    fastest = next((t for t in ranked if _timed(t)), None)
    best = "nothing was timed" if fastest is None else f"{shown[fastest.implementation]} is fastest, {ratio(fastest.ratio)}"
    description = f"Time at {shape} relative to {timings[0].baseline}, for {len(timings)} implementations: {best}."
    return draw(shape, description, _bars([bar["name"] for bar in bars], bars))


def _timed(timing: Timing) -> bool:
    return timing.outcome is Outcome.PASS and timing.ratio is not None and timing.ratio > 0 and timing.median_seconds is not None


def _bar(timing: Timing, name: str) -> dict[str, Any]:
    if not _timed(timing):
        return {"name": name, "text": str(timing.outcome), "said": f"{name}: {timing.outcome}"}
    assert timing.ratio is not None and timing.median_seconds is not None
    text = f"{ratio(timing.ratio)}  {milliseconds(timing.median_seconds)}"
    ends = {}
    interval = ""
    if timing.ratio_low and timing.ratio_high:
        ends = {"low": timing.ratio_low, "high": timing.ratio_high}
        interval = f", 95 % interval {timing.ratio_low:.2f} to {timing.ratio_high:.2f}"
    return {"name": name, "ratio": timing.ratio, "base": 1, "text": text, "said": f"{name}: {text}{interval}", **ends}


def _bars(order: list[str], bars: list[dict[str, Any]]) -> dict[str, Any]:
    values = [bar[end] for bar in bars for end in ("ratio", "low", "high") if end in bar] or [1.0]
    domain = [min(0.5, *values) / 1.15, max(2.0, *values) * 1.15]
    axis = {"values": ticks(*domain), "labelExpr": "format(datum.value, '~g') + '×'", "title": None, "labelOverlap": "greedy"}
    x = {"field": "ratio", "type": "quantitative", "scale": {"type": "log", "domain": domain, "nice": False}, "axis": axis}
    y = named(order)
    faster = {"condition": {"test": "datum.ratio < 1", "value": "var(--c1)"}, "value": "var(--c2)"}
    whisker = {"type": "rule", "color": "currentColor", "strokeWidth": 1.5, "aria": False}
    return {
        "width": WIDTH,
        "height": {"step": STEP},
        "data": {"values": bars},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.ratio)"}],
                "mark": {"type": "bar", "opacity": 0.8, "height": {"band": 0.9}},
                "encoding": {"y": y, "x": x, "x2": {"field": "base"}, "color": faster, "description": {"field": "said"}},
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": whisker,
                "encoding": {"y": y, "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
            },
            {
                "data": {"values": [{"at": 1}]},
                "mark": {"type": "rule", "color": "currentColor", "aria": False},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            },
            {
                "mark": {"type": "text", "align": "left", "color": "var(--soft)", "aria": False},
                "encoding": {"y": y, "x": {"value": WIDTH + 8}, "text": {"field": "text"}},
            },
        ],
    }


def _table(title: str, shapes: list[str], timings: list[Timing]) -> Table:
    cells: dict[str, dict[str, str]] = {}
    for timing in timings:
        cells.setdefault(timing.implementation, {})[timing.shape] = _pace(timing)
    rows = tuple((name, *(own.get(shape, NONE) for shape in shapes)) for name, own in cells.items())
    note = (
        "Ratio to the baseline (95 % interval), time of a call, rate against the machine's matrix product, memory beyond inputs."
    )
    return Table(title, ("implementation", *shapes), rows, note)


def _pace(timing: Timing) -> str:
    if timing.outcome is not Outcome.PASS or timing.median_seconds is None:
        return str(timing.outcome)
    parts = [ratio(timing.ratio)]
    if timing.ratio_low is not None and timing.ratio_high is not None:
        parts[0] += f" ({timing.ratio_low:.2f}–{timing.ratio_high:.2f})"
    parts.append(milliseconds(timing.median_seconds))
    if timing.percent_of_matmul is not None:
        parts.append(percent(timing.percent_of_matmul))
    if timing.peak_bytes is not None:
        parts.append(size(timing.peak_bytes))
    return " · ".join(parts)


def tradeoff_figures(run: Run) -> list[Plot]:
    """For each operation and dtype: mean ratio of forward calls to the baseline against the median r."""
    grouped: dict[tuple[str, str], dict[str, list[float]]] = {}
    for timing in run.timings:
        if _timed(timing) and timing.passes == "forward":
            own = grouped.setdefault((timing.operation, timing.dtype), {})
            own.setdefault(timing.implementation, []).append(timing.ratio or 1.0)
    accuracies = {name: judged(run, name) for name in {timing.implementation for timing in run.timings}}
    plots: list[Plot] = []
    for (operation, dtype), ratios in grouped.items():
        points = []
        for name, values in ratios.items():
            distribution = accuracies[name].get(dtype)
            if distribution is not None and distribution.median > 0 and math.isfinite(distribution.median):
                mean = math.exp(sum(math.log(value) for value in values) / len(values))
                points.append((name, mean, distribution.median, run.implementations[name].judged_by(dtype)))
        if len(points) > 1:
            plots += _scatter(f"{operation}, {dtype}", points)
    return plots


def _scatter(caption: str, points: list[tuple[str, float, float, str]]) -> tuple[Plot, ...]:
    shown = unique_names([name for name, *_ in points])
    height = max(HEIGHT, 15 * len(points))
    lowest, highest = (edge(math.log10(r) for _, _, r, _ in points) for edge in (min, max))
    lowest, highest = lowest - 0.15, highest + 0.15
    values: list[dict[str, Any]] = []
    for number, (name, mean, r, profile) in enumerate(sorted(points, key=lambda point: -point[2])):
        values.append(
            {
                "number": number + 1,
                "name": f"{number + 1}  {shown[name]}",
                "x": math.log10(mean),
                "y": math.log10(r),
                "line": highest - (highest - lowest) * (number + 0.5) * 15 / height,
                "said": f"{shown[name]}: {ratio(mean)}, median r {figure(r)} under {profile}",
                "color": SERIES[number % len(SERIES)],
            }
        )
    left, right = min(v["x"] for v in values) - 0.1, max(v["x"] for v in values) + 0.1
    description = (
        f"Speed against accuracy, {caption}: {len(points)} implementations; to the left is faster, below is more accurate."
    )
    return draw(caption, description, _scattered(values, [left, right], [lowest, highest], height))


def _scattered(values: list[dict[str, Any]], across: list[float], up: list[float], height: int) -> dict[str, Any]:
    said = "format(pow(10, datum.value), '.2~g')"
    x = {
        "field": "x", "type": "quantitative", "scale": {"domain": across, "nice": False, "zero": False},
        "axis": {"title": "time relative to the baseline →  slower", "labelExpr": f"{said} + '×'", "tickCount": 3},
    }  # fmt: skip
    y = {
        "field": "y", "type": "quantitative", "scale": {"domain": up, "nice": False, "zero": False},
        "axis": {"title": "median r →  less accurate", "labelExpr": said, "tickCount": 5},
    }  # fmt: skip
    colour = {"field": "color", "type": "nominal", "scale": None}
    return {
        "width": WIDTH + 40,
        "height": height,
        "padding": {"left": 50, "right": 132, "top": 4, "bottom": BELOW},
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 190, "opacity": 0.9},
                "encoding": {"x": x, "y": y, "color": colour, "description": {"field": "said"}},
            },
            {
                "mark": {"type": "text", "color": "var(--card)", "fontSize": 9, "fontWeight": "bold", "aria": False},
                "encoding": {"x": x, "y": y, "text": {"field": "number"}},
            },
            {
                "mark": {"type": "text", "align": "left", "color": "currentColor", "aria": False},
                "encoding": {
                    "x": {"value": WIDTH + 48},
                    "y": {"field": "line", "type": "quantitative"},
                    "text": {"field": "name"},
                },
            },
        ],
    }  # fmt: skip

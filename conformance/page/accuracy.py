"""How r = error / budget is distributed, by dtype: a strip for each implementation."""

import math
from typing import Any

from conformance.page.plots import STEP, WIDTH, Figures, draw, named
from conformance.page.text import figure, unique_names
from conformance.records import Run
from conformance.records.accuracy import BINS_PER_OCTAVE, INFINITE, ZERO, Distribution
from conformance.reports.format import sized
from conformance.reports.tables import Table, accuracy_table
from conformance.reports.tallies import judged

LOWEST, HIGHEST = -12, 12  # octaves of r; what lies beyond is drawn at the end
_DECADES = [k * math.log2(10) for k in (-3, -2, -1, 0, 1, 2, 3)]
_LABELS = "['0.001', '0.01', '0.1', '1', '10', '100', '1000'][round(datum.value / log(10) * log(2)) + 3]"


def accuracy_figures(run: Run) -> Figures:
    """A panel for each dtype."""
    by_dtype: dict[str, list[tuple[str, str, Distribution]]] = {}
    for name, entry in run.implementations.items():
        for dtype, distribution in judged(run, name).items():
            by_dtype.setdefault(dtype, []).append((name, entry.judged_by(dtype), distribution))
    plots = tuple(plot for dtype in sorted(by_dtype, key=sized) for plot in _panel(dtype, by_dtype[dtype]))
    table: Table = accuracy_table(run)
    return Figures("Accuracy", plots, table)


def octaves(distribution: Distribution) -> dict[int, float]:
    """The share of outputs in each octave of r, from LOWEST to HIGHEST."""
    shares: dict[int, float] = {}
    for name, count in distribution.histogram.items():
        octave = LOWEST if name == ZERO else HIGHEST - 1 if name == INFINITE else int(name) // BINS_PER_OCTAVE
        octave = min(max(octave, LOWEST), HIGHEST - 1)
        shares[octave] = shares.get(octave, 0.0) + count / distribution.count
    return shares


def _panel(dtype: str, entries: list[tuple[str, str, Distribution]]) -> Any:
    shown = unique_names([name for name, *_ in entries])
    outlines: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for name, profile, distribution in entries:
        outlines += _outline(shown[name], octaves(distribution))
        said = f"{shown[name]}: median r {figure(distribution.median)}, largest {figure(distribution.max)}, "
        marks.append(
            {
                "name": shown[name],
                "median": _place(distribution.median),
                "max": _place(distribution.max),
                "said": f"{said}of {distribution.count} outputs, profile {profile}",
                "text": f"{figure(distribution.max)}",
            }
        )
    worst = max(distribution.max for *_, distribution in entries)
    description = (
        f"Distribution of r in {dtype} for {len(entries)} implementations; the largest r is {figure(worst)}, 1 is the budget."
    )
    return draw(dtype, description, _specification(list(shown.values()), outlines, marks))


def _outline(name: str, shares: dict[int, float]) -> list[dict[str, Any]]:
    """Points of a band along r whose width says how many outputs lie there, in two parts: up to the budget, and beyond."""
    points = []
    for part, octaves_of_part in (("within", range(LOWEST, 0)), ("beyond", range(HIGHEST))):
        held = [octave for octave in octaves_of_part if octave in shares]
        if held:
            span = range(held[0] - 1, held[-1] + 2)
            widths = {octave: 11 * math.sqrt(shares.get(octave, 0.0) if octave in octaves_of_part else 0.0) for octave in span}
            key = {"name": name, "part": part}
            points += [{**key, "at": min(max(o + 0.5, LOWEST), HIGHEST), "width": width} for o, width in widths.items()]
    return points


def _place(r: float) -> float:
    """log2 r within the axis."""
    return LOWEST if r == 0 else min(max(math.log2(r), LOWEST), HIGHEST) if math.isfinite(r) else HIGHEST


def _specification(order: list[str], outlines: list[dict[str, Any]], marks: list[dict[str, Any]]) -> dict[str, Any]:
    y = named(order)
    axis = {
        "values": _DECADES,
        "labelExpr": _LABELS,
        "title": "r = error ÷ budget",
        "labelFlush": False,
        "labelOverlap": "greedy",
    }
    scale = {"domain": [LOWEST, HIGHEST], "nice": False, "zero": False}
    bad = {"condition": {"test": "datum.part === 'beyond' || datum.max > 0", "value": "var(--bad)"}, "value": "var(--c1)"}
    return {
        "width": WIDTH,
        "height": {"step": STEP},
        "layer": [
            {
                "data": {"values": outlines},
                "mark": {"type": "trail", "aria": False, "opacity": 0.75},
                "encoding": {
                    "y": y,
                    "x": {"field": "at", "type": "quantitative", "scale": scale, "axis": axis},
                    "size": {"field": "width", "type": "quantitative", "scale": None},
                    "detail": [{"field": "name"}, {"field": "part"}],
                    "color": bad,
                },
            },
            {
                "data": {"values": [{"at": 0}]},
                "mark": {"type": "rule", "color": "currentColor", "strokeDash": [2, 2], "aria": False},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "tick", "color": "currentColor", "thickness": 2, "bandSize": 11},
                "encoding": {"y": y, "x": {"field": "median", "type": "quantitative"}, "description": {"field": "said"}},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 36, "opacity": 1, "aria": False},
                "encoding": {"y": y, "x": {"field": "max", "type": "quantitative"}, "color": bad},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "text", "align": "left", "color": "var(--soft)", "aria": False},
                "encoding": {"y": y, "x": {"value": WIDTH + 8}, "text": {"field": "text"}},
            },
        ],
    }

"""Plots as inline vector graphics: Vega-Lite specifications, drawn by vl-convert without a browser and without network.

Vega describes every axis and mark for screen readers, and passes colours on as they are: ``currentColor`` and CSS variables make
one drawing fit light and dark.
"""

import math
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from markupsafe import Markup

from conformance.reports.tables import Table

MISSING = "The plots are left out, since vl-convert-python is missing: pip install 'attention-conformance[report]'."
WIDTH = 128  # pixels of the plotting area; three panels fit side by side, and one fits a phone
LEFT, RIGHT, BELOW = 132, 104, 38  # pixels around it: names, figures, axis
STEP = 17  # pixels of a row
SERIES = tuple(f"var(--c{number})" for number in range(1, 9))

_SOFT = "var(--soft)"
_CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": "var(--grid)",
        "labelColor": _SOFT,
        "titleColor": _SOFT,
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": 11,
        "labelPadding": 6,
        "titlePadding": 8,
    },
    "axisY": {"labelLimit": 0},
    "legend": {
        "labelColor": "currentColor",
        "labelFontSize": 11,
        "labelLimit": 290,
        "orient": "bottom",
        "columns": 1,
        "title": None,
        "rowPadding": 3,
        "symbolStrokeWidth": 2,
    },
    "text": {"fontSize": 11},
}


@dataclass(frozen=True)
class Plot:
    """A drawing under a caption."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class Figures:
    """Plots that belong together, and the same numbers as a table."""

    title: str
    plots: tuple[Plot, ...]
    table: Table


def plots_available() -> bool:
    return find_spec("vl_convert") is not None


def start_drawing() -> None:
    """Loads what draws, where it is installed: the first plot takes ten times as long as the others."""
    if plots_available():
        import vl_convert

        vl_convert.vegalite_to_svg({"mark": "point", "data": {"values": []}}, allowed_base_urls=[])


def draw(caption: str, description: str, specification: dict[str, Any]) -> tuple[Plot, ...]:
    """The specification as a plot, which shows what ``description`` says in words; nothing where vl-convert is not installed."""
    if not plots_available():
        return ()
    import vl_convert

    complete = {
        "background": None,
        "autosize": "none",  # the browser's font is another one: room is fixed, not measured
        "padding": {"left": LEFT, "right": RIGHT, "top": 4, "bottom": BELOW},
        "config": _CONFIG,
        "description": description,
        **specification,
    }
    svg: str = vl_convert.vegalite_to_svg(complete, allowed_base_urls=[])
    return (Plot(caption, _labelled(svg, description)),)


def _labelled(svg: str, description: str) -> Markup:
    """Named for screen readers, which go on to its axes and marks; the font is the page's."""
    label = Markup('<svg role="graphics-document" aria-roledescription="plot" aria-label="{}" ').format(description)
    return label + Markup(re.sub(r' font-family="[^"]*"', "", svg.removeprefix("<svg ")))


def ticks(low: float, high: float) -> list[float]:
    """Where a logarithmic axis is labelled: 1, 2 and 5 of each decade, or decades alone where there are many."""
    decades = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    wanted = decades if high / low > 100 else [m * decade for decade in decades for m in (1, 2, 5)]
    return [tick for tick in wanted if low <= tick <= high]


def named(order: list[str]) -> dict[str, Any]:
    """The y channel: a row for each name, in this order."""
    axis = {"title": None, "labelColor": "currentColor", "grid": False}
    return {"field": "name", "type": "nominal", "sort": order, "axis": axis, "scale": {"paddingInner": 0.3}}

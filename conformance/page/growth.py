"""How time and memory grow with the length: log-log curves, the exponents in the legend."""

import math
from collections.abc import Callable
from typing import Any

from conformance.page.plots import BELOW, SERIES, WIDTH, Figures, Plot, draw, ticks
from conformance.page.text import unique_names
from conformance.records import Growth, Run
from conformance.reports.format import NONE, milliseconds
from conformance.reports.tables import Table

Points = list[tuple[int, float | None]]  # lengths, and what was measured at each
Ticks = Callable[[float, float], list[float]]  # the labelled values between two ends of an axis

_TIME = (
    "datum.value < 9e-4 ? format(datum.value * 1e6, '~g') + ' µs' : "
    "datum.value < 0.9 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)
_MEMORY = (
    "datum.value < 1024 ? datum.value + ' B' : "
    "datum.value < 1048576 ? datum.value / 1024 + ' KiB' : datum.value < 1073741824 ? datum.value / 1048576 + ' MiB' : "
    "datum.value / 1073741824 + ' GiB'"
)
_SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross"]


def growth_figures(run: Run) -> list[Figures]:
    """For each operation, dtype and passes: a panel of times, one of memory where it was measured, and the table."""
    groups: dict[tuple[str, str, str], list[Growth]] = {}
    for growth in run.growths:
        groups.setdefault((growth.operation, growth.dtype, growth.passes), []).append(growth)
    return [_figures(", ".join(key), growths) for key, growths in groups.items()]


def _figures(title: str, growths: list[Growth]) -> Figures:
    shown = unique_names(list(dict.fromkeys(growth.implementation for growth in growths)), limit=30)
    times: dict[str, tuple[float | None, Points]] = {}
    memory: dict[str, tuple[float | None, Points]] = {}
    for growth in growths:
        name = shown[growth.implementation]
        times[name] = (growth.time_exponent, list(zip(growth.lengths, growth.seconds, strict=False)))
        memory[name] = (growth.memory_exponent, list(zip(growth.lengths, growth.peak_bytes, strict=False)))
    plots = (
        *_curves("Time of a call", times, _TIME, ticks),
        *_curves("Memory beyond inputs and output", memory, _MEMORY, _powers_of_two),
    )
    return Figures(title, plots, _table(title, growths))


def _curves(caption: str, curves: dict[str, tuple[float | None, Points]], labels: str, labelled: Ticks) -> tuple[Plot, ...]:
    values: list[dict[str, Any]] = []
    laws: list[str] = []
    for name, (exponent, points) in curves.items():
        law = name if exponent is None else f"{name}  L^{exponent:.2f}"
        known = [(length, value) for length, value in points if length and value]
        values += [{"law": law, "length": length, "value": value} for length, value in known]
        if known:
            laws.append(law)
    if not values:
        return ()
    lengths = sorted({value["length"] for value in values})
    description = f"{caption} over lengths {lengths[0]} to {lengths[-1]}, both axes logarithmic: {'; '.join(laws)}."
    return draw(caption, description, _specification(values, laws, lengths, labels, labelled))


def _powers_of_two(low: float, high: float) -> list[float]:
    """Those between, about six of them where there are many."""
    powers = [2.0**k for k in range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)]
    step = max(round(len(powers) / 6), 1)
    return [power for power in powers[::step] if low <= power <= high]


def _specification(
    values: list[dict[str, Any]], laws: list[str], lengths: list[int], labels: str, labelled: Ticks
) -> dict[str, Any]:
    colors = [SERIES[number % len(SERIES)] for number in range(len(laws))]
    shapes = [_SHAPES[number // len(SERIES) % len(_SHAPES)] for number in range(len(laws))]
    low, high = min(value["value"] for value in values) / 1.2, max(value["value"] for value in values) * 1.2
    x = {
        "field": "length", "type": "quantitative",
        "scale": {"type": "log", "domain": [lengths[0], max(lengths[-1], lengths[0] + 1)], "nice": False},
        "axis": {"values": lengths, "labelExpr": "'' + datum.value", "title": "length L", "labelOverlap": "greedy"},
    }  # fmt: skip
    y = {
        "field": "value", "type": "quantitative",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": labelled(low, high), "labelExpr": labels, "title": None},
    }  # fmt: skip
    color = {"field": "law", "type": "nominal", "sort": laws, "scale": {"domain": laws, "range": colors}}
    shape = {"field": "law", "type": "nominal", "sort": laws, "scale": {"domain": laws, "range": shapes}}
    return {
        "width": WIDTH + 130,
        "padding": {"left": 66, "right": 10, "top": 4, "bottom": BELOW + 18 * len(laws) + 8},
        "height": 200,
        "data": {"values": values},
        "encoding": {"x": x, "y": y, "color": color},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2, "aria": False}},
            {"mark": {"type": "point", "filled": True, "size": 40, "opacity": 1}, "encoding": {"shape": shape}},
        ],
    }


def _table(title: str, growths: list[Growth]) -> Table:
    lengths = sorted({length for growth in growths for length in growth.lengths})
    rows = []
    for growth in growths:
        seconds = dict(zip(growth.lengths, growth.seconds, strict=False))
        cells = tuple(milliseconds(seconds[length]) if length in seconds else NONE for length in lengths)
        state = "" if growth.seconds else str(growth.outcome)
        rows.append((growth.implementation, _law(growth.time_exponent) or state, _law(growth.memory_exponent), *cells))
    columns = ("implementation", "time", "memory", *(f"L = {length}" for length in lengths))
    return Table(title, columns, tuple(rows), "Exponents of the fitted power laws, then the time of a call.")


def _law(exponent: float | None) -> str:
    return "" if exponent is None else f"L^{exponent:.2f}"

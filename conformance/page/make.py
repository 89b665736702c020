"""Lays the page out: what the other modules prepare, through the templates, into one text."""

import re
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.errors import UsageError
from conformance.page.accuracy import accuracy_figures
from conformance.page.conventions import matrices
from conformance.page.growth import growth_figures
from conformance.page.plots import MISSING, plots_available
from conformance.page.results import MARKS, rows
from conformance.page.speed import speed_figures, tradeoff_figures
from conformance.page.text import NAME, clean
from conformance.records import Run
from conformance.reports.format import provenance, sized, stamp
from conformance.reports.speed import self_comparison_table, timed
from conformance.reports.tables import left_table, missing_table, routes_table, unrun_table
from conformance.reports.tallies import KINDS, areas, kind_of, observation
from conformance.reports.verdict import lines
from conformance.system import files

CARDS = 6  # implementations with something unexpected that the beginning of the page shows at once,
LINKS = 12  # and of each so many results


def make_page(run: Run) -> str:
    """The page as HTML, complete in itself: style, script and drawings are part of it, and it loads nothing."""
    return _environment().get_template("page.html").render(_content(run))


def write_page(run: Run, path: Path | str, inputs: Iterable[Path] = ()) -> Path:
    """Writes the page, folders included. Raises UsageError where that cannot be done, as over one of the ``inputs``."""
    path = Path(path)
    try:
        files.write(path, make_page(run), inputs)
    except OSError as error:
        raise UsageError(f"The page cannot be written to {path}: {error.strerror}.") from None
    return path


def _content(run: Run) -> dict[str, Any]:
    shown = rows(run)
    result, *more = lines(run)
    kinds = Counter(kind_of(item) for item in run.items)
    return {
        "run": run,
        "verdict": result,
        "more": more,
        "sound": not run.surprises and not run.missing and any(item.outcome.was_run for item in run.items),
        "stamp": stamp(run),
        "provenance": provenance(run),
        "areas": areas(run),
        "rows": shown,
        "attention": [row for row in shown if row.unexpected or row.diagnosis],
        "cards": CARDS,
        "links": LINKS,
        "kinds": {kind: kinds[kind] for kind in KINDS},
        "marks": MARKS,
        "dtypes": sorted({dtype for item in run.items for dtype in item.dtypes}, key=sized),
        "outcomes": sorted({item.outcome for item in run.items}, key=lambda outcome: outcome.severity),
        "conventions": matrices(run),
        "accuracy": accuracy_figures(run),
        "speed": speed_figures(run),
        "tradeoff": tradeoff_figures(run),
        "self_comparisons": self_comparison_table(run),
        "growth": growth_figures(run),
        "routes": routes_table(run),
        "left": left_table(run),
        "missing": missing_table(run),
        "unrun": unrun_table(run),
        "plots_missing": "" if plots_available() else MISSING,
        "style": _asset("page.css"),
        "script": _asset("page.js") + _asset("pictures.js"),
        "early_script": _asset("early.js"),
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("conformance.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters["called"] = lambda name: clean(name, NAME)
    environment.filters["observation"] = observation
    environment.filters["timed"] = timed
    environment.filters["word"] = lambda kind: kind.split()[0]
    return environment


def _asset(name: str) -> Markup:
    """A file of our own, which stands in the page as it is; comments and indentation are for its readers."""
    text = resources.files("conformance.page").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(re.sub(r"^\s+", "", re.sub(r"^\s*/\*.*?\*/\n", "", text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE))

"""A run as comma-separated values: a row per result, and a row per timing."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.records import Item, Run, Timing
from conformance.reports import tallies
from conformance.reports.format import stamp
from conformance.system.terminal_text import printable

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\n]")
_ITEM_FIELDS = ("requirement", "implementation", "outcome", "status", "reason")
_MEASURES = ("examples", "seconds", "implementation_seconds")


def results_csv(run: Run) -> str:
    """A row per requirement and implementation."""
    return _written(run, (_result(run, item) for item in run.items))


def timings_csv(run: Run) -> str:
    """A row per timing."""
    return _written(run, (_fields(timing, Timing.__struct_fields__) for timing in run.timings))


def _result(run: Run, item: Item) -> dict[str, Any]:
    entry, implementation = run.requirements[item.requirement], run.implementations[item.implementation]
    return {
        **_fields(item, _ITEM_FIELDS),
        "area": entry.area,
        "operation": entry.operation,
        "failing_dtypes": " ".join(tallies.failing_dtypes(item)),
        **_fields(item.counts, item.counts.__struct_fields__),
        **_fields(item, _MEASURES),
        "largest_r": max((a.max for a in item.accuracy if a.profile == implementation.judged_by(a.dtype)), default=None),
    }


def _fields(record: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe, unless it is a number."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _written(run: Run, rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows under a line of names, each with the tier and why the run is no conformance result."""
    of_run = {"tier": run.header.tier, "conformance_result": stamp(run) or "yes"}
    rows = [{**{name: _harmless(cell) for name, cell in row.items()}, **of_run} for row in rows]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()

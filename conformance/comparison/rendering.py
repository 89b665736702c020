"""A comparison as text, Markdown or JSON."""

import json
from collections.abc import Callable
from dataclasses import replace
from textwrap import shorten
from typing import Any

from conformance.comparison.change import ChangeKind, Comparison
from conformance.records import Header, Run
from conformance.reports import markdown, terminal
from conformance.reports.tables import Table

SHOWN_IN_TEXT = 20
SHOWN_IN_MARKDOWN = 50
NOTE_WIDTH = 60
COLUMNS = ("implementation", "what", "before", "after", "note")


def as_text(comparison: Comparison, base: Run, new: Run) -> str:
    """For a terminal; the verdict stands last."""
    parts = ["\n".join([f"base  {_one_line(base.header)}", f"new   {_one_line(new.header)}", *comparison.differences])]
    parts += [terminal.render_table(_narrow(table)) for table in _tables(comparison, SHOWN_IN_TEXT)]
    parts += ["\n".join(f"NOT COMPARED. {remark}" for remark in comparison.not_compared)] if comparison.not_compared else []
    return "\n\n".join([*parts, comparison.verdict])


def as_markdown(comparison: Comparison, base: Run, new: Run) -> str:
    """For a page; the verdict stands first."""
    escaped = markdown.escaped
    facts = [f"base: {_one_line(base.header)}", f"new: {_one_line(new.header)}", *comparison.differences]
    parts = ["# Comparison with the baseline", f"**{escaped(comparison.verdict)}**"]
    for table in _tables(comparison, SHOWN_IN_MARKDOWN):
        parts += [f"## {escaped(table.title)}", markdown.render_table(table)]
    if comparison.not_compared:
        parts += ["## Not compared", "\n".join(f"- {escaped(remark)}" for remark in comparison.not_compared)]
    parts += ["## The two runs", "\n".join(f"- {escaped(fact)}" for fact in facts)]
    return "\n\n".join(parts) + "\n"


def as_json(comparison: Comparison, base: Run, new: Run) -> str:
    """All of it, for programs."""
    document: dict[str, Any] = {
        "worse": len(comparison.worse),
        "compared": comparison.compared,
        "timings": comparison.timings,
        "verdict": comparison.verdict,
        "base": _side(base),
        "new": _side(new),
        "differences": list(comparison.differences),
        "changes": [
            {
                "kind": str(change.kind),
                "worse": change.kind.is_worse,
                "implementation": change.implementation,
                "subject": change.subject,
                "before": change.before,
                "after": change.after,
                "note": change.note,
            }
            for change in comparison.changes
        ],
        "not_compared": list(comparison.not_compared),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


FORMATS: dict[str, Callable[[Comparison, Run, Run], str]] = {"text": as_text, "markdown": as_markdown, "json": as_json}


def _one_line(header: Header) -> str:
    """Which run it was."""
    return (
        f"started {header.started:%Y-%m-%d %H:%M:%S} UTC, suite {header.suite}, specification {header.specification}, "
        f"tier {header.tier}, seed {header.seed}"
    )


def _side(run: Run) -> dict[str, Any]:
    header = run.header
    return {
        "started": header.started.isoformat(),
        "suite": header.suite,
        "specification": header.specification,
        "tier": header.tier,
        "seed": header.seed,
        "exit_code": run.exit_code,
    }


def _narrow(table: Table) -> Table:
    """Long notes cut, so that rows fit a terminal."""
    rows = tuple((*row[:-1], shorten(row[-1], NOTE_WIDTH, placeholder=" …")) for row in table.rows)
    return replace(table, rows=rows)


def _tables(comparison: Comparison, shown: int) -> list[Table]:
    """A table for each kind of change that there is, what is worse first."""
    tables = []
    for kind in ChangeKind:
        changes = comparison.of(kind)
        rows = tuple((c.implementation, c.subject, c.before, c.after, c.note) for c in changes[:shown])
        left = f"… and {len(changes) - shown} more." if len(changes) > shown else ""
        title = f"{'WORSE: ' if kind.is_worse else ''}{kind} ({len(changes)})"
        tables += [Table(title, COLUMNS, rows, left)] if rows else []
    return tables

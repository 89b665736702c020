"""A run as text for a terminal."""

import textwrap

from tabulate import tabulate

from conformance.records import Run
from conformance.reports import speed, tables
from conformance.reports.format import stamp, verdict

SHOWN_ITEMS = 20
WIDTH = 116


def render_table(table: tables.Table) -> str:
    """The table under its title, with its note."""
    widths = [WIDTH * 2 // 3] * len(table.columns) if len(table.columns) <= 3 else None
    text = tabulate(table.rows, headers=table.columns, tablefmt="simple", disable_numparse=True, maxcolwidths=widths)
    return "\n".join([table.title, text, *textwrap.wrap(table.note, WIDTH)])


def terminal_summary(run: Run) -> str:
    """Conformance, conventions, accuracy, speed and what is missing, then the verdict, which is thus read last."""
    shown = (
        tables.conformance_table(run),
        tables.answers_table(run),
        tables.accuracy_table(run),
        *speed.speed_tables(run),
        speed.growth_table(run),
        speed.self_comparison_table(run),
        tables.missing_table(run),
        tables.diagnosis_table(run),
    )
    parts = [render_table(table) for table in shown if table.rows]
    parts.append("\n".join([*_inverted(run), *_unexpected(run), verdict(run), *([stamp(run)] if stamp(run) else [])]))
    return "\n\n".join(parts)


def _inverted(run: Run) -> list[str]:
    """Masks that mean the opposite of the suite's, without a declaration: an accident as likely as a choice."""
    return [
        f"NOTE: {c.implementation} was seen to ignore keys where its mask is True, and was judged so. "
        'If that is no accident, declare CON-POLARITY "true-ignores".'
        for c in run.conventions
        if c.id == "CON-POLARITY" and c.declared is None and c.observed == "true-ignores"
    ]


def _unexpected(run: Run) -> list[str]:
    lines = [f"UNEXPECTED {item.requirement} on {item.implementation}: {item.outcome}" for item in run.unexpected]
    lines += [f"UNEXPECTED {c.id} on {c.implementation}: declared {c.declared}, observed {c.observed}" for c in run.disagreements]
    left = len(lines) - SHOWN_ITEMS
    return lines if left <= 0 else [*lines[:SHOWN_ITEMS], f"… and {left} more"]

"""A run as text for a terminal."""

import textwrap
from collections import Counter
from collections.abc import Iterator

from tabulate import tabulate

from conformance.judging.verdict import Outcome
from conformance.records import Run
from conformance.reports import speed, tables, tallies
from conformance.reports.causes import causes, listed, unexplained
from conformance.reports.format import stamp
from conformance.reports.verdict import lines

UNSOUND = (Outcome.ERROR, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE)
SHOWN_LINES = 20
SHOWN_UNRUN = 8
WIDTH = 116


def render_table(table: tables.Table) -> str:
    """The table under its title, with its note."""
    widths = [WIDTH * 2 // 3] * len(table.columns) if len(table.columns) <= 3 else None
    text = tabulate(table.rows, headers=table.columns, tablefmt="simple", disable_numparse=True, maxcolwidths=widths)
    return "\n".join([table.title, text, *textwrap.wrap(table.note, WIDTH)])


def terminal_summary(run: Run) -> str:
    """Conformance, conventions, accuracy, speed and what is missing; then what is unexpected, the diagnosis and the verdict,
    which are thus read last."""
    shown = (
        tables.conformance_table(run),
        *_dtypes(run),
        tables.answers_table(run),
        tables.accuracy_table(run),
        *speed.speed_tables(run),
        speed.growth_table(run),
        speed.self_comparison_table(run),
        tables.compiled_table(run),
        tables.missing_table(run),
        tables.left_table(run),
    )
    parts = [render_table(table) for table in shown if table.rows]
    parts.append("\n".join(_unrun(run)))
    parts.append("\n".join([*_unsound(run), *_unexpected(run)]))
    parts += [render_table(table) for table in (tables.diagnosis_table(run),) if table.rows]
    parts.append("\n".join(filter(None, (*lines(run), stamp(run)))))
    return "\n\n".join(filter(None, parts))


def _dtypes(run: Run) -> list[tables.Table]:
    """Where something is unexpected: otherwise the accuracy says enough of dtypes."""
    return [tables.dtypes_table(run)] if run.unexpected else []


def _unrun(run: Run) -> Iterator[str]:
    """What no problem reached, as many lines as a terminal is worth."""
    for one in run.unrun:
        yield f"What never ran of {one.implementation}"
        yield from one.lines[:SHOWN_UNRUN]
        if len(one.lines) > SHOWN_UNRUN:
            yield f"… and {len(one.lines) - SHOWN_UNRUN} more such lines, in summary.md"


def _unsound(run: Run) -> list[str]:
    """The user's own functions of which most requirements fail in a way that wrong layouts and frameworks show."""
    ran = Counter(item.implementation for item in run.items if item.outcome.was_run and ":" in item.implementation)
    unsound = Counter(item.implementation for item in run.unexpected if item.outcome in UNSOUND)
    return [
        f"NOTE: most results of {name} are {', '.join(UNSOUND)}: `attention-conformance smoke {name}`, with the options of this "
        "run, says whether the adapter is sound."
        for name, number in ran.items()
        if 2 * unsound[name] > number
    ]


def _unexpected(run: Run) -> list[str]:
    """A line for each outcome of each implementation, the rarest first: what happens once drowns easily. What has a cause in
    common is one line, whatever its outcomes."""
    found = causes(run)
    groups: dict[tuple[str, str], list[str]] = {}
    for item in unexplained(run, found):
        groups.setdefault((item.implementation, item.outcome), []).append(item.requirement)
    lines = [
        f"UNEXPECTED {outcome} on {name}: {listed(identifiers)}"
        for (name, outcome), identifiers in sorted(groups.items(), key=lambda group: len(group[1]))
    ]
    lines += [f"UNEXPECTED on {cause.implementation}, {cause.title}: {listed(cause.requirements)}" for cause in found]
    lines += [f"UNEXPECTED: {one.sentence}" for one in run.undeclared]
    lines += [f"UNEXPECTED {t.outcome} on {t.implementation}: timed output, {speed.timed(t)}" for t in run.wrong_timings]
    lines += [f"UNEXPECTED {c.id} on {c.implementation}: {tallies.observation(c)}" for c in run.unexpected_conventions]
    left = len(lines) - SHOWN_LINES
    return lines if left <= 0 else [*lines[:SHOWN_LINES], f"… and {left} more such lines"]

"""A run as a Markdown page."""

import re

from tabulate import tabulate

from conformance.records import Case, Item, Run
from conformance.reports import speed, tables, tallies
from conformance.reports.causes import causes, unexplained
from conformance.reports.format import provenance, stamp
from conformance.reports.shown import Choice
from conformance.reports.verdict import lines
from conformance.system.terminal_text import printable

SHOWN_CASES = 3
SHOWN_ITEMS = 50
# An underscore within a word is one; a colon before two slashes, and the point of www., make a link of what follows.
_SPECIAL = re.compile(r"[\\|*<>\[\]`~&$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.")
_FIRST = re.compile(r"^(?:[#+=-]+(?= |$)|-{3,}|\d+(?=[.)](?: |$)))")  # what makes a heading, a list or a rule of a line


def render_table(table: tables.Table) -> str:
    """The table with its note, without its title."""
    rows = [[escaped(cell) for cell in row] for row in table.rows]
    text = tabulate(rows, headers=[escaped(column) for column in table.columns], tablefmt="github", disable_numparse=True)
    return f"{text}\n\n{escaped(table.note)}" if table.note else text


def summary_markdown(run: Run) -> str:
    """All tables, and each unexpected result with the commands that reproduce it."""
    parts = ["# Conformance of attention implementations"]
    if stamp(run):
        parts.append(f"**{escaped(stamp(run))}**")
    parts.append("\n".join(f"- {escaped(line)}" for line in provenance(run)))
    result, *more = lines(run)
    parts += [f"**{escaped(result)}**", *map(escaped, more)]
    parts += _unexpected(run)
    for table in (
        tables.diagnosis_table(run),
        tables.conformance_table(run),
        tables.dtypes_table(run),
        tables.failures_table(run),
        *tables.conventions_tables(run),
        tables.accuracy_table(run),
        *speed.speed_tables(run),
        speed.growth_table(run),
        speed.self_comparison_table(run),
        tables.unrun_table(run),
        tables.routes_table(run),
        tables.left_table(run),
        tables.compiled_table(run),
        tables.missing_table(run),
    ):
        if table.rows:
            parts.append(f"## {escaped(table.title)}")
            parts.append(render_table(table))
    return "\n\n".join(parts) + "\n"


def _unexpected(run: Run) -> list[str]:
    if not run.surprises:
        return []
    grouped, choice = tallies.unexpected_by_item(run), Choice(run)
    found, items = causes(run), {(item.implementation, item.requirement): item for item in run.unexpected}
    parts = ["## Unexpected results"]
    for cause in found:
        first = items[cause.implementation, cause.requirements[0]]
        parts.append(f"### {escaped(cause.implementation)}, {escaped(cause.title)}: {escaped(', '.join(cause.requirements))}")
        parts += _item(run, first, choice.of(grouped.get((first.requirement, first.implementation), [])), level=4)
    left = unexplained(run, found)
    for item in left[:SHOWN_ITEMS]:
        parts += _item(run, item, choice.of(grouped.get((item.requirement, item.implementation), [])))
    if len(left) > SHOWN_ITEMS:
        parts.append(f"… and {len(left) - SHOWN_ITEMS} more, listed under Failures.")
    for one in run.undeclared:
        parts.append(f"### {escaped(one.area)} on {escaped(one.implementation)}: not judged at all")
        parts.append(escaped(one.sentence))
    for timing in run.wrong_timings:
        parts.append(f"### {escaped(speed.timed(timing))} on {escaped(timing.implementation)}: {timing.outcome} when timed")
        parts.append(escaped(timing.message))
    for convention in run.unexpected_conventions:
        parts.append(
            f"### {escaped(convention.id)} on {escaped(convention.implementation)}: {escaped(tallies.observation(convention))}"
        )
        parts.append(escaped(convention.message))
    return parts


def _item(run: Run, item: Item, cases: list[Case], level: int = 3) -> list[str]:
    parts = [f"{'#' * level} {escaped(item.requirement)} on {escaped(item.implementation)}: {item.outcome}"]
    parts.append(escaped(run.requirements[item.requirement].sentence))
    if item.reason:
        parts.append(escaped(item.reason))
    shown = cases[: max(SHOWN_CASES, len({case.dtype for case in cases}))]
    parts += [_code_block(_case_lines(case)) for case in shown]
    if len(cases) > len(shown):
        parts.append(f"… and {len(cases) - len(shown)} more cases.")
    return parts


def _case_lines(case: Case) -> list[str]:
    route = "" if case.route == "native" else f", asked by {case.route}"
    lines = [f"{case.stratum} case {case.id}: {case.outcome}{route}", case.text, case.message, case.reason, case.repro]
    return [line for line in lines if line]


def _code_block(lines: list[str]) -> str:
    fence = "```"
    text = printable("\n".join(lines))
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def escaped(text: str) -> str:
    """Text that stays itself in Markdown, in one line, table cells included."""
    text = _SPECIAL.sub(r"\\\g<0>", " ".join(printable(text).split()))
    first = _FIRST.match(text)
    if first is None:
        return text
    digits = first[0].isdigit()
    return f"{first[0]}\\{text[first.end() :]}" if digits else f"\\{text}"

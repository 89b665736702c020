"""The commands that read record files, and the GitHub Action's. Each imports what it needs when it is called."""

from pathlib import Path
from typing import Any

import click

from conformance.system.exit_codes import ExitCode
from conformance.system.terminal_text import say
from conformance.system.user_files import demand_name, demand_path


class UserPath(click.Path):
    """A path that a file may have, there or not; any other is refused before anything is done."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        return Path(str(super().convert(demand_path(value), parameter, context)))


class ImplementationName(click.ParamType):
    """A name that records can hold, of something that is there or not."""

    name = "name"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        return demand_name(str(value))


RECORDS = UserPath()


@click.command()
@click.argument("records", type=RECORDS)
@click.option("--out", type=RECORDS, metavar="FILE", help="the page (default: report.html beside the records)")
@click.option("--partial", is_flag=True, help="accept the records of a run that did not come to its end")
def page(records: Path, out: Path | None, partial: bool) -> None:
    """Make the report page of a run, one HTML file that needs nothing else, from its records."""
    from conformance.page import MISSING, plots_available, write_page
    from conformance.records import read_records
    from conformance.system.files import demand_other

    run = read_records(records, partial)
    out = out or records.with_name("report.html")
    demand_other(out, [records])
    say(f"wrote {write_page(run, out)}")
    if not plots_available():
        say(MISSING, error=True)


@click.command()
@click.argument("files", nargs=-1, required=True, type=RECORDS)
@click.option("--out", required=True, type=RECORDS, metavar="FILE", help="the records of the whole run")
def merge(files: tuple[Path, ...], out: Path) -> ExitCode:
    """Join the records of all shards of a run, made with --shard, print its tables, and end as the whole run would have."""
    from conformance.records import merge_files
    from conformance.reports import terminal_summary

    run = merge_files(files, out)
    say(terminal_summary(run))
    say(f"wrote {out}")
    return ExitCode(run.exit_code or ExitCode.AS_EXPECTED)


@click.command()
@click.argument("base", type=RECORDS)
@click.argument("new", type=RECORDS)
@click.option("--format", "form", type=click.Choice(("text", "markdown", "json")), default="text", show_default=True)
def diff(base: Path, new: Path, form: str) -> ExitCode:
    """Compare the records of two runs: what fails, is fixed, less accurate or slower in NEW than in BASE.

    Ends with 1 where something is worse: a requirement that newly fails, fails by a worse outcome, in more dtypes or in more
    golden or designed cases, unless that is stated as known; one that is newly unexpected; one that passed and is no longer
    run; a convention no longer as expected; the median or largest r of golden and designed cases greater by more than 25 %
    (below r = 0.01 nothing counts); a timing that is slower beyond both intervals, or that fails. Ends with 0 otherwise. What
    was added or removed is listed, and is never worse.
    """
    from conformance.comparison import compare
    from conformance.comparison.rendering import FORMATS
    from conformance.records import read_records

    runs = read_records(base), read_records(new)
    comparison = compare(*runs)
    say(FORMATS[form](comparison, *runs))
    return ExitCode.UNEXPECTED if comparison.worse else ExitCode.AS_EXPECTED


@click.command()
@click.argument("files", nargs=-1, required=True, type=RECORDS)
@click.option("--format", "form", type=click.Choice(("text", "markdown")), default="text", show_default=True)
@click.option("--implementation", "patterns", multiple=True, metavar="PATTERN", help="only those of that name; may be repeated")
@click.option("--plot", type=RECORDS, metavar="FILE.svg", help="draw it, too; needs the extra `report`")
def history(files: tuple[Path, ...], form: str, patterns: tuple[str, ...], plot: Path | None) -> None:
    """Show how implementations fared in many runs, by date and version of their framework."""
    from conformance.commands import history as command

    say(command.history(files, form, patterns, plot))


@click.command()
@click.argument("records", type=RECORDS)
@click.option("--root", type=RECORDS, default=".", show_default=True, metavar="FOLDER", help="of the repository")
def annotate(records: Path, root: Path) -> None:
    """Print what is unexpected as annotations of GitHub's workflows, at the lines of the implementations.

    To be called in the folder in which the run took place: sources are named from there.
    """
    from conformance.ci import annotations
    from conformance.records import read_records

    for line in annotations(read_records(records), Path.cwd(), root):
        say(line, command=True)


@click.command()
@click.argument("records", type=RECORDS)
@click.option("--out", required=True, type=RECORDS, metavar="PATH", help="a file, or a folder that gets all badges")
@click.option("--implementation", metavar="NAME", help="the one to write, if there are several")
@click.option("--dtype", metavar="DTYPE", help="the badge of a dtype: its cases, its profile, its largest r")
def badge(records: Path, out: Path, implementation: str | None, dtype: str | None) -> None:
    """Write badges, as JSON for the endpoint badge of shields.io.

    To a file that ends in .json, the badge of one implementation; to a folder, those of all implementations and dtypes.
    """
    from conformance.ci.badge import write_asked
    from conformance.records import read_records

    for path in write_asked(read_records(records), out, implementation, dtype, [records]):
        say(f"wrote {path}")


@click.command(hidden=True)
def action() -> ExitCode:
    """What the GitHub Action runs: its inputs are environment variables, CONFORMANCE_IMPLEMENTATION and so on."""
    import os

    from conformance.ci.action import act

    return act(os.environ)


COMMANDS: tuple[click.Command, ...] = (page, merge, diff, history, annotate, badge, action)

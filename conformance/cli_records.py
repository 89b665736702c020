"""The commands that read record files, part of ``attention-conformance``. Each imports what it needs when it is called."""

from pathlib import Path

import click

from conformance.exit_codes import ExitCode

RECORDS = click.Path(path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=RECORDS)
@click.option("--out", required=True, type=RECORDS, metavar="FILE", help="the records of the whole run")
def merge(files: tuple[Path, ...], out: Path) -> ExitCode:
    """Join the records of all shards of a run, made with --shard, print its tables, and end as the whole run would have."""
    from conformance.records import merge_files
    from conformance.reports import terminal_summary

    run = merge_files(files, out)
    click.echo(terminal_summary(run))
    click.echo(f"wrote {out}")
    return ExitCode(run.exit_code or ExitCode.AS_EXPECTED)


@click.command()
@click.argument("base", type=RECORDS)
@click.argument("new", type=RECORDS)
@click.option("--format", "form", type=click.Choice(("text", "markdown", "json")), default="text", show_default=True)
def diff(base: Path, new: Path, form: str) -> ExitCode:
    """Compare the records of two runs: what fails, is mended, less accurate or slower in NEW than in BASE.

    Ends with 1 where something is worse: a requirement that newly fails, fails by a worse outcome or in more golden or designed
    cases, unless that is stated as known; one that is newly unexpected; one that passed and is no longer run; a convention no
    longer as declared; the median or largest r of golden and designed cases greater by more than 25 % (below r = 0.01 nothing
    counts); a timing that is slower beyond both intervals, or that fails. Ends with 0 otherwise. What was added or removed is
    listed, and is never worse.
    """
    from conformance.comparison import compare
    from conformance.comparison.rendering import FORMATS
    from conformance.records import read_records

    runs = read_records(base), read_records(new)
    comparison = compare(*runs)
    click.echo(FORMATS[form](comparison, *runs))
    return ExitCode.UNEXPECTED if comparison.worse else ExitCode.AS_EXPECTED


@click.command()
@click.argument("files", nargs=-1, required=True, type=RECORDS)
@click.option("--format", "form", type=click.Choice(("text", "markdown")), default="text", show_default=True)
@click.option("--implementation", "patterns", multiple=True, metavar="PATTERN", help="only those of that name; may be repeated")
@click.option("--plot", type=RECORDS, metavar="FILE.svg", help="draw it, too; needs the extra `report`")
def history(files: tuple[Path, ...], form: str, patterns: tuple[str, ...], plot: Path | None) -> None:
    """Show how implementations fared in many runs, by date and version of their framework."""
    from conformance.history import command

    click.echo(command.history(files, form, patterns, plot))


COMMANDS: tuple[click.Command, ...] = (merge, diff, history)

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


COMMANDS: tuple[click.Command, ...] = (merge,)

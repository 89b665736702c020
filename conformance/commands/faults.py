"""``attention-conformance faults``: the kill matrix, the comparison with other rules, the implementations that are right,
and how good the diagnosis is."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from conformance.diagnosis import measure
from conformance.errors import UsageError
from conformance.evaluation import compare as comparison
from conformance.evaluation import false_positives, kill_tables, kills
from conformance.specification.coverage import coverage, sentences, table
from conformance.system import files
from conformance.system.exit_codes import ExitCode, exit_code
from conformance.system.terminal_text import say

ALL = "*"
_Result = TypeVar("_Result")


def sizes_asked() -> str:
    """Which sizes the problems of the full tier have, for the terminal; docs/sizes.md has all of it."""
    parts: list[str] = []
    for operation in coverage():
        parts += [f"Sizes that are asked ({operation}):", table(operation), " ".join(sentences(operation))]
    return "\n\n".join(["", *parts])


def kill(only: str, matrix: bool, out: Path | None, processes: int | None = None, thin: bool = False) -> ExitCode:
    """Prints the kill matrix of the faults that match ``only``, and writes ``faults.md`` and ``faults.json`` to ``out``; with
    ``thin`` which of them a single case catches.

    Raises UsageError where no fault matches.
    """
    faults = kills.chosen(only)
    pairs = sum(len(fault.dtypes) for fault in faults)
    found = with_bar("faults", pairs, lambda progress: kills.run(faults, matrix, processes, progress, thin))
    say(kill_tables.render(found))
    if only == ALL:
        say(sizes_asked())
    if out is not None:
        write(out / "faults.md", f"# Faults\n\n{kill_tables.render(found, 'github')}\n")
        write(out / "faults.json", kill_tables.as_json(found))
    return ExitCode.AS_EXPECTED if found.in_order else ExitCode.UNEXPECTED


def compare(only: str, out: Path | None, processes: int | None = None) -> ExitCode:
    """Prints how faults that match ``only``, and correct outputs, fare by the rules of other suites; writes ``compared.md``."""
    jobs = comparison.jobs_for(kills.chosen(only))
    found = with_bar("faults", sum(map(comparison.size, jobs)), lambda progress: comparison.run(jobs, processes, progress))
    say(comparison.render(found))
    if out is not None:
        write(out / "compared.md", f"# Rules compared\n\n{comparison.render(found, 'github')}\n")
    return ExitCode.AS_EXPECTED


def correct(seeds: int, out: Path | None, processes: int | None = None) -> ExitCode:
    """Prints how near implementations that are right come to their budgets, and every false positive; writes ``correct.md``."""
    found = with_bar("seeds", seeds, lambda progress: false_positives.run(seeds, processes=processes, progress=progress))
    say(false_positives.render(found, seeds))
    if out is not None:
        write(out / "correct.md", f"# Implementations that are right\n\n{false_positives.render(found, seeds, 'github')}\n")
    return exit_code(unexpected=len(found.found), enough_cases=found.cases > 0)


def diagnose(only: str, out: Path | None, processes: int | None = None) -> ExitCode:
    """Prints what the diagnosis makes of the faults that match ``only``; writes ``diagnosed.md`` to ``out``.

    Raises UsageError where no fault matches.
    """
    jobs = measure.jobs_for(kills.chosen(only))
    measured = with_bar("diagnoses", len(jobs), lambda progress: measure.diagnose_all(jobs, processes, progress))
    say(measure.report(measured))
    if out is not None:
        write(out / "diagnosed.md", f"# Faults diagnosed\n\n{measure.report(measured, 'github')}\n")
    return ExitCode.AS_EXPECTED if measured.in_order else ExitCode.UNEXPECTED


def with_bar(what: str, total: int, work: Callable[[Callable[[int], None]], _Result]) -> _Result:
    """The result of ``work``, which is given a function to call with how much more is done, for a progress bar to move."""
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        return work(lambda done: bar.advance(task, done))


def write(path: Path, text: str) -> None:
    """Writes the file, with its folder, and says so. Raises UsageError where that cannot be done."""
    try:
        files.write(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
    say(f"wrote {path}")

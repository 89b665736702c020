"""``attention-conformance faults --diagnose``: how good the diagnosis is."""

from pathlib import Path

from conformance.commands.faults import with_bar, write
from conformance.diagnosis.measure import diagnose_all, jobs_for, report
from conformance.evaluation.kills import chosen
from conformance.system.exit_codes import ExitCode
from conformance.system.terminal_text import say


def diagnose(only: str, out: Path | None, processes: int | None = None) -> ExitCode:
    """Prints what the diagnosis makes of the faults that match ``only``; writes ``diagnosed.md`` to ``out``.

    Raises UsageError where no fault matches.
    """
    jobs = jobs_for(chosen(only))
    measured = with_bar("diagnoses", len(jobs), lambda progress: diagnose_all(jobs, processes, progress))
    say(report(measured))
    if out is not None:
        write(out / "diagnosed.md", f"# Faults diagnosed\n\n{report(measured, 'github')}\n")
    return ExitCode.AS_EXPECTED if measured.in_order else ExitCode.UNEXPECTED

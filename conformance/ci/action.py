"""What the GitHub Action does: run or merge, then show what came of it in GitHub's own places."""

import glob
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.ci.annotations import annotations, of_comparison, workflow_command
from conformance.ci.badge import write_badges
from conformance.ci.inputs import Inputs
from conformance.comparison import Comparison, compare
from conformance.comparison.rendering import as_json, as_markdown
from conformance.errors import UsageError, cut
from conformance.records import Run, merge_files, read_records
from conformance.reports import summary_markdown
from conformance.run.report_files import write_reports
from conformance.system import files
from conformance.system.exit_codes import ExitCode
from conformance.system.terminal_text import say

SUMMARY_LIMIT = 1_000_000  # bytes; GitHub refuses a summary of more than 1 MiB, and shows none of it then
CUT = "\n\n**The page was cut here; the artifact has all of it, as summary.md.**\n"


def act(environment: Mapping[str, str]) -> ExitCode:
    """The code with which the step ends: 2 and 3 as a run does, 1 for what is unexpected or worse than the baseline.

    A mistake is annotated, beside being told. A baseline with which the run cannot be compared gives 2 only where the run itself
    was as expected.
    """
    try:
        return _act(Inputs.of(environment), environment)
    except UsageError as error:
        _tell(str(error))
        _output(environment, {"exit-code": str(int(ExitCode.USAGE_ERROR))})
        return ExitCode.USAGE_ERROR


def _act(inputs: Inputs, environment: Mapping[str, str]) -> ExitCode:
    base = _baseline(inputs.baseline) if inputs.baseline else None  # before the run, which may write over it
    records = inputs.reports / "records.jsonl"
    code = _merge(inputs, records) if inputs.merge else _run(inputs, records)
    if not records.exists():
        _tell("The run ended before it recorded anything.")
        _output(environment, {"exit-code": str(int(ExitCode.INCONCLUSIVE))})
        return ExitCode.INCONCLUSIVE
    run = read_records(records, partial=True)
    _show(run, inputs.reports, environment)
    compared = _compared(base, run, inputs.reports, environment) if base else Compared()
    worse = "" if compared.worse is None else str(compared.worse)
    if code is ExitCode.AS_EXPECTED:
        code = compared.code
    _output(
        environment,
        {"exit-code": str(int(code)), "records": records.as_posix(), "reports": inputs.reports.as_posix(), "worse": worse},
    )
    return code


@dataclass(frozen=True)
class Compared:
    """What came of the baseline: ``code`` counts where the run was as expected; ``worse`` is None where nothing was compared."""

    code: ExitCode = ExitCode.AS_EXPECTED
    worse: int | None = None


def _baseline(path: Path) -> Run | UsageError:
    """What is wrong with it is told after the run, whose results are worth having all the same."""
    try:
        return read_records(path)
    except UsageError as error:
        return error


def _compared(base: Run | UsageError, run: Run, reports: Path, environment: Mapping[str, str]) -> Compared:
    try:
        if isinstance(base, UsageError):
            raise base
        comparison = _compare(base, run, reports, environment)
    except UsageError as error:
        _tell(f"The run is not compared with the baseline. {error}")
        return Compared(ExitCode.USAGE_ERROR)
    if comparison is None:
        return Compared()
    return Compared(ExitCode.UNEXPECTED if comparison.worse else ExitCode.AS_EXPECTED, len(comparison.worse))


def _run(inputs: Inputs, records: Path) -> ExitCode:
    """In a process of its own, which may die, and whose output is no workflow command, whatever the implementation prints.

    Raises UsageError with what the run says of a mistake.
    """
    files.demand_free(records)
    records.unlink(missing_ok=True)  # an older file would be shown as this run, should it die before its first record
    token, said = secrets.token_hex(16), ""
    say(f"::stop-commands::{token}", command=True)
    command = [sys.executable, "-P", "-m", "conformance", "run", *inputs.words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                say(line.removesuffix("\n"), error=True)
                said = line.strip() or said
        except KeyboardInterrupt:
            process.terminate()  # it finishes the items at hand, and keeps what it recorded
            process.wait()
            raise
    say(f"::{token}::", command=True)
    if process.returncode == ExitCode.USAGE_ERROR:
        raise UsageError(said or "The run could not be started.")
    known = process.returncode in {int(code) for code in ExitCode}
    return ExitCode(process.returncode) if known else ExitCode.INCONCLUSIVE


def _merge(inputs: Inputs, records: Path) -> ExitCode:
    shards = sorted({Path(name) for pattern in inputs.merge for name in glob.glob(pattern, recursive=True)})
    if not shards:
        raise UsageError(f"There are no records to merge: nothing is called {cut(', '.join(inputs.merge))}.")
    run = merge_files(shards, records)
    write_reports(run, inputs.reports, shards)
    return ExitCode(run.exit_code or ExitCode.AS_EXPECTED)


def _show(run: Run, reports: Path, environment: Mapping[str, str]) -> None:
    """The tables in the job summary, unexpected results at their lines, badges in the reports."""
    _summarise(environment, summary_markdown(run))
    root = Path(environment.get("GITHUB_WORKSPACE") or ".")
    for line in annotations(run, Path.cwd(), root):
        say(line, command=True)
    write_badges(run, reports / "badges")


def _compare(base: Run, run: Run, reports: Path, environment: Mapping[str, str]) -> Comparison | None:
    """Written into the reports too; None for an unfinished run, of which what is left out would count as removed."""
    if not run.is_complete:
        _tell("The run did not come to its end, so it is not compared with the baseline.")
        return None
    comparison = compare(base, run)
    page = as_markdown(comparison, base, run)
    try:
        files.write_all({reports / "comparison.md": page, reports / "comparison.json": as_json(comparison, base, run) + "\n"})
    except OSError as error:
        raise UsageError(f"The comparison cannot be written to {reports}: {error.strerror}.") from None
    _summarise(environment, page)
    for line in of_comparison(comparison):
        say(line, command=True)
    say(comparison.verdict)
    return comparison


def _tell(error: str) -> None:
    say(workflow_command("error", error, title="attention-conformance"), command=True)


def _summarise(environment: Mapping[str, str], page: str) -> None:
    """Appends to the job summary, as much as GitHub takes."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    content = page.encode()
    room = SUMMARY_LIMIT - (Path(path).stat().st_size if Path(path).exists() else 0)
    if len(content) > room:
        kept = content[: max(0, room - len(CUT.encode()))]
        content = kept[: kept.rfind(b"\n") + 1] + CUT.encode()
    with open(path, "ab") as file:
        file.write(content + b"\n")


def _output(environment: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Outputs of the step; ``Inputs`` takes care that none has several lines."""
    path = environment.get("GITHUB_OUTPUT")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())

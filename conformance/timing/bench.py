"""``attention-conformance bench``: contests of implementations, their records and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from conformance import __version__, reports
from conformance.adapter.known import Known
from conformance.errors import UsageError, quoted
from conformance.expectations import builtin_expectations
from conformance.numerics.dtypes import DTYPES
from conformance.records import (
    SCHEMA_VERSION,
    Growth,
    Header,
    Line,
    Passes,
    RecordWriter,
    Run,
    SelfComparison,
    Timing,
    command_line,
    current_environment,
)
from conformance.reports.terminal import render_table
from conformance.specification import SPEC_VERSION, requirements
from conformance.system.exit_codes import ExitCode, exit_code
from conformance.system.interruption import FirstInterrupt
from conformance.system.terminal_text import cleaned
from conformance.timing.campaign import Baselines, Plan, hold
from conformance.timing.machine import is_busy, load
from conformance.timing.shapes import suites
from conformance.timing.worker import Roster, Worker

LONGEST_LIMIT = 86400.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for. ``specs`` and ``words`` are how another process finds ``implementations``."""

    implementations: Sequence[Known]
    specs: tuple[str, ...]
    words: dict[str, str | None]
    suites: tuple[str, ...]
    passes: tuple[Passes, ...]
    dtypes: tuple[str, ...]
    features: tuple[str, ...]
    baseline: str | None
    growth: bool
    threads: int
    seed: int
    time_limit: float
    records: Path | None
    details: bool

    def plan(self) -> tuple[Plan, Roster]:
        """Raises UsageError for what cannot be measured."""
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise UsageError(f"Unknown dtype {quoted(dtype)}: there are {', '.join(DTYPES)}.")
        if not 1 <= self.time_limit <= LONGEST_LIMIT:
            raise UsageError(f"--time-limit {self.time_limit:g} is no number of seconds from 1 to {LONGEST_LIMIT:g}.")
        here = [i for i in self.implementations if i.missing is None]
        if not here:
            reasons = sorted({str(i.missing) for i in self.implementations})
            raise UsageError(f"Nothing of what was named can run here: {' '.join(reasons)}")
        roster = Roster(self.specs, tuple(self.words.items()))
        known = Baselines(here)
        if self.baseline is not None and self.baseline not in known:
            raise UsageError(
                f"Unknown baseline {quoted(self.baseline)}: name one that is built in, or that --implementation names."
            )
        plan = Plan(
            implementations=here, known=known, suites=suites(self.suites), passes=self.passes, dtypes=self.dtypes,
            features=self.features, baseline=self.baseline, growth=self.growth,
        )  # fmt: skip
        return plan, roster


def run_bench(console: Console, options: Options) -> ExitCode:
    """Measures, writes the records as they come, and prints the tables. Raises UsageError for what cannot be measured.

    After Ctrl-C the contest at hand is finished; what was measured is shown and recorded all the same.
    """
    plan, roster = options.plan()
    tasks = plan.tasks()
    if is_busy():
        _say(console, f"Warning: the machine has, or just had, other work (load average {load()}), which spoils times.")
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    _say(console, f"{len(tasks)} contests, {threads} for each implementation.")
    header = _header(plan.taking_part(), options.seed)
    writer = RecordWriter(options.records) if options.records else None
    if writer:
        writer.write(header)
    lines: list[Line] = []
    expectations = builtin_expectations(requirements())
    worker = Worker(roster, threads=options.threads, seed=options.seed, time_limit=options.time_limit)
    interrupt = FirstInterrupt("the contest at hand is finished", at_once=worker.kill)
    interrupt.install()
    try:
        with worker, _bar() as bar:
            count = bar.add_task("contests", total=len(tasks))
            for line in hold(
                tasks, worker, expectations, stopped=lambda: interrupt.asked, progress=lambda task: bar.update(count, advance=1)
            ):  # fmt: skip
                lines.append(line)
                if writer:
                    writer.write(line)
    finally:
        interrupt.remove()
    code = verdict(lines, interrupted=interrupt.asked)
    if writer:
        code = ExitCode(writer.finish(code, interrupted=interrupt.asked).exit_code)
    _say(console, report(Run.of(header, lines), details=options.details))
    _say(console, f"\nThreads: {options.threads}. Load average: {load()}." + (" Interrupted." if interrupt.asked else ""))
    return code


def verdict(lines: Sequence[Line], *, interrupted: bool) -> ExitCode:
    """INCONCLUSIVE where it was interrupted, nothing has a time, or a run against itself did not give 1; else UNEXPECTED where an
    output is wrong, or an implementation ended or hung its process, and that is not known."""
    timings = [line for line in lines if isinstance(line, Timing)]
    comparisons = [line for line in lines if isinstance(line, SelfComparison)]
    if interrupted or (comparisons and not comparisons[-1].is_sound):  # one that failed was held again
        return ExitCode.INCONCLUSIVE
    wrong = [line for line in lines if isinstance(line, Timing | Growth) and line.status == "unexpected"]
    return exit_code(unexpected=len(wrong), enough_cases=any(timing.median_seconds is not None for timing in timings))


def report(run: Run, *, details: bool = False) -> str:
    """The tables, then what has no time and why, last whether the ratios can be trusted."""
    tables = [*(reports.timing_tables(run) if details else reports.speed_tables(run)), reports.growth_table(run)]
    parts = [render_table(table) for table in tables if table.rows]
    parts += ["\n".join(_without_times(run))]
    parts += [render_table(table) for table in (reports.self_comparison_table(run),) if table.rows]
    return "\n\n".join(filter(None, parts))


def _without_times(run: Run) -> list[str]:
    """A line for each implementation and reason."""
    reasons: dict[tuple[str, str], str] = {}
    for timing in run.timings:
        if timing.median_seconds is None:
            reasons.setdefault((timing.implementation, timing.outcome), f"{timing.suite} {timing.shape}: {timing.message}")
    return [f"{outcome} {name}: {reason}" for (name, outcome), reason in reasons.items()]


def _header(implementations: Sequence[Known], seed: int) -> Header:
    return Header(
        schema=SCHEMA_VERSION, suite=__version__, specification=SPEC_VERSION, started=datetime.now(UTC), seed=seed, tier="custom",
        command=command_line(), environment=current_environment(),
        implementations=tuple(one.entry for one in implementations), requirements=(),
    )  # fmt: skip


def _bar() -> Progress:
    """Moves once a second: more often, it would be other work that the machine does."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), refresh_per_second=1, transient=True)


def _say(console: Console, text: str) -> None:
    console.print(cleaned(text), markup=False, highlight=False, soft_wrap=True)

"""Writes the records of a run as results arrive, and reports at the end."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from conformance import __version__
from conformance.adapter.known import Known
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import (
    CONFORMANCE_TIERS,
    AreaCoverage,
    Case,
    ConventionResult,
    Coverages,
    DiagnosisRecord,
    Item,
    RecordWriter,
    Share,
    Timing,
    read_records,
    too_little,
    undeclared,
)
from conformance.run.session.diagnoses import Failures
from conformance.run.session.header import header
from conformance.run.session.interruption import Interruption, stop
from conformance.run.session.items import SELECTED, asked_by
from conformance.run.session.loop import RECORDS, UNSOUND
from conformance.run.session.messages import Told
from conformance.run.session.options import Settings
from conformance.run.session.progress import Progress
from conformance.run.workers.afterwards import FULL, QUICK, ask, is_wanted, unrun
from conformance.specification import SPEC_VERSION, requirements
from conformance.system.exit_codes import FROM_PYTEST, ExitCode, exit_code
from conformance.system.terminal_text import cleaned, say

_NODE = re.compile(r"\[(ATT-[A-Z]+-\d{3}|CON(-[A-Z]+)+)-.+\]$")


class Recorder:
    """pytest hooks of the process that the user started."""

    def __init__(
        self, settings: Settings, implementations: Sequence[Known], config: pytest.Config, interruption: Interruption
    ) -> None:
        self.settings = settings
        self.implementations = implementations
        self.config = config
        self._interruption = interruption
        self.writer = RecordWriter(settings.records) if settings.records else None
        self.progress = Progress()
        self.items = 0
        self.judged = 0  # items of which something ran
        self._coverages: Coverages = {}
        self._shares: dict[str, Share] = {}
        self._passing: set[str] = set()  # implementations of which a requirement passed
        self.unexpected = 0
        self._failed_otherwise = 0
        self._failures = Failures()
        self._told = Told()
        self._diagnoses: list[DiagnosisRecord] = []
        self._loading: threading.Thread | None = None
        self._unsound: dict[str, str] = {}  # implementations that cannot be judged, and why

    # Beginning

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if self.writer and not self._only_collects:
            with _usage_errors():
                self.writer.demand_writable()

    @property
    def _only_collects(self) -> bool:
        return bool(self.config.option.collectonly)

    def _begin(self, items: Sequence[pytest.Item]) -> None:
        """The header is written as soon as there is something to run, so that other runs leave an earlier file alone."""
        self.progress.start(len(items))
        if items and not self._only_collects:
            self._write_header(items)
            if self.settings.reports:  # what they need is loaded meanwhile: this process has little else to do
                self._loading = threading.Thread(target=_load_reports)
                self._loading.start()

    def _write_header(self, items: Sequence[pytest.Item] = ()) -> None:
        if self.writer and not self.writer.begun:
            with _usage_errors():
                pairs = [(ask.identifier, ask.implementation) for ask in map(asked_by, items) if ask]
                self.writer.write(header(self.settings, self.implementations, self.config.option.keyword, pairs))

    def pytest_report_header(self) -> list[str]:
        effort = self.settings.effort
        names = ", ".join(one.name for one in self.implementations)
        stamp = "" if self.settings.tier in CONFORMANCE_TIERS else " – not a conformance result"
        tier = f"tier {self.settings.tier}{f', shard {self.settings.shard}' if str(self.settings.shard) else ''}"
        suite = f"attention-conformance {__version__}, specification {SPEC_VERSION}, {tier}{stamp}"
        lines = [f"{suite}, {effort.examples} examples a requirement, seed {effort.seed}", f"implementations: {names}"]
        if self.config.option.expectations:
            lines += filter(None, [self.settings.expectations.inapplicable(one.name for one in self.implementations)])
        return lines

    # Results

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letters for our items: the progress bar stands for them."""
        if not _NODE.search(report.nodeid) or (report.when != "call" and not report.skipped):
            return None
        if hasattr(report, "wasxfail"):
            return "xfailed", "", ""
        return {"passed": "passed", "skipped": "skipped"}.get(report.outcome, "failed"), "", ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            records: Any = dict(report.user_properties).get(RECORDS, ())
            for record in records:
                self._record(record)
            self._shorten(report, records)
            self._note_unsound(dict(report.user_properties).get(UNSOUND))
            # whatever else becomes of a requirement or a convention, it leaves a record
            silent = not any(isinstance(record, Item | ConventionResult) for record in records)
            self._failed_otherwise += silent and (report.failed or "[ATT-" in report.nodeid)
            self.progress.advance(report.failed or any(isinstance(r, Item) and r.status == "unexpected" for r in records))
        elif report.failed:
            self._failed_otherwise += 1
        elif report.when == "setup" and report.skipped:
            self.progress.advance(False)

    def _note_unsound(self, told: Any) -> None:
        """An adapter that cannot be judged; where there is no other, the run ends."""
        if told is None:
            return
        name, sentence = told
        self._unsound[name] = sentence
        if self._nothing_is_sound:
            stop(self.config, "the adapter is not sound")

    @property
    def _nothing_is_sound(self) -> bool:
        return bool(self._unsound) and {one.name for one in self.implementations if not one.missing} <= set(self._unsound)

    def _shorten(self, report: pytest.TestReport, records: list[Any]) -> None:
        cases = [record for record in records if isinstance(record, Case) and record.status == "unexpected"]
        shorter = self._told.shorter(cases) if report.failed and cases else ""
        if shorter:
            report.longrepr = cleaned(shorter)

    def _record(self, record: Any) -> None:
        if self.writer:
            with _usage_errors():  # a full disk
                self.writer.write(record)
        if isinstance(record, Case | Item):
            self._failures.note(record)
        if isinstance(record, Item | ConventionResult):
            self.unexpected += record.status == "unexpected"
        if isinstance(record, Item):
            self.items += 1
            self.judged += record.outcome.was_run
            place = record.implementation, requirements()[record.requirement].area
            self._coverages.setdefault(place, AreaCoverage()).note(record)
            self._shares.setdefault(record.implementation, Share()).add(record)
            if record.outcome is Outcome.PASS:
                self._passing.add(record.implementation)

    # End

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Concludes before the terminal's summary is made, which reads the records."""
        self.progress.stop()
        if self._loading is not None:
            self._loading.join()
        self._session = session
        session.exitstatus = self._conclude(int(exitstatus))
        result = yield
        return result

    def _conclude(self, status: int) -> int:
        """The exit code by the one table; timing, if asked for, and the footer come first."""
        if status == pytest.ExitCode.TESTS_FAILED and self._session.shouldfail and self.progress.done < self.progress.total:
            status = int(pytest.ExitCode.INTERRUPTED)  # as pytest-xdist calls it where --maxfail ends a run
        code = FROM_PYTEST.get(status, ExitCode.INCONCLUSIVE)
        if self._only_collects:
            return int(code)
        if self._nothing_is_sound:
            return int(ExitCode.USAGE_ERROR)
        if self.settings.diagnosis and status in (0, 1):
            self._diagnose()
        if status in (0, 1):
            self._find_unrun()
        # of a run in shards, the first alone measures: several machines would give several speeds
        if self.settings.timing and self.settings.shard.is_first and self.writer and status in (0, 1):
            self._measure()
        if self._interruption.asked:
            code = ExitCode.INCONCLUSIVE
        elif status == pytest.ExitCode.NO_TESTS_COLLECTED and self._has_nothing_to_do:
            code = ExitCode.AS_EXPECTED
            self._write_header()  # it is one of the shards that are merged
        elif code in (ExitCode.AS_EXPECTED, ExitCode.UNEXPECTED):
            # whether enough was judged is seen when the shards are merged
            enough = self._is_part or (self.judged > 0 and not too_little(self._shares))
            unexpected = self.unexpected + self._failed_otherwise + self._undeclared
            code = exit_code(unexpected=unexpected, enough_cases=enough)
        if self.writer and self.writer.begun and code is not ExitCode.USAGE_ERROR:
            undeclared = 0 if code is ExitCode.INCONCLUSIVE else self._undeclared
            interrupted = self._interruption.asked or status == pytest.ExitCode.INTERRUPTED
            with _usage_errors():
                return self.writer.finish(code, undeclared=undeclared, interrupted=interrupted).exit_code
        return int(code)

    @property
    def _undeclared(self) -> int:
        """How many areas were not offered without a declaration; of a run of all requirements alone, as ``Run.undeclared``."""
        asked = [(implementation.operation, implementation.entry.outputs) for implementation in self.implementations]
        expected = sum(requirement.is_asked_of(*one) for one in asked for requirement in requirements().values())
        if self._is_part or self.config.option.keyword or self.items < expected:
            return 0
        return len(undeclared(self._coverages, {one.name: one.entry for one in self.implementations}))

    @property
    def _is_part(self) -> bool:
        return self.settings.shard.count > 1

    @property
    def _selected(self) -> int:
        return self.config.stash.get(SELECTED, 0)

    @property
    def _has_nothing_to_do(self) -> bool:
        """Whether all that was selected falls to other shards."""
        return self._is_part and self._selected > 0

    def _diagnose(self) -> None:
        specs, given = {one.name: one.spec for one in self.implementations}, self.settings.given
        asked = self._failures.diagnoses(self.implementations, lambda request: ask(request, specs[request.implementation], given))
        for diagnosis in asked:
            self._diagnoses.append(diagnosis)
            self._record(diagnosis)
            if self._interruption.asked:
                return

    def _find_unrun(self) -> None:
        """What of the implementations no problem reaches; of a run in shards, the first alone says it."""
        if self.writer is None or not self.writer.begun or not self.settings.shard.is_first:
            return
        seconds = QUICK if self.settings.tier == "quick" else FULL
        for implementation in self.implementations:
            if self._interruption.asked:
                return
            wanted = is_wanted(implementation, self.settings.unrun, self.config.option.keyword)
            if implementation.name in self._passing and wanted:
                self._record(unrun(implementation, self.settings.given, seconds, self.settings.effort.seed))

    def _measure(self) -> None:
        from conformance.timing import Roster, measure

        assert self.writer is not None
        timed = [one for one in self.implementations if one.name in self._passing]
        roster, seed = Roster(self.settings.names, tuple(self.settings.given.items())), self.settings.effort.seed
        expectations = self.settings.expectations
        try:
            for timing in measure(timed, roster, expectations, seed=seed, stopped=lambda: self._interruption.asked):
                self._record(timing)
                self.unexpected += isinstance(timing, Timing) and timing.status == "unexpected"
        except UsageError as error:  # what could be loaded before
            say(f"The speed is not measured. {error}", error=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._nothing_is_sound:
            for name, sentence in self._unsound.items():
                say(f"{name} cannot be judged, since its adapter is not sound. {sentence}", error=True)
            return
        if self._session.exitstatus == ExitCode.AS_EXPECTED and self._has_nothing_to_do and self.progress.total == 0:
            terminalreporter.write_line("This shard has nothing to do.")
        if self.writer is None or not self.writer.begun or self.progress.done == 0:
            for diagnosis in self._diagnoses:
                told = (f"Diagnosis of {diagnosis.implementation}:", *diagnosis.lines)
                terminalreporter.write_line(cleaned("\n".join(told)))
            return
        from conformance.reports import terminal_summary
        from conformance.run.report_files import write_reports

        try:
            run = read_records(self.writer.path, partial=True)
        except UsageError as error:
            told_so = f"The records were changed while the run went on, and there are no tables: {error}"
            terminalreporter.write_line(cleaned(told_so))
            self._session.exitstatus = ExitCode.INCONCLUSIVE
            return
        terminalreporter.write_line(cleaned("\n".join(["", *self.writer.refused, terminal_summary(run)])))
        if self.settings.reports and self._session.exitstatus != ExitCode.USAGE_ERROR:  # where the records found no room
            for path in (self.writer.path, *write_reports(run, self.settings.reports, [self.writer.path])):
                terminalreporter.write_line(cleaned(f"wrote {path}"))


def _load_reports() -> None:
    from conformance.run.report_files import load

    load()


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Ours as pytest's, which end a run with their sentence."""
    try:
        yield
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None

"""The controller's side of a run: writes records as results arrive, notes crashes and time-outs, and reports at the end."""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from conformance import __version__
from conformance.checks.items import repro_command
from conformance.errors import UsageError
from conformance.exit_codes import FROM_PYTEST, ExitCode, exit_code
from conformance.records import (
    CONFORMANCE_TIERS,
    Case,
    Convention,
    Coverage,
    Coverages,
    Diagnosis,
    Item,
    RecordWriter,
    Share,
    Timing,
    decode,
    implementation_entry,
    read_records,
    requirements_due,
    too_little,
    undeclared,
)
from conformance.run_options import function_settings
from conformance.session.diagnoses import Failures
from conformance.session.diagnosis_process import ask
from conformance.session.header import header
from conformance.session.interruption import Interruption, stop
from conformance.session.items import PROPERTY, SELECTED, SELECTED_OF_WORKER, UNSOUND
from conformance.session.messages import Told
from conformance.session.options import Settings
from conformance.session.progress import Progress
from conformance.session.unrun_process import FULL, QUICK, is_wanted, unrun
from conformance.session.watchdog import Watchdog
from conformance.specification import SPEC_VERSION, requirements
from conformance.specification.observing import CRASHES, TIMES_OUT
from conformance.verdict import Outcome

TRAIL = "conformance_trail"  # what a worker is given the path of its trail as
SHOWN_OUTPUT = 2000  # characters of what an implementation printed, by stream
STILLBORN = 4  # workers that may die before their first item
_NODE = re.compile(r"\[(?P<id>ATT-[A-Z]+-\d{3}|CON(-[A-Z]+)+)-(?P<implementation>.+?)\](@.*)?$")


class Recorder:
    """pytest hooks of the process that the user started: alone, or the controller of pytest-xdist's workers."""

    def __init__(self, settings: Settings, config: pytest.Config, interruption: Interruption, watchdog: Watchdog) -> None:
        self.settings = settings
        self.config = config
        self._interruption = interruption
        self.writer = RecordWriter(settings.records) if settings.records else None
        self.progress = Progress()
        self.items = 0
        self._items_seen: set[tuple[str, str]] = set()
        self.judged = 0  # items of which something ran
        self._coverages: Coverages = {}
        self._shares: dict[str, Share] = {}
        self._passing: set[str] = set()  # implementations of which a requirement passed
        self.unexpected = 0
        self._started: dict[str, float] = {}
        self._failed_otherwise = 0
        self._failures = Failures()
        self._told = Told()
        self._diagnoses: list[Diagnosis] = []
        self._watchdog = watchdog
        self._unsound: dict[str, str] = {}  # implementations that cannot be judged, and why
        self._stillborn = 0  # workers that died before their first item

    # Beginning

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if self.writer and not self._only_collects:
            with _usage_errors():
                self.writer.demand_writable()

    @property
    def _only_collects(self) -> bool:
        return bool(self.config.option.collectonly)

    def _begin(self, ids: list[str]) -> None:
        """The header is written as soon as there is something to run, so that other runs leave an earlier file alone."""
        self.progress.start(len(ids))
        if ids and not self._only_collects:
            self._write_header(ids)

    def _write_header(self, ids: Sequence[str] = ()) -> None:
        if self.writer and not self.writer.begun:
            with _usage_errors():
                self.writer.write(header(self.settings, self.config.option.keyword, self._pairs(ids)))

    def _pairs(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Requirement or convention and implementation of the items; pytest escapes what of a name is not ASCII."""
        names = {i.name.encode("unicode_escape").decode("ascii"): i.name for i in self.settings.implementations}
        for match in filter(None, map(_NODE.search, ids)):
            name = match["implementation"]
            yield match["id"], names.get(name, name)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["conformance_seed"] = str(self.settings.effort.seed)
        node.workerinput[TRAIL] = str(self._watchdog.path(node.gateway.id))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """pytest-xdist replaces a dead worker by another one, which is of no use where each dies when it starts."""
        self.config.stash[SELECTED] = getattr(node, "workeroutput", {}).get(SELECTED_OF_WORKER, self._selected)
        self._stillborn += bool(error) and not self._watchdog.trace(node.gateway.id).began
        if self._stillborn >= STILLBORN:
            distributed: Any = self.config.pluginmanager.get_plugin("dsession")
            distributed.shouldstop = f"Worker processes die before they run anything: {' '.join(str(error).split())[-400:]}"

    def pytest_report_header(self) -> list[str]:
        effort = self.settings.effort
        names = ", ".join(i.name for i in self.settings.implementations)
        stamp = "" if self.settings.tier in CONFORMANCE_TIERS else " – not a conformance result"
        tier = f"tier {self.settings.tier}{f', shard {self.settings.shard}' if str(self.settings.shard) else ''}"
        suite = f"attention-conformance {__version__}, specification {SPEC_VERSION}, {tier}{stamp}"
        return [f"{suite}, {effort.examples} examples a requirement, seed {effort.seed}", f"implementations: {names}"]

    # Results

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._begin(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._started[nodeid] = time.monotonic()

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
        if _NODE.search(report.nodeid):
            report.sections = [(name, _cut(text)) for name, text in report.sections]
        if report.when == "call":
            lines: Any = dict(report.user_properties).get(PROPERTY, ())
            records = [decode(line) for line in lines]
            for record in records:
                self._record(record)
            self._shorten(report, records)
            self._note_unsound(dict(report.user_properties).get(UNSOUND))
            # whatever else becomes of a requirement or a convention, it leaves a record
            silent = not any(isinstance(record, Item | Convention) for record in records)
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
        return bool(self._unsound) and {i.name for i in self.settings.implementations if not i.missing()} <= set(self._unsound)

    def _shorten(self, report: pytest.TestReport, records: list[Any]) -> None:
        cases = [record for record in records if isinstance(record, Case) and record.status == "unexpected"]
        shorter = self._told.shorter(cases) if report.failed and cases else ""
        if shorter:
            report.longrepr = shorter

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """The worker died in this item. That is the item's outcome, and the only one: the rest runs on in a new worker."""
        match = _NODE.search(crashitem)
        if match is None or self._interruption.asked:  # nobody is to blame for a death after an interruption
            return
        elapsed = time.monotonic() - self._started.get(crashitem, time.monotonic())
        worker = report.node.gateway.id
        timed_out = worker in self._watchdog.ended
        outcome = Outcome.TIMEOUT if timed_out else Outcome.CRASH
        ending = f"gave no answer within {self.settings.time_limit:g} s" if timed_out else "ended the process"
        last = self._watchdog.trace(worker)
        what = f"The implementation {ending}{f', when it was asked about {last.convention}' if last.convention else ''}."
        again = self._again(match["implementation"], last.text)
        if match["id"].startswith("CON"):
            answer = TIMES_OUT if timed_out else CRASHES
            known = self.settings.expectations.for_(match["implementation"]).judge_answer(match["id"], answer, sound=False)
            self._record(
                Convention(
                    id=match["id"], implementation=match["implementation"], declared=None, observed=answer, agrees=None,
                    status=known.word, reason=known.reason, message=what,
                )
            )  # fmt: skip
            self.progress.advance(not known.expected)
            if known.expected:
                report.outcome, report.wasxfail = "skipped", known.reason
            else:
                report.longrepr = "\n  ".join((f"{match['id']} on {match['implementation']}: {outcome}", what, *again))
            return
        if (match["id"], match["implementation"]) in self._items_seen:  # it died after its result had come
            self._failed_otherwise += 1
            report.longrepr = "\n  ".join(
                (f"{match['id']} on {match['implementation']}: {outcome} after its result", what, *again)
            )
            return
        status = self.settings.expectations.for_(match["implementation"]).judge_item(match["id"], outcome)
        self.progress.advance(not status.expected)
        reason = status.reason or (f"{what} The problem was: {last.text}" if last.text else what)
        item = Item(
            requirement=match["id"], implementation=match["implementation"], outcome=outcome, seconds=elapsed, reason=reason,
            status=status.word,
        )  # fmt: skip
        self._record(item)
        if status.expected:
            report.outcome, report.wasxfail = "skipped", reason
        else:
            lines = (f"{item.requirement} on {item.implementation}: {outcome}", requirements()[match["id"]].sentence)
            report.longrepr = "\n  ".join((*lines, what, *again))

    def _again(self, name: str, text: str) -> tuple[str, ...]:
        """The problem, and the command that puts it again; nothing where none was put."""
        implementation = next(one for one in self.settings.implementations if one.name == name)
        return (f"problem: {text}", f"again: {repro_command(text, implementation)}") if text else ()

    def _record(self, record: Any) -> None:
        if self.writer:
            with _usage_errors():  # a full disk
                self.writer.write(record)
        if isinstance(record, Case | Item):
            self._failures.note(record)
        if isinstance(record, Item | Convention):
            self.unexpected += record.status == "unexpected"
        if isinstance(record, Item):
            self.items += 1
            self._items_seen.add((record.requirement, record.implementation))
            self.judged += record.outcome.was_run
            place = record.implementation, requirements()[record.requirement].area
            self._coverages.setdefault(place, Coverage()).note(record)
            self._shares.setdefault(record.implementation, Share()).add(record)
            if record.outcome is Outcome.PASS:
                self._passing.add(record.implementation)

    # End

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Concludes before the terminal's summary is made, which reads the records."""
        self.progress.stop()
        self._watchdog.stop()
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
        operations = [implementation.operation for implementation in self.settings.implementations]
        due = requirements_due(operations, (one.operation for one in requirements().values()))
        if self._is_part or self.config.option.keyword or self.items < due:
            return 0
        return len(undeclared(self._coverages, {i.name: implementation_entry(i) for i in self.settings.implementations}))

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
        names, given = self._asked_for()
        for diagnosis in self._failures.diagnoses(self.settings.implementations, lambda request: ask(request, names, given)):
            self._diagnoses.append(diagnosis)
            self._record(diagnosis)
            if self._interruption.asked:
                return

    def _find_unrun(self) -> None:
        """What of the implementations no problem reaches; of a run in shards, the first alone says it."""
        if self.writer is None or not self.writer.begun or not self.settings.shard.is_first:
            return
        names, given = self._asked_for()
        seconds = QUICK if self.settings.tier == "quick" else FULL
        for implementation in self.settings.implementations:
            if self._interruption.asked:
                return
            wanted = is_wanted(implementation, self.settings.unrun, self.config.option.keyword)
            if implementation.name in self._passing and wanted:
                self.writer.write(unrun(implementation, names, given, seconds, self.settings.effort.seed))

    def _asked_for(self) -> tuple[tuple[str, ...], dict[str, str | None]]:
        """How the user named what is tested, and the words that go with it, for processes that have to find it again."""
        options = self.config.option
        return tuple(options.conformance_implementations), function_settings(vars(options))

    def _measure(self) -> None:
        from conformance.timing import Roster, measure

        assert self.writer is not None
        timed = [i.name for i in self.settings.implementations if i.name in self._passing]
        names, words = self._asked_for()
        roster, seed = Roster(names, tuple(words.items())), self.settings.effort.seed
        expectations = self.settings.expectations
        for timing in measure(timed, roster, expectations, seed=seed, stopped=lambda: self._interruption.asked):
            self.writer.write(timing)
            self.unexpected += isinstance(timing, Timing) and timing.status == "unexpected"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._nothing_is_sound:
            for name, sentence in self._unsound.items():
                print(f"{name} cannot be judged, since its adapter is not sound. {sentence}", file=sys.stderr)
            return
        if self._session.exitstatus == ExitCode.AS_EXPECTED and self._has_nothing_to_do and self.progress.total == 0:
            terminalreporter.write_line("This shard has nothing to do.")
        if self.writer is None or not self.writer.begun or self.progress.done == 0:
            for diagnosis in self._diagnoses:
                terminalreporter.write_line("\n".join((f"Diagnosis of {diagnosis.implementation}:", *diagnosis.lines)))
            return
        from conformance.report_files import write_reports
        from conformance.reports import terminal_summary

        try:
            run = read_records(self.writer.path, partial=True)
        except UsageError as error:
            terminalreporter.write_line(f"The records were changed while the run went on, and there are no tables: {error}")
            self._session.exitstatus = ExitCode.INCONCLUSIVE
            return
        terminalreporter.write_line("\n".join(["", *self.writer.refused]))
        terminalreporter.write_line(terminal_summary(run))
        if self.settings.reports and self._session.exitstatus != ExitCode.USAGE_ERROR:  # where the records found no room
            for path in (self.writer.path, *write_reports(run, self.settings.reports, [self.writer.path])):
                terminalreporter.write_line(f"wrote {path}")


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Ours as pytest's, which end a run with their sentence."""
    try:
        yield
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _cut(text: str) -> str:
    left_out = len(text) - SHOWN_OUTPUT
    return text if left_out <= 0 else f"{text[:SHOWN_OUTPUT]}\n… {left_out} more characters are left out.\n"

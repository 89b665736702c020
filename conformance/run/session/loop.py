"""pytest's loop over the items of a run: ours are asked in processes apart, and reported as they come."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Literal

import pytest

from conformance.adapter.known import Known
from conformance.errors import UsageError
from conformance.expectations import Expectations
from conformance.judging.verdict import Outcome
from conformance.records import Case, ConventionResult, Item, Line, decode
from conformance.run.session.endings import EndedItem, ending, of_given_up
from conformance.run.session.items import asked_by
from conformance.run.session.messages import failure_message
from conformance.run.workers.asking import Ask
from conformance.run.workers.pool import GivenUp, Pool, Result
from conformance.run.workers.slots import Answered
from conformance.run.workers.unasked import FAILED_HERE, not_run
from conformance.system.terminal_text import cleaned

RECORDS = "conformance-records"  # names under which a report carries the records of its item,
UNSOUND = "conformance-unsound"  # and which implementation cannot be judged, and why

PHASES: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")


class Loop:
    """pytest hooks that run the items of ours in ``pool``, and the fixture of whoever runs them in another way."""

    def __init__(self, pool: Pool, expectations: Expectations, implementations: tuple[Known, ...]) -> None:
        self._pool = pool
        self._expectations = expectations
        self._known = {one.name: one for one in implementations}

    @pytest.fixture
    def run_item(self) -> Any:
        """The bodies of the checks are not what runs them."""
        raise UsageError("The checks are run by pytest's own loop alone: leave out what replaces it.")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Of what is no item of ours, pytest's own way comes after."""
        if session.config.option.collectonly or (session.testsfailed and not session.config.option.continue_on_collection_errors):
            return None
        ours = {ask: item for item in session.items if (ask := asked_by(item))}
        for result in self._results(list(ours)):
            assert result.ask is not None
            self._report(ours[result.ask], result)
            if session.shouldfail or session.shouldstop:
                self._pool.stop()  # what is being asked is finished
        others = [item for item in session.items if asked_by(item) is None]
        for item, following in zip_longest(others, others[1:]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            _stop_where_asked(session)
        _stop_where_asked(session)
        return True

    def _results(self, asks: list[Ask]) -> Iterator[Result]:
        try:
            yield from self._pool.results(asks)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            self._pool.end()

    def _report(self, item: pytest.Item, result: Result) -> None:
        """As pytest would have run it here: three phases, of which the first and the last have nothing to say."""
        hook = item.ihook
        keywords: dict[str, Any] = dict.fromkeys(item.keywords, 1)
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for when in PHASES:
            report = pytest.TestReport(item.nodeid, item.location, keywords, "passed", None, when)
            if when == "call":
                self._conclude(report, result)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _conclude(self, report: pytest.TestReport, result: Result) -> None:
        if not isinstance(result, Answered):
            made = of_given_up(result) if isinstance(result, GivenUp) else ending(result, self._expectations, self._known)
            report.user_properties.append((RECORDS, [made.record]))
            _end(report, made)
        else:
            records = _records(result)
            report.user_properties.append((RECORDS, records))
            if result.answer.unsound:
                report.user_properties.append((UNSOUND, (result.ask.implementation, result.answer.unsound)))
                _skip(report, result.answer.unsound)  # said once, at the end
            elif records:
                _settle(report, records)
            else:
                _skip(report, self._known[result.ask.implementation].missing or "")
        printed = getattr(result, "printed", "")
        if printed:
            report.sections.append(("Captured output", cleaned(printed)))


def _records(result: Answered) -> list[Line]:
    """What has been answered; what cannot be understood is the item's outcome."""
    try:
        return [decode(line) for line in result.answer.records]
    except UsageError as error:
        ask, why = result.ask, f"{FAILED_HERE}: its records cannot be read: {error}"
        return [not_run(ask.identifier, ask.implementation, Outcome.ERROR, why)]


def _settle(report: pytest.TestReport, records: list[Line]) -> None:
    """The test passes exactly where the result is as expected."""
    first, cases = records[0], [record for record in records if isinstance(record, Case)]
    if isinstance(first, ConventionResult):
        if first.skipped:
            _skip(report, first.message)
        elif first.status == "unexpected":
            _fail(report, f"{first.id} on {first.implementation}: {first.message}")
        elif first.reason:
            _expect(report, first.reason)
    elif isinstance(first, Item):
        if first.status == "unexpected":
            _fail(report, failure_message(first, cases))
        elif not first.outcome.was_run:
            _skip(report, f"{first.outcome}: {first.reason}")
        elif first.outcome.is_failure:
            _expect(report, first.reason)


def _end(report: pytest.TestReport, made: EndedItem) -> None:
    if made.record.status == "unexpected":
        _fail(report, made.told)
    elif made.record.reason:
        _expect(report, made.record.reason)
    else:
        _skip(report, made.told)


def _fail(report: pytest.TestReport, message: str) -> None:
    report.outcome, report.longrepr = "failed", cleaned(message)


def _skip(report: pytest.TestReport, reason: str) -> None:
    report.outcome, report.longrepr = "skipped", (report.location[0], report.location[1] or 0, f"Skipped: {cleaned(reason)}")


def _expect(report: pytest.TestReport, reason: str) -> None:
    """A failure that is known."""
    report.outcome, report.wasxfail = "skipped", reason


def _stop_where_asked(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)

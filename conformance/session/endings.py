"""What is recorded of an item whose process has ended, was ended, or was never asked, and what the user reads of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.expectations import Expectations
from conformance.known import Known, repro_command
from conformance.records import Convention, Item
from conformance.specification import requirements
from conformance.specification.observing import CRASHES, TIMES_OUT
from conformance.verdict import Outcome
from conformance.workers.asking import Ask
from conformance.workers.pool import GivenUp
from conformance.workers.slots import Ended
from conformance.workers.unasked import not_run, skipped


@dataclass(frozen=True)
class Ending:
    """The record, and for the terminal ``told`` where it is unexpected."""

    record: Item | Convention
    told: str


def ending(ended: Ended, expectations: Expectations, known: Mapping[str, Known]) -> Ending:
    """Of an item in which the process ended or hung: that is the item's outcome, and the only one."""
    assert ended.ask is not None
    outcome = Outcome.CRASH if ended.in_time else Outcome.TIMEOUT
    asked = f", when it was asked about {ended.trace.convention}" if ended.trace.convention else ""
    what = f"The implementation {ended.how}{asked}."
    again = _again(known[ended.ask.implementation], ended.trace.text)
    if ended.ask.identifier not in requirements():
        return _of_convention(ended.ask, outcome, what, again, expectations)
    status = expectations.for_(ended.ask.implementation).judge_item(ended.ask.identifier, outcome)
    reason = status.reason or (f"{what} The problem was: {ended.trace.text}" if ended.trace.text else what)
    item = Item(
        requirement=ended.ask.identifier, implementation=ended.ask.implementation, outcome=outcome, seconds=ended.seconds,
        reason=reason, status=status.word,
    )  # fmt: skip
    sentence = requirements()[item.requirement].sentence
    return Ending(item, "\n  ".join((f"{item.requirement} on {item.implementation}: {outcome}", sentence, what, *again)))


def of_given_up(given_up: GivenUp) -> Ending:
    """Of an item that was not asked any more, which nobody expects."""
    ask = given_up.ask
    if ask.identifier not in requirements():
        return Ending(skipped(ask.identifier, ask.implementation, None, given_up.why), "")
    item = not_run(ask.identifier, ask.implementation, Outcome.SKIPPED, given_up.why, "unexpected")
    return Ending(item, f"{item.requirement} on {item.implementation}: not run, {given_up.why}.")


def _of_convention(ask: Ask, outcome: Outcome, what: str, again: tuple[str, ...], expectations: Expectations) -> Ending:
    answer = CRASHES if outcome is Outcome.CRASH else TIMES_OUT
    stated = expectations.for_(ask.implementation).judge_answer(ask.identifier, answer, sound=False)
    record = Convention(
        id=ask.identifier, implementation=ask.implementation, declared=None, observed=answer, agrees=None, status=stated.word,
        reason=stated.reason, message=what,
    )  # fmt: skip
    return Ending(record, "\n  ".join((f"{ask.identifier} on {ask.implementation}: {outcome}", what, *again)))


def _again(known: Known, text: str) -> tuple[str, ...]:
    """The problem, and the command that puts it again; nothing where none was put."""
    return (f"problem: {text}", f"again: {repro_command(text, known)}") if text else ()

"""What is recorded of an item whose process has ended, was ended, or was never asked, and what the user reads of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.adapter.known import Known, reproduce_command
from conformance.expectations import Expectations
from conformance.judging.verdict import Outcome
from conformance.records import ConventionResult, Item
from conformance.run.workers.asking import Ask
from conformance.run.workers.pool import GivenUp
from conformance.run.workers.slots import Ended
from conformance.run.workers.unasked import not_run, skipped
from conformance.specification import requirements
from conformance.specification.observing import CRASHES, TIMES_OUT


@dataclass(frozen=True)
class EndedItem:
    """The record, and for the terminal ``told`` where it is unexpected."""

    record: Item | ConventionResult
    told: str


def ending(ended: Ended, expectations: Expectations, known: Mapping[str, Known]) -> EndedItem:
    """Of an item in which the process ended or hung: that is the item's outcome, and the only one."""
    assert ended.ask is not None
    outcome = Outcome.CRASH if ended.in_time else Outcome.TIMEOUT
    asked = f", when it was asked about {ended.trace.convention}" if ended.trace.convention else ""
    what = f"The implementation {ended.how}{asked}."
    reproduced = _reproduced(known[ended.ask.implementation], ended.trace.text)
    if ended.ask.identifier not in requirements():
        return _of_convention(ended.ask, outcome, what, reproduced, expectations)
    status = expectations.for_(ended.ask.implementation).judge_item(ended.ask.identifier, outcome)
    reason = status.reason or (f"{what} The problem was: {ended.trace.text}" if ended.trace.text else what)
    item = Item(
        requirement=ended.ask.identifier, implementation=ended.ask.implementation, outcome=outcome, seconds=ended.seconds,
        reason=reason, status=status.word,
    )  # fmt: skip
    sentence = requirements()[item.requirement].sentence
    return EndedItem(item, "\n  ".join((f"{item.requirement} on {item.implementation}: {outcome}", sentence, what, *reproduced)))


def of_given_up(given_up: GivenUp) -> EndedItem:
    """Of an item that was not asked any more, which nobody expects."""
    ask = given_up.ask
    if ask.identifier not in requirements():
        return EndedItem(skipped(ask.identifier, ask.implementation, None, given_up.why), "")
    item = not_run(ask.identifier, ask.implementation, Outcome.SKIPPED, given_up.why, "unexpected")
    return EndedItem(item, f"{item.requirement} on {item.implementation}: not run, {given_up.why}.")


def _of_convention(ask: Ask, outcome: Outcome, what: str, reproduced: tuple[str, ...], expectations: Expectations) -> EndedItem:
    answer = CRASHES if outcome is Outcome.CRASH else TIMES_OUT
    stated = expectations.for_(ask.implementation).judge_answer(ask.identifier, answer, sound=False)
    record = ConventionResult(
        id=ask.identifier, implementation=ask.implementation, declared=None, observed=answer, agrees=None, status=stated.word,
        reason=stated.reason, message=what,
    )  # fmt: skip
    return EndedItem(record, "\n  ".join((f"{ask.identifier} on {ask.implementation}: {outcome}", what, *reproduced)))


def _reproduced(known: Known, text: str) -> tuple[str, ...]:
    """The problem, and the command that reproduces it; nothing where none was put."""
    return (f"problem: {text}", f"reproduce: {reproduce_command(text, known)}") if text else ()

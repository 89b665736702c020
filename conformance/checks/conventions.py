"""Observing a convention on an implementation, and what to make of the answer."""

from conformance.expectations import ImplementationExpectations, Status
from conformance.harness.subject import Subject
from conformance.records.record_types import ConventionResult
from conformance.specification import conventions
from conformance.specification.observing import MIXED, Observation
from conformance.specification.requirement import Convention as Question


def observe_convention(subject: Subject, identifier: str, expectations: ImplementationExpectations) -> ConventionResult:
    """What is declared beside what is observed, and whether that is as it should be: an answer that interfaces may have, the same
    everywhere, and the declared one; or what the expectations state."""
    declared = subject.implementation.support.conventions.get(identifier)
    question, seen = conventions()[identifier], subject.observation(identifier)
    if seen is None:
        status = expectations.judge_answer(identifier, None, sound=True)
        return ConventionResult(
            id=identifier, implementation=subject.implementation.name, declared=declared, observed=None, agrees=None,
            status=status.word, reason=status.reason, message="The implementation does not offer what the question needs.",
        )  # fmt: skip
    agrees = None if declared is None else declared == seen.answer
    status = expectations.judge_answer(identifier, seen.answer, sound=seen.answer in question.legitimate and agrees is not False)
    return ConventionResult(
        id=identifier, implementation=subject.implementation.name, declared=declared, observed=seen.answer, agrees=agrees,
        status=status.word, reason=status.reason, where=dict(seen.where), message=_message(question, declared, seen, status),
    )  # fmt: skip


def _message(question: Question, declared: str | None, seen: Observation, status: Status) -> str:
    """What the answer means; where it is unexpected, what was seen, where, and what to do."""
    if status.expected:
        return seen.raised.get(seen.answer) or question.meaning(seen.answer)
    parts = [status.reason] if status.reason else []
    if seen.answer not in question.legitimate:
        parts += [_seen(question, seen), question.otherwise, *_texts(seen)]
        parts.append(
            f"Fix it, or state it as known: [[expected]] with convention = {_quoted(question.id)} and answer = "
            f"{_quoted(seen.answer)}."
        )
    elif declared is not None and declared != seen.answer:
        meaning = question.meaning(seen.answer)
        parts.append(f"It declares {declared!r}, and what is observed is {seen.answer!r}: {meaning}. Fix the one that is wrong.")
    return " ".join(filter(None, parts))


def _seen(question: Question, seen: Observation) -> str:
    if seen.answer == MIXED:
        return f"{question.question} It is not the same everywhere: {seen.places}.{_raised(seen)}"
    allowed = " or ".join(f"{answer!r}" for answer in question.answers if answer in question.legitimate)
    number = len(seen.where.get(seen.answer, ()))
    each = f" in each of {number} places" if number > 1 else ""
    return (
        f"{question.question} Observed is {seen.answer!r} ({question.meaning(seen.answer)}){each}, where {allowed} is "
        f"expected.{_raised(seen)}"
    )


def _raised(seen: Observation) -> str:
    return "".join(f" It raises {told}." for told in seen.raised.values())


def _texts(seen: Observation) -> list[str]:
    """A problem that shows it, of the rarest answer where there are several."""
    rarest = min(seen.where, key=lambda answer: len(seen.where[answer]), default=None)
    return [] if rarest is None else [f"Seen in: {seen.texts[rarest]}."]


def _quoted(word: str) -> str:
    return f'"{word}"'

"""Observing a convention on an implementation."""

from conformance.harness import Subject
from conformance.records.model import Convention
from conformance.specification import conventions


def observe_convention(subject: Subject, identifier: str) -> Convention:
    """What is declared beside what is observed; they disagree only where both are there and differ."""
    declared = subject.implementation.support.conventions.get(identifier)
    observed = subject.observe(identifier)
    question = conventions()[identifier]
    if observed == "unsupported":
        return Convention(
            id=identifier, implementation=subject.implementation.name, declared=declared, observed=None, agrees=None,
            message="The implementation does not offer what the question needs.",
        )  # fmt: skip
    agrees = None if declared is None else declared == observed
    message = subject.raised.get(identifier) or question.answers[observed]
    if agrees is False:
        message = f"It declares {declared!r}, and what is observed is {observed!r}: {message} Mend the one that is wrong."
    return Convention(
        id=identifier, implementation=subject.implementation.name, declared=declared, observed=observed, agrees=agrees,
        message=message,
    )  # fmt: skip

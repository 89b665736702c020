"""Records of what was not asked, or gave no answer of its own."""

from msgspec.structs import replace

from conformance.judging.verdict import Outcome
from conformance.records.record_types import ConventionResult, Item, StatusWord

FAILED_HERE = "the suite failed here"  # which no implementation should bring about


def not_run(requirement: str, implementation: str, outcome: Outcome, reason: str, status: StatusWord | None = None) -> Item:
    """An item of which nothing was run; unexpected where its outcome is a failure, if nothing is said."""
    word: StatusWord = status or ("unexpected" if outcome.is_failure else "expected")
    return Item(requirement=requirement, implementation=implementation, outcome=outcome, status=word, reason=reason)


def skipped(convention: str, implementation: str, declared: str | None, why: str) -> ConventionResult:
    """A convention that is not asked, though it could be."""
    return replace(unanswered(convention, implementation, declared, f"Not asked: {why}."), skipped=True)


def unanswered(convention: str, implementation: str, declared: str | None, message: str) -> ConventionResult:
    return ConventionResult(
        id=convention, implementation=implementation, declared=declared, observed=None, agrees=None, status="expected",
        message=message,
    )  # fmt: skip

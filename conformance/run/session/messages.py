"""What a user reads of a failure."""

import textwrap
from collections.abc import Sequence

from conformance.judging.kinds import kind_of
from conformance.judging.verdict import Outcome
from conformance.records import Case, Item
from conformance.reports.shown import in_turn
from conformance.specification import requirements

SHOWN = 2
SHOWN_ALIKE = 5  # failures of one kind, in one dtype, on one implementation that are shown in full


def failure_message(item: Item, cases: Sequence[Case]) -> str:
    """The requirement, why the item is not as expected, and some of its unexpected cases, of different dtypes if there are."""
    requirement = requirements()[item.requirement]
    lines = [f"{item.requirement} on {item.implementation}: {item.outcome}", *_wrapped(requirement.sentence)]
    if item.reason:
        lines += _wrapped(item.reason)
    unexpected = [case for case in cases if case.status == "unexpected"]
    worst_first = sorted(in_turn(unexpected), key=lambda case: case.outcome is item.outcome, reverse=True)
    shown = worst_first[: max(SHOWN, len({case.dtype for case in unexpected}))]
    for case in shown:
        lines += ["", *_case_lines(case)]
    if len(unexpected) > len(shown):
        lines += ["", f"… and {len(unexpected) - len(shown)} more unexpected cases."]
    return "\n".join(lines)


class Told:
    """What the terminal has shown in full of each way of failing: after a few of one, a line is enough for each further one."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str, str], list[str]] = {}  # requirements, by implementation, kind of failure and dtype

    def shorter(self, cases: Sequence[Case]) -> str:
        """The line for a requirement of which all unexpected ``cases`` are like some that were shown; else nothing."""
        ways: dict[str, list[str]] = {}  # which requirement shows it, and in which dtypes
        enough = True
        for case in cases:
            shown = self._shown.setdefault((case.implementation, kind_of(case.outcome, case.message), case.dtype), [])
            if len(shown) < SHOWN_ALIKE and case.requirement not in shown:
                enough = False
                shown.append(case.requirement)
            dtypes = ways.setdefault(shown[0], [])
            if case.dtype not in dtypes:
                dtypes.append(case.dtype)
        if not enough:
            return ""
        first = cases[0]
        told = "" if first.outcome is Outcome.WRONG_VALUE else f" {first.message}"
        alike = ", ".join(f"in {' and '.join(dtypes)} as {requirement}" for requirement, dtypes in ways.items())
        return f"{first.requirement} on {first.implementation}: {first.outcome}, {alike} above.{told}"


def _case_lines(case: Case) -> list[str]:
    lines = [f"{case.stratum} case {case.id}: {case.outcome}", f"  problem: {case.text}"]
    if case.route != "native":
        lines.append(f"  asked by {case.route}")
    if case.r is not None and case.index is not None:
        of = f"{case.output}, " if case.output else ""
        lines.append(f"  {of}index {case.index}: got {case.got!r}, expected {case.want!r}, error/budget r = {case.r:.3g}")
    elif case.message:
        lines += _wrapped(case.message)
    if case.reason:
        lines += _wrapped(case.reason)
    if case.repro:
        lines.append(f"  reproduce: {case.repro}")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 116, initial_indent="  ", subsequent_indent="  ", break_long_words=False)

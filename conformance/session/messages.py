"""What a user reads of a failure."""

import textwrap
from collections.abc import Sequence

from conformance.records import Case, Item
from conformance.specification import requirements

SHOWN = 2


def failure_message(item: Item, cases: Sequence[Case]) -> str:
    """The requirement, why the item is not as expected, and its first unexpected cases."""
    requirement = requirements()[item.requirement]
    lines = [f"{item.requirement} on {item.implementation}: {item.outcome}", *_wrapped(requirement.sentence)]
    if item.reason:
        lines += _wrapped(item.reason)
    unexpected = [case for case in cases if case.status == "unexpected"]
    for case in sorted(unexpected, key=lambda case: case.outcome is item.outcome, reverse=True)[:SHOWN]:
        lines += ["", *_case_lines(case)]
    if len(unexpected) > SHOWN:
        lines += ["", f"… and {len(unexpected) - SHOWN} more unexpected cases."]
    return "\n".join(lines)


def _case_lines(case: Case) -> list[str]:
    lines = [f"{case.stratum} case {case.id}: {case.outcome}", f"  problem: {case.text}"]
    if case.route != "native":
        lines.append(f"  asked by {case.route}")
    if case.r is not None and case.index is not None:
        lines.append(f"  index {case.index}: got {case.got!r}, want {case.want!r}, error/budget r = {case.r:.3g}")
    elif case.message:
        lines += _wrapped(case.message)
    if case.reason:
        lines += _wrapped(case.reason)
    if case.repro:
        lines.append(f"  again: {case.repro}")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 116, initial_indent="  ", subsequent_indent="  ", break_long_words=False)

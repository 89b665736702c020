"""A failure reproduced: one problem on one implementation, judged and shown in full."""

from dataclasses import dataclass

import numpy as np
from tabulate import tabulate

from conformance.adapter import Implementation
from conformance.checks.procedures import PROCEDURES
from conformance.errors import Unsupported, UsageError
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed, Judge, Judgement, worst
from conformance.judging.verdict import Outcome, Verdict, judge
from conformance.oracle import Expected
from conformance.problem import parse
from conformance.problem.returned import LSE, OUTPUT, WEIGHTS
from conformance.specification.requirement import CHECKS, VALUE_CHECKS
from conformance.values.golden import case_of

SHOWN = 16  # elements of the worst row
COLUMNS = {OUTPUT: "channel", LSE: "query", WEIGHTS: "key"}  # what the last axis of an output counts
COLUMNS_OF_MANY = {"channel": "channels", "query": "queries", "key": "keys"}


@dataclass(frozen=True)
class Reproduction:
    """The judgement that counts, and what is to be read of it."""

    judgement: Judgement
    report: str


def reproduce(text: str, implementation: Implementation, check: str = "values") -> Reproduction:
    """Judges the problem of ``text`` by the procedure ``check``; of several judgements the worst counts.

    ``text`` may be the id of a golden case. Raises UsageError for text that is no problem, an unknown procedure, an
    implementation of another operation or one that cannot run here, and a problem that the implementation does not offer.
    """
    problem = case_of(text).problem if text.upper().startswith("GOLD-") else parse(text)
    if check not in PROCEDURES:
        raise UsageError(f"There is no check {check!r}: use one of {', '.join(CHECKS)}.")
    if problem.operation != implementation.operation:
        raise UsageError(f"The problem is one of {problem.operation}; {implementation.name} computes {implementation.operation}.")
    missing = implementation.missing()
    if missing:
        raise UsageError(f"{implementation.name} cannot run here: {missing}")
    judging, subject = Judge(), Subject(implementation)
    try:
        judgements = PROCEDURES[check](judging, subject, problem)
    except Unsupported as lacking:
        raise UsageError(f"{implementation.name} does not offer {lacking}, which the problem needs.") from None
    judgement = worst(judgements)
    lines = _summary(judgement, implementation, check)
    if check in (*VALUE_CHECKS, LSE, WEIGHTS) or judgement.verdict.outcome.is_failure:
        lines += _worst_row(judging, subject, judgement)
    return Reproduction(judgement, "\n".join(lines))


def _summary(judgement: Judgement, implementation: Implementation, check: str) -> list[str]:
    verdict = judgement.verdict
    rows = [
        ("problem", judgement.problem.text),
        ("on", implementation.name),
        ("asked", judgement.route),
        ("check", f"{check}: {CHECKS[check]}"),
        ("profile", judgement.profile),
        ("outcome", verdict.outcome),
        ("of", "" if verdict.output == OUTPUT else verdict.output),
        ("message", verdict.message),
        ("index", verdict.index),
        ("got", verdict.got),
        ("expected", verdict.want),
        ("budget", None if verdict.budget is None else f"{verdict.budget:.3g}"),
        ("r", None if verdict.r is None else f"{verdict.r:.3g}"),
    ]
    return [f"{name:<9}{value}" for name, value in rows if value not in (None, "")]


def _worst_row(judging: Judge, subject: Subject, judgement: Judgement) -> list[str]:
    """The row with the largest error / budget, from a call of its own; nothing where there is no row to compare."""
    problem = judgement.problem
    route = next(route for route in subject.routes(problem) if str(route) == judgement.route)
    name = judgement.verdict.output
    try:
        array = judging.run(subject, problem, route).outputs[name]
    except Failed:
        return []
    expected = judging.expected_output(name, array.dtype.name, subject, problem, judgement.profile)
    again = judge(array, expected)
    if again.outcome in (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE):
        return []
    if again.outcome is not judgement.verdict.outcome:
        return ["", f"A further call by itself gives {again.outcome}: {again.message or 'every element is within its budget.'}"]
    return _table(array, expected, again)


def _table(output: np.ndarray, expected: Expected, verdict: Verdict) -> list[str]:
    got = expected.rows_of(output)
    got = got.astype(expected.output.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - expected.output)
        ratio = np.where(expected.judged, error / expected.budget, 0.0).astype(np.float64)
    ratio = np.where((got == expected.output) | (np.isnan(got) & np.isnan(expected.output)), 0.0, ratio)
    ratio = np.nan_to_num(ratio, nan=np.inf, posinf=np.inf)
    place = _place(verdict, expected) or tuple(int(i) for i in np.unravel_index(int(ratio.argmax()), ratio.shape))
    *row, column = place
    first = max(0, min(column - SHOWN // 2, got.shape[-1] - SHOWN))
    columns = range(first, min(first + SHOWN, got.shape[-1]))
    position = row if expected.rows is None or expected.axis != -2 else [*row[:-1], int(expected.rows[row[-1]])]
    arrays = {"got": got, "expected": expected.output, "error": error, "budget": expected.budget, "r": ratio}
    lines = [(c, *(float(array[*row, c]) for array in arrays.values()), "←" if c == column else "") for c in columns]
    what = COLUMNS[expected.name]
    table = tabulate(lines, (what, *arrays, ""), floatfmt=("", ".9g", ".9g", ".3g", ".3g", ".3g"))
    left_out = got.shape[-1] - len(columns)
    return ["", f"row {tuple(position)}" + (f", without {left_out} other {COLUMNS_OF_MANY[what]}" if left_out else ""), table]


def _place(verdict: Verdict, expected: Expected) -> tuple[int, ...] | None:
    """The verdict's index in the array that the oracle gives, which may hold some rows only."""
    if verdict.index is None or expected.rows is None:
        return verdict.index
    place = list(verdict.index)
    place[expected.axis] = int(np.searchsorted(expected.rows, place[expected.axis]))
    return tuple(place)

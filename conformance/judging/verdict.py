"""The comparison of an output with what is expected: an outcome, and r = error / budget."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from conformance.numerics.dtypes import float_type
from conformance.oracle.expected import Expected
from conformance.problem.returned import OUTPUT, being, having


class Outcome(enum.StrEnum):
    """What became of a case, an item or a run; later members are worse."""

    PASS = "PASS"
    SKIPPED = "SKIPPED"
    UNSUPPORTED = "UNSUPPORTED"
    WRONG_VALUE = "WRONG_VALUE"
    NONFINITE = "NONFINITE"
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_SHAPE = "WRONG_SHAPE"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    MUTATED_INPUT = "MUTATED_INPUT"
    ERROR = "ERROR"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    TIMEOUT = "TIMEOUT"
    CRASH = "CRASH"

    @property
    def severity(self) -> int:
        """The place in the order of this class."""
        return _ORDER.index(self)

    @property
    def was_run(self) -> bool:
        return self not in (Outcome.SKIPPED, Outcome.UNSUPPORTED)

    @property
    def is_failure(self) -> bool:
        return self.was_run and self is not Outcome.PASS


_ORDER = tuple(Outcome)


@dataclass(frozen=True)
class Verdict:
    """``outcome`` with ``message``; ``r`` the largest error / budget (None where nothing was compared), at ``index``, of the
    output called ``output``."""

    outcome: Outcome
    message: str = ""
    r: float | None = None
    index: tuple[int, ...] | None = None
    got: float | None = None
    want: float | None = None
    budget: float | None = None
    output: str = OUTPUT


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """That of a result with several outputs: the worst outcome, and of equal failures that of the first output, since the others
    are made of the same scores; of passes the largest r."""
    first, *others = verdicts
    for other in others:
        worse = other.outcome.severity - first.outcome.severity
        if worse > 0 or (worse == 0 and not first.outcome.is_failure and (other.r or 0.0) > (first.r or 0.0)):
            first, other = other, first
        if other.outcome.is_failure:
            amount = "" if other.r is None else f", r = {other.r:.3g}"
            first = replace(first, message=f"{first.message} The {being(other.output)} {other.outcome} too{amount}.")
    return first


def judge(output: np.ndarray, expected: Expected) -> Verdict:
    """Compares shape, dtype, the pattern of non-finite elements, then values within the budget; the first that fails counts."""
    form = judge_form(output, expected)
    if form.outcome is not Outcome.PASS:
        return form
    got = expected.rows_of(output)
    want = expected.output
    got = got.astype(want.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(got - want)
        ratio = np.where(expected.judged, error / expected.budget, 0.0).astype(np.float64)
    if np.isfinite(ratio).all():  # then both are finite wherever they are judged
        return _by_value(ratio, got, want, expected)
    return _with_nonfinite(ratio, got, want, expected)


def judge_form(output: np.ndarray, expected: Expected, shape: bool = True, dtype: bool = True) -> Verdict:
    """Compares ``shape``, then ``dtype``, those that are asked for, and no values."""
    if shape and output.shape != expected.shape:
        message = f"The {having(expected.name)} shape {output.shape}, expected {expected.shape}."
        return Verdict(Outcome.WRONG_SHAPE, message, output=expected.name)
    if dtype and output.dtype != float_type(expected.dtype).numpy:
        order = "" if output.dtype.isnative else " in the byte order of another machine"
        target = " or ".join(expected.dtypes or (expected.dtype,))
        return Verdict(
            Outcome.WRONG_DTYPE,
            f"The {being(expected.name)} {output.dtype.name}{order}, expected {target}.",
            output=expected.name,
        )
    return Verdict(Outcome.PASS, output=expected.name)


def _by_value(ratio: np.ndarray, got: np.ndarray, want: np.ndarray, expected: Expected) -> Verdict:
    worst = int(ratio.argmax()) if ratio.size else None
    if worst is None:
        return Verdict(Outcome.PASS, r=0.0, output=expected.name)
    r = float(ratio.reshape(-1)[worst])
    if r <= 1.0:
        return Verdict(Outcome.PASS, r=r, output=expected.name)
    return _at(Outcome.WRONG_VALUE, r, np.unravel_index(worst, ratio.shape), got, want, expected)


def _with_nonfinite(ratio: np.ndarray, got: np.ndarray, want: np.ndarray, expected: Expected) -> Verdict:
    """Where something is not finite: the patterns must agree, overflow of the expected value to the dtype's infinity included."""
    target = overflowed(want, expected.dtype)
    same = (np.isnan(got) & np.isnan(target)) | (got == target)
    finite = np.isfinite(got) & np.isfinite(target)
    wrong = expected.judged & ~same & ~finite
    if wrong.any():
        index = np.unravel_index(int(wrong.argmax()), wrong.shape)
        return _at(Outcome.NONFINITE, None, index, got, target, expected)
    return _by_value(np.where(finite & expected.judged, ratio, 0.0), got, want, expected)


def overflowed(want: np.ndarray, dtype: str) -> np.ndarray:
    """What is expected for ``want`` in the dtype, where values that it cannot hold become infinite."""
    largest = float_type(dtype).largest * (1 + float_type(dtype).unit_roundoff)
    return np.where(np.abs(want) > largest, np.copysign(np.inf, want), want)


def _at(
    outcome: Outcome, r: float | None, index: tuple[np.intp, ...], got: np.ndarray, want: np.ndarray, expected: Expected
) -> Verdict:
    place = tuple(int(i) for i in index)
    position = place
    if expected.rows is not None:
        along = expected.axis % len(place)
        position = (*place[:along], int(expected.rows[place[along]]), *place[along + 1 :])
    g, w, b = float(got[place]), float(want[place]), float(expected.budget[place])
    amount = "" if r is None else f", budget {b:.3g}, r = {r:.3g}"
    where = "At" if expected.name == OUTPUT else f"The {expected.name} at"
    return Verdict(outcome, f"{where} {position}: got {g!r}, expected {w!r}{amount}.", r, position, g, w, b, expected.name)

"""A candidate against the evidence: what it explains, what it gets wrong, and what it contradicts."""

import enum
from dataclasses import dataclass, field, replace

import numpy as np

from conformance.diagnosis.evidence import Evidence, excess
from conformance.diagnosis.prediction import Candidate, Prediction, deviation
from conformance.faults.steps import kv_heads
from conformance.numerics.dtypes import float_type
from conformance.oracle.expected import Expected
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
NEARLY_ALL = 0.9
TRIES = 3  # so many wrong predictions and no right one end a trial
# A fit within the budget that leaves more than this share of the error proves nothing: the budget may be wide there.
LEFT_OVER = 0.5
NEARLY = 3.0  # budgets within which an output neither fits nor speaks against a fault
FAR = 100.0  # budgets of what is right that no rounding of something else bridges in every element
MEAN_ROOM = 8.0  # roundings of the largest V, for the mean of all


class Bearing(enum.Enum):
    """What one piece of evidence says of a candidate, as regards one symptom."""

    EXPLAINED = enum.auto()  # the problem fails, and the candidate gives this very failure
    MISPREDICTED = enum.auto()  # the problem fails, and the candidate gives another failure
    UNEXPLAINED = enum.auto()  # the problem fails, and the candidate would not show
    UNCLEAR = enum.auto()  # it fits, but so would much else
    CONTRADICTED = enum.auto()  # the candidate would fail a problem that passes
    FITTING = enum.auto()  # the problem passes, with the candidate as well


@dataclass(frozen=True)
class Bearings:
    """``closeness``: the share of the error that the candidate takes away, by median over the wrong elements. ``barely``: the
    candidate would show, and only its wide budget makes it fit."""

    bearing: Bearing
    r: float = 0.0
    closeness: float = 0.0
    barely: bool = False


def bearing(prediction: Prediction | None, evidence: Evidence, symptom: str) -> Bearings:
    """What ``evidence`` says of a candidate that predicts ``prediction``, as regards ``symptom``."""
    if symptom not in evidence.symptoms:
        return _where_right(prediction, evidence)
    if prediction is None:
        return Bearings(Bearing.UNEXPLAINED)
    more = set(prediction.symptoms) - set(evidence.symptoms)
    if symptom not in prediction.symptoms:
        if more:
            return Bearings(Bearing.MISPREDICTED)
        barely = symptom == "values" and evidence.output is not None and prediction.expected and _fits(prediction, evidence, 1.0)
        return Bearings(Bearing.UNCLEAR if barely else Bearing.UNEXPLAINED)
    if more:
        return Bearings(Bearing.MISPREDICTED)
    if symptom == "values":
        return _values(prediction, evidence)
    same = symptom == "raises" or prediction.symptoms[symptom] == evidence.symptoms[symptom]
    return Bearings(Bearing.EXPLAINED if same else Bearing.MISPREDICTED, closeness=float(same))


def _where_right(prediction: Prediction | None, evidence: Evidence) -> Bearings:
    more = set(prediction.symptoms) - set(evidence.symptoms) if prediction else set()
    if prediction is None or not more or evidence.output is None:  # without an output nothing can contradict
        return Bearings(Bearing.FITTING)
    if more == {"values"} and _nearly_fits(prediction, evidence):
        return Bearings(Bearing.FITTING, barely=True)
    return Bearings(Bearing.CONTRADICTED)


def _nearly_fits(prediction: Prediction, evidence: Evidence) -> bool:
    """Whether rounding could make what is right of what the fault gives."""
    expected = prediction.expected
    return expected is not None and _fits(prediction, evidence, NEARLY) and not _far(expected, evidence.expected)


def _far(expected: Expected, correct: Expected) -> bool:
    """Whether what the fault gives is so far from what is right, in most elements, that no rounding leads back to that: scores of
    1e9 in float32, say, have room for any output, and yet do not give the right one."""
    judged = np.broadcast_to(correct.judged & expected.judged, correct.output.shape)
    return bool(judged.any()) and float(np.median(deviation(expected, correct)[judged])) > FAR


def _values(prediction: Prediction, evidence: Evidence) -> Bearings:
    if prediction.expected is None or evidence.output is None:
        return Bearings(Bearing.MISPREDICTED)
    wrong = evidence.excess() > 1.0
    expected = prediction.expected
    judged = np.broadcast_to(expected.judged, wrong.shape)
    error, rest = _distance(evidence, evidence.expected), _distance(evidence, expected)
    blank = ~judged & _blank(evidence, expected)  # as rows mostly are that the fault masks fully
    decided, rest = wrong & (judged | blank), np.where(blank | _leaked(prediction, evidence), 0.0, rest)
    with np.errstate(all="ignore"):
        left = np.where(np.isfinite(error), np.minimum(rest / error, 1.0), np.where(np.isfinite(rest), 0.0, 1.0))[decided]
    closeness = 1.0 - float(np.median(left)) if left.size else 0.0
    if not _fits(prediction, evidence, 1.0):
        nearly = closeness >= 1.0 - LEFT_OVER / 5 and _fits(prediction, evidence, NEARLY)
        return Bearings(Bearing.UNCLEAR if nearly else Bearing.MISPREDICTED, closeness=closeness)
    r = float(_excess(prediction, evidence).max(initial=0.0))
    clear = 3 * int(decided.sum()) >= int(wrong.sum()) and closeness >= 1.0 - LEFT_OVER
    return Bearings(Bearing.EXPLAINED if clear else Bearing.UNCLEAR, r, closeness)


def _distance(evidence: Evidence, expected: Expected) -> Array:
    """|output − expected|, infinite where the pattern of non-finite elements is another one."""
    assert evidence.output is not None
    output = expected.rows_of(evidence.output)
    got = output.astype(expected.output.dtype)
    with np.errstate(all="ignore"):
        distance = np.abs(got - expected.output).astype(np.float64)
        same = (np.isnan(got) & np.isnan(expected.output)) | (got == expected.output)
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def _blank(evidence: Evidence, expected: Expected) -> Array:
    """Where the output is 0 or NaN."""
    assert evidence.output is not None
    output = expected.rows_of(evidence.output)
    return (output == 0) | np.isnan(output.astype(np.float64))


def _excess(prediction: Prediction, evidence: Evidence) -> Array:
    """error / budget by element against what the fault gives, where that and the right output are judged."""
    assert evidence.output is not None and prediction.expected is not None
    both = replace(prediction.expected, judged=prediction.expected.judged & evidence.expected.judged)
    return np.where(_leaked(prediction, evidence), 0.0, excess(evidence.output, both, near_overflow=True))


def _leaked(prediction: Prediction, evidence: Evidence) -> Array:
    """Where the output is NaN, and may be."""
    assert evidence.output is not None and prediction.expected is not None
    output = prediction.expected.rows_of(evidence.output)
    marked = np.zeros(output.shape, bool) if prediction.leaks is None else prediction.leaks
    return np.asarray(marked & np.isnan(output.astype(np.float64)))


def _fits(prediction: Prediction, evidence: Evidence, budgets: float) -> bool:
    """Whether the output is what the fault gives, to within so many ``budgets``; in fully masked rows with the fault, one of
    the answers that are usual there: zeros, NaN, the mean of all V."""
    expected = prediction.expected
    assert evidence.output is not None and expected is not None
    if _excess(prediction, evidence).max(initial=0.0) > budgets:
        return False
    emptied = np.broadcast_to(evidence.expected.judged & ~expected.judged, expected.output.shape)
    inputs = None if prediction.inputs is None else prediction.inputs.plain
    if not emptied.any() or inputs is None:
        return True
    blind: Array = np.asarray(~visible_pairs(inputs).any(-1, keepdims=True))
    emptied = emptied & expected.rows_of(blind)
    value = inputs.value.astype(np.float64)
    mean = value.mean(-2, keepdims=True)[:, kv_heads(inputs.heads, value.shape[1])]
    output = expected.rows_of(evidence.output)
    room = MEAN_ROOM * float_type(expected.dtype).unit_roundoff * np.abs(value).max()
    usual = _blank(evidence, expected) | (np.abs(output.astype(np.float64) - mean) <= room)
    return bool(usual[emptied].all())


@dataclass
class Trial:
    """A candidate and what the evidence says of it so far, as regards one symptom."""

    candidate: Candidate
    symptom: str
    counts: dict[Bearing, int] = field(default_factory=lambda: dict.fromkeys(Bearing, 0))
    explains: list[Evidence] = field(default_factory=list)
    r: float = 0.0
    checked: bool = False  # whether passing problems were looked at
    more: int = 0  # how much of the fresh evidence was looked at
    refuted: bool = False  # by fresh evidence
    barely: int = 0  # passing problems that it fits since its budget is wide
    _closeness: float = 0.0

    def add(self, evidence: Evidence, prediction: Prediction | None) -> None:
        found = bearing(prediction, evidence, self.symptom)
        self.counts[found.bearing] += 1
        self._closeness += found.closeness
        self.barely += found.barely
        if found.bearing is Bearing.EXPLAINED:
            self.explains.append(evidence)
            self.r = max(self.r, found.r)

    def include(self, other: "Trial") -> None:
        """Counts what other evidence says of the same candidate too."""
        for bearing, number in other.counts.items():
            self.counts[bearing] += number
        self.explains += other.explains
        self.r = max(self.r, other.r)
        self._closeness += other._closeness
        self.barely += other.barely

    @property
    def explained(self) -> int:
        return self.counts[Bearing.EXPLAINED]

    @property
    def mispredicted(self) -> int:
        return self.counts[Bearing.MISPREDICTED]

    @property
    def contradictions(self) -> int:
        return self.counts[Bearing.CONTRADICTED]

    @property
    def wrong(self) -> int:
        """The number of problems that speak against the candidate, if it is to explain all."""
        return self.mispredicted + self.contradictions + self.counts[Bearing.UNEXPLAINED]

    @property
    def clear(self) -> int:
        """The number of failing problems that say something clear."""
        return self.explained + self.mispredicted + self.counts[Bearing.UNEXPLAINED]

    @property
    def failing(self) -> int:
        return self.clear + self.counts[Bearing.UNCLEAR]

    @property
    def passing(self) -> int:
        return self.contradictions + self.counts[Bearing.FITTING]

    @property
    def closeness(self) -> float:
        """The mean over the failing problems on which it shows."""
        return self._closeness / max(1, self.failing - self.counts[Bearing.UNEXPLAINED])

    @property
    def hopeless(self) -> bool:
        tries = self.failing if self.symptom in ("raises", "dtype") else self.mispredicted
        return self.explained == 0 and tries >= TRIES

    @property
    def right_where_it_shows(self) -> bool:
        """Whether nothing contradicts, and failures of which it gives one are the very ones."""
        return not self.contradictions and not self.mispredicted

    @property
    def explains_nearly_all(self) -> bool:
        """Of the problems that say something clear; and it is right where it shows."""
        return self.explained >= max(1.0, NEARLY_ALL * self.clear) and self.right_where_it_shows

    @property
    def consistent(self) -> bool:
        """Whether it explains something, and is right where it shows as far as is known."""
        return self.explained > 0 and not self.refuted and self.right_where_it_shows

    @property
    def rank(self) -> tuple[float, ...]:
        """The best first: most explained, without a limit to dtypes, in dtypes in which the faults are known, with the smallest
        r, the shortest name."""
        known = set.intersection(*(set(fault.dtypes) for fault in self.candidate.faults))
        elsewhere = sum(evidence.problem.dtype not in known for evidence in self.explains)
        length = sum(len(fault.id) for fault in self.candidate.faults)  # whatever shows in special cases only has a longer one
        limited = bool(self.candidate.only)
        return (-self.explained, self.contradictions, self.mispredicted, limited, elsewhere, round(self.r, 1), length)

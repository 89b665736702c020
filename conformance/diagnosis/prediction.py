"""What a fault, or several at once, would give for a problem, and how far rounding may take an implementation with it from that.

A fault that is a rewriting of the inputs has its output and its budget from the oracle, so that r against it means what it means
everywhere. One that computes has no such budget. It is judged within the largest that the correct computation has in any row of
the same head and column, since a fault may give a row the weights of another; within two roundings of the output; and within
the response of the fault itself to inputs moved by one unit in the last place, times eight: scores that are not scaled, say, are
as much more sensitive as they are larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformance.diagnosis.accuracy import expected_by
from conformance.diagnosis.evidence import Evidence, excess, with_output
from conformance.faults.fault import Fault
from conformance.faults.steps import kv_heads
from conformance.numerics.dtypes import float_type
from conformance.numerics.profiles import roundoffs
from conformance.oracle.expected import Expected
from conformance.problem.inputs import Inputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
NEAR = 0.25  # the share of the error, or of the deviation that the fault makes, that roundings may have part in
RESPONSES = 8.0  # a unit in the last place at random signs is less than what the roundings of a score may add up to


@dataclass(frozen=True)
class Candidate:
    """A fault, or several that are there at once, in the order in which they act. ``only``: the dtypes in which they are there,
    none for all; that holds for the ``limited`` ones of them, or for all where none is named."""

    faults: tuple[Fault, ...]
    only: tuple[str, ...] = ()
    limited: tuple[Fault, ...] = ()

    def within(self, fault: Fault) -> tuple[str, ...]:
        """The dtypes in which a fault of the candidate is there, none for all."""
        return self.only if not self.limited or fault in self.limited else ()

    def there(self, dtype: str) -> list[Fault]:
        """The faults that are there in ``dtype``."""
        return [fault for fault in self.faults if not self.within(fault) or dtype in self.within(fault)]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(fault.id for fault in self.faults)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is to be seen: ``symptoms`` as in Evidence, and the ``expected`` output where there is one to compare. A rewriting has
    ``inputs``, whose mean of V is a usual answer in fully masked rows, and whose V may be NaN or infinite at hidden keys:
    elements that ``leaks`` marks may be NaN then."""

    symptoms: Mapping[str, str]
    expected: Expected | None = None
    inputs: Inputs | None = None
    leaks: Array | None = None

    @property
    def shows(self) -> bool:
        """Whether an implementation with the fault would be wrong here."""
        return bool(self.symptoms)


def together(candidate: Candidate, fault: Fault, only: tuple[str, ...] = ()) -> list[Candidate]:
    """The candidate and one more fault at once, ``only`` in some dtypes, which rewrites before or after those of the candidate
    do, and computes after all. None for behaviours, which are looked at apart."""
    if fault.behaviour or any(other.behaviour for other in candidate.faults) or fault in candidate.faults:
        return []
    rewriting = tuple(other for other in candidate.faults if other.rewrite)
    computing = tuple(other for other in candidate.faults if other.compute)
    limits = (only, (fault,)) if only else ()
    if fault.compute:
        return [Candidate((*candidate.faults, fault), *limits)]
    orders = {(*rewriting, fault, *computing), (fault, *rewriting, *computing)}
    return [Candidate(order, *limits) for order in sorted(orders, key=lambda order: order[0] is fault)]


def predict(candidate: Candidate, evidence: Evidence) -> Prediction | None:
    """None where the candidate cannot show, or says nothing: faults that compute, where more than one would show."""
    active = [fault for fault in candidate.there(evidence.problem.dtype) if fault.needs <= evidence.features]
    inputs = evidence.inputs
    with np.errstate(all="ignore"):
        try:
            for fault in active:
                inputs = fault.rewrite(inputs) if fault.rewrite else inputs
        except Exception:  # a rewriting that such inputs were never meant for
            return None
        computing = [fault for fault in active if fault.compute]
        if not computing:
            return _rewritten(inputs, evidence) if inputs is not evidence.inputs else None
        if len(computing) == 1:
            return _computed(computing[0], inputs, evidence)
        showing = [shown for fault in computing if (shown := _computed(fault, inputs, evidence)) and shown.shows]
    return showing[0] if len(showing) == 1 else None


def _rewritten(inputs: Inputs, evidence: Evidence) -> Prediction | None:
    try:
        expected = expected_by(inputs, evidence)
    except Exception:  # inputs of which the oracle says nothing
        return None
    if expected.shape != evidence.expected.shape:
        return Prediction({"shape": f"{expected.shape} in place of {evidence.expected.shape}"})
    if expected.dtype != evidence.expected.dtype:
        return Prediction({"dtype": f"{expected.dtype} in place of {evidence.expected.dtype}"})
    correct = evidence.expected
    with np.errstate(invalid="ignore"):
        as_it_was = np.abs(expected.output - correct.output) <= correct.budget
    budget = np.where(as_it_was, np.maximum(expected.budget, correct.budget), expected.budget)
    prediction = _with_values({}, replace(expected, rows=correct.rows, budget=budget), evidence)
    return replace(prediction, inputs=inputs, leaks=_leaks(inputs, evidence))


def _leaks(inputs: Inputs, evidence: Evidence) -> Array | None:
    """The elements of the output to which a hidden key contributes 0 times what is not finite, where V was finite at first."""
    before = evidence.inputs
    if inputs.plain is None or before.plain is None:
        return None
    infinite = ~np.isfinite(inputs.value.astype(np.float64))
    if not infinite.any() or not np.isfinite(before.value.astype(np.float64)).all():
        return None
    shared = infinite[:, kv_heads(inputs.query.shape[1], infinite.shape[1])]
    return evidence.expected.rows_of((~visible_pairs(inputs.plain)).astype(np.float64) @ shared.astype(np.float64) > 0)


def _rounding(output: Array, dtype: str) -> Array:
    """One rounding of each finite element."""
    return float_type(dtype).unit_roundoff * np.abs(np.where(np.isfinite(output), output, 0.0)).astype(np.float64)


def _computed(fault: Fault, inputs: Inputs, evidence: Evidence) -> Prediction | None:
    try:
        output = _output(fault, inputs)
    except Exception as error:  # the fault refuses, as an implementation with it would
        return Prediction({"raises": type(error).__name__})
    seen = with_output(evidence, output)
    if seen.output is None:
        return Prediction(dict(seen.symptoms))
    symptoms = {symptom: how for symptom, how in seen.symptoms.items() if symptom != "values"}
    correct = evidence.expected
    want = correct.rows_of(seen.output).astype(correct.output.dtype)
    known = np.where(correct.judged & np.isfinite(correct.budget), correct.budget, 0.0)  # fully masked rows have no budget
    budget = np.broadcast_to(known.max(axis=-2, keepdims=True), want.shape)
    budget = np.maximum(budget, 2.0 * _rounding(want, correct.dtype))
    prediction = _with_values(symptoms, replace(correct, output=want, budget=budget), evidence)
    if not _near(prediction, evidence):
        return prediction
    budget = np.maximum(budget, RESPONSES * _response(fault, inputs, evidence, want))
    return _with_values(symptoms, replace(correct, output=want, budget=budget), evidence)


def _near(prediction: Prediction, evidence: Evidence) -> bool:
    """Whether a larger budget could matter: the output is another one, and yet not far away from what was seen."""
    expected, output = prediction.expected, evidence.output
    if expected is None or output is None or "values" not in prediction.symptoms:
        return False
    seen, correct = expected.rows_of(output).astype(np.float64), evidence.expected.output.astype(np.float64)
    with np.errstate(all="ignore"):
        rest, error = np.abs(seen - expected.output.astype(np.float64)), np.abs(seen - correct)
        wrong = (rest > expected.budget) & np.isfinite(rest)
        away = np.abs(expected.output.astype(np.float64) - correct)
    return bool(wrong.any()) and bool(np.median(rest[wrong] / np.maximum(error, away)[wrong]) < NEAR)


def _output(fault: Fault, inputs: Inputs) -> Array:
    assert fault.compute is not None
    return np.asarray(fault.compute(inputs))


def _response(fault: Fault, inputs: Inputs, evidence: Evidence, output: Array) -> Array | float:
    """How far the output moves when the inputs do by a unit in the last place: those that scores are made of, where the profile
    rounds scores to the dtype of the inputs, and all others."""
    if not inputs.attends:
        return 0.0
    kind = float_type(evidence.expected.dtype)
    scores_in_dtype = roundoffs(evidence.profile, kind.name).scores >= kind.unit_roundoff
    unit = kind.unit_roundoff if not evidence.claim else max(kind.unit_roundoff, *_of_steps(evidence))
    moved = [_moved_values(inputs, unit), *([_moved_scores(inputs, unit)] if scores_in_dtype else [])]
    total = np.zeros(output.shape)
    for changed in moved:
        response = (evidence.expected.rows_of(_output(fault, changed)).astype(output.dtype) - output).astype(np.float64)
        squares = np.where(np.isfinite(response), response, 0.0) ** 2
        total += np.sqrt(np.maximum(squares, squares.mean(-1, keepdims=True)))  # an element may stay by chance, not a row
    return total


def _of_steps(evidence: Evidence) -> tuple[float, float]:
    """The unit roundoffs of scores and probabilities in the profile."""
    units = roundoffs(evidence.profile, evidence.expected.dtype)
    return units.scores, units.probabilities


def _moved_scores(inputs: Inputs, unit: float) -> Inputs:
    return inputs.but(query=_moved(inputs.query, 1, unit), key=_moved(inputs.key, 2, unit))


def _moved_values(inputs: Inputs, unit: float) -> Inputs:
    moved = inputs.but(value=_moved(inputs.value, 3, unit))
    output = inputs.arrays().get("weights.output")
    return moved if output is None else moved.but(weights=moved.weights.but(output=_moved(output, 4, unit)))


def _moved(array: Array, seed: int, unit: float) -> Array:
    """Each element two units of roundoff up or down, which is one in the last place; zeros stay."""
    signs = np.random.default_rng(seed).integers(0, 2, array.shape) * 2 - 1
    return (array.astype(np.float64) * (1.0 + 2.0 * unit * signs)).astype(array.dtype)


def _with_values(symptoms: dict[str, str], expected: Expected, evidence: Evidence) -> Prediction:
    """Adds the symptom of wrong values where an implementation with the fault would fail the problem."""
    correct = evidence.expected
    emptied = correct.judged & ~expected.judged  # rows that the fault masks fully: what they give is a convention
    if deviation(expected, correct).max(initial=0.0) > 1.0 or emptied.any():
        symptoms = {**symptoms, "values": ""}
    return Prediction(symptoms, expected)


def deviation(expected: Expected, correct: Expected) -> Array:
    """How far what a fault gives is from what is right, in budgets of the latter, by element; 0 where either is not judged."""
    return excess(whole(expected.output, correct), replace(correct, judged=correct.judged & expected.judged))


def whole(rows: Array, expected: Expected) -> Array:
    """``rows`` as ``excess`` takes an output: at full length."""
    if expected.rows is None:
        return rows
    whole = np.zeros(expected.shape, rows.dtype)
    whole[..., expected.rows, :] = rows
    return whole


def alone(faults: Sequence[Fault]) -> list[Candidate]:
    """Each fault as a candidate of its own."""
    return [Candidate((fault,)) for fault in faults]

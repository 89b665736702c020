"""Faults of behaviour are not predicted but run: through the same calls, in the same order, as the implementation was."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from conformance.diagnosis.evidence import OF_ONE_CALL, OVER_CALLS, Evidence, Examiner
from conformance.diagnosis.prediction import Candidate, Prediction, predict
from conformance.faults.fault import Fault
from conformance.faults.functions import implementation_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge


class Predictor:
    """Predicts what any candidate gives for any of the evidence, in the order in which it was gathered."""

    def __init__(self, judging: Judge, evidence: Sequence[Evidence]) -> None:
        self.judging = judging
        self.evidence = list(evidence)
        self._runs: dict[str, list[Evidence | None]] = {}

    def __call__(self, candidate: Candidate, evidence: Evidence) -> Prediction | None:
        if candidate.faults[0].behaviour is None:
            return predict(candidate, evidence)
        if not candidate.there(evidence.problem.dtype):
            return None
        run = self._run(candidate.faults[0])
        place = next(number for number, known in enumerate(self.evidence) if known is evidence)
        return _seen(run[place], evidence, any(symptom in one.symptoms for one in run if one for symptom in OVER_CALLS))

    def extend(self, evidence: Sequence[Evidence]) -> None:
        """Adds evidence that was gathered later; what was run before is run again, so that its past is the same."""
        self.evidence += evidence
        self._runs.clear()

    def _run(self, fault: Fault) -> list[Evidence | None]:
        if fault.id not in self._runs:
            look = Examiner(Subject(implementation_of(fault)), self.judging).look
            self._runs[fault.id] = [look(known.problem, partial(_as_before, known)) for known in self.evidence]
        return self._runs[fault.id]


def _seen(run: Evidence | None, evidence: Evidence, by_outcome: bool) -> Prediction | None:
    """What the run shows. Outputs that depend on other calls are not compared: the calls before ours are not known."""
    symptoms = (
        {}
        if run is None
        else {symptom: how for symptom, how in run.symptoms.items() if not (by_outcome and symptom in OF_ONE_CALL)}
    )
    if run is None or not symptoms:
        return None
    if run.output is None or by_outcome:
        return Prediction(symptoms)
    correct = evidence.expected
    output = correct.rows_of(run.output)
    return Prediction(symptoms, replace(correct, output=output.astype(correct.output.dtype), budget=2.0 * correct.budget))


def _as_before(known: Evidence, again: Evidence) -> bool:
    """Whether a problem is looked at over several calls: as it was the first time."""
    return known.probed

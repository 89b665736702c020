"""Looking at problems again, and the searches for what explains different symptoms, which share what was seen."""

from collections.abc import Iterable, Sequence

from conformance.diagnosis.accuracy import judged_by
from conformance.diagnosis.clock import TimeBudget
from conformance.diagnosis.evidence import BESIDE, Evidence, Examiner, Probing
from conformance.diagnosis.prediction import Candidate
from conformance.diagnosis.search import Search
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.telling import Telling
from conformance.diagnosis.trial import Trial
from conformance.problem import Problem

PROBED = 6  # wrong ones that are looked at over several calls


class FirstWrong:
    """Says which evidence is looked at over several calls: what is right at first, and the first few of what is wrong."""

    def __init__(self) -> None:
        self.wrong = 0

    def __call__(self, evidence: Evidence) -> bool:
        self.wrong += not evidence.passes
        return evidence.passes or self.wrong <= PROBED


def never(evidence: Evidence) -> bool:
    return False


def look_at(examiner: Examiner, problems: Iterable[Problem], probe: Probing, clock: TimeBudget, share: float) -> list[Evidence]:
    """Evidence of each problem that is offered, for as long as there is time; of one at least."""
    found: list[Evidence] = []
    for problem in problems:
        if found and not clock.left(share):
            break
        evidence = examiner.look(problem, probe, share)
        if evidence is not None:
            found.append(evidence)
    return found


class Searches:
    """Makes a search for each symptom, of what was ``gathered`` so far."""

    def __init__(self, telling: Telling, gathered: Sequence[Evidence], predictor: Predictor, in_company: bool) -> None:
        self.telling = telling
        self.gathered = gathered
        self.known = {evidence.problem for evidence in gathered}
        self.predictor = predictor
        self.in_company = in_company

    def of(self, symptom: str, failing: list[Evidence]) -> Search:
        passing = [evidence for evidence in self.gathered if symptom not in evidence.symptoms]
        if symptom == "values":
            failing, passing = _of_expected_dtype(failing, passing)

        def fresh(rivals: Sequence[Trial]) -> list[Evidence]:
            found = self._fresh(self.telling, rivals, failing)
            return _of_expected_dtype(failing, found)[1] if symptom == "values" else found

        return Search(symptom, failing, passing, self.predictor, fresh, self.telling.clock, self.in_company)

    def within(self, dtype: str, seen: Sequence[Evidence], claim: str = "") -> Search:
        """For wrong values of one dtype among what was ``seen``, judged by a ``claim`` where there is one."""

        def judged(evidence: Iterable[Evidence]) -> list[Evidence]:
            own = [one for one in evidence if one.problem.dtype == dtype and "dtype" not in one.symptoms]
            return [again for one in own if (again := judged_by(one, claim)) is not None]

        evidence = judged(seen)
        failing = [one for one in evidence if "values" in one.symptoms]
        passing = [one for one in evidence if "values" not in one.symptoms]
        telling = self.telling.within(dtype)

        def fresh(rivals: Sequence[Trial]) -> list[Evidence]:
            return judged(self._fresh(telling, rivals, failing))

        return Search("values", failing, passing, self.predictor, fresh, telling.clock)

    def more_of(self, dtype: str, number: int, share: float) -> list[Evidence]:
        """Evidence of so many more failing problems of a dtype, if there are."""
        telling = self.telling.within(dtype)
        found = look_at(telling.examiner, telling.failures(number, self.known), never, telling.clock, share) if number > 0 else []
        self._know(found)
        return found

    def against(self, rivals: Sequence[Candidate], failures: Sequence[Problem], share: float) -> list[Evidence]:
        """Evidence of more problems: on which rivals differ from the first one, and that passed, on which some would show."""
        telling = self.telling
        problems = dict.fromkeys(telling.apart(rivals, failures))
        problems |= dict.fromkeys(problem for rival in rivals for problem in telling.against(rival, self.known))
        new = [problem for problem in problems if problem not in self.known]
        found = look_at(telling.examiner, new, never, telling.clock, share) if new else []
        self._know(found)
        return found

    def _fresh(self, telling: Telling, rivals: Sequence[Trial], failing: Sequence[Evidence]) -> list[Evidence]:
        candidates = [trial.candidate for trial in rivals]
        problems = telling.problems(candidates, [evidence.problem for evidence in failing], self.known)
        several = any(symptom in BESIDE for evidence in failing for symptom in evidence.symptoms)
        found = look_at(telling.examiner, problems, FirstWrong() if several else never, telling.clock, 0.95)
        self._know(found)
        return found

    def _know(self, found: Iterable[Evidence]) -> None:
        self.known |= {evidence.problem for evidence in found}


def _of_expected_dtype(failing: list[Evidence], passing: list[Evidence]) -> tuple[list[Evidence], list[Evidence]]:
    """Without outputs of another dtype, which were computed in another precision, if enough is left."""
    clean = [evidence for evidence in failing if "dtype" not in evidence.symptoms]
    if not clean:
        return failing, passing
    return clean, [evidence for evidence in passing if "dtype" not in evidence.symptoms]

"""More problems for faults that explain what is known: the same with other numbers, those that could contradict them, and those
on which they differ from each other."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from conformance.diagnosis.choice import enlarged, renewed, sharpened, varied, weakened
from conformance.diagnosis.clock import TimeBudget
from conformance.diagnosis.evidence import Evidence, Examiner, excess
from conformance.diagnosis.prediction import Candidate, Prediction, predict, whole
from conformance.errors import ProblemError, Unsupported
from conformance.problem import Problem

FRESH = 12  # problems with other numbers
BATCH, OF_A_DTYPE = 128, 32  # known failures that were not looked at before, of all dtypes or of one
EACH = 2  # problems of a kind for each candidate
RIVALS = 12  # candidates for which problems are looked for
UNTIL = 0.85  # of the time


@dataclass(frozen=True)
class Telling:
    """Where more problems come from: those that the implementation failed and passed, and variations of its failures. ``only``:
    the dtypes that are looked at, none for all; ``batch``: how many failures at once."""

    examiner: Examiner
    clock: TimeBudget
    failing: Sequence[Problem]
    passing: Sequence[Problem]
    only: tuple[str, ...] = ()
    batch: int = BATCH

    def within(self, dtype: str) -> "Telling":
        """The problems of one dtype."""
        failing, passing = ([p for p in problems if p.dtype == dtype] for problems in (self.failing, self.passing))
        return replace(self, failing=failing, passing=passing, only=(dtype,), batch=OF_A_DTYPE)

    def failures(self, number: int, known: set[Problem]) -> list[Problem]:
        """So many of the failing problems that are new."""
        return varied([problem for problem in self.failing if problem not in known], number)

    def problems(self, rivals: Sequence[Candidate], failures: Sequence[Problem], known: set[Problem]) -> list[Problem]:
        """New problems to run, beside those ``known``; ``failures`` are what the rivals explain."""
        rivals = rivals[:RIVALS]
        passing = self._unknown(self.passing, known, rivals)
        failing = [problem for problem in self.failing if problem not in known]
        found = dict.fromkeys(_renewed(failures, known) or _renewed(varied(self.failing, FRESH), known))
        found |= dict.fromkeys(varied(failing, self.batch))
        found |= dict.fromkeys(self._where(rivals, passing, _shows))
        found |= dict.fromkeys(self.apart(rivals, failures))
        return [problem for problem in found if problem not in known]

    def apart(self, rivals: Sequence[Candidate], failures: Sequence[Problem]) -> list[Problem]:
        """Variations of the failures on which rivals differ from the first one."""
        dtypes = self.only or self.examiner.subject.implementation.support.dtypes
        varied = (other for one in failures for other in (*weakened(one), *sharpened(one, dtypes), *enlarged(one)))
        return list(self._where(rivals, varied, unlike)) if len(rivals) > 1 else []

    def against(self, candidate: Candidate, known: set[Problem]) -> list[Problem]:
        """New problems that pass, on which the candidate would show."""
        return list(self._where([candidate], self._unknown(self.passing, known, [candidate]), _shows))

    @staticmethod
    def _unknown(problems: Sequence[Problem], known: set[Problem], rivals: Sequence[Candidate]) -> list[Problem]:
        """Those that are new and on which some rival can show; a feature may have been folded into the mask."""
        needs = {fault.needs for rival in rivals for fault in rival.faults}
        new = [p for p in problems if p not in known and any(needed <= p.features | {"mask"} for needed in needs)]
        return varied(new, len(new))

    def _where(
        self,
        rivals: Sequence[Candidate],
        problems: Iterable[Problem],
        test: Callable[[Prediction | None, Prediction | None], bool],
    ) -> Iterator[Problem]:
        """Problems for which the ``test`` of what a rival predicts, beside what the first one does, is true; EACH for a rival."""
        served: Counter[int] = Counter()
        for problem in problems:
            if not self.clock.left(UNTIL) or all(served[number] >= EACH for number in range(len(rivals))):
                return
            evidence = self._prepared(problem)
            if evidence is None:
                continue
            first = predict(rivals[0], evidence)
            serves = [n for n, rival in enumerate(rivals) if served[n] < EACH and test(predict(rival, evidence), first)]
            if serves:
                served.update(serves)
                yield problem

    def _prepared(self, problem: Problem) -> Evidence | None:
        try:
            with np.errstate(all="ignore"):
                return self.examiner.prepared(problem)
        except (ProblemError, Unsupported):  # a variation that is no problem, or is not offered
            return None


def _shows(predicted: Prediction | None, _: Prediction | None) -> bool:
    return predicted is not None and predicted.shows


def _renewed(failures: Sequence[Problem], known: set[Problem]) -> list[Problem]:
    """The failures with numbers that are new, again and again until there are enough; none where none can be renewed."""
    renewable = [problem for problem in failures if renewed(problem, 1) is not None]
    endless = (other for number in count(1) for problem in renewable if (other := renewed(problem, number)) not in known)
    return [problem for problem in islice(endless, FRESH) if problem is not None] if renewable else []


def unlike(one: Prediction | None, other: Prediction | None) -> bool:
    """Whether some output could fit one of two predictions and not the other."""
    if one is None or other is None or one.expected is None or other.expected is None:
        return (one.symptoms if one else {}) != (other.symptoms if other else {})
    if set(one.symptoms) != set(other.symptoms):
        return True
    apart = replace(one.expected, budget=one.expected.budget + other.expected.budget)
    return bool(excess(whole(other.expected.output, one.expected), apart).max(initial=0.0) > 1.0)

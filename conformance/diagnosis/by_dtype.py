"""Wrong values explained dtype by dtype, where no fault explains all of them: by faults that are there in some dtypes only, and
by lower accuracy than is expected, alone or besides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conformance.diagnosis.accuracy import is_sharp, judged_by, looser, told
from conformance.diagnosis.evidence import Evidence
from conformance.diagnosis.prediction import Candidate
from conformance.diagnosis.search import Explanation, Search
from conformance.diagnosis.searches import Searches
from conformance.diagnosis.trial import Trial
from conformance.faults.fault import Fault
from conformance.numerics.dtypes import DTYPES

FIRST = "float32"  # faults are told apart well in it, and it is seldom less accurate than is expected
OTHERWISE = "float64"  # of all dtypes, it is computed in a way of its own most often
SEEN = 8  # failing problems of a dtype that are looked at to begin with
MORE = 64  # and to make sure that all that is wrong with it is its accuracy
RIVALS = 6  # that explain the same
SHARE, FURTHER = 0.75, 0.85  # of the time


@dataclass(frozen=True)
class Part:
    """What explains the failures of one dtype: a fault, or lower accuracy, which is the ``claim`` that is met, or both."""

    dtype: str
    search: Search
    claim: str = ""
    explanation: Explanation | None = None

    @property
    def is_explained(self) -> bool:
        return self.explanation is not None or bool(self.claim)

    @property
    def trials(self) -> list[Trial]:
        """Of all faults that explain it."""
        return [] if self.explanation is None else [self.explanation.trial, *self.explanation.rivals]

    @property
    def candidates(self) -> set[tuple[Fault, ...]]:
        return {trial.candidate.faults for trial in self.trials}

    @property
    def accuracy(self) -> str:
        """What is said of lower accuracy, if anything."""
        return told(self.search.failing[0], self.claim) if self.claim else ""


class ByDtype:
    """The parts of what ``search``, for wrong values, could not explain as a whole by one of the ``faults``."""

    def __init__(self, searches: Searches, search: Search, faults: Sequence[Fault]) -> None:
        self._searches = searches
        self._faults = [fault for fault in faults if fault.behaviour is None]
        self._seen = [*search.failing, *search.passing, *search.more]
        wrong = {evidence.problem.dtype for evidence in search.all_failing if "dtype" not in evidence.symptoms}
        self.parts: list[Part] = []
        for dtype in sorted(wrong, key=lambda dtype: (dtype != FIRST, dtype == OTHERWISE, DTYPES.index(dtype))):
            self.parts.append(self._part(dtype))
            if not self.parts[-1].is_explained and dtype != OTHERWISE:  # nothing stands beside that
                break
        self.explanations = list(self._explained())

    @property
    def explains_all(self) -> bool:
        return all(part.is_explained for part in self.parts)

    @property
    def left(self) -> list[Search]:
        """The failures that no fault explains: of each dtype that is less accurate alone, and of all others."""
        less = [part.search for part in self.parts if part.claim and part.explanation is None]
        others = [part.search for part in self.parts if not part.is_explained]
        together = [evidence for search in others for evidence in search.failing]
        return [*less, *([replace(others[0], failing=together, singles=[])] if others else [])]

    def _part(self, dtype: str) -> Part:
        within, clock = self._searches.within, self._searches.telling.clock
        strict = within(dtype, self._seen)
        self._seen += self._searches.more_of(dtype, SEEN - len(strict.failing), SHARE)
        strict = within(dtype, self._seen)
        found = self._explanation(strict, self._faults)
        if found is not None:
            return Part(dtype, strict, explanation=found)
        for claim in looser(strict.failing[0]):
            search = within(dtype, self._seen, claim)
            if not search.failing:
                self._seen += self._searches.more_of(dtype, MORE, SHARE)
                search = within(dtype, self._seen, claim)
            if not search.failing:
                return Part(dtype, strict, claim)
            faults = self._faults if is_sharp(search.failing[0], claim) else []
            found = self._explanation(search, faults) if clock.left(SHARE) else None
            if found is not None:
                return Part(dtype, search, claim, found)
        return Part(dtype, strict)

    def _explanation(self, search: Search, faults: Sequence[Fault]) -> Explanation | None:
        """One of the faults, or of those that explained another dtype, which are tried first."""
        named = [fault for part in self.parts for trial in part.trials for fault in trial.candidate.faults]
        others = [fault for fault in faults if fault not in named]
        found = search.all_of(list(dict.fromkeys(named)), SHARE) or search.all_of(others, SHARE)
        return found if found and 2 * found.trial.explained >= found.trial.failing else None

    def _explained(self) -> Iterator[Explanation]:
        """Each fault once, for all dtypes that it explains. Parts of which the fault does not stand are left unexplained."""
        for parts, faults in self._alike():
            found = self._merged(parts, faults)
            if found is not None and self._stands(parts, found.trial.candidate):
                yield found
            else:
                self.parts = [replace(part, claim="", explanation=None) if part in parts else part for part in self.parts]

    def _stands(self, parts: Sequence[Part], candidate: Candidate) -> bool:
        """Whether what is left unexplained in other dtypes leaves the fault its name. Only float64 may be left, which often is
        computed in another way: other faults that give nearly the same differ in some dtype. The fault must be known from
        float32, or fit what is left where float32 is free of failures: larger budgets have room for more faults."""
        left = [part for part in self.parts if not part.is_explained]
        if not left or [part.dtype for part in left] != [OTHERWISE]:
            return not left
        if self.parts[0].dtype == FIRST:
            return self.parts[0] in parts and not self.parts[0].claim
        trial = Trial(replace(candidate, only=()), "values")
        for evidence in left[0].search.failing:
            trial.add(evidence, self._searches.predictor(trial.candidate, evidence))
        return not trial.mispredicted

    def _alike(self) -> Iterator[tuple[list[Part], list[tuple[Fault, ...]]]]:
        """The parts that the same faults explain."""
        left = [part for part in self.parts if part.explanation is not None]
        while left:
            alike, faults = left[:1], left[0].candidates
            for part in left[1:]:
                if faults & part.candidates:
                    alike, faults = [*alike, part], faults & part.candidates
            yield alike, sorted(faults, key=lambda each: _least_barely(alike, each))
            left = [part for part in left if part not in alike]

    def _merged(self, parts: Sequence[Part], faults: Sequence[tuple[Fault, ...]]) -> Explanation | None:
        """The faults on what was seen of all dtypes, and on more that tells them apart, as far as there is time; None where that
        refutes them."""
        failures = [evidence.problem for part in parts for evidence in part.search.failing]
        more = self._searches.against([Candidate(each) for each in faults[:RIVALS]], failures, FURTHER)
        seen, clock = self._judged([*self._seen, *more]), self._searches.telling.clock
        compared = [each for n, each in enumerate(faults) if n == 0 or (n < RIVALS and clock.left(FURTHER))]
        trials = [trial for each in compared if (trial := self._everywhere(each, parts, seen, more)).explains_nearly_all]
        best = min(trials, key=lambda trial: (trial.barely, trial.rank), default=None)
        if best is None or 2 * best.barely > best.explained:  # what would show on much that passes is hardly there
            return None
        only = best.candidate.only
        rivals = [trial for trial in trials if trial is not best and trial.candidate.only == only]
        rivals += [replace(_within(parts, each), candidate=Candidate(each, only)) for each in faults if each not in compared]
        less = tuple((part.dtype, part.accuracy) for part in parts if part.claim)
        unknown = tuple(part.dtype for part in self.parts if not part.is_explained)
        return Explanation(best, len(more) + sum(len(part.search.more) for part in parts), tuple(rivals), less, unknown)

    def _everywhere(
        self, faults: tuple[Fault, ...], parts: Sequence[Part], seen: Sequence[Evidence], more: Sequence[Evidence]
    ) -> Trial:
        """The faults in all dtypes, if nothing speaks against them in any other; else in those of the ``parts`` only."""
        own, dtypes, new = _within(parts, faults), {part.dtype for part in parts}, {evidence.problem for evidence in more}
        candidate = Candidate(faults)
        elsewhere, passing = (Trial(candidate, "values") for _ in range(2))
        for evidence in seen:
            if evidence.problem.dtype not in dtypes or evidence.problem in new:
                trial = own if evidence.problem.dtype in dtypes else elsewhere if "values" in evidence.symptoms else passing
                trial.add(evidence, self._searches.predictor(candidate, evidence))
        if not elsewhere.right_where_it_shows or not passing.right_where_it_shows:
            return own
        own.include(passing)
        return replace(own, candidate=candidate)

    def _judged(self, seen: Sequence[Evidence]) -> list[Evidence]:
        """What was seen, judged by the accuracy that each dtype has."""
        claims = {part.dtype: part.claim for part in self.parts}
        expected = [evidence for evidence in seen if "dtype" not in evidence.symptoms]
        judged = (judged_by(evidence, claims.get(evidence.problem.dtype, "")) for evidence in expected)
        return [evidence for evidence in judged if evidence is not None]


def _within(parts: Sequence[Part], faults: tuple[Fault, ...]) -> Trial:
    """What the parts say of the faults, taken to be there in their dtypes only."""
    dtypes = tuple(sorted((part.dtype for part in parts), key=DTYPES.index))
    trial = Trial(Candidate(faults, dtypes), "values")
    for part in parts:
        trial.include(next(one for one in part.trials if one.candidate.faults == faults))
    return trial


def _least_barely(parts: Sequence[Part], faults: tuple[Fault, ...]) -> tuple[float, ...]:
    """Sorts faults that explain the same: what fits only where budgets are wide comes last."""
    trial = _within(parts, faults)
    return (trial.barely, *trial.rank)

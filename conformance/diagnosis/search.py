"""The search for what explains one kind of failure: every fault alone, then two at once, then several side by side."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from conformance.diagnosis.clock import TimeBudget
from conformance.diagnosis.evidence import OF_ONE_CALL, Evidence
from conformance.diagnosis.prediction import Candidate, alone, together
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.trial import NEARLY_ALL, Trial
from conformance.faults.fault import Fault

LEADERS = 10  # singles of which pairs are made, and that passing problems are tried on
ENOUGH = 3  # failing problems that a second fault must explain beside one that explains nearly all
ARBITRARY = 6  # faults in combinations that explain the same; of more than so many none says anything
SIDE_BY_SIDE = 3
EQUALS = 2  # best ones that explain the same, so that what outputs do not tell is said


@dataclass(frozen=True)
class Explanation:
    """A candidate that explains failures of one symptom; ``rivals`` do as well, on all that was looked at. ``fresh`` problems
    were run to make sure. ``less_accurate``: dtypes in which it does so only if less accuracy is asked for, and what is said of
    it. ``open``: dtypes of which nothing is known, since they fail in other ways."""

    trial: Trial
    fresh: int
    rivals: tuple[Trial, ...] = ()
    less_accurate: tuple[tuple[str, str], ...] = ()
    open: tuple[str, ...] = ()


@dataclass
class Search:
    """The search as regards one symptom. ``failing`` shows it, ``passing`` does not; ``fresh`` runs more problems for rivals.
    ``in_company``: each fails behind others only."""

    symptom: str
    failing: Sequence[Evidence]
    passing: Sequence[Evidence]
    predictor: Predictor
    fresh: Callable[[Sequence[Trial]], list[Evidence]]
    clock: TimeBudget
    in_company: bool = False
    singles: list[Trial] = field(default_factory=list)
    more: list[Evidence] = field(default_factory=list)  # what fresh problems gave, failing and passing

    def alone(self, faults: Sequence[Fault], named: Sequence[Fault] = ()) -> Explanation | None:
        """One fault that explains nearly all failures, with a second one for what is left over. Faults that were ``named`` before
        come first."""
        others = [fault for fault in faults if fault not in named]
        shares = (0.6, 0.6, 0.7) if self.symptom == "values" else (0.9, 0.9, 0.9)
        for group, share in zip((named, *_in_order(others, self.symptom, self.in_company)), shares, strict=True):
            self.singles += self._tried(alone(group), self.failing, share)
            found = self._settled([trial for trial in self.singles if trial.explains_nearly_all])
            if found is not None:
                return self._completed(found, faults)
        return None

    def combined(self, faults: Sequence[Fault]) -> list[Explanation]:
        """Where no fault explains all: one explanation by faults in some dtypes only or two at once; else one of different ones
        that together explain nearly all; else none."""
        for rivals in self._combined(faults):
            found = self._settled([trial for trial in rivals if trial.explains_nearly_all])
            if found is not None and len(_names(found)) <= ARBITRARY:
                return [found]
        return self._side_by_side()

    def all_of(self, faults: Sequence[Fault], share: float) -> Explanation | None:
        """One fault that explains nearly all failures, tried in the order given and given up at what it does not explain."""
        self.singles += self._tried(alone(faults), self.failing, share, least=NEARLY_ALL)
        return self._settled([trial for trial in self.singles if trial.checked and trial.explains_nearly_all])

    def beside(self, candidate: Candidate, faults: Sequence[Fault]) -> Explanation | None:
        """The candidate, which explains some dtypes, with one more fault in the others."""
        best = [trial for trial in self.singles if trial.candidate.faults == candidate.faults]
        tried = self._with_one_in_some_dtypes(best, [fault for fault in faults if fault.behaviour is None])
        found = self._settled([trial for trial in tried if trial.explains_nearly_all])
        return found if found is not None and len(_names(found)) <= ARBITRARY else None

    @property
    def nearest(self) -> Trial | None:
        """What explains most of the failures, if more than half, and is right where it shows; in place of an explanation."""
        right = [trial for trial in self.singles if trial.right_where_it_shows and 2 * trial.explained > trial.clear]
        return min(right, key=lambda trial: trial.rank, default=None)

    def _tried(
        self,
        candidates: Sequence[Candidate],
        failing: Sequence[Evidence],
        share: float,
        decisive: int | None = None,
        least: float = 0.0,
    ) -> list[Trial]:
        """The candidates on failing problems, the best ones on the passing too; the best first. A candidate must explain one of
        the first ``decisive`` problems, and be able to explain the ``least`` share of all."""
        spare = (1.0 - least) * len(failing)
        trials = []
        for candidate in candidates:
            if not self.clock.left(share):
                break
            trial = Trial(candidate, self.symptom)
            for number, evidence in enumerate(failing, 1):
                trial.add(evidence, self.predictor(candidate, evidence))
                if trial.hopeless or trial.wrong > spare or (number == decisive and not trial.explained):
                    break
            if trial.explained or trial.closeness:
                trials.append(trial)
        trials.sort(key=lambda trial: trial.rank)
        best = trials[0].explained if trials else 0
        for number, trial in enumerate(trials):
            if trial.explained and (number < LEADERS or trial.explained == best) and self.clock.left(share + 0.1):
                self._on_passing(trial)
        return sorted(trials, key=lambda trial: trial.rank)

    def _on_passing(self, trial: Trial) -> None:
        """Each passing problem, until one is contradicted; at most once."""
        for evidence in self.passing if not trial.checked else ():
            trial.add(evidence, self.predictor(trial.candidate, evidence))
            if trial.contradictions:
                break
        trial.checked = True

    def _in_own_dtypes(self) -> list[Trial]:
        """Singles that explain nearly all, and are contradicted, taken to be there in the dtypes of the failures only."""
        own = tuple(sorted({evidence.problem.dtype for evidence in self.all_failing}))
        if all(evidence.problem.dtype in own for evidence in self.passing):
            return []
        candidates = [
            replace(trial.candidate, only=own)
            for trial in self.singles
            if trial.contradictions or trial.refuted
            if (trial.candidate.faults[0].behaviour is None or self.symptom == "dtype")
            and trial.explained >= NEARLY_ALL * trial.clear
        ]
        return self._tried(candidates, self.failing, share=0.75)

    def _combined(self, faults: Sequence[Fault]) -> Iterator[list[Trial]]:
        """Singles that are there in some dtypes only; the best one with each fault in some dtypes only; the ten best singles two
        by two, and the best one and the nearest one with each fault that there is. What explains nearly all by itself, and is
        contradicted, is not made better by a second fault."""
        yield self._in_own_dtypes()
        if self.symptom != "values":
            return
        contradicted = [trial for trial in self.singles if trial.contradictions]
        enough = {trial.candidate.faults[0] for trial in contradicted if trial.explained >= NEARLY_ALL * trial.clear}
        useful = [fault for fault in faults if fault.behaviour is None and fault not in enough]
        singles = [trial for trial in self.singles if trial.candidate.faults[0] in useful]
        near = sorted(singles, key=lambda trial: (trial.explained > 0, trial.closeness), reverse=True)
        best = [*singles[:1], *sorted(singles, key=lambda trial: trial.closeness, reverse=True)[:1]]
        couples = [(one.candidate, two.candidate.faults[0]) for one, two in combinations(near[:LEADERS], 2)]
        equals = [trial for trial in singles[:LEADERS] if trial.explains == singles[0].explains]
        yield self._with_one_in_some_dtypes(equals[:EQUALS], useful)
        yield self._tried_together([*couples, *_with_each(best, useful)], best[:1], share=0.9)

    def _with_one_in_some_dtypes(self, best: Sequence[Trial], faults: Sequence[Fault]) -> list[Trial]:
        """The best ones, which explain the same, with each fault, there in those dtypes only in which something is left over; and
        there in all, if that explains as much."""
        failing = self.all_failing
        left = {evidence.problem.dtype for trial in best for evidence in failing if evidence not in trial.explains}
        if len(left) == len({evidence.problem.dtype for evidence in failing}):
            return []
        tried = self._tried_together(_with_each(best, faults), best, share=0.75, only=tuple(sorted(left)))
        good = [Candidate(trial.candidate.faults) for trial in tried if trial.explains_nearly_all]
        return [*tried, *self._tried(good, failing, share=0.8)]

    def _completed(self, found: Explanation, faults: Sequence[Fault]) -> Explanation:
        """What is found, with one more fault if that explains what is left over, and enough is."""
        if found.trial.clear < found.trial.explained + ENOUGH or found.trial.candidate.faults[0].behaviour:
            return found
        tried = self._tried_together(_with_each([found.trial], faults), [found.trial], share=0.9)
        better = [trial for trial in tried if trial.explained >= found.trial.explained + ENOUGH and trial.right_where_it_shows]
        return self._settled([trial for trial in better if trial.explained == better[0].explained]) or found

    def _tried_together(
        self, couples: Sequence[tuple[Candidate, Fault]], best: Sequence[Trial], share: float, only: tuple[str, ...] = ()
    ) -> list[Trial]:
        """The couples at once, the second ``only`` in some dtypes, first on what the best does not explain."""
        for trial in best:
            self._catch_up(trial)
        known = [evidence for trial in best for evidence in trial.explains]
        order = sorted(self.all_failing, key=lambda evidence: evidence in known)
        decisive = sum(evidence not in known for evidence in order) if best else None
        tried = self._tried([both for couple in couples for both in together(*couple, only)], order, share, decisive, NEARLY_ALL)
        for trial in tried:
            trial.more = len(self.more)
            for evidence in self.more if trial.checked else ():
                if self.symptom not in evidence.symptoms:
                    trial.add(evidence, self.predictor(trial.candidate, evidence))
        return tried

    @property
    def all_failing(self) -> list[Evidence]:
        return [*self.failing, *(evidence for evidence in self.more if self.symptom in evidence.symptoms)]

    def _settled(self, rivals: Sequence[Trial]) -> Explanation | None:
        """The best of those that explain nearly all, once fresh problems have been put to them; None where none is left."""
        rivals = [trial for trial in rivals if not trial.refuted]
        if not rivals:
            return None
        self._on_fresh(rivals)
        for trial in rivals:
            trial.refuted = not trial.explains_nearly_all
        left = [trial for trial in rivals if not trial.refuted]
        fewest = min((trial.wrong for trial in left), default=0)
        kept = sorted((trial for trial in left if trial.wrong == fewest), key=lambda trial: trial.rank)
        return Explanation(kept[0], len(self.more), tuple(kept[1:])) if kept else None

    def _on_fresh(self, rivals: Sequence[Trial]) -> None:
        """Puts fresh problems to the rivals, those that were run for others too."""
        fresh = self.fresh(rivals)
        self.predictor.extend(fresh)
        self.more += fresh
        for trial in rivals:
            self._catch_up(trial)

    def _catch_up(self, trial: Trial) -> None:
        """Puts what fresh problems gave for others to the trial."""
        for evidence in self.more[trial.more :]:
            trial.add(evidence, self.predictor(trial.candidate, evidence))
        trial.more = len(self.more)

    def _side_by_side(self) -> list[Explanation]:
        """Faults of which each is right wherever it would show, on fresh problems too, and which together explain nearly all."""
        chosen = list[Trial]()
        while (left := self._left(chosen)) and len(chosen) < SIDE_BY_SIDE:
            useful = [(sum(e in trial.explains for e in left), trial) for trial in self.singles if trial.consistent]
            gain, best = max(useful, key=lambda pair: pair[0], default=(0, None))
            if best is None or gain == 0:
                break
            self._on_passing(best)
            if best.consistent:
                self._on_fresh([best])
                best.refuted = not best.right_where_it_shows
            if best.consistent:
                chosen.append(best)
        if not chosen or len(self._left(chosen)) > (1 - NEARLY_ALL) * len(self.all_failing):
            return []
        return [Explanation(trial, len(self.more)) for trial in chosen]

    def _left(self, chosen: Sequence[Trial]) -> list[Evidence]:
        """The failing problems that none of the chosen explains."""
        explained = [evidence for trial in chosen for evidence in trial.explains]
        return [evidence for evidence in self.all_failing if evidence not in explained]


def _names(found: Explanation) -> set[str]:
    """The faults of all candidates that explain the same."""
    return {name for trial in (found.trial, *found.rivals) for name in trial.candidate.names}


def _with_each(best: Sequence[Trial], faults: Sequence[Fault]) -> list[tuple[Candidate, Fault]]:
    """Each of the best candidates with each fault."""
    return [(trial.candidate, fault) for trial in best for fault in faults]


def _in_order(faults: Sequence[Fault], symptom: str, in_company: bool) -> tuple[list[Fault], list[Fault]]:
    """Faults of arithmetic and of behaviour, first those that are the likely cause of the symptom: running behaviours takes time.
    The correct computation, which follows a rewriting of the inputs, raises nothing and changes nothing."""
    arithmetic = [
        fault for fault in faults if fault.behaviour is None and (fault.compute or symptom in ("values", "shape", "dtype"))
    ]
    behaviours = [fault for fault in faults if fault.behaviour is not None]
    return (arithmetic, behaviours) if symptom in OF_ONE_CALL and not in_company else (behaviours, arithmetic)

"""Diagnosis: the failing problems are run again, beside passing ones, and every fault of the catalogue is held against both."""

from collections.abc import Iterable, Mapping, Sequence

from conformance.diagnosis.accuracy import less_accurate
from conformance.diagnosis.choice import of_all_kinds, of_same_sizes, varied
from conformance.diagnosis.clock import STRETCH, Clock, TimedJudge
from conformance.diagnosis.conditions import common
from conformance.diagnosis.evidence import BESIDE, OVER_CALLS, SIGNS, Evidence, Examiner, Probing
from conformance.diagnosis.kinds import kind_of
from conformance.diagnosis.model import Diagnosis, Finding, Unexplained
from conformance.diagnosis.places import described
from conformance.diagnosis.search import Explanation, Search
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.telling import Telling
from conformance.diagnosis.trial import Trial
from conformance.faults import catalogue
from conformance.faults.model import Fault
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.problem import Problem
from conformance.verdict import Outcome

SECONDS = 5.0
FAILING, PASSING = 16, 48  # problems run again
# Signs of which nothing need be said where others are explained: outputs that depend on other calls cannot be compared, and an
# answer that does not depend on the values may be any wrong answer.
TOLD_BY: dict[str, tuple[str, ...]] = {**dict.fromkeys(SIGNS, ()), "values": OVER_CALLS, "constant": (*OVER_CALLS, "values")}
MESSAGES = 2  # that are shown of several
RAISING = 6  # kinds of exceptions that are told
BEFORE = 6  # problems that are put before one that fails in company only
PROBED = 6  # wrong ones that are looked at over several calls


def diagnose(
    subject: Subject,
    judge: Judge,
    failing: Mapping[Problem, str],
    passing: Sequence[Problem],
    faults: Sequence[Fault] | None = None,
    seconds: float = SECONDS,
    stretch: float = STRETCH,
) -> Diagnosis:
    """What explains that the implementation fails ``failing``, each with its kind, and passes ``passing``; ``faults``: all of
    the catalogue; ``seconds`` and ``stretch`` as a Clock has them.

    Runs the implementation in this process, on as many of the problems as there is time for.
    """
    clock = Clock(seconds, stretch)
    examiner = Examiner(subject, TimedJudge(judge, clock))
    operation = subject.implementation.operation
    known = [fault for fault in (catalogue().values() if faults is None else faults) if fault.operation == operation]
    known = [fault for fault in known if not fault.equivalent]
    # What passes goes first: where an argument of an earlier call goes on working, there must have been an earlier call.
    gathered = _gathered(examiner, varied(passing, PASSING), _never, clock, 0.2)
    chosen, before = of_all_kinds(failing, FAILING), len(examiner.raised)
    gathered += _gathered(examiner, chosen, _Probing(), clock, 0.4)
    raised = examiner.raised[before:]
    in_company = all(evidence.passes for evidence in gathered)
    if in_company:
        gathered += _gathered(examiner, _with_others_before(chosen, passing), _never, clock, 0.4)
    session = _Session(Telling(examiner, clock, list(failing), passing), gathered, Predictor(judge, gathered), in_company)
    findings: list[Finding] = []
    unexplained: list[Unexplained] = []
    wrong = [evidence for evidence in gathered if not evidence.passes]
    for sign, alike in _groups(wrong):
        if any(finding.sign in TOLD_BY[sign] for finding in findings):
            continue
        search = session.search(sign, alike)
        explanations = search.explain(known, [fault for finding in findings for fault in finding.faults])
        findings += _told(explanations, findings, sign)
        if not explanations:
            unexplained.append(_unexplained(search, failing, passing))
    again = {evidence.problem for evidence in wrong}
    vanished = len({evidence.problem for evidence in gathered if evidence.problem in set(failing) - again})
    return Diagnosis(
        subject.implementation.name, tuple(findings), tuple(unexplained), len(wrong), len(gathered) - len(wrong), vanished,
        clock.spent, tuple(dict.fromkeys(raised)) if failing and not wrong and not vanished else None,
    )  # fmt: skip


def _with_others_before(failing: Sequence[Problem], passing: Sequence[Problem]) -> list[Problem]:
    """Each failing problem behind some of the same sizes that pass: an earlier call may be what makes it fail."""
    return [each for problem in failing for each in (*of_same_sizes(problem, passing, BEFORE), problem)]


class _Probing:
    """Says which evidence is looked at over several calls: what is right at first, and the first few of what is wrong."""

    def __init__(self) -> None:
        self.wrong = 0

    def __call__(self, evidence: Evidence) -> bool:
        self.wrong += not evidence.passes
        return evidence.passes or self.wrong <= PROBED


def _never(evidence: Evidence) -> bool:
    return False


def _gathered(examiner: Examiner, problems: Iterable[Problem], probe: Probing, clock: Clock, share: float) -> list[Evidence]:
    """Evidence of each problem that is offered, for as long as there is time; of one at least."""
    found: list[Evidence] = []
    for problem in problems:
        if found and not clock.left(share):
            break
        evidence = examiner.look(problem, probe, share)
        if evidence is not None:
            found.append(evidence)
    return found


def _groups(wrong: Sequence[Evidence]) -> list[tuple[str, list[Evidence]]]:
    """What fails by each sign that there is, those first that explain others; exceptions by their kinds."""
    order = ("repeat", "stale", "unaliased", "untouched", "shape", "dtype", "values", "constant")
    groups = [(sign, found) for sign in order if (found := [evidence for evidence in wrong if sign in evidence.signs])]
    raising: dict[str, list[Evidence]] = {}
    for evidence in wrong:
        if "raises" in evidence.signs:
            raising.setdefault(kind_of(Outcome.ERROR, evidence.message), []).append(evidence)
    return [*groups, *(("raises", found) for found in list(raising.values())[:RAISING])]


class _Session:
    """What searches for different signs share."""

    def __init__(self, telling: Telling, gathered: Sequence[Evidence], predictor: Predictor, in_company: bool) -> None:
        self.telling = telling
        self.gathered = gathered
        self.known = {evidence.problem for evidence in gathered}
        self.predictor = predictor
        self.in_company = in_company

    def search(self, sign: str, failing: list[Evidence]) -> Search:
        passing = [evidence for evidence in self.gathered if sign not in evidence.signs]
        if sign == "values":
            failing, passing = _of_due_dtype(failing, passing)

        def fresh(rivals: Sequence[Trial]) -> list[Evidence]:
            found = self._fresh(rivals, failing)
            return _of_due_dtype(failing, found)[1] if sign == "values" else found

        return Search(sign, failing, passing, self.predictor, fresh, self.telling.clock, self.in_company)

    def _fresh(self, rivals: Sequence[Trial], failing: Sequence[Evidence]) -> list[Evidence]:
        candidates = [trial.candidate for trial in rivals]
        problems = self.telling.problems(candidates, [evidence.problem for evidence in failing], self.known)
        several = any(sign in BESIDE for evidence in failing for sign in evidence.signs)
        found = _gathered(self.telling.examiner, problems, _Probing() if several else _never, self.telling.clock, 0.95)
        self.known |= {evidence.problem for evidence in found}
        return found


def _of_due_dtype(failing: list[Evidence], passing: list[Evidence]) -> tuple[list[Evidence], list[Evidence]]:
    """Without outputs of another dtype, which were computed in another precision, if enough is left."""
    clean = [evidence for evidence in failing if "dtype" not in evidence.signs]
    if not clean:
        return failing, passing
    return clean, [evidence for evidence in passing if "dtype" not in evidence.signs]


def _told(explanations: Sequence[Explanation], before: Sequence[Finding], sign: str) -> list[Finding]:
    """Findings, without those that another sign has led to already."""
    known = {finding.faults for finding in before}
    return [finding for explanation in explanations if (finding := _finding(explanation, sign)).faults not in known]


def _finding(explanation: Explanation, sign: str) -> Finding:
    trial = explanation.trial
    names = set(trial.candidate.names)
    alike = [fault for rival in explanation.rivals for fault in rival.candidate.faults if fault.id not in names]
    return Finding(
        sign=sign,
        candidate=trial.candidate,
        explained=trial.explained,
        failing=trial.failing,
        passing=trial.passing,
        fresh=explanation.fresh,
        r=trial.r if sign == "values" and trial.candidate.faults[0].behaviour is None else None,
        alike=tuple(dict.fromkeys(alike)),
        problems=tuple(evidence.problem for evidence in trial.explains),
    )


def _nearest(search: Search) -> list[str]:
    """The fault that explains most, where none explains all; it names nothing."""
    nearest = search.nearest
    if nearest is None:
        return []
    faults = " and ".join(nearest.candidate.names)
    return [f"nearest is {faults}, which would explain {nearest.explained} of {nearest.failing}"]


def _unexplained(search: Search, recorded: Mapping[Problem, str], passing: Sequence[Problem]) -> Unexplained:
    """What can be said where nothing fits: how it is wrong, on which problems, where in the output, what the error is like. What
    was ``recorded`` as of the same kinds, and is not looked at again, tells which problems are concerned, too."""
    sign, shown = search.sign, search.failing
    problems = [evidence.problem for evidence in shown]
    kinds = {recorded[problem] for problem in problems if problem in recorded} - {""}
    alike = list(dict.fromkeys([*problems, *(problem for problem, kind in recorded.items() if kind in kinds)]))
    others = [problem for problem, kind in recorded.items() if kind not in kinds and problem not in alike] if kinds else []
    where = common(alike, [*passing, *others])
    if sign == "values":
        told = [less_accurate(shown), where, *described(shown)]
    else:
        texts = (evidence.message if sign == "raises" else evidence.signs[sign] for evidence in shown)
        told = [" or ".join(list(dict.fromkeys(texts))[: 1 if sign == "raises" else MESSAGES]), where]
    return Unexplained(sign, len(shown), len(alike), (*filter(None, told), *_nearest(search)))

"""Diagnosis: the failing problems are run again, beside passing ones, and every fault of the catalogue is held against both."""

from collections.abc import Mapping, Sequence

from conformance.diagnosis.accuracy import less_accurate
from conformance.diagnosis.by_dtype import ByDtype
from conformance.diagnosis.choice import of_all_kinds, of_same_sizes, varied
from conformance.diagnosis.clock import STRETCH, TimeBudget, TimedJudge
from conformance.diagnosis.conditions import common
from conformance.diagnosis.evidence import OVER_CALLS, SYMPTOMS, Evidence, Examiner
from conformance.diagnosis.finding import Diagnosis, Finding, Unexplained
from conformance.diagnosis.places import described
from conformance.diagnosis.search import Explanation, Search
from conformance.diagnosis.searches import FirstWrong, Searches, look_at, never
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.telling import Telling
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.kinds import kind_of
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES
from conformance.problem import Problem
from conformance.problem.returned import OUTPUT

SECONDS = 5.0
FAILING, PASSING = 16, 48  # problems run again
# Symptoms of which nothing need be said where others are explained: outputs that depend on other calls cannot be compared, and an
# answer that does not depend on the values may be any wrong answer.
TOLD_BY: dict[str, tuple[str, ...]] = {**dict.fromkeys(SYMPTOMS, ()), "values": OVER_CALLS, "constant": (*OVER_CALLS, "values")}
MESSAGES = 2  # that are shown of several
RAISING = 6  # kinds of exceptions that are told
BEFORE = 6  # problems that are put before one that fails in company only


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
    clock = TimeBudget(seconds, stretch)
    examiner = Examiner(subject, TimedJudge(judge, clock))
    operation = subject.implementation.operation
    known = [
        fault
        for fault in (catalogue().values() if faults is None else faults)
        if fault.operation == operation and fault.returns == (OUTPUT,)
    ]
    known = [fault for fault in known if not fault.equivalent]
    # What passes goes first: where an argument of an earlier call goes on working, there must have been an earlier call.
    gathered = look_at(examiner, varied(passing, PASSING), never, clock, 0.2)
    chosen, before = of_all_kinds(failing, FAILING), len(examiner.raised)
    gathered += look_at(examiner, chosen, FirstWrong(), clock, 0.4)
    raised = examiner.raised[before:]
    in_company = all(evidence.passes for evidence in gathered)
    if in_company:
        gathered += look_at(examiner, _with_others_before(chosen, passing), never, clock, 0.4)
    searches = Searches(Telling(examiner, clock, list(failing), passing), gathered, Predictor(judge, gathered), in_company)
    findings: list[Finding] = []
    unexplained: list[Unexplained] = []
    wrong = [evidence for evidence in gathered if not evidence.passes]
    for symptom, alike in _groups(wrong):
        if any(finding.symptom in TOLD_BY[symptom] for finding in findings):
            continue
        explained, left = _explained(searches, symptom, alike, known, [fault for finding in findings for fault in finding.faults])
        findings += _told(explained, findings, symptom)
        unexplained += [_unexplained(search, failing, passing, bool(explained)) for search in left]
    again = {evidence.problem for evidence in wrong}
    vanished = len({evidence.problem for evidence in gathered if evidence.problem in set(failing) - again})
    return Diagnosis(
        subject.implementation.name, tuple(findings), tuple(unexplained), len(wrong), len(gathered) - len(wrong), vanished,
        clock.spent, tuple(dict.fromkeys(raised)) if failing and not wrong and not vanished else None,
    )  # fmt: skip


def _with_others_before(failing: Sequence[Problem], passing: Sequence[Problem]) -> list[Problem]:
    """Each failing problem behind some of the same sizes that pass: an earlier call may be what makes it fail."""
    return [each for problem in failing for each in (*of_same_sizes(problem, passing, BEFORE), problem)]


def _groups(wrong: Sequence[Evidence]) -> list[tuple[str, list[Evidence]]]:
    """What fails by each symptom that there is, those first that explain others; exceptions by their kinds."""
    order = ("repeat", "stale", "unaliased", "untouched", "shape", "dtype", "values", "constant")
    groups = [
        (symptom, found) for symptom in order if (found := [evidence for evidence in wrong if symptom in evidence.symptoms])
    ]
    raising: dict[str, list[Evidence]] = {}
    for evidence in wrong:
        if "raises" in evidence.symptoms:
            raising.setdefault(kind_of(Outcome.ERROR, evidence.message), []).append(evidence)
    return [*groups, *(("raises", found) for found in list(raising.values())[:RAISING])]


def _explained(
    searches: Searches, symptom: str, alike: list[Evidence], faults: Sequence[Fault], named: Sequence[Fault]
) -> tuple[list[Explanation], list[Search]]:
    """What explains the symptom, and the searches for what is left: one fault, else faults dtype by dtype if these explain all,
    else several together, else what explains some dtypes."""
    search = searches.of(symptom, alike)
    whole = search.alone(faults, named)
    if whole is not None:
        return [whole], []
    parts = ByDtype(searches, search, faults) if symptom == "values" and not searches.in_company else None
    found = parts.explanations if parts else []
    if parts and found and parts.explains_all:
        less = len(found) == 1 and found[0].less_accurate
        second = search.beside(found[0].trial.candidate, faults) if less else None
        return ([second], []) if second else (found, parts.left)
    together = search.combined(faults)
    if together or not parts or not found:
        return together, [] if together else [search]
    return found, parts.left


def _told(explanations: Sequence[Explanation], before: Sequence[Finding], symptom: str) -> list[Finding]:
    """Findings, without those that another symptom has led to already."""
    known = {finding.faults for finding in before}
    return [finding for explanation in explanations if (finding := _finding(explanation, symptom)).faults not in known]


def _finding(explanation: Explanation, symptom: str) -> Finding:
    trial = explanation.trial
    names = set(trial.candidate.names)
    alike = [fault for rival in explanation.rivals for fault in rival.candidate.faults if fault.id not in names]
    return Finding(
        symptom=symptom,
        candidate=trial.candidate,
        explained=trial.explained,
        failing=trial.failing,
        passing=trial.passing,
        fresh=explanation.fresh,
        r=trial.r if symptom == "values" and trial.candidate.faults[0].behaviour is None else None,
        alike=tuple(dict.fromkeys(alike)),
        problems=tuple(evidence.problem for evidence in trial.explains),
        less_accurate=explanation.less_accurate,
        open=explanation.open,
    )


def _nearest(search: Search) -> list[str]:
    """The fault that explains most, where none explains all; it names nothing."""
    nearest = search.nearest
    if nearest is None:
        return []
    faults = " and ".join(nearest.candidate.names)
    return [f"nearest is {faults}, which would explain {nearest.explained} of {nearest.failing}"]


def _unexplained(search: Search, recorded: Mapping[Problem, str], passing: Sequence[Problem], of_dtypes: bool) -> Unexplained:
    """What can be said where nothing fits: how it is wrong, on which problems, where in the output, what the error is like. What
    was ``recorded`` as of the same kinds, and is not looked at again, tells which problems are concerned, too; in the same dtypes
    if faults explain the others (``of_dtypes``)."""
    symptom, shown = search.symptom, search.failing
    problems = [evidence.problem for evidence in shown]
    kinds = {recorded[problem] for problem in problems if problem in recorded} - {""}
    dtypes = sorted({problem.dtype for problem in (problems if of_dtypes else recorded)}, key=DTYPES.index)
    concerned = {problem for problem, kind in recorded.items() if kind in kinds and problem.dtype in dtypes}
    alike = list(dict.fromkeys([*problems, *(problem for problem in recorded if problem in concerned)]))
    known = set(alike)
    others = [*passing, *(problem for problem in recorded if problem not in known and kinds)]
    where = common(alike, [problem for problem in others if problem.dtype in dtypes] if of_dtypes else others)
    accuracy = less_accurate(shown) if symptom == "values" else ""
    if symptom == "values":
        told = [accuracy, where, *described(shown)]
    else:
        texts = (evidence.message if symptom == "raises" else evidence.symptoms[symptom] for evidence in shown)
        told = [" or ".join(list(dict.fromkeys(texts))[: 1 if symptom == "raises" else MESSAGES]), where]
    observations = (*filter(None, told), *_nearest(search))
    return Unexplained(symptom, len(shown), len(alike), observations, tuple(dtypes) if of_dtypes else (), bool(accuracy))

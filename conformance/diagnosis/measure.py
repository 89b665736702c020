"""How good the diagnosis is: every fault of the catalogue, as an implementation, must be named; what is none of it must not be.

Five questions. *Named*: with the whole catalogue, is a fault named first, or one that outputs do not tell from it? *Two at
once*: are both named where an implementation has two? *Less accurate*: is a fault named where float64 is computed in float32
besides, be it in all dtypes or in one of 16 bits? *Left out*: where a fault is missing from the catalogue, is nothing named in
its place but what really gives the same outputs? *Right*: is nothing named for implementations that are right, though they may
round where they should not?
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from tabulate import tabulate

from conformance.adapter import Implementation
from conformance.checks.items import ItemRun
from conformance.checks.run_options import Effort
from conformance.diagnosis import lower_accuracy
from conformance.diagnosis.diagnosing import diagnose
from conformance.diagnosis.evidence import Examiner
from conformance.diagnosis.finding import Diagnosis, Finding
from conformance.diagnosis.lower_accuracy import in_float32
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.trial import Bearing, bearing
from conformance.evaluation.correct_list import variants
from conformance.evaluation.kills import FIXED, QUICK, judge_of_process
from conformance.expectations import ImplementationExpectations
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.faults.functions import PROFILE, implementation_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.kinds import kind_of
from conformance.problem import Problem, parse
from conformance.problem.inputs import Inputs
from conformance.specification import requirements
from conformance.system.threads import in_processes

LEFT_OUT = 20
PAIRS = 20
TARGET = 0.95
Job = tuple[str, str]  # of a fault, two joined by "+", or an implementation that is right; one of QUESTIONS


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What was named for a fault, or for an implementation that is right. ``question``: one of QUESTIONS; ``verdict``: one of
    VERDICTS; ``seconds``: of the processor."""

    subject: str
    question: str
    verdict: str
    named: tuple[str, ...]
    lines: tuple[str, ...]
    seconds: float


QUESTIONS: dict[str, str] = {
    "named": "faults",
    "two at once": "pairs of faults",
    "less accurate": "faults where float64 is computed in float32",
    "left out": "faults left out of the catalogue",
    "right": "implementations that are right, held against the strictest profile",
}
VERDICTS: dict[str, str] = {
    "first": "named first",
    "more": "named first, with another one beside it",
    "alike": "one that it declares to be alike named first",
    "equal": "one named first that gives the same on every problem of the suite",
    "one": "one of the two named",
    "nothing": "nothing named",
    "wrong": "another fault named",
    "passed": "no failure to explain",
}


_APART = ("empty-rows", "bias-dtype", "lengths-dtype")  # of which a call of the problem as it is shows nothing


def failures(implementation: Implementation, judge: Judge, effort: Effort = FIXED) -> tuple[dict[Problem, str], list[Problem]]:
    """The recorded problems that an implementation fails, each with its kind, and those that it passes, over all requirements.
    Random ones are tried where no other fails."""
    failing: dict[str, str] = {}
    passing: dict[str, None] = {}
    subject = Subject(implementation)
    for requirement in requirements().values():
        if requirement.operation != implementation.operation or requirement.check in _APART:
            continue
        for case in ItemRun(requirement, subject, judge, ImplementationExpectations("", ()), effort).run().cases:
            if case.outcome.is_failure:
                failing.setdefault(case.text, kind_of(case.outcome, case.message))
            elif requirement.judges_values:
                passing[case.text] = None
    if not failing and effort is FIXED:
        return failures(implementation, judge, QUICK)
    return {parse(text): kind for text, kind in failing.items()}, [parse(text) for text in passing if text not in failing]


def name_fault(fault: Fault, judge: Judge, left_out: bool = False) -> Naming:
    """Diagnoses the fault as an implementation, with the catalogue or, if ``left_out``, with the rest of it."""
    known = [other for other in catalogue().values() if not (left_out and other.id == fault.id)]
    return _named(fault, "left out" if left_out else "named", judge, known, lambda named: named == (fault.id,))


def name_two(first: Fault, second: Fault, judge: Judge) -> Naming:
    """Diagnoses both at once as an implementation."""
    both = {first.id, second.id}
    return _named(at_once(first, second), "two at once", judge, list(catalogue().values()), lambda named: set(named) == both)


def name_less_accurate(fault: Fault, only: str, judge: Judge) -> Naming:
    """Diagnoses the fault, in one dtype ``only`` if that is given, as an implementation that computes float64 in float32."""
    known, own = list(catalogue().values()), (fault.id,)
    found = _named(in_float32(fault, only), "less accurate", judge, known, lambda named: named == own)
    return replace(found, subject=f"{fault.id}@{only}" if only else fault.id)


def at_once(first: Fault, second: Fault) -> Fault:
    """``first``, which rewrites, and then ``second``, as one."""
    assert first.rewrite is not None
    before = first.rewrite

    def output(inputs: Inputs) -> np.ndarray:
        return second.output(before(inputs))

    return Fault(
        id=f"{first.id}+{second.id}", sentence=f"{first.sentence} and {second.sentence}", operation=first.operation,
        requirements=(*first.requirements, *second.requirements), sources=(), compute=output, lacks=first.lacks | second.lacks,
    )  # fmt: skip


def _named(fault: Fault, question: str, judge: Judge, known: Sequence[Fault], is_it: Callable[[tuple[str, ...]], bool]) -> Naming:
    failing, passing = failures(implementation_of(fault), judge)
    start = time.thread_time()
    found = diagnose(Subject(implementation_of(fault)), judge, failing, passing, known, stretch=inf)
    seconds = time.thread_time() - start
    if not failing:
        verdict = "passed"
    elif is_it(found.named):
        verdict = "first"
    elif found.named[:1] == (fault.id,):
        verdict = "more"
    else:
        verdict = _verdict(fault, found, judge, [*failing, *passing])
    if verdict == "wrong" and set(found.named) < set(fault.id.split("+")):
        verdict = "one"
    return Naming(
        subject=fault.id, question=question, verdict=verdict, named=found.named, lines=found.lines, seconds=seconds
    )  # fmt: skip


def name_right(name: str, judge: Judge) -> Naming:
    """Diagnoses an implementation that is right, under the strictest profile, though it may round elsewhere: no fault of the
    catalogue is the cause of what it fails then."""
    right = variants()[name]
    strict = replace(right, support=replace(right.support, profile=PROFILE))
    failing, passing = failures(strict, judge)
    start = time.thread_time()
    found = diagnose(Subject(strict), judge, failing, passing, stretch=inf)
    seconds = time.thread_time() - start
    verdict = "wrong" if found.named else "nothing" if failing else "passed"
    return Naming(
        subject=name, question="right", verdict=verdict, named=found.named, lines=found.lines, seconds=seconds
    )  # fmt: skip


def _verdict(fault: Fault, found: Diagnosis, judge: Judge, problems: Sequence[Problem]) -> str:
    """One of VERDICTS, where what is named is not the fault itself."""
    if not found.named:
        return "nothing"
    first = found.named[0]
    if first in fault.alike or fault.id in catalogue()[first].alike:
        return "alike"
    return "equal" if _equal(fault, found.findings, judge, problems) else "wrong"


def _equal(fault: Fault, findings: Sequence[Finding], judge: Judge, problems: Sequence[Problem]) -> bool:
    """Whether what is named gives what the fault gives on every problem of the suite, as regards the symptoms it is named for."""
    look = Examiner(Subject(implementation_of(fault)), judge).look
    evidence = [seen for problem in problems if (seen := look(problem, lambda _: False)) is not None]
    predictor = Predictor(judge, evidence)
    for symptom in {finding.symptom for finding in findings}:
        candidates = [finding.candidate for finding in findings if finding.symptom == symptom]
        for seen in evidence:
            bearings = {bearing(predictor(candidate, seen), seen, symptom).bearing for candidate in candidates}
            if Bearing.CONTRADICTED in bearings or (
                symptom in seen.symptoms and not bearings & {Bearing.EXPLAINED, Bearing.UNCLEAR}
            ):
                return False
    return True


@dataclass(frozen=True)
class Measurement:
    """All namings."""

    namings: tuple[Naming, ...]

    def of(self, question: str, *verdicts: str) -> list[Naming]:
        """Those to a question, with some of the verdicts or any."""
        return [n for n in self.namings if n.question == question and (not verdicts or n.verdict in verdicts)]

    @property
    def share(self) -> float:
        """The share of the faults with failures that are named."""
        asked = self.of("named", *(verdict for verdict in VERDICTS if verdict != "passed"))
        return len(self.of("named", "first", "more", "alike", "equal")) / len(asked) if asked else 1.0

    @property
    def in_order(self) -> bool:
        others = [question for question in QUESTIONS if question != "named"]
        return self.share >= TARGET and not any(self.of(question, "wrong") for question in others)


def jobs_for(faults: Sequence[Fault]) -> list[Job]:
    """Every fault to be named; LEFT_OUT of them, evenly spread over the catalogue, once more without themselves; PAIRS of them;
    and, where ``faults`` are the whole catalogue, some with less accuracy, and the implementations that are right."""
    chosen = [fault for fault in faults if not fault.equivalent]
    spread = chosen[:: max(1, len(chosen) // LEFT_OUT)][:LEFT_OUT]
    whole = len(faults) == len(catalogue())
    return [
        *((fault.id, "named") for fault in chosen),
        *((fault.id, "left out") for fault in spread),
        *((f"{first.id}+{second.id}", "two at once") for first, second in pairs(chosen)),
        *((name, "less accurate") for name in (lower_accuracy.chosen(chosen) if whole else ())),
        *((name, "right") for name in (variants() if whole else ())),
    ]


def diagnose_all(
    jobs: Sequence[Job], processes: int | None = None, progress: Callable[[int], None] = lambda done: None
) -> Measurement:
    """The namings of ``jobs`` in their order, from so many processes, one a core if None. ``progress`` hears how many more are
    done."""
    namings: dict[Job, Naming] = {}
    for job, naming in in_processes(_naming, jobs, processes):
        namings[job] = naming
        progress(1)
    return Measurement(tuple(namings[job] for job in jobs))


def pairs(faults: Sequence[Fault]) -> list[tuple[Fault, Fault]]:
    """PAIRS of faults of arithmetic, of one operation each, far apart in the catalogue; the first rewrites."""
    found: list[tuple[Fault, Fault]] = []
    for operation in ("attention", "multi_head_attention"):
        seconds = [fault for fault in faults if fault.operation == operation and not fault.behaviour]
        firsts = [fault for fault in seconds if fault.rewrite]
        turned = seconds[len(seconds) // 2 :] + seconds[: len(seconds) // 2]
        number = min(PAIRS // 2, len(firsts))
        for turn in range(number):
            first, second = (group[turn * len(group) // number] for group in (firsts, turned))
            if first is not second:
                found.append((first, second))
    return found


@np.errstate(all="ignore")  # faults overflow where they like
def _naming(job: Job) -> Naming:
    (subject, question), judge = job, judge_of_process()
    if question == "right":
        return name_right(subject, judge)
    if question == "less accurate":
        name, _, only = subject.partition("@")
        return name_less_accurate(catalogue()[name], only, judge)
    if question == "two at once":
        first, second = (catalogue()[name] for name in subject.split("+"))
        return name_two(first, second, judge)
    return name_fault(catalogue()[subject], judge, left_out=question == "left out")


def report(measurement: Measurement, form: str = "simple") -> str:
    """What was not named as it should be, then the totals."""
    doubtful = [
        *measurement.of("named", "more", "nothing", "wrong", "passed"),
        *measurement.of("two at once", "nothing", "wrong"),
        *measurement.of("less accurate", "more", "nothing", "wrong", "passed"),
    ]
    doubtful += [*measurement.of("left out", "wrong"), *measurement.of("right", "wrong")]
    rows = [
        (one.subject, one.question, VERDICTS[one.verdict], ", ".join(one.named) or "–", f"{one.seconds:.1f}") for one in doubtful
    ]
    table = (
        tabulate(rows, headers=("", "question", "verdict", "named", "seconds"), tablefmt=form, disable_numparse=True)
        if rows
        else ""
    )
    return "\n\n".join(part for part in (table, "\n".join(_totals(measurement))) if part)


def _totals(measurement: Measurement) -> Iterator[str]:
    for question, words in QUESTIONS.items():
        group = measurement.of(question)
        counts = Counter(naming.verdict for naming in group)
        told = ", ".join(f"{counts[verdict]} {meaning}" for verdict, meaning in VERDICTS.items() if counts[verdict])
        seconds = sorted(naming.seconds for naming in group)
        if group:
            median, most = seconds[len(seconds) // 2], seconds[-1]
            yield f"{len(group)} {words}: {told}; median {median:.1f} s, at most {most:.1f} s of the processor."
    yield f"Named: {measurement.share:.1%} (target {TARGET:.0%})."

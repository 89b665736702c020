"""How good the diagnosis is: every fault of the catalogue, as an implementation, must be named; what is none of it must not be.

Three questions. *Named*: with the whole catalogue, is a fault named first, or one that outputs do not tell from it? *Left out*:
where a fault is missing from the catalogue, is nothing named in its place but what really gives the same outputs? *Right*: is
nothing named for implementations that are right, and for the known limits of those that come with the suite?
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

from tabulate import tabulate

from conformance.adapter import Implementation
from conformance.checks.items import Effort, ItemRun
from conformance.diagnosis.diagnosing import diagnose
from conformance.diagnosis.evidence import Examiner
from conformance.diagnosis.model import Diagnosis, Finding
from conformance.diagnosis.prediction import Candidate
from conformance.diagnosis.simulation import Predictor
from conformance.diagnosis.trial import Bearing, bearing
from conformance.expectations import ImplementationExpectations
from conformance.faults import catalogue
from conformance.faults.functions import implementation_of
from conformance.faults.model import Fault
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.problem import Problem, parse
from conformance.run_options import DEFAULT_SEED
from conformance.specification import requirements
from conformance.threads import single_threads

FIXED = Effort(examples=0, free=False, seed=DEFAULT_SEED)  # golden and designed cases alone
LEFT_OUT = 20
TARGET = 0.95


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What was named for a fault. ``verdict``: one of VERDICTS."""

    fault: str
    left_out: bool
    verdict: str
    named: tuple[str, ...]
    alike: tuple[str, ...]
    lines: tuple[str, ...]
    seconds: float


VERDICTS: dict[str, str] = {
    "first": "named first",
    "alike": "one that it declares to be alike named first",
    "equal": "one named first that gives the same on every problem of the suite",
    "nothing": "nothing named",
    "wrong": "another fault named",
    "passed": "no failure to explain",
}


def failures(implementation: Implementation, judge: Judge) -> tuple[list[Problem], list[Problem]]:
    """The golden and designed problems that an implementation fails, and those that it passes, over all requirements."""
    failing: dict[str, None] = {}
    passing: dict[str, None] = {}
    subject = Subject(implementation)
    for requirement in requirements().values():
        if requirement.operation != implementation.operation or requirement.check == "refuses":
            continue
        for case in ItemRun(requirement, subject, judge, ImplementationExpectations("", ()), FIXED).run().cases:
            (failing if case.outcome.is_failure else passing)[case.text] = None
    return [parse(text) for text in failing], [parse(text) for text in passing if text not in failing]


def name_fault(fault: Fault, judge: Judge, left_out: bool = False) -> Naming:
    """Diagnoses the fault as an implementation, with the catalogue or, if ``left_out``, with the rest of it."""
    failing, passing = failures(implementation_of(fault), judge)
    known = [other for other in catalogue().values() if not (left_out and other.id == fault.id)]
    found = diagnose(Subject(implementation_of(fault)), judge, failing, passing, known)
    return Naming(
        fault=fault.id,
        left_out=left_out,
        verdict=_verdict(fault, found, judge, [*failing, *passing]) if failing else "passed",
        named=found.named,
        alike=tuple(other.id for finding in found.findings for other in finding.alike),
        lines=found.lines,
        seconds=found.seconds,
    )


def _verdict(fault: Fault, found: Diagnosis, judge: Judge, problems: Sequence[Problem]) -> str:
    """One of VERDICTS."""
    if not found.named:
        return "nothing"
    first = found.named[0]
    if first == fault.id:
        return "first"
    if first in fault.alike or fault.id in catalogue()[first].alike:
        return "alike"
    return "equal" if _equal(fault, found.findings, judge, problems) else "wrong"


def _equal(fault: Fault, findings: Sequence[Finding], judge: Judge, problems: Sequence[Problem]) -> bool:
    """Whether what is named gives what the fault gives on every problem of the suite, as regards the signs it is named for."""
    look = Examiner(Subject(implementation_of(fault)), judge).look
    evidence = [seen for problem in problems if (seen := look(problem, lambda _: False)) is not None]
    predictor = Predictor(judge, evidence)
    for sign in {finding.sign for finding in findings}:
        candidates = [Candidate(finding.faults) for finding in findings if finding.sign == sign]
        for seen in evidence:
            bearings = {bearing(predictor(candidate, seen), seen, sign).bearing for candidate in candidates}
            if Bearing.CONTRADICTED in bearings or (sign in seen.signs and not bearings & {Bearing.EXPLAINED, Bearing.UNCLEAR}):
                return False
    return True


@dataclass(frozen=True)
class Measurement:
    """All namings."""

    namings: tuple[Naming, ...]

    def of(self, *verdicts: str, left_out: bool = False) -> list[Naming]:
        return [n for n in self.namings if n.left_out is left_out and n.verdict in verdicts]

    @property
    def share(self) -> float:
        """The share of the faults with failures that are named."""
        asked = self.of("first", "alike", "equal", "nothing", "wrong")
        return len(self.of("first", "alike", "equal")) / len(asked) if asked else 1.0

    @property
    def in_order(self) -> bool:
        return self.share >= TARGET and not self.of("wrong", left_out=True)


def diagnose_all(
    faults: Sequence[Fault] | None = None, processes: int = 2, progress: Callable[[int], None] = lambda done: None
) -> Measurement:
    """Names every fault, and LEFT_OUT of them, evenly spread over the catalogue, once more without themselves."""
    chosen = [fault for fault in (catalogue().values() if faults is None else faults) if not fault.equivalent]
    spread = chosen[:: max(1, len(chosen) // LEFT_OUT)][:LEFT_OUT]
    work = [(fault.id, False) for fault in chosen] + [(fault.id, True) for fault in spread]
    namings: list[Naming] = []
    with single_threads(), ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for finished in as_completed([pool.submit(_named, *one) for one in work]):
            namings.append(finished.result())
            progress(1)
    place = {one: number for number, one in enumerate(work)}
    return Measurement(tuple(sorted(namings, key=lambda naming: place[naming.fault, naming.left_out])))


def _named(identifier: str, left_out: bool) -> Naming:
    return name_fault(catalogue()[identifier], _judge(), left_out)


@cache
def _judge() -> Judge:
    """The judge of this process."""
    return Judge()


def report(measurement: Measurement) -> str:
    """What was not named as it should be, then the totals."""
    doubtful = [*measurement.of("nothing", "wrong", "passed"), *measurement.of("wrong", left_out=True)]
    rows = [
        (
            naming.fault,
            "left out" if naming.left_out else "",
            naming.verdict,
            ", ".join(naming.named) or "–",
            f"{naming.seconds:.1f}",
        )
        for naming in doubtful
    ]
    table = tabulate(rows, headers=("fault", "", "verdict", "named", "seconds"), disable_numparse=True) if rows else ""
    return "\n\n".join(part for part in (table, "\n".join(_totals(measurement))) if part)


def _totals(measurement: Measurement) -> Iterable[str]:
    for left_out in (False, True):
        group = [naming for naming in measurement.namings if naming.left_out is left_out]
        counts = ", ".join(
            f"{number} {words}"
            for verdict, words in VERDICTS.items()
            if (number := len(measurement.of(verdict, left_out=left_out)))
        )
        longest = max((naming.seconds for naming in group), default=0.0)
        yield f"{len(group)} faults{' left out of the catalogue' if left_out else ''}: {counts}; at most {longest:.1f} s each."
    yield f"Named: {measurement.share:.1%} (target {TARGET:.0%})."

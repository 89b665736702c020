"""The diagnosis at the end of a run: from what was recorded, for each implementation with unexpected failures."""

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stdout

from conformance.adapter import Implementation
from conformance.diagnosis import Diagnosis as Result
from conformance.diagnosis import Finding, diagnose
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.problem import parse
from conformance.records import Case, Diagnosis, Explanation
from conformance.session.kept import kept
from conformance.specification import requirements
from conformance.verdict import Outcome

KEPT = 2000  # problems of an implementation that passed, and as many that failed


class Failures:
    """Which problems failed unexpectedly and which passed, by implementation, as their cases are recorded."""

    def __init__(self) -> None:
        self._failing: dict[str, dict[str, None]] = {}
        self._passing: dict[str, dict[str, None]] = {}

    def note(self, case: Case) -> None:
        """Known failures say nothing here, nor do invalid requests, of which any answer passes."""
        if case.outcome.is_failure and case.status == "unexpected":
            texts = self._failing.setdefault(case.implementation, {})
        elif case.outcome is Outcome.PASS and requirements()[case.requirement].check != "refuses":
            texts = self._passing.setdefault(case.implementation, {})
        else:
            return
        if len(texts) < KEPT:
            texts[case.text] = None

    def diagnoses(self, implementations: Sequence[Implementation], never: Collection[str]) -> Iterator[Diagnosis]:
        """One for each implementation with failures, but for those that must ``never`` be run in this process."""
        for implementation in implementations:
            failing = self._failing.get(implementation.name, {})
            if failing and implementation.name not in never:
                passing = [text for text in self._passing.get(implementation.name, {}) if text not in failing]
                yield _diagnosis(implementation, list(failing), passing)


def _diagnosis(implementation: Implementation, failing: Sequence[str], passing: Sequence[str]) -> Diagnosis:
    failed, passed = ([parse(text) for text in texts] for texts in (failing, passing))
    try:
        with kept(), redirect_stdout(io.StringIO()):  # as in a worker, what an implementation prints is not for the terminal
            found = diagnose(Subject(implementation), Judge(), failed, passed)
    except (Exception, SystemExit) as error:  # whatever it is, it must not cost the run
        remark = f"The diagnosis failed with {type(error).__name__}: {error}"
        return Diagnosis(implementation=implementation.name, remarks=(remark,))
    return record_of(found)


def record_of(found: Result) -> Diagnosis:
    """The diagnosis as it is recorded."""
    return Diagnosis(
        implementation=found.implementation,
        explanations=tuple(_explanation(finding) for finding in found.findings),
        remarks=found.remarks,
        failing=found.failing,
        passing=found.passing,
        vanished=found.vanished,
        seconds=found.seconds,
    )


def _explanation(finding: Finding) -> Explanation:
    return Explanation(
        sign=finding.sign,
        faults=tuple(fault.id for fault in finding.faults),
        explained=finding.explained,
        failing=finding.failing,
        passing=finding.passing,
        fresh=finding.fresh,
        r=finding.r,
        alike=tuple(fault.id for fault in finding.alike),
        sentence=str(finding),
    )

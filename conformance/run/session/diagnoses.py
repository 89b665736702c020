"""The diagnosis at the end of a run: from what was recorded, for each implementation with unexpected failures."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from conformance.adapter.known import Known
from conformance.judging.kinds import kind_of
from conformance.judging.verdict import Outcome
from conformance.problem.returned import being
from conformance.records import Case, DiagnosisRecord, Item
from conformance.run.workers.asking import Request
from conformance.specification import requirements

KEPT = 2000  # problems of an implementation that passed
KEPT_OF_A_KIND = 500  # problems that failed in one way
KEPT_OF_A_REQUIREMENT = 40
SHOWN = 5  # requirements that are named
# What is told of failures by check, where what is wrong is nothing that the diagnosis compares.
APART = {
    "unbiased": "Each error is within its budget, all together are systematic",
    "empty-rows": "Fully masked rows give none of the known answers",
    "bias-dtype": "A bias in float32 beside 16-bit inputs is taken for another",
    "lengths-dtype": "Key lengths in another dtype are taken for others",
}


class Failures:
    """Which problems failed unexpectedly, and how, and which passed, by implementation, as their cases are recorded."""

    def __init__(self) -> None:
        self._failing: dict[str, dict[str, str]] = {}
        self._passing: dict[str, dict[str, None]] = {}
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._requirements: dict[str, dict[str, dict[str, str]]] = {}  # the first failing problems of each, with their kinds
        self._apart: dict[tuple[str, str], list[str]] = {}  # requirements by implementation and what is said of them
        self._beside: dict[tuple[str, str], dict[str, set[str]]] = {}  # requirements by implementation and output, with texts
        self._ended: dict[str, list[str]] = {}  # requirements whose items ended the process or were ended

    def note(self, record: Case | Item) -> None:
        """Known failures say nothing here, nor do passes of what does not judge values: a wrong output may be of the expected
        form."""
        if isinstance(record, Item):
            if record.outcome in (Outcome.CRASH, Outcome.TIMEOUT) and record.status == "unexpected":
                self._ended.setdefault(record.implementation, []).append(record.requirement)
        elif said := _apart(record):
            apart = self._apart.setdefault((record.implementation, said), [])
            if record.requirement not in apart:
                apart.append(record.requirement)
            if record.output:
                beside = self._beside.setdefault((record.implementation, record.output), {})
                beside.setdefault(record.requirement, set()).add(record.text)
        elif record.outcome.is_failure and record.status == "unexpected":
            self._note_failing(record, kind_of(record.outcome, record.message))
        elif record.outcome is Outcome.PASS and requirements()[record.requirement].judges_values:
            passing = self._passing.setdefault(record.implementation, {})
            if len(passing) < KEPT:
                passing[record.text] = None

    def _note_failing(self, case: Case, kind: str) -> None:
        failing = self._failing.setdefault(case.implementation, {})
        of_requirement = self._requirements.setdefault(case.implementation, {}).setdefault(case.requirement, {})
        if len(of_requirement) < KEPT_OF_A_REQUIREMENT:
            of_requirement[case.text] = kind
        if case.text not in failing and self._kinds[case.implementation, kind] < KEPT_OF_A_KIND:
            self._kinds[case.implementation, kind] += 1
            failing[case.text] = kind

    def diagnoses(self, implementations: Sequence[Known], ask: Callable[[Request], DiagnosisRecord]) -> Iterator[DiagnosisRecord]:
        """One for each implementation with failures, by ``ask``."""
        for implementation in implementations:
            failing = self._failing.get(implementation.name, {})
            found = DiagnosisRecord(implementation=implementation.name)
            beside = self._beside_of(implementation.name)
            if failing or beside:
                passing = [text for text in self._passing.get(implementation.name, {}) if text not in failing]
                of_each = self._requirements.get(implementation.name, {})
                found = ask(
                    Request(
                        implementation=implementation.name,
                        failing=failing,
                        passing=tuple(passing),
                        requirements=of_each,
                        beside=beside,
                    )
                )
            ended = self._ended.get(implementation.name)
            apart = {said: found for (name, said), found in self._apart.items() if name == implementation.name}
            if failing or ended or apart:
                found = _with_remark(found, "Left out is what ended the process or ran over the time limit", ended)
                explained = {identifier for explanation in found.explanations for identifier in explanation.requirements}
                for said, identifiers in apart.items():
                    left = identifiers if said in APART.values() else [one for one in identifiers if one not in explained]
                    found = _with_remark(found, said, left)
                yield found

    def _beside_of(self, name: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """By further output, the problems of which it alone is wrong, and the requirements that fail for nothing else."""
        found = {}
        for (implementation, output), by_requirement in self._beside.items():
            if implementation == name:
                others = {one for key, of in self._beside.items() if key[0] == name and key[1] != output for one in of}
                others.update(self._requirements.get(name, {}))
                alone = [one for one in by_requirement if one not in others]
                texts = sorted(set[str]().union(*by_requirement.values()))
                found[output] = (tuple(texts[:KEPT_OF_A_KIND]), tuple(alone))
        return found


def _apart(case: Case) -> str:
    """What is said of a failure that no fault of the catalogue could explain, since no element that has a value is wrong."""
    if case.output:
        return f"The output is right, and the {being(case.output)} wrong beside it" if case.status == "unexpected" else ""
    check = requirements()[case.requirement].check
    wrong = case.status == "unexpected" and case.outcome in (Outcome.WRONG_VALUE, Outcome.NONFINITE)
    return APART.get(check, "") if wrong and (check != "unbiased" or case.index is None) else ""


def _with_remark(found: DiagnosisRecord, told: str, identifiers: Sequence[str] | None) -> DiagnosisRecord:
    """Says what is left out of the diagnosis, if anything is."""
    if not identifiers:
        return found
    more = f" and {len(identifiers) - SHOWN} more" if len(identifiers) > SHOWN else ""
    return replace(found, remarks=(*found.remarks, f"{told}: {', '.join(identifiers[:SHOWN])}{more}."))

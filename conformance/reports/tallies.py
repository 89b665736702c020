"""What reports count, from the records: results per implementation and area, accuracy, native and emulated requests."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from conformance.judging.verdict import Outcome
from conformance.records import Case, ConventionResult, DtypeResult, Item, Run
from conformance.records.accuracy import Accuracy, Distribution
from conformance.reports.format import NONE

PASSED, KNOWN, UNEXPECTED, UNSUPPORTED, SKIPPED = "passed", "known failures", "unexpected", "unsupported", "skipped"
KINDS = (PASSED, KNOWN, UNEXPECTED, UNSUPPORTED, SKIPPED)


def kind_of(item: Item | DtypeResult) -> str:
    """Which of KINDS an item, or what became of it in a dtype, counts as; an unexpected pass is unexpected."""
    if item.status == "unexpected":
        return UNEXPECTED
    if item.outcome is Outcome.PASS:
        return PASSED
    if item.outcome is Outcome.UNSUPPORTED:
        return UNSUPPORTED
    return SKIPPED if item.outcome is Outcome.SKIPPED else KNOWN


def by_area(run: Run) -> dict[str, dict[str, Counter[str]]]:
    """Items of each kind by implementation and area; areas in which an implementation has no item are absent."""
    tally: dict[str, dict[str, Counter[str]]] = {name: defaultdict(Counter) for name in run.implementations}
    for item in run.items:
        tally[item.implementation][run.requirements[item.requirement].area][kind_of(item)] += 1
    return tally


def by_dtype(run: Run) -> dict[str, dict[str, Counter[str]]]:
    """Requirements of each kind by implementation and dtype: one counts in each dtype that it has problems in."""
    tally: dict[str, dict[str, Counter[str]]] = {name: defaultdict(Counter) for name in run.implementations}
    for item in run.items:
        for dtype, result in item.dtypes.items():
            tally[item.implementation][dtype][kind_of(result)] += 1
    return tally


def failing_dtypes(item: Item) -> list[str]:
    """Those in which something of the item failed, or is unexpected."""
    return [dtype for dtype, result in item.dtypes.items() if result.outcome.is_failure or result.status == "unexpected"]


def areas(run: Run) -> list[str]:
    """The areas asked for, in the order of the header."""
    return list(dict.fromkeys(entry.area for entry in run.requirements.values()))


def accuracies(run: Run) -> dict[str, Accuracy]:
    """All r of each implementation that has any."""
    grouped: dict[str, Accuracy] = defaultdict(Accuracy)
    for item in run.items:
        if item.accuracy:
            grouped[item.implementation].merge(item.accuracy)
    return {name: grouped[name] for name in run.implementations if name in grouped}


def judged(run: Run, implementation: str) -> dict[str, Distribution]:
    """The r of an implementation by dtype, under the profile by which it is judged."""
    entry = run.implementations[implementation]
    found: dict[str, Distribution] = {}
    for accuracy in (accuracy for item in run.items if item.implementation == implementation for accuracy in item.accuracy):
        if accuracy.profile == entry.judged_by(accuracy.dtype):
            found.setdefault(accuracy.dtype, Distribution()).merge(accuracy.count, accuracy.max, accuracy.histogram)
    return found


def problems(run: Run) -> dict[str, Counter[str]]:
    """Problems per implementation: by stratum, unsupported, failed."""
    grouped: dict[str, Counter[str]] = {name: Counter() for name in run.implementations}
    for item in run.items:
        for name in item.counts.__struct_fields__:
            grouped[item.implementation][name] += getattr(item.counts, name)
    return grouped


def seconds(run: Run) -> dict[str, float]:
    """Wall time per implementation."""
    grouped = dict.fromkeys(run.implementations, 0.0)
    for item in run.items:
        grouped[item.implementation] += item.seconds
    return grouped


def conventions_by_operation(run: Run) -> dict[str, list[ConventionResult]]:
    """What was asked of the implementations of each operation."""
    grouped: dict[str, list[ConventionResult]] = {}
    for convention in run.conventions:
        grouped.setdefault(run.implementations[convention.implementation].operation, []).append(convention)
    return grouped


def answer(convention: ConventionResult) -> str:
    """What was observed, beside what is declared where that is something else; with a ? what is declared only."""
    declared, observed = convention.declared, convention.observed
    if observed is None:
        return NONE if declared is None else f"{declared}?"
    return f"{declared} ≠ {observed}" if convention.agrees is False else observed


def observation(convention: ConventionResult) -> str:
    """What was observed, in words, beside what is declared where that is something else."""
    if convention.observed is None:
        return "skipped" if convention.skipped else "not supported"
    declared = f"declared {convention.declared}, " if convention.agrees is False else ""
    return f"{declared}observed {convention.observed}"


def cases_by_item(run: Run) -> dict[tuple[str, str], list[Case]]:
    """Recorded cases by requirement and implementation."""
    grouped: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in run.cases:
        grouped[case.requirement, case.implementation].append(case)
    return grouped


def unexpected_by_item(run: Run) -> dict[tuple[str, str], list[Case]]:
    """Unexpected cases by requirement and implementation."""
    return {key: [case for case in cases if case.status == "unexpected"] for key, cases in cases_by_item(run).items()}


@dataclass
class Requests:
    """How golden and designed cases were put to an implementation: natively or, by the suite, emulated."""

    native: int = 0
    native_failed: int = 0
    emulated: int = 0
    emulated_failed: int = 0
    routes: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case) -> None:
        failed = case.outcome.is_failure
        if case.route == "native":
            self.native += 1
            self.native_failed += failed
        else:
            self.emulated += 1
            self.emulated_failed += failed
            self.routes[case.route] += 1


def requests(run: Run) -> dict[str, Requests]:
    """Requests by implementation, those that have any. Random cases that pass are not recorded, so none is counted."""
    grouped: dict[str, Requests] = defaultdict(Requests)
    for case in run.cases:
        if case.stratum != "random":
            grouped[case.implementation].add(case)
    return {name: grouped[name] for name in run.implementations if name in grouped}

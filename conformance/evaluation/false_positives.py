"""No false positive: implementations that are right go through the quick tier with many seeds, and none may be rejected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tabulate import tabulate

from conformance.adapter import Implementation, registry
from conformance.checks.items import ItemResult, ItemRun
from conformance.checks.run_options import DEFAULT_SEED
from conformance.evaluation.correct_list import variants
from conformance.evaluation.kills import QUICK
from conformance.expectations import builtin_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.records.accuracy import Accuracy, AccuracyEntry
from conformance.soak import CORRECT
from conformance.specification import requirements
from conformance.specification.requirement import nothing
from conformance.system.threads import in_processes

LEAST = 0.05  # a budget that nothing correct comes nearer to lets faults through


@dataclass(frozen=True)
class FalsePositive:
    """A failure that no expectation explains."""

    implementation: str
    requirement: str
    outcome: str
    r: float | None
    problem: str


@dataclass
class FalsePositives:
    """``accuracy`` has r by implementation, of requirements without failures; ``missing`` could not run, with the reason."""

    cases: int = 0
    found: list[FalsePositive] = field(default_factory=list)
    accuracy: dict[str, tuple[AccuracyEntry, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def merge(self, other: "FalsePositives") -> None:
        self.cases += other.cases
        self.found += other.found
        self.missing |= other.missing
        for name, entries in other.accuracy.items():
            self.accuracy[name] = Accuracy.of(self.accuracy.get(name, ()), entries).entries()


def run(
    seeds: int,
    names: Sequence[str] = (),
    processes: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> FalsePositives:
    """The quick tier with ``seeds`` seeds, beginning with the default one, on the variants of this package and on the correct
    built-in implementations, or on ``names`` among them; in so many processes, one a core if None. ``progress`` hears how many
    more seeds are done."""
    total = FalsePositives()
    wanted = tuple(names) or (*variants(), *CORRECT)
    for _, part in in_processes(partial(_run_number, wanted), range(seeds), processes):
        total.merge(part)
        progress(1)
    total.found.sort(
        key=lambda false_positive: (false_positive.implementation, false_positive.requirement, false_positive.problem)
    )
    return total


def _run_number(names: Sequence[str], number: int) -> FalsePositives:
    return run_seed(names, DEFAULT_SEED + number, fixed=number == 0)


def run_seed(names: Sequence[str], seed: int, fixed: bool) -> FalsePositives:
    """The random cases of ``seed`` in this process, and the designed ones if ``fixed``: those are the same for every seed."""
    false_positives, judge = FalsePositives(), Judge()
    expectations = builtin_expectations(requirements())
    subjects = []
    for implementation in (variants().get(name) or registry.resolve(name) for name in names):
        missing = implementation.missing()
        if missing is None:
            subjects.append(Subject(implementation))
        else:
            false_positives.missing[implementation.name] = missing
    effort = replace(QUICK, seed=seed)
    for requirement in requirements().values():
        posed = requirement if fixed else replace(requirement, designed=nothing)
        for subject in subjects:
            if subject.implementation.operation == requirement.operation:
                expected = expectations.for_(subject.implementation.name)
                _add(false_positives, subject.implementation, ItemRun(posed, subject, judge, expected, effort).run())
    return false_positives


def _add(false_positives: FalsePositives, implementation: Implementation, result: ItemResult) -> None:
    name, item = implementation.name, result.item
    false_positives.cases += item.counts.golden + item.counts.designed + item.counts.random
    if item.outcome is Outcome.PASS:
        support = implementation.support
        judged = [entry for entry in item.accuracy if entry.profile == support.judged_by(entry.dtype)]
        false_positives.accuracy[name] = Accuracy.of(false_positives.accuracy.get(name, ()), judged).entries()
    false_positives.found += [
        FalsePositive(name, case.requirement, case.outcome, case.r, case.text)
        for case in result.unexpected
        if case.outcome.is_failure
    ]


def render(false_positives: FalsePositives, seeds: int, style: str = "simple") -> str:
    """The largest r of each dtype and profile, what has slack, and the false positives."""
    rows, warnings = [], []
    for (dtype, profile), by_name in sorted(_by_budget(false_positives).items()):
        nearest = max(by_name, key=lambda name: by_name[name].max)
        whole = Accuracy.of(tuple(by_name.values())).distributions[dtype, profile]
        rows.append((dtype, profile, len(by_name), whole.count, f"{whole.median:.3f}", f"{whole.max:.3f}", nearest))
        if whole.max < LEAST:
            warnings.append(f"Warning: the budget of {dtype} under {profile} has slack: the largest r is {whole.max:.3g}.")
    head = ("dtype", "profile", "implementations", "judged", "median r", "largest r", "of")
    table = tabulate(rows, head, tablefmt=style, disable_numparse=True)
    missing = [f"{name} did not run: {reason}" for name, reason in sorted(false_positives.missing.items())]
    found = [
        f"{one.implementation}, {one.requirement}: {one.outcome}, r = {one.r}: {one.problem}" for one in false_positives.found
    ]
    end = f"{false_positives.cases:,} cases, {seeds} seeds. False positives: {len(found)}."
    return "\n".join([table, "", *missing, *warnings, *found, end])


def _by_budget(false_positives: FalsePositives) -> dict[tuple[str, str], dict[str, AccuracyEntry]]:
    """The accuracy entries by (dtype, profile), then by implementation."""
    grouped: dict[tuple[str, str], dict[str, AccuracyEntry]] = {}
    for name, entries in false_positives.accuracy.items():
        for entry in entries:
            grouped.setdefault((entry.dtype, entry.profile), {})[name] = entry
    return grouped

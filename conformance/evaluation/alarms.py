"""No false alarm: implementations that are right go through the quick tier with many seeds, and none may be rejected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tabulate import tabulate

from conformance import registry
from conformance.accuracy import Accuracy, AccuracyEntry
from conformance.adapter import Implementation
from conformance.checks.items import ItemResult, ItemRun
from conformance.evaluation.honest_list import variants
from conformance.evaluation.kills import QUICK
from conformance.expectations import builtin_expectations
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.run_options import DEFAULT_SEED
from conformance.soak import HONEST
from conformance.specification import requirements
from conformance.specification.model import nothing
from conformance.threads import in_processes
from conformance.verdict import Outcome

LEAST = 0.05  # a budget that nothing honest comes nearer to lets faults through


@dataclass(frozen=True)
class Alarm:
    """A failure that no expectation explains."""

    implementation: str
    requirement: str
    outcome: str
    r: float | None
    problem: str


@dataclass
class Alarms:
    """``accuracy`` has r by implementation, of requirements without failures; ``missing`` could not run, with the reason."""

    cases: int = 0
    found: list[Alarm] = field(default_factory=list)
    accuracy: dict[str, tuple[AccuracyEntry, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def merge(self, other: "Alarms") -> None:
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
) -> Alarms:
    """The quick tier with ``seeds`` seeds, beginning with the default one, on the variants of this package and on the honest
    built-in implementations, or on ``names`` among them; in so many processes, one a core if None. ``progress`` hears how many
    more seeds are done."""
    total = Alarms()
    wanted = tuple(names) or (*variants(), *HONEST)
    for _, part in in_processes(partial(_run_number, wanted), range(seeds), processes):
        total.merge(part)
        progress(1)
    total.found.sort(key=lambda alarm: (alarm.implementation, alarm.requirement, alarm.problem))
    return total


def _run_number(names: Sequence[str], number: int) -> Alarms:
    return run_seed(names, DEFAULT_SEED + number, fixed=number == 0)


def run_seed(names: Sequence[str], seed: int, fixed: bool) -> Alarms:
    """The random cases of ``seed`` in this process, and the designed ones if ``fixed``: those are the same for every seed."""
    alarms, judge = Alarms(), Judge()
    expectations = builtin_expectations(requirements())
    subjects = []
    for implementation in (variants().get(name) or registry.resolve(name) for name in names):
        missing = implementation.missing()
        if missing is None:
            subjects.append(Subject(implementation))
        else:
            alarms.missing[implementation.name] = missing
    effort = replace(QUICK, seed=seed)
    for requirement in requirements().values():
        posed = requirement if fixed else replace(requirement, designed=nothing)
        for subject in subjects:
            if subject.implementation.operation == requirement.operation:
                expected = expectations.for_(subject.implementation.name)
                _add(alarms, subject.implementation, ItemRun(posed, subject, judge, expected, effort).run())
    return alarms


def _add(alarms: Alarms, implementation: Implementation, result: ItemResult) -> None:
    name, item = implementation.name, result.item
    alarms.cases += item.counts.golden + item.counts.designed + item.counts.random
    if item.outcome is Outcome.PASS:
        support = implementation.support
        judged = [entry for entry in item.accuracy if entry.profile == support.judged_by(entry.dtype)]
        alarms.accuracy[name] = Accuracy.of(alarms.accuracy.get(name, ()), judged).entries()
    alarms.found += [
        Alarm(name, case.requirement, case.outcome, case.r, case.text) for case in result.unexpected if case.outcome.is_failure
    ]


def render(alarms: Alarms, seeds: int, style: str = "simple") -> str:
    """The largest r of each dtype and profile, what has slack, and the false alarms."""
    rows, warnings = [], []
    for (dtype, profile), by_name in sorted(_by_budget(alarms).items()):
        nearest = max(by_name, key=lambda name: by_name[name].max)
        whole = Accuracy.of(tuple(by_name.values())).distributions[dtype, profile]
        rows.append((dtype, profile, len(by_name), whole.count, f"{whole.median:.3f}", f"{whole.max:.3f}", nearest))
        if whole.max < LEAST:
            warnings.append(f"Warning: the budget of {dtype} under {profile} has slack: the largest r is {whole.max:.3g}.")
    head = ("dtype", "profile", "implementations", "judged", "median r", "largest r", "of")
    table = tabulate(rows, head, tablefmt=style, disable_numparse=True)
    missing = [f"{name} did not run: {reason}" for name, reason in sorted(alarms.missing.items())]
    found = [f"{one.implementation}, {one.requirement}: {one.outcome}, r = {one.r}: {one.problem}" for one in alarms.found]
    end = f"{alarms.cases:,} cases, {seeds} seeds. False alarms: {len(found)}."
    return "\n".join([table, "", *missing, *warnings, *found, end])


def _by_budget(alarms: Alarms) -> dict[tuple[str, str], dict[str, AccuracyEntry]]:
    """The accuracy entries by (dtype, profile), then by implementation."""
    grouped: dict[tuple[str, str], dict[str, AccuracyEntry]] = {}
    for name, entries in alarms.accuracy.items():
        for entry in entries:
            grouped.setdefault((entry.dtype, entry.profile), {})[name] = entry
    return grouped

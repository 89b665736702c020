"""A run as it was recorded, and several runs, of a run cut into shards, as one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records.accuracy import Accuracy
from conformance.records.coverage import Coverages, Undeclared, coverages, undeclared
from conformance.records.extent import Extent, Pair, by_implementation, extent, selected
from conformance.records.record_types import (
    CONFORMANCE_TIERS,
    LISTS,
    Case,
    ConventionResult,
    Counts,
    DiagnosisRecord,
    DtypeResult,
    Environment,
    Footer,
    Growth,
    Header,
    ImplementationEntry,
    Item,
    Line,
    RequirementEntry,
    SelfComparison,
    StatusWord,
    Timing,
)
from conformance.records.shares import shares, too_little
from conformance.records.unrun import Unrun
from conformance.system.exit_codes import ExitCode, exit_code


@dataclass(frozen=True)
class Run:
    """What one record file, or several merged ones, say. There is a header, and a footer unless truncated, for each shard."""

    headers: tuple[Header, ...]
    items: tuple[Item, ...] = ()
    cases: tuple[Case, ...] = ()
    conventions: tuple[ConventionResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    growths: tuple[Growth, ...] = ()
    self_comparisons: tuple[SelfComparison, ...] = ()
    diagnoses: tuple[DiagnosisRecord, ...] = ()
    unrun: tuple[Unrun, ...] = ()
    footers: tuple[Footer, ...] = ()

    @classmethod
    def of(cls, header: Header, lines: Iterable[Line], footer: Footer | None = None) -> "Run":
        """The run that the lines between header and footer tell of; without a footer it is truncated."""
        lists: dict[str, Any] = {name: [] for name in LISTS.values()}
        for line in lines:
            lists[LISTS[type(line)]].append(line)
        footers = () if footer is None else (footer,)
        return cls((header,), footers=footers, **{name: tuple(found) for name, found in lists.items()})

    @property
    def header(self) -> Header:
        return self.headers[0]

    @property
    def environment(self) -> Environment:
        return self.header.environment

    @property
    def is_complete(self) -> bool:
        """Whether each shard came to its end."""
        return len(self.footers) == len(self.headers)

    @property
    def exit_code(self) -> int | None:
        """What the whole ends with; None for a truncated run. That nothing was judged is a matter of all shards together."""
        if not self.is_complete:
            return None
        worst = max(footer.exit_code for footer in self.footers)
        if worst or not (self.items or self.conventions or len(self.footers) > 1):
            return worst
        enough = bool(self.shard) or (any(item.outcome.was_run for item in self.items) and not self.too_little)
        missing = sum(map(len, self.missing.values()))
        return int(exit_code(unexpected=self.surprises, enough_cases=enough, missing=missing))

    @property
    def was_interrupted(self) -> bool:
        """Whether a shard ended before all that was expected had been run; an older footer says it by its exit code alone."""
        inconclusive = ExitCode.INCONCLUSIVE
        return any(footer.exit_code == inconclusive and footer.interrupted is not False for footer in self.footers)

    @cached_property
    def expected(self) -> frozenset[Pair]:
        """The pairs of requirement or convention and implementation that had to have a result: those that were selected."""
        return selected(self.headers)

    @cached_property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """By implementation, what of a run that is said to be whole was expected and has no result: the suite's own failure."""
        if not self.is_complete or self.was_interrupted:
            return {}
        return by_implementation(self.expected - self._recorded)

    @cached_property
    def _recorded(self) -> frozenset[Pair]:
        return frozenset(
            [(item.requirement, item.implementation) for item in self.items]
            + [(convention.id, convention.implementation) for convention in self.conventions]
        )

    @cached_property
    def too_little(self) -> tuple[str, ...]:
        """A sentence for each implementation whose limits left too little for a verdict; a shard alone has none to give."""
        return () if self.shard else too_little(shares(self.items))

    @property
    def shard(self) -> str:
        """Which shard of a run this is, if it is one alone, such as 2/5."""
        return self.header.shard if len(self.headers) == 1 and self.header.shard != "1/1" else ""

    @property
    def not_conformance(self) -> str:
        """Why the run may not be cited as a conformance result, in sentences; empty where it may."""
        tier = self.header.tier
        leaves = self.is_complete and tier not in CONFORMANCE_TIERS
        return " ".join(filter(None, (f"The tier {tier} leaves cases out." if leaves else "", self.partial)))

    @property
    def partial(self) -> str:
        """Why the run is only a part of one, as a sentence, so that shares say nothing of the whole; empty where it is whole."""
        if not self.is_complete:
            return "The run did not come to its end."
        extent = self.extent
        told = []
        if not extent.has_all_requirements:
            told.append(f"{extent.requirements} of {extent.requirements_expected} pairs of requirement and implementation")
        if extent.conventions < extent.conventions_expected:
            told.append(f"{extent.conventions} of {extent.conventions_expected} of convention and implementation")
        return f"Only {' and '.join(told)} were run." if told else ""

    @cached_property
    def extent(self) -> Extent:
        """How much there is of all that the suite asks. Older records do not say how many conventions were."""
        requirements = ((item.requirement, item.implementation) for item in self.items)
        conventions = ((convention.id, convention.implementation) for convention in self.conventions)
        return extent(self.headers, requirements, conventions)

    @property
    def ratios_are_sound(self) -> bool:
        """Whether the baseline, timed against itself, gave 1; one that failed was held again, and the last counts."""
        return not self.self_comparisons or self.self_comparisons[-1].is_sound

    @cached_property
    def implementations(self) -> dict[str, ImplementationEntry]:
        return {entry.name: entry for header in self.headers for entry in header.implementations}

    @cached_property
    def requirements(self) -> dict[str, RequirementEntry]:
        return {entry.id: entry for header in self.headers for entry in header.requirements}

    @cached_property
    def unexpected(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.status == "unexpected")

    @cached_property
    def coverages(self) -> Coverages:
        """What was judged and what was not offered, by implementation and area."""
        return coverages(self.items, {entry.id: entry.area for entry in self.requirements.values()})

    @cached_property
    def undeclared(self) -> tuple[Undeclared, ...]:
        """Areas of which nothing could be asked, without a declaration that says so; of a run of all requirements alone. They
        count as unexpected, too."""
        if self.header.selection or self.shard or not self.is_complete or not self.extent.has_all_requirements:
            return ()
        return undeclared(self.coverages, self.implementations)

    @cached_property
    def unexpected_conventions(self) -> tuple[ConventionResult, ...]:
        """Conventions that are not as declared, not as expected, or no answer that an interface may have."""
        return tuple(convention for convention in self.conventions if convention.status == "unexpected")

    @cached_property
    def wrong_timings(self) -> tuple[Timing | Growth, ...]:
        """Timed calls whose own output failed, where that is not known; they count as unexpected, too."""
        return tuple(timing for timing in self.timed if timing.status == "unexpected")

    @property
    def timed(self) -> tuple[Timing | Growth, ...]:
        return (*self.timings, *self.growths)

    @property
    def surprises(self) -> int:
        """All that is unexpected: what the exit code, the footers and the verdict count."""
        found = (self.unexpected, self.unexpected_conventions, self.wrong_timings, self.undeclared)
        return sum(map(len, found))


def merge(runs: Iterable[Run]) -> Run:
    """The runs as one, its results in the order of the header whatever the order in which they came.

    Raises UsageError unless they are shards of one: same versions and tier, no case in two of them.
    """
    runs = tuple(runs)
    if not runs:
        raise UsageError("There are no runs to merge: name at least one record file.")
    if len(runs) == 1:
        return _ordered(runs[0])
    headers = tuple(header for run in runs for header in run.headers)
    _same_suite(headers)
    _same_implementations(headers)
    _no_overlap(runs)
    lists: dict[str, Any] = {name: tuple(line for run in runs for line in getattr(run, name)) for name in LISTS.values()}
    lists["items"] = _merged_items(lists["items"])
    lists["cases"] = tuple({(case.id, case.implementation, case.stratum): case for case in lists["cases"]}.values())
    lists["conventions"] = tuple({(c.id, c.implementation, c.observed): c for c in lists["conventions"]}.values())
    return _ordered(Run(headers, footers=tuple(footer for run in runs for footer in run.footers), **lists))


def _ordered(run: Run) -> Run:
    """Requirement by requirement, within each implementation by implementation; workers and shards deliver in any order."""
    requirements = {identifier: place for place, identifier in enumerate(run.requirements)}
    implementations = {name: place for place, name in enumerate(run.implementations)}
    return replace(
        run,
        items=tuple(sorted(run.items, key=lambda i: (requirements[i.requirement], implementations[i.implementation]))),
        cases=tuple(sorted(run.cases, key=lambda c: (requirements[c.requirement], implementations[c.implementation]))),
        conventions=tuple(sorted(run.conventions, key=lambda c: (c.id, implementations[c.implementation]))),
        diagnoses=tuple(sorted(run.diagnoses, key=lambda d: implementations[d.implementation])),
        unrun=tuple(sorted(run.unrun, key=lambda one: implementations[one.implementation])),
    )


def _same_suite(headers: Sequence[Header]) -> None:
    for name in ("suite", "specification", "tier"):
        values = list(dict.fromkeys(getattr(header, name) for header in headers))
        if len(values) > 1:
            raise UsageError(f"Runs with different {name} ({', '.join(values)}) are no shards of one run: merge equal ones only.")


def _same_implementations(headers: Sequence[Header]) -> None:
    known: dict[str, ImplementationEntry] = {}
    for entry in (entry for header in headers for entry in header.implementations):
        first = known.setdefault(entry.name, entry)
        if entry != first:
            differing = [name for name in entry.__struct_fields__ if getattr(entry, name) != getattr(first, name)]
            raise UsageError(
                f"The runs to merge declare the implementation {entry.name} differently ({', '.join(differing)}): "
                "run their shards with equal versions."
            )


def _no_overlap(runs: Sequence[Run]) -> None:
    """Each golden or designed case, each stretch of random ones and each timing is in one run at most."""
    times = Counter(what for run in runs for what in _ran(run))
    for what, number in times.items():
        if number > 1:
            raise UsageError(f"{what} stands in {number} of the runs to merge, so they are no shards of one run: leave one out.")


def _ran(run: Run) -> list[str]:
    """What a run did, each once and in its order, in words that are equal where two runs did the same."""
    cases = [f"The {case.stratum} case {case.id} on {case.implementation}" for case in run.cases if case.stratum != "random"]
    stretches = [
        f"The random part of {item.requirement} on {item.implementation}, with the seed {header.seed},"
        for header in run.headers
        for item in run.items
        if item.counts.random
    ]
    timings = [
        f"The timing of {t.implementation} at {t.shape} of {t.suite} in {t.dtype} ({t.operation}, {t.passes})"
        for t in run.timings
    ]
    return list(dict.fromkeys((*cases, *stretches, *timings)))


def _merged_items(items: Iterable[Item]) -> tuple[Item, ...]:
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        groups.setdefault((item.requirement, item.implementation), []).append(item)
    return tuple(group[0] if len(group) == 1 else _merged_item(group) for group in groups.values())


def _merged_item(group: Sequence[Item]) -> Item:
    return Item(
        requirement=group[0].requirement,
        implementation=group[0].implementation,
        outcome=_worst([item.outcome for item in group]),
        status=_status(group),
        reason="; ".join(dict.fromkeys(item.reason for item in group if item.reason)),
        counts=_sum(item.counts for item in group),
        dtypes=_merged_dtypes(group),
        examples=sum(item.examples for item in group),
        seconds=sum(item.seconds for item in group),
        implementation_seconds=sum(item.implementation_seconds for item in group),
        accuracy=Accuracy.of(*(item.accuracy for item in group)).entries(),
        without=tuple(sorted({feature for item in group for feature in item.without})),
        observations={name: value for item in group for name, value in item.observations.items()},
    )


def _merged_dtypes(group: Sequence[Item]) -> dict[str, DtypeResult]:
    found: dict[str, list[DtypeResult]] = {}
    for item in group:
        for dtype, result in item.dtypes.items():
            found.setdefault(dtype, []).append(result)
    return {
        dtype: DtypeResult(
            outcome=_worst([result.outcome for result in results]),
            status=_status(results),
            counts=_sum(result.counts for result in results),
        )
        for dtype, results in found.items()
    }


def _sum(several: Iterable[Counts]) -> Counts:
    several = list(several)
    return Counts(**{name: sum(getattr(counts, name) for counts in several) for name in Counts.__struct_fields__})


def _status(results: Iterable[Item | DtypeResult]) -> StatusWord:
    return "unexpected" if any(result.status == "unexpected" for result in results) else "expected"


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """The worst of the shards that ran; of all, where none ran."""
    ran = [outcome for outcome in outcomes if outcome.was_run]
    return max(ran or outcomes, key=lambda outcome: outcome.severity)

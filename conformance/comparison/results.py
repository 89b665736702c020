"""Requirements: which fail that did not, which are fixed, which are no longer or newly run."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.comparison.change import Change, ChangeKind
from conformance.comparison.ground import Ground
from conformance.judging.verdict import Outcome
from conformance.records import Case, Item, Run
from conformance.reports.tallies import failing_dtypes

Pair = tuple[str, str]  # requirement, implementation
SHOWN_CASES = 3


@dataclass
class _Cases:
    """The recorded cases of an item: golden and designed ones by stratum and id, and whether random ones failed, unexpectedly."""

    fixed: dict[Pair, Case] = field(default_factory=dict)
    random_failed: bool = False
    random_unexpected: bool = False

    @property
    def failing(self) -> set[Pair]:
        return {key for key, case in self.fixed.items() if case.outcome.is_failure}

    @property
    def passing(self) -> set[Pair]:
        return {key for key, case in self.fixed.items() if case.outcome is Outcome.PASS}

    @property
    def failed_in_random_ones_only(self) -> bool:
        return self.random_failed and not self.failing

    @property
    def unexpected_in_random_ones_only(self) -> bool:
        return self.random_unexpected and not any(case.status == "unexpected" for case in self.fixed.values())


@dataclass(frozen=True)
class _Answer:
    """A requirement on an implementation in one of the runs."""

    item: Item
    cases: _Cases


def changed_results(base: Run, new: Run, ground: Ground) -> tuple[list[Change], list[str], int]:
    """The changes, remarks on what is not compared, and how many pairs were compared."""
    before, after = _answers(base), _answers(new)
    common = [pair for pair in after if pair in before and pair[0] in ground.requirements]
    changes: list[Change] = []
    incomparable: Counter[str] = Counter()
    for pair in common:
        if _hangs_on_draws(before[pair], after[pair], ground):
            incomparable[pair[0]] += 1
        else:
            changes += _changes(before[pair], after[pair], ground)
    changes += _only_in(ChangeKind.ADDED, after, before, {r for r in new.requirements if r not in base.requirements})
    changes += _only_in(ChangeKind.REMOVED, before, after, {r for r in base.requirements if r not in new.requirements})
    return changes, [*_told(incomparable), *_other_cases(before, after, common)], len(common)


def _answers(run: Run) -> dict[Pair, _Answer]:
    cases: dict[Pair, _Cases] = defaultdict(_Cases)
    for case in run.cases:
        own = cases[case.requirement, case.implementation]
        if case.stratum == "random":
            own.random_failed |= case.outcome.is_failure
            own.random_unexpected |= case.status == "unexpected"
        else:
            own.fixed[case.stratum, case.id] = case
    keys = ((item.requirement, item.implementation) for item in run.items)
    return {key: _Answer(item, cases[key]) for key, item in zip(keys, run.items, strict=True)}


def _hangs_on_draws(before: _Answer, after: _Answer, ground: Ground) -> bool:
    """Whether the two differ by random cases that one of the runs did not have."""
    if ground.same_draws:
        return False
    if before.item.outcome is after.item.outcome:
        return before.item.status == "expected" and after.cases.unexpected_in_random_ones_only
    return any(
        answer.cases.failed_in_random_ones_only and answer.item.outcome.is_failure and other.item.outcome.was_run
        for answer, other in ((before, after), (after, before))
    )


def _changes(before: _Answer, after: _Answer, ground: Ground) -> Iterator[Change]:
    kind = _kind(before.item, after.item)
    if kind is not None:
        yield _change(kind, before.item, after.item, after.item.reason or _first_message(after.cases))
    if before.item.outcome.is_failure and after.item.outcome.is_failure:
        more = _more_dtypes(before, after, ground)
        if more:
            then, now = (", ".join(failing_dtypes(answer.item)) for answer in (before, after))
            yield Change(
                ChangeKind.MORE_DTYPES, after.item.implementation, after.item.requirement, then, now, f"new: {', '.join(more)}"
            )
        yield from _changed_cases(before, after, more)


def _kind(before: Item, after: Item) -> ChangeKind | None:
    failed, fails = before.outcome.is_failure, after.outcome.is_failure
    if fails and not failed:
        return ChangeKind.NEWLY_FAILING if after.status == "unexpected" else ChangeKind.NEWLY_KNOWN
    if failed and after.outcome is Outcome.PASS:
        return ChangeKind.FIXED
    if before.outcome.was_run and not after.outcome.was_run:
        return ChangeKind.FAILURE_NOT_RUN if failed else ChangeKind.NO_LONGER_RUN
    if failed and after.outcome is not before.outcome:
        worse = after.outcome.severity > before.outcome.severity and after.status == "unexpected"
        return ChangeKind.FAILS_WORSE if worse else ChangeKind.FAILS_OTHERWISE
    if after.status == "unexpected" and before.status == "expected":
        return ChangeKind.UNEXPECTED
    return ChangeKind.NEWLY_RUN if after.outcome.was_run and not before.outcome.was_run else None


def _more_dtypes(before: _Answer, after: _Answer, ground: Ground) -> list[str]:
    """Dtypes in which the requirement passed and now fails unexpectedly, unless that hangs on random cases that only one had."""
    fixed = {after.cases.fixed[key].dtype for key in after.cases.failing}
    return [
        dtype
        for dtype, result in after.item.dtypes.items()
        if result.outcome.is_failure
        and result.status == "unexpected"
        and dtype in before.item.dtypes
        and before.item.dtypes[dtype].outcome is Outcome.PASS
        and (ground.same_draws or dtype in fixed)
    ]


def _changed_cases(before: _Answer, after: _Answer, told: Sequence[str]) -> Iterator[Change]:
    """Golden and designed cases of a requirement that fails in both runs, without those newly failing in dtypes already told."""
    broken = after.cases.failing & before.cases.passing
    broken = {key for key in broken if after.cases.fixed[key].status == "unexpected" and after.cases.fixed[key].dtype not in told}
    fixed = before.cases.failing & after.cases.passing
    for kind, keys in ((ChangeKind.MORE_FAILING, broken), (ChangeKind.FEWER_FAILING, fixed)):
        if keys:
            then, now = (f"{len(answer.cases.failing)} cases" for answer in (before, after))
            names = ", ".join(sorted(identifier for _, identifier in keys)[:SHOWN_CASES])
            more = f" and {len(keys) - SHOWN_CASES} more" if len(keys) > SHOWN_CASES else ""
            yield Change(kind, after.item.implementation, after.item.requirement, then, now, f"{names}{more}")


def _change(kind: ChangeKind, before: Item, after: Item, note: str) -> Change:
    return Change(kind, after.implementation, after.requirement, str(before.outcome), str(after.outcome), note)


def _first_message(cases: _Cases) -> str:
    return next((case.message for case in cases.fixed.values() if case.outcome.is_failure), "")


def _only_in(
    kind: ChangeKind, here: Mapping[Pair, _Answer], there: Mapping[Pair, _Answer], respecified: set[str]
) -> Iterator[Change]:
    """Pairs that only one run has: whole implementations, then whole requirements, then single ones."""
    known_implementations = {implementation for _, implementation in there}
    known_requirements = {requirement for requirement, _ in there}
    implementations: Counter[str] = Counter()
    requirements: dict[str, list[str]] = defaultdict(list)
    for (requirement, implementation), answer in here.items():
        if implementation not in known_implementations:
            implementations[implementation] += 1
        elif requirement not in known_requirements:
            requirements[requirement].append(implementation)
        elif (requirement, implementation) not in there:
            yield _single(kind, implementation, requirement, str(answer.item.outcome))
    for implementation, number in implementations.items():
        yield _single(kind, implementation, "the implementation", f"{number} requirements")
    for requirement, names in requirements.items():
        note = "in one of the two specifications only" if requirement in respecified else ""
        outcomes = Counter(str(here[requirement, name].item.outcome) for name in names)
        told = ", ".join(f"{outcome} {number}" if len(names) > 1 else outcome for outcome, number in outcomes.items())
        yield _single(kind, names[0] if len(names) == 1 else f"{len(names)} implementations", requirement, told, note)


def _single(kind: ChangeKind, implementation: str, subject: str, what: str, note: str = "") -> Change:
    before, after = ("", what) if kind is ChangeKind.ADDED else (what, "")
    return Change(kind, implementation, subject, before, after, note)


def _told(incomparable: Counter[str]) -> Iterator[str]:
    if incomparable:
        names = ", ".join(sorted(incomparable)[:10]) + (", …" if len(incomparable) > 10 else "")
        yield f"{incomparable.total()} results fail in random cases alone, which the other run did not have: {names}."


def _other_cases(before: Mapping[Pair, _Answer], after: Mapping[Pair, _Answer], common: list[Pair]) -> Iterator[str]:
    """Golden and designed cases that one run has and the other has not, in what both ran."""
    counts = [0, 0]
    for pair in common:
        if before[pair].item.outcome.was_run and after[pair].item.outcome.was_run:
            keys = [answers[pair].cases.fixed.keys() for answers in (before, after)]
            counts = [counts[0] + len(keys[0] - keys[1]), counts[1] + len(keys[1] - keys[0])]
    if any(counts):
        yield f"Golden and designed cases that only one of the runs has: {counts[0]} in the base, {counts[1]} in the new run."

"""Bringing expectations files up to date with a run, keeping every reason, link and comment that still has its entry."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError, cut
from conformance.expectations.expectation import Cases, Entry, Expectation, ExpectedAnswer, file_stem
from conformance.expectations.file import ExpectationsFile
from conformance.expectations.judging import alike
from conformance.expectations.load import parse
from conformance.judging.verdict import Outcome
from conformance.records.record_types import CONFORMANCE_TIERS, Case, Item
from conformance.records.run import Run
from conformance.specification import conventions
from conformance.system import files
from conformance.system.user_files import demand_path, read_text, reason

TO_BE_REVIEWED = "to be reviewed"


def update(run: Run, folder: Path | str) -> list[Path]:
    """Rewrites ``<implementation>.toml`` in ``folder`` for each implementation of the run; returns the files that changed.

    Entries for requirements that did not run, or for other environments, stay as they are. New entries get the reason "to be
    reviewed". All files are written or none. Raises UsageError for a file that is no expectations file or cannot be written.
    """
    changed: dict[Path, str] = {}
    folder = demand_path(folder)
    for implementation in run.implementations:
        path = folder / f"{file_stem(implementation)}.toml"
        before = read_text(path, "expectations") if path.exists() else ""
        after = _updated(run, implementation, before, str(path))
        if after != before:
            parse(after, f"What the records make of {cut(str(path))}")  # it could not be read again, were the records of no run
            changed[path] = after
    _write(changed)
    return list(changed)


def _updated(run: Run, implementation: str, before: str, where: str) -> str:
    file = ExpectationsFile(before, where, implementation)
    entries = parse(before, where)
    file.demand_blocks(len(entries))
    items = {i.requirement: i for i in run.items if i.implementation == implementation and i.outcome.was_run}
    cases = [case for case in run.cases if case.implementation == implementation and case.outcome.was_run]
    saw_all = run.header.tier in CONFORMANCE_TIERS
    for requirement, item in sorted(items.items()):
        own = {
            place: one
            for place, one in enumerate(entries)
            if isinstance(one, Expectation) and one.requirement == requirement and one.holds_in(run.environment)
        }
        plan = _Plan(item, [case for case in cases if case.requirement == requirement], saw_all)
        kept: list[Expectation] = []
        for place, one in sorted(own.items(), key=lambda pair: pair[1].cases == "all"):  # those that name cases go first
            revised = plan.revised(one, kept)
            file.replace(place, one, revised)
            kept += [] if revised is None else [revised]
        file.append(plan.missing(kept))
    _update_answers(run, implementation, file, entries)
    return file.text()


def _update_answers(run: Run, implementation: str, file: ExpectationsFile, entries: Sequence[Entry]) -> None:
    """Removes the answers that are stated and were not observed, and adds those that were, of the conventions that were asked."""
    questions = conventions()
    asked = {
        c.id: c.observed for c in run.conventions if c.implementation == implementation and c.id in questions and not c.skipped
    }
    known = set()
    for place, one in enumerate(entries):
        if isinstance(one, ExpectedAnswer) and one.convention in asked and one.holds_in(run.environment):
            if one.answer == asked[one.convention]:
                known.add(one.convention)
            else:
                file.replace(place, one, None)
    file.append(
        ExpectedAnswer(convention=identifier, answer=answer, reason=TO_BE_REVIEWED)
        for identifier, answer in sorted(asked.items())
        if answer is not None and answer not in conventions()[identifier].legitimate and identifier not in known
    )


@dataclass
class _Plan:
    """What expectations of one requirement on one implementation should say, after a run."""

    item: Item
    cases: list[Case]
    saw_all: bool
    """Whether every case of the specification ran, so that a digest that is not among them is stale."""

    @property
    def judged(self) -> list[Case]:
        return [case for case in self.cases if case.stratum != "random"]

    @property
    def died(self) -> bool:
        """Whether the item took its process with it, so that no case tells of it."""
        return self.item.outcome in (Outcome.CRASH, Outcome.TIMEOUT)

    def revised(self, entry: Expectation, before: Iterable[Expectation]) -> Expectation | None:
        """The entry with the cases that still fail as it says; None if nothing is left of it.

        ``before`` are the entries already kept: "all" leaves out the cases that one of them names.
        """
        if self.died:
            return entry if entry.outcome == self.item.outcome else None
        selected = [case for case in self.judged if entry.covers(case.dtype)]
        if entry.cases == "all":
            named = {digest for other in before if other.cases != "all" for digest in other.cases}
            selected = [case for case in selected if case.digest not in named]
            unknown = not selected and not (self.judged and self.saw_all)
            if unknown or (selected and all(case.outcome == entry.outcome for case in selected)):
                return entry
            left = {case.digest for case in selected if case.outcome == entry.outcome}
        else:
            left = {case.digest for case in selected if case.digest in entry.cases and case.outcome == entry.outcome}
            if not self.saw_all:
                left |= set(entry.cases) - {case.digest for case in self.judged}
            if left == set(entry.cases):
                return entry
        if not left and not self._random_failures(entry):
            return None
        return _with_cases(entry, left)

    def missing(self, kept: list[Expectation]) -> list[Expectation]:
        """Entries for the failures that no kept entry expects."""
        if self.died:
            return [] if kept else [self._new(self.item.outcome, "all", ())]
        uncovered = [case for case in self.judged if not any(_selects(entry, case) for entry in kept)]
        outcomes = dict.fromkeys(case.outcome for case in uncovered if case.outcome.is_failure)
        new = [entry for outcome in outcomes for entry in self._entries(outcome, uncovered)]
        return new + self._random_entries([*kept, *new])

    def _entries(self, outcome: Outcome, uncovered: list[Case]) -> list[Expectation]:
        """For the dtypes of which all cases fail so, "all"; for the others, their digests."""
        failing = [case for case in uncovered if case.outcome == outcome]
        whole = {case.dtype for case in failing} - {case.dtype for case in uncovered if case.outcome != outcome}
        partial = {case.dtype for case in failing} - whole
        entries = []
        if whole:
            everything = whole == {case.dtype for case in self.judged}
            entries.append(self._new(outcome, "all", () if everything else tuple(sorted(whole))))
        if partial:
            digests = tuple(sorted({case.digest for case in failing if case.dtype in partial}))
            entries.append(self._new(outcome, digests, tuple(sorted(partial))))
        return entries

    def _random_entries(self, present: list[Expectation]) -> list[Expectation]:
        """Entries that allow the failures of random cases alone."""
        left = [case for case in self.cases if case.stratum == "random" and not any(_allows(entry, case) for entry in present)]
        return [
            self._new(outcome, (), tuple(sorted({case.dtype for case in left if case.outcome == outcome})))
            for outcome in dict.fromkeys(case.outcome for case in left)
        ]

    def _random_failures(self, entry: Expectation) -> bool:
        return any(case.stratum == "random" and _allows(entry, case) for case in self.cases)

    def _new(self, outcome: Outcome, cases: Cases, dtypes: tuple[str, ...]) -> Expectation:
        requirement = self.item.requirement
        return Expectation(requirement=requirement, outcome=outcome, reason=TO_BE_REVIEWED, cases=cases, dtypes=dtypes)


def _selects(entry: Expectation, case: Case) -> bool:
    return entry.covers(case.dtype) and (entry.cases == "all" or case.digest in entry.cases)


def _allows(entry: Expectation, case: Case) -> bool:
    return entry.random and entry.covers(case.dtype) and alike(entry.outcome, case.outcome)


def _with_cases(entry: Expectation, digests: set[str]) -> Expectation:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return Expectation(**{**fields, "cases": tuple(sorted(digests))})


def _write(texts: Mapping[Path, str]) -> None:
    try:
        files.write_all(texts)
    except (OSError, ValueError) as error:
        raise UsageError(f"The expectations cannot be written to {cut(', '.join(map(str, texts)))}: {reason(error)}.") from None

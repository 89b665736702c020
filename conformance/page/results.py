"""The matrix implementation × area, opened to requirements and to failing cases."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.page.pictures import PackedPicture, packed
from conformance.page.text import NAME, anchor, clean, figure
from conformance.problem.returned import OUTPUT
from conformance.records import Case, Item, Run
from conformance.reports.causes import Cause, causes
from conformance.reports.shown import Choice
from conformance.reports.tallies import KNOWN, PASSED, SKIPPED, UNEXPECTED, UNSUPPORTED, areas, failing_dtypes, kind_of

MARKS = {
    PASSED: "✓",
    KNOWN: "◐",
    UNEXPECTED: "✗",
    UNSUPPORTED: "–",
    SKIPPED: "○",
}
CASE_BYTES = 700_000  # of failing cases on the page, and
PICTURE_BYTES = 500_000  # of their pictures: a page can be sent around
CASES_SHOWN = 4  # of a requirement on an implementation: one of each dtype


@dataclass(frozen=True)
class ShownCase:
    """A failing case, with its picture if it has one and there is room."""

    case: Case
    picture: PackedPicture | None

    @property
    def r(self) -> str:
        return "" if self.case.r is None else figure(self.case.r)


@dataclass(frozen=True)
class Entry:
    """A requirement on an implementation; ``more`` failing cases stand in the records only."""

    anchor: str
    item: Item
    sentence: str
    cases: tuple[ShownCase, ...]
    more: int

    @property
    def kind(self) -> str:
        return kind_of(self.item)

    @property
    def ran(self) -> int:
        counts = self.item.counts
        return counts.golden + counts.designed + counts.random

    @property
    def failing(self) -> tuple[str, ...]:
        """The dtypes in which something failed."""
        return tuple(failing_dtypes(self.item))

    @property
    def opens(self) -> bool:
        """Whether there is more to it than a line."""
        return bool(self.cases)


@dataclass(frozen=True)
class AreaResults:
    area: str
    anchor: str
    entries: tuple[Entry, ...]

    @property
    def counts(self) -> Counter[str]:
        return Counter(entry.kind for entry in self.entries)


@dataclass(frozen=True)
class Row:
    """An implementation; an area in which it has no item is None."""

    anchor: str
    name: str
    about: str
    missing: str
    causes: tuple[Cause, ...]
    areas: tuple[AreaResults | None, ...]
    diagnosis: tuple[str, ...]
    explained: dict[str, str]  # requirements that faults explain, with the sentence that does

    def diagnosis_of(self, requirement: str) -> str:
        """The sentence that concerns it: of the fault that explains it, else of what no fault explains, if there is such."""
        others = [line for line in self.diagnosis if line not in self.explained.values()]
        return self.explained.get(requirement) or next(iter(others or self.diagnosis), "")

    @property
    def counts(self) -> Counter[str]:
        return sum((area.counts for area in self.areas if area), Counter())

    @property
    def unexpected(self) -> tuple[Entry, ...]:
        return tuple(entry for area in self.areas if area for entry in area.entries if entry.kind == UNEXPECTED)

    @property
    def folded(self) -> tuple[tuple[Cause, tuple[Entry, ...]], ...]:
        """The causes, each with the unexpected results that follow from it."""
        return tuple((c, tuple(e for e in self.unexpected if e.item.requirement in c.requirements)) for c in self.causes)

    @property
    def unexplained(self) -> tuple[Entry, ...]:
        """The unexpected results that have no known cause."""
        known = {identifier for cause in self.causes for identifier in cause.requirements}
        return tuple(entry for entry in self.unexpected if entry.item.requirement not in known)


def rows(run: Run) -> list[Row]:
    """A row for each implementation, in the order of the header."""
    shown = _shown_cases(run)
    items: dict[tuple[str, str], list[Item]] = {}
    for item in run.items:
        items.setdefault((item.implementation, run.requirements[item.requirement].area), []).append(item)
    anchors = {identifier: anchor(identifier, number) for number, identifier in enumerate(run.requirements)}
    lines, explained = _diagnoses(run), _explained(run)
    folded: dict[str, tuple[Cause, ...]] = {}
    for cause in causes(run):
        folded[cause.implementation] = (*folded.get(cause.implementation, ()), cause)
    made = []
    for number, (name, entry) in enumerate(run.implementations.items()):
        place = f"i{number}"
        results = tuple(
            AreaResults(area, f"{place}-{anchor(area, index)}", _entries(run, items[name, area], place, anchors, shown))
            if (name, area) in items
            else None
            for index, area in enumerate(areas(run))
        )
        version = f" {entry.framework_version}" if entry.framework_version else ""
        about = f"{entry.framework}{version}, {entry.device}"
        told = lines.get(name, ()), explained.get(name, {})
        made.append(Row(place, clean(name, NAME), about, entry.missing or "", folded.get(name, ()), results, *told))
    return made


def _diagnoses(run: Run) -> dict[str, tuple[str, ...]]:
    """Sentences by implementation, each with a capital letter."""
    lines: dict[str, tuple[str, ...]] = {}
    for diagnosis in run.diagnoses:
        sentences = tuple(map(_capital, diagnosis.lines))
        lines[diagnosis.implementation] = lines.get(diagnosis.implementation, ()) + sentences
    return lines


def _explained(run: Run) -> dict[str, dict[str, str]]:
    """By implementation, the requirements that faults explain, with their sentences."""
    found: dict[str, dict[str, str]] = {}
    for diagnosis in run.diagnoses:
        for explanation in diagnosis.explanations:
            sentence = _capital(explanation.sentence)
            found.setdefault(diagnosis.implementation, {}).update(dict.fromkeys(explanation.requirements, sentence))
    return found


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:]


def _entries(
    run: Run, items: list[Item], place: str, anchors: dict[str, str], shown: dict[tuple[str, str], list[ShownCase]]
) -> tuple[Entry, ...]:
    made = []
    for item in sorted(items, key=lambda item: item.requirement):
        cases = tuple(shown.get((item.requirement, item.implementation), ()))
        more = max(item.counts.failed - len(cases), 0)
        sentence = run.requirements[item.requirement].sentence
        made.append(Entry(f"{anchors[item.requirement]}.{place}", item, sentence, cases, more))
    return tuple(made)


def _shown_cases(run: Run) -> dict[tuple[str, str], list[ShownCase]]:
    """Failing cases by item, as many as there is room for: the first of each item, then the second …; unexpected ones before."""
    grouped = _failing(run)
    turns = [
        (key, cases[turn])
        for turn in range(CASES_SHOWN)
        for key, cases in sorted(grouped.items(), key=lambda entry: entry[1][0].status == "expected")
        if turn < len(cases)
    ]
    room, picture_room = CASE_BYTES, PICTURE_BYTES
    shown: dict[tuple[str, str], list[ShownCase]] = {}
    for key, case in turns:
        room -= _length(case)
        if room < 0:
            break
        picture = packed(case.picture, case.output or OUTPUT) if case.picture is not None else None
        if picture is not None:
            picture_room -= picture.length
        shown.setdefault(key, []).append(ShownCase(case, picture if picture_room >= 0 else None))
    return shown


def _failing(run: Run) -> dict[tuple[str, str], list[Case]]:
    """The failing cases of each item, the unexpected ones first, in the order of all reports; those with a picture before others
    of their dtype."""
    grouped: dict[tuple[str, str], list[Case]] = {}
    choice = Choice(run)
    for case in run.cases:
        if case.outcome.is_failure or case.status == "unexpected":
            grouped.setdefault((case.requirement, case.implementation), []).append(case)
    for key, cases in grouped.items():
        cases.sort(key=lambda case: case.picture is None)
        known = [case for case in cases if case.status == "expected"]
        grouped[key] = [*choice.of(case for case in cases if case.status != "expected"), *known]
    return grouped


def _length(case: Case) -> int:
    texts: Iterable[str] = (case.id, case.text, case.message, case.reason, case.repro)
    return 600 + sum(min(len(text), 2000) for text in texts)  # 600: what stands around them

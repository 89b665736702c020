"""The tables of a run, made of its records: titles, columns and cells as text, for whatever shows them."""

from collections import Counter
from dataclasses import dataclass

from conformance.numerics.profiles import TIGHTEST_FIRST
from conformance.problem.returned import OUTPUT
from conformance.records import Case, ConventionResult, ImplementationEntry, Item, Run, Share, shares
from conformance.records.accuracy import Accuracy
from conformance.reports import tallies, unjudged
from conformance.reports.format import NONE, short, sized

SHOWN_REASONS = 3
_MARKS = {
    tallies.PASSED: "",
    tallies.KNOWN: "k",
    tallies.UNEXPECTED: "!",
    tallies.UNSUPPORTED: "u",
    tallies.SKIPPED: "s",
}


@dataclass(frozen=True)
class Table:
    """Cells in rows under columns; ``note`` explains them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def conformance_table(run: Run) -> Table:
    """Implementation × area: how many requirements passed, failed as known, are unexpected, unsupported or skipped."""
    areas = tallies.areas(run)
    counted = tallies.by_area(run)
    rows = tuple(
        (name, *(_marked(by_area[area]) if area in by_area else NONE for area in areas), _marked(_total(by_area)))
        for name, by_area in counted.items()
    )
    note = "Number of requirements. To be read so: 9 passed, 9k failed as known, 9! unexpected, 9u unsupported, 9s skipped."
    return Table("Conformance", ("implementation", *areas, "all"), rows, note)


def dtypes_table(run: Run) -> Table:
    """Implementation × dtype: how many requirements passed, failed as known, are unexpected or unsupported in it."""
    counted = tallies.by_dtype(run)
    dtypes = sorted({dtype for own in counted.values() for dtype in own}, key=sized)
    rows = tuple(
        (name, *(_marked(own[dtype]) if dtype in own else NONE for dtype in dtypes)) for name, own in counted.items() if own
    )
    note = "Number of requirements, each in every dtype in which it has problems. Marks as under Conformance."
    return Table("Conformance by dtype", ("implementation", *dtypes), rows, note)


def _total(by_area: dict[str, Counter[str]]) -> Counter[str]:
    return sum(by_area.values(), Counter())


def _marked(counts: Counter[str]) -> str:
    return " ".join(f"{counts[kind]}{mark}" for kind, mark in _MARKS.items() if counts[kind]) or NONE


def conventions_tables(run: Run) -> list[Table]:
    """For each operation, implementation × convention: what is declared and what was observed."""
    note = (
        "Observed; (in brackets) where nothing is declared. ! marks what is unexpected: declared ≠ observed, an answer that no "
        "interface may have, or another than is expected; k what is known. A ? marks what is declared only."
    )
    tables = []
    for operation, conventions in tallies.conventions_by_operation(run).items():
        identifiers = sorted({convention.id for convention in conventions})
        cells: dict[str, dict[str, str]] = {}
        for convention in conventions:
            own = cells.setdefault(convention.implementation, {})
            answers = [own[convention.id]] if convention.id in own else []  # shards on several machines may differ
            own[convention.id] = " / ".join([*answers, _bracketed(convention)])
        rows = tuple((name, *(own.get(identifier, NONE) for identifier in identifiers)) for name, own in cells.items())
        tables.append(Table(f"Conventions: {operation}", ("implementation", *identifiers), rows, note))
    return tables


def answers_table(run: Run) -> Table:
    """Convention and answer: which implementations were observed to give it. Narrower than the matrices."""
    names: dict[tuple[str, str], list[str]] = {}
    for convention in run.conventions:
        if convention.observed is not None:
            names.setdefault((convention.id, convention.observed), []).append(convention.implementation)
    return Table(
        "Conventions",
        ("convention", "observed", "implementations"),
        tuple((*key, ", ".join(names[key])) for key in sorted(names)),
    )


def _bracketed(convention: ConventionResult) -> str:
    answer = tallies.answer(convention)
    mark = "!" if convention.status == "unexpected" else "k" if convention.reason else ""
    return f"({answer}){mark}" if convention.declared is None and convention.observed is not None else f"{answer}{mark}"


def accuracy_table(run: Run) -> Table:
    """Implementation × dtype: median and maximum of r, and the numerics profile by which it was judged."""
    accuracies = tallies.accuracies(run)
    dtypes = sorted({dtype for accuracy in accuracies.values() for dtype, _ in accuracy.distributions}, key=sized)
    rows = []
    for name, accuracy in accuracies.items():
        entry = run.implementations[name]
        rows.append((name, *(_accuracy_cell(accuracy, dtype, entry) for dtype in dtypes)))
    note = (
        "Median / maximum of r = error / budget over all judged outputs, failures included; r ≤ 1 passes. Then the profile, "
        "with the tightest one that golden and designed cases meet where none is declared."
    )
    return Table("Accuracy", ("implementation", *dtypes), tuple(rows), note)


def _accuracy_cell(accuracy: Accuracy, dtype: str, entry: ImplementationEntry) -> str:
    judged_by = entry.judged_by(dtype)
    judged = accuracy.distributions.get((dtype, judged_by))
    if judged is None:
        return NONE
    figures = f"{short(judged.median)} / {short(judged.max)} {judged_by}"
    if dtype in entry.profile:
        return figures
    met = [p for p in TIGHTEST_FIRST[dtype] if (d := accuracy.distributions.get((dtype, p))) is not None and d.max <= 1]
    return f"{figures}, meets {met[0]}" if met and met[0] != judged_by else figures


def failures_table(run: Run) -> Table:
    """Every failure, and every pass where a failure is known; unexpected ones first."""
    grouped = tallies.cases_by_item(run)
    wrong = [item for item in run.items if item.outcome.is_failure or item.status == "unexpected"]
    rows = tuple(
        _failure_row(item, grouped.get((item.requirement, item.implementation), []))
        for item in sorted(wrong, key=lambda item: (item.status == "expected", item.requirement))
    )
    columns = (
        "status", "requirement", "implementation", "outcome", "dtypes", "failed", "native", "emulated", "largest r", "reason",
    )  # fmt: skip
    note = (
        "Dtypes: those in which something failed. Failed: problems of all that ran. Native, emulated: recorded failures by the "
        "way in which the suite asked."
    )
    return Table("Failures", columns, rows, note)


def _failure_row(item: Item, cases: list[Case]) -> tuple[str, ...]:
    counts = item.counts
    failed = [case for case in cases if case.outcome.is_failure]
    native = sum(case.route == "native" for case in failed)
    largest = max((case.r for case in failed if case.r is not None), default=None)
    return (
        "known" if item.status == "expected" else "UNEXPECTED",
        item.requirement,
        item.implementation,
        f"{item.outcome}{_beside(failed)}",
        _dtypes(item),
        f"{counts.failed} of {counts.golden + counts.designed + counts.random}",
        str(native),
        str(len(failed) - native),
        NONE if largest is None else short(largest),
        item.reason,
    )


def _beside(failed: list[Case]) -> str:
    """Of which further outputs all failures are."""
    outputs = sorted({case.output or OUTPUT for case in failed})
    return "" if not outputs or OUTPUT in outputs else f" of {' and '.join(outputs)}"


def _dtypes(item: Item) -> str:
    failing = tallies.failing_dtypes(item)
    ran = [dtype for dtype, result in item.dtypes.items() if result.outcome.was_run]
    return "all" if len(failing) == len(ran) > 1 else ", ".join(failing) or NONE


def diagnosis_table(run: Run) -> Table:
    """What explains the failures of each implementation that has unexpected ones, a sentence a row."""
    rows = tuple((diagnosis.implementation, line) for diagnosis in run.diagnoses for line in diagnosis.lines)
    note = (
        "Failing problems were run again beside passing ones, and compared with what known faults give: r is the largest error / "
        "budget against the fault's own output."
    )
    return Table("Diagnosis", ("implementation", "what explains the failures"), rows, note)


def unrun_table(run: Run) -> Table:
    """What of each implementation's own code no problem reached, a sentence a row."""
    rows = tuple((one.implementation, line) for one in run.unrun for line in one.lines)
    note = (
        "The problems of all requirements and conventions were put once more, while coverage.py watched the implementation's own "
        "files; outputs were not judged then. What never ran may be right or wrong."
    )
    return Table("What never ran", ("implementation", "of its own code"), rows, note)


def routes_table(run: Run) -> Table:
    """How golden and designed cases were put to each implementation: natively, or emulated by the suite."""
    rows = tuple(
        (
            name,
            f"{asked.native_failed} of {asked.native}",
            f"{asked.emulated_failed} of {asked.emulated}",
            ", ".join(f"{route} {count}" for route, count in asked.routes.most_common()) or NONE,
        )
        for name, asked in tallies.requests(run).items()
    )
    note = (
        "Failures of golden and designed cases that the implementation was asked natively, and of those that the suite emulated."
    )
    return Table("Routes", ("implementation", "native: failed", "emulated: failed", "emulated: cases by route"), rows, note)


def left_table(run: Run) -> Table:
    """What was left of the problems of each implementation that were not all put as they are, why the others were not, and what
    of its signature was not read."""
    reasons: dict[str, Counter[str]] = {}
    for item in run.items:
        reasons.setdefault(item.implementation, Counter()).update(item.lacking)
    found = shares(run.items)
    rows = tuple(
        (
            name,
            str(share.run - share.fitted),
            str(share.fitted),
            str(share.unsupported - share.left_out),
            str(share.left_out),
            f"{100 * share.left:.3g} %" if (share.run or share.left_out) and not run.partial else NONE,
            _most_frequent(reasons.get(name, Counter())),
            ", ".join(entry.unread) or NONE,
            "; ".join(unjudged.narrowing(run, name)) or NONE,
        )
        for name, entry in run.implementations.items()
        for share in (found.get(name, Share()),)
        if share.fitted or share.unsupported or entry.unread or (share.run and unjudged.narrowing(run, name))
    )
    columns = (
        "implementation",
        "as they are",
        "fitted",
        "lacking",
        "left out",
        "judged",
        "most frequent reasons",
        "not read",
        "narrowed",
    )
    note = (
        "Problems. Fitted: their sizes were made to fit declared limits. Lacking: they need a feature, dtype or layout that is "
        "not offered. Left out: beyond limits or the budget of shapes, or declined. Judged: the share of all but those lacking, "
        "of a whole run. Not read: parameters that mean nothing to the suite and keep their defaults. Narrowed: by what "
        "the implementation declares, although it is there."
    )
    return Table("Not asked", columns, rows, note)


def _most_frequent(reasons: Counter[str]) -> str:
    shown = [f"{reason} ({count})" for reason, count in reasons.most_common(SHOWN_REASONS)]
    left = len(reasons) - len(shown)
    return ", ".join([*shown, *([f"{left} more"] if left else [])]) or NONE


def compiled_table(run: Run) -> Table:
    """How many calls of implementations that a compiler of their framework compiles were compiled as a whole."""
    counted: dict[str, tuple[int, int]] = {}
    for item in run.items:
        if item.compiled is not None:
            calls, compiled = counted.get(item.implementation, (0, 0))
            counted[item.implementation] = calls + item.calls, compiled + item.compiled
    rows = tuple((name, str(compiled), str(calls)) for name, (calls, compiled) in counted.items())
    note = "A call counts as compiled while the compiler has given up nothing of the function: what it gives up is interpreted."
    return Table("Compiled", ("implementation", "calls of compiled code", "calls"), rows, note)


def missing_table(run: Run) -> Table:
    """Implementations that could not run, and why."""
    rows = tuple((entry.name, entry.missing) for entry in run.implementations.values() if entry.missing)
    return Table("Not run here", ("implementation", "reason"), rows)

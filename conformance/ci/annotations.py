"""Unexpected results as annotations, at the line where the implementation stands in the user's repository."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.comparison import Comparison
from conformance.records import Case, Item, Run
from conformance.reports import tallies
from conformance.reports.causes import causes, listed, unexplained
from conformance.reports.shown import Choice
from conformance.reports.speed import timed
from conformance.system.user_files import real

_LINE = re.compile(r"[0-9]{1,9}")
SHOWN = 10  # errors that GitHub shows of a step
SHOWN_CHANGES = 20


@dataclass(frozen=True)
class SourceLine:
    """A file, as the repository names it, and a line; both None where the implementation is not in the repository."""

    file: str | None = None
    line: int | None = None


def annotations(run: Run, folder: Path, root: Path) -> list[str]:
    """Workflow commands: an error for each unexpected result, and for results that are missing, a notice for each diagnosis.

    Sources are paths from ``folder``, where the run took place; annotations name them from ``root``, where the repository is.
    """
    places = {name: place_of(entry.source, folder, root) for name, entry in run.implementations.items()}
    errors = list(_errors(run, places))
    if len(errors) > SHOWN:
        rest = f"{len(errors) - SHOWN + 1} more results are unexpected: the job summary lists them."
        errors = [*errors[: SHOWN - 1], workflow_command("error", rest, title="attention-conformance")]
    return [*errors, *_notices(run, places)]


def of_comparison(comparison: Comparison) -> list[str]:
    """One error that lists what is worse than the baseline; none where nothing is."""
    if not comparison.worse:
        return []
    lines = [f"{c.kind}: {c.subject} on {c.implementation}, {c.before} → {c.after}" for c in comparison.worse[:SHOWN_CHANGES]]
    left = len(comparison.worse) - SHOWN_CHANGES
    return [
        workflow_command(
            "error", "\n".join([*lines, *([f"… and {left} more"] if left > 0 else [])]), title="Worse than the baseline"
        )
    ]


def place_of(source: str, folder: Path, root: Path) -> SourceLine:
    """Where ``file:line`` lies in the repository."""
    name, _, line = source.rpartition(":")
    path, root = real(folder / name), real(root)
    if not name or not _LINE.fullmatch(line) or not os.path.isfile(path) or not path.is_relative_to(root):
        return SourceLine()
    return SourceLine(path.relative_to(root).as_posix(), int(line))


def _errors(run: Run, places: dict[str, SourceLine]) -> Iterator[str]:
    grouped, choice = tallies.unexpected_by_item(run), Choice(run)
    for item in _apart_first(run):
        cases = choice.of(grouped.get((item.requirement, item.implementation), []))
        yield _error(
            f"{item.requirement} on {item.implementation}: {item.outcome}",
            _message(run, item, cases),
            places[item.implementation],
        )
    for convention in run.unexpected_conventions:
        title = f"{convention.id} on {convention.implementation}: {tallies.observation(convention)}"
        yield _error(title, convention.message, places[convention.implementation])
    for timing in run.wrong_timings:
        title = f"{timing.outcome} on {timing.implementation} when timed"
        yield _error(title, f"{timed(timing)}\n{timing.message}".strip(), places[timing.implementation])
    for name, identifiers in run.missing.items():
        title = f"{len(identifiers)} result{'' if len(identifiers) == 1 else 's'} of {name} missing"
        yield _error(title, f"Due and without a result: {listed(identifiers)}.", places[name])
    for one in run.undeclared:
        yield _error(f"{one.area} of {one.implementation} was not judged", one.sentence, places[one.implementation])


def _apart_first(run: Run) -> Iterator[Item]:
    """The unexpected results, those first that have no cause in common with others, then the first of each cause."""
    found = causes(run)
    firsts = {(cause.implementation, cause.requirements[0]) for cause in found}
    apart = {(item.implementation, item.requirement) for item in unexplained(run, found)}
    for chosen in (apart, firsts, None):
        for item in run.unexpected:
            key = item.implementation, item.requirement
            if key in chosen if chosen is not None else key not in apart | firsts:
                yield item


def _message(run: Run, item: Item, cases: list[Case]) -> str:
    """Sentence, reason, and an unexpected case, if possible of the item's outcome, with the command that reproduces it."""
    shown = next((case for case in cases if case.outcome is item.outcome), cases[0] if cases else None)
    told = [run.requirements[item.requirement].sentence, item.reason]
    if shown is not None:
        told += [shown.text, shown.message, shown.repro]
    return "\n".join(line for line in told if line)


def _notices(run: Run, places: dict[str, SourceLine]) -> Iterator[str]:
    for diagnosis in run.diagnoses:
        place = places[diagnosis.implementation]
        title = f"Diagnosis of {diagnosis.implementation}"
        yield workflow_command("notice", "\n".join(diagnosis.lines), file=place.file, line=place.line, title=title)


def _error(title: str, message: str, place: SourceLine) -> str:
    return workflow_command("error", message, file=place.file, line=place.line, title=title)


_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def workflow_command(name: str, message: str, **properties: str | int | None) -> str:
    """``::name file=…,line=…::message``, in one line whatever the text; properties that are None are left out."""
    told = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in properties.items() if value is not None)
    return f"::{name}{' ' if told else ''}{told}::{_escaped(message, _DATA)}"


def _escaped(text: str, codes: dict[str, str]) -> str:
    """Character by character, so that no escape is escaped again."""
    return "".join(codes.get(character, character) for character in text)

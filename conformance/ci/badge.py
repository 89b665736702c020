"""Badges, as the JSON that shields.io's endpoint badge reads: one for an implementation, and one for each of its dtypes."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance.errors import UsageError, cut, quoted
from conformance.expectations.expectation import file_stem
from conformance.records import Run
from conformance.reports import tallies
from conformance.reports.format import short
from conformance.system import files

RIGHT, PARTLY, KNOWN, WRONG, UNKNOWN = "brightgreen", "green", "yellow", "red", "lightgrey"


def badge(run: Run, implementation: str, dtype: str | None = None) -> dict[str, Any]:
    """How many of the judged requirements passed or, with a dtype, how many golden and designed cases in it, and the largest r
    under its numerics profile.

    Grey is a run that may not be cited or judged nothing; red has unexpected failures or answers to conventions, or areas that
    are neither offered nor declared as lacking; yellow has known ones. Green names the areas that were not judged and what was
    skipped, and is bright where there is none of it. Raises UsageError for a run that is only a part of one, and for an
    implementation or dtype that the run does not have.
    """
    if run.partial:
        raise UsageError(f"There is no badge of a part of a run. {run.partial}")
    entry = run.implementations.get(implementation)
    if entry is None:
        raise UsageError(
            f"The run has no implementation {quoted(implementation)}: it has {cut(', '.join(run.implementations), 400)}."
        )
    if dtype is not None and dtype not in entry.dtypes:
        raise UsageError(f"{implementation} does not declare {quoted(dtype)}: it declares {', '.join(entry.dtypes)}.")
    message, colour = _of_implementation(run, implementation) if dtype is None else _of_dtype(run, implementation, dtype)
    if run.not_conformance:
        message, colour = f"{message}, no conformance result", UNKNOWN
    label = "attention conformance" if dtype is None else f"attention {dtype}"
    return {"schemaVersion": 1, "label": label, "message": message, "color": colour}


def badges(run: Run) -> dict[str, dict[str, Any]]:
    """All badges of a run by file name; none of a part of a run."""
    found: dict[str, dict[str, Any]] = {}
    if run.partial:
        return found
    for name, entry in run.implementations.items():
        found[f"{file_stem(name)}.json"] = badge(run, name)
        for dtype in entry.dtypes:  # whatever records call a dtype, it leads to no other folder
            found[f"{file_stem(name)}-{file_stem(dtype)}.json"] = badge(run, name, dtype)
    return found


def write_asked(run: Run, out: Path, implementation: str | None, dtype: str | None, inputs: Iterable[Path] = ()) -> list[Path]:
    """One badge to a file that ends in .json, otherwise all to a folder. Raises UsageError for a choice that makes no sense,
    where there is nothing to write, and where that would be over one of the ``inputs``."""
    if run.partial:
        raise UsageError(f"There is no badge of a part of a run. {run.partial}")
    if not run.implementations:
        raise UsageError("The records have no implementation, so that there is no badge to write.")
    if out.suffix != ".json":
        if implementation or dtype:
            raise UsageError(
                f"{out} is a folder, which gets all badges: leave --implementation and --dtype out, or name a .json."
            )
        return write_badges(run, out, inputs)
    names = list(run.implementations)
    if implementation is None and len(names) > 1:
        raise UsageError(f"The run has {len(names)} implementations: say --implementation with one of {', '.join(names)}.")
    _write({out: badge(run, implementation or names[0], dtype)}, inputs)
    return [out]


def write_badges(run: Run, folder: Path, inputs: Iterable[Path] = ()) -> list[Path]:
    """Writes all badges of a run into a folder. Raises UsageError where that cannot be done."""
    found = {folder / name: content for name, content in badges(run).items()}
    _write(found, inputs)
    return list(found)


def _write(badges: Mapping[Path, dict[str, Any]], inputs: Iterable[Path]) -> None:
    texts = {path: json.dumps(content, ensure_ascii=False) + "\n" for path, content in badges.items()}
    try:
        files.write_all(texts, inputs)
    except OSError as error:
        where = error.filename or next(iter(texts))
        raise UsageError(f"The badges cannot be written to {cut(str(where))}: {error.strerror}.") from None


def _of_implementation(run: Run, implementation: str) -> tuple[str, str]:
    counts = Counter(tallies.kind_of(item) for item in run.items if item.implementation == implementation)
    judged = sum(counts[kind] for kind in (tallies.PASSED, tallies.KNOWN, tallies.UNEXPECTED))
    if not judged:
        return "not judged", UNKNOWN
    told = f"{counts[tallies.PASSED]}/{judged} requirements"
    if counts[tallies.UNSUPPORTED]:
        told += f", {counts[tallies.UNSUPPORTED]} not offered"
    if counts[tallies.SKIPPED]:
        told += f", {counts[tallies.SKIPPED]} skipped"
    answers = [convention for convention in run.conventions if convention.implementation == implementation]
    skipped = sum(answer.skipped for answer in answers)
    if skipped:
        told += f", {skipped} convention{'' if skipped == 1 else 's'} skipped"
    areas = [area for (name, area), coverage in run.coverages.items() if name == implementation and not coverage.judged]
    if areas:
        told += f", nothing of {', '.join(areas)} judged"
    unexpected = counts[tallies.UNEXPECTED] + sum(answer.status == "unexpected" for answer in answers)
    unexpected += sum(one.implementation == implementation for one in run.undeclared)
    colour = _colour(unexpected, counts[tallies.KNOWN] + sum(bool(answer.reason) for answer in answers))
    return told, PARTLY if (areas or skipped or counts[tallies.SKIPPED]) and colour == RIGHT else colour


def _of_dtype(run: Run, implementation: str, dtype: str) -> tuple[str, str]:
    judged = [c for c in run.cases if c.implementation == implementation and c.dtype == dtype and c.outcome.was_run]
    fixed = [case for case in judged if case.stratum != "random"]
    if not fixed:
        return "not judged", UNKNOWN
    passed = sum(not case.outcome.is_failure for case in fixed)
    failed = [case for case in judged if case.outcome.is_failure]  # random ones too, of which failures alone are recorded
    unexpected = sum(case.status == "unexpected" for case in failed)
    told = f"{passed}/{len(fixed)} cases ({run.implementations[implementation].judged_by(dtype)})"
    distribution = tallies.judged(run, implementation).get(dtype)
    if distribution is not None:
        told += f", largest r {short(distribution.max)}"
    return told, _colour(unexpected, len(failed) - unexpected)


def _colour(unexpected: int, known: int) -> str:
    return WRONG if unexpected else KNOWN if known else RIGHT

"""Reading expectations and skips from files."""

import tomllib
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance.errors import UsageError, cut, quoted
from conformance.expectations.expectation import TEXT_CONDITIONS, Entry, Expectation, ExpectedAnswer, file_stem, packages_named
from conformance.expectations.judging import Expectations
from conformance.numerics.dtypes import DTYPES
from conformance.records.environment import PACKAGES, current_environment
from conformance.records.record_types import Environment
from conformance.specification import conventions
from conformance.system.resources import expectations_folder
from conformance.system.user_files import demand_path, read_text

EMPTY_CASES = (
    'cases = [] selects nothing; leave it out to mean all cases, or write cases = "none" where random ones alone may fail.'
)

LONGEST_PATTERN = 500  # characters


def load(
    path: Path | str,
    known_requirements: Collection[str],
    environment: Environment | None = None,
    implementations: Collection[str] | None = None,
) -> Expectations:
    """The expectations of a folder of ``<implementation>.toml``, or of one file that holds for every implementation.

    ``environment`` decides which conditions are met; by default, where this process runs, with the packages that they name.
    ``implementations``: of whom the files of a folder are wanted; of all where it is not said.
    Raises UsageError, with file and entry, for a path that is not there, invalid TOML, unknown keys, outcomes or requirements.
    """
    path = demand_path(path)
    found = _files(path) if path.is_dir() else {"": path}
    if implementations is not None:
        stems = {"", *map(file_stem, implementations)}
        found = {stem: file for stem, file in found.items() if stem in stems}
    read = {stem: _file(file, known_requirements) for stem, file in found.items()}
    named = {name for _, entries in read.values() for entry in entries for name in packages_named(entry.when)}
    return Expectations(read, environment or current_environment((*PACKAGES, *sorted(named - {*PACKAGES}))))


def builtin_expectations(
    known_requirements: Collection[str],
    environment: Environment | None = None,
    implementations: Collection[str] | None = None,
) -> Expectations:
    """The expectations of the implementations that come with the suite; of ``implementations`` alone where they are given."""
    folder = expectations_folder()
    return load(folder, known_requirements, environment, implementations) if folder.is_dir() else no_expectations()


def no_expectations() -> Expectations:
    """Nothing is known to fail."""
    return Expectations({}, current_environment())


def load_skips(path: Path | str, known: Collection[str] | None = None) -> tuple[str, ...]:
    """The patterns of a skips file: a requirement id or a pattern such as ATT-MASK-* a line, # begins a comment.

    ``is_skipped`` applies them. Raises UsageError for a file that cannot be read and for a line that matches nothing in
    ``known``, where that is given.
    """
    patterns = []
    for number, line in enumerate(read_text(path, "skips").splitlines(), start=1):
        pattern = line.partition("#")[0].strip()
        if not pattern:
            continue
        endless = len(pattern) > LONGEST_PATTERN  # it would take seconds to compile
        if endless or (known is not None and not any(fnmatchcase(identifier, pattern) for identifier in known)):
            raise UsageError(f"{path}, line {number}: {quoted(pattern)} matches no requirement; correct or remove it.")
        patterns.append(pattern)
    return tuple(patterns)


def is_skipped(identifier: str, patterns: Collection[str]) -> bool:
    """Whether a requirement or convention matches one of the patterns of a skips file."""
    return any(fnmatchcase(identifier, pattern) for pattern in patterns)


def parse(text: str, where: str, known_requirements: Collection[str] | None = None) -> tuple[Entry, ...]:
    """The entries of an expectations file with content ``text``; ``where`` names it in messages. Raises UsageError.

    Without ``known_requirements`` any requirement id is taken.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError, as invalid TOML is
        raise UsageError(f"{where} is not valid TOML: {cut(str(error))}.") from None
    entries = content.pop("expected", [])
    if content:
        raise UsageError(f"{where} has an unknown key {quoted(next(iter(content)))}: it consists of [[expected]] entries only.")
    if not isinstance(entries, list):
        raise UsageError(f"{where}: expected is not a list of entries; write [[expected]] with two brackets.")
    return tuple(_entries(entries, where, known_requirements))


def _files(folder: Path) -> dict[str, Path]:
    """By stem. Raises UsageError where there is none: a folder that says nothing is another one than was meant."""
    found = {file.stem: file for file in sorted(folder.glob("*.toml"))}
    if not found:
        raise UsageError(
            f"The expectations folder {cut(str(folder))} has no <implementation>.toml: name another one, or leave "
            "--expectations out."
        )
    return found


def _file(path: Path, known_requirements: Collection[str]) -> tuple[str, tuple[Entry, ...]]:
    return str(path), parse(read_text(path, "expectations"), str(path), known_requirements)


def _entries(entries: list[Any], where: str, known_requirements: Collection[str] | None) -> Iterator[Entry]:
    for number, entry in enumerate(entries, start=1):
        place = f"{where}, entry {number}"
        try:
            kind: type[Entry] = ExpectedAnswer if isinstance(entry, dict) and "convention" in entry else Expectation
            if kind is Expectation and isinstance(entry, dict) and entry.get("cases") == []:
                raise UsageError(f"{place}: {EMPTY_CASES}")
            expected = msgspec.convert(entry, kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise UsageError(f"{place}: {_plain(error)}.") from None
        if isinstance(expected, ExpectedAnswer):
            _demand_answer(expected, place)
        else:
            _demand_sense(expected, place, known_requirements)
        for name, condition in expected.when.items():
            if not condition:
                raise UsageError(f"{place}: when.{quoted(name)[1:-1]} is empty, so that it holds nowhere; correct or remove it.")
            if name not in TEXT_CONDITIONS:
                _demand_versions(name, condition, place)
        yield expected


def _demand_answer(expected: ExpectedAnswer, place: str) -> None:
    """Raises UsageError unless the answer is one that can be observed, and that an interface should not have."""
    question = conventions().get(expected.convention)
    if question is None:
        raise UsageError(f"{place}: there is no convention {quoted(expected.convention)}; correct or remove the entry.")
    if expected.answer not in question.known_answers:
        known = ", ".join(question.known_answers)
        raise UsageError(f"{place}: {quoted(expected.answer)} is no answer to {expected.convention}; use one of {known}.")
    if expected.answer in question.legitimate:
        raise UsageError(
            f"{place}: {quoted(expected.answer)} is an answer to {expected.convention} that interfaces may have, so there is "
            "nothing to expect; declare it in Support.conventions."
        )


def _demand_sense(expected: Expectation, place: str, known_requirements: Collection[str] | None) -> None:
    if known_requirements is not None and expected.requirement not in known_requirements:
        raise UsageError(f"{place}: there is no requirement {quoted(expected.requirement)}; correct or remove the entry.")
    if expected.cases == () and not expected.random:
        raise UsageError(f'{place}: cases = "none" and random = false leave nothing to expect; remove the entry.')
    if not expected.outcome.is_failure:
        raise UsageError(f"{place}: {expected.outcome} is no failure, so there is nothing to expect; remove the entry.")
    for dtype in expected.dtypes:
        if dtype not in DTYPES:
            raise UsageError(f"{place}: unknown dtype {quoted(dtype)}; use {', '.join(DTYPES)}.")


def _demand_versions(name: str, condition: str | tuple[str, ...], place: str) -> None:
    try:
        SpecifierSet(condition if isinstance(condition, str) else "a list")
    except InvalidSpecifier:
        raise UsageError(
            f'{place}: when.{quoted(name)[1:-1]} = {quoted(str(condition))} is no range of versions such as ">=2.5,<3" '
            f"(other conditions: {', '.join(TEXT_CONDITIONS)})."
        ) from None


def _plain(error: Exception) -> str:
    """The library's message in the words of the file: ``unknown field `x` - at `$.when` `` and the like."""
    return cut(str(error)).replace("Object", "the entry").replace("`$.", "`").replace(" - at ", ", at ")

"""Adds golden cases and checks the files of ``golden/`` against their definitions. Nothing is ever overwritten."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from conformance.errors import UsageError, cut
from conformance.golden_tool.definitions import FILE_NAME, Definition, Definitions, read_definitions, with_appended
from conformance.golden_tool.make import Made, make
from conformance.specification import requirements
from conformance.system import files as whole
from conformance.system.resources import golden_folder
from conformance.values.golden import forget
from conformance.values.golden_files import Tensors, json_to_bytes, read_json, read_tensors, tensors_to_bytes

SCHEMA = "schema.json"


def add(
    requirement: str, note: str, source: str, problem: str, *, file: str = "", steps: bool = False, folder: Path | None = None
) -> str:
    """Makes the case of a problem's text, appends it to the files, and returns its id, the next one.

    ``file`` is the name of the file it goes to (if none is given, that of the requirement's area). Raises UsageError where the
    requirement does not exist or is of another operation, or the problem is stored already; then nothing is written.
    """
    folder = folder or golden_folder()
    definitions = read_definitions(folder)
    definition = Definition(
        id=definitions.next_id(), requirement=requirement, note=note, source=source, problem=problem, file=file, steps=steps
    )
    for other in definitions.cases:
        if other.problem == definition.parsed().text and not other.written and not other.positions:
            raise UsageError(f"This problem is stored already, as {other.id}.")
    _demand_requirement(definition)
    made = make(definition, definitions.arrays)
    path = folder / f"{definition.file}.json"
    entries: list[dict[str, Any]] = []
    tensors: Tensors = {}
    if path.exists():
        entries, tensors = read_json(path)["cases"], read_tensors(path.with_suffix(".safetensors"))
    _demand_unchanged(path, entries, tensors, definition, definitions)
    text = (folder / FILE_NAME).read_text(encoding="utf-8")
    _replace(
        {
            path.with_suffix(".safetensors"): tensors_to_bytes(tensors | made.tensors),
            path: json_to_bytes(_document(definition.file, [*entries, made.entry])),
            folder / FILE_NAME: with_appended(text, definition).encode(),
        }
    )
    forget()
    return definition.id


def check(folder: Path | None = None) -> list[str]:
    """Makes every case anew and returns what differs from the files, a sentence each; empty where no byte does.

    A stored budget stands where it agrees with the new one to BUDGET_TOLERANCE; see ``conformance/golden_tool/make.py``.
    """
    folder = folder or golden_folder()
    definitions = read_definitions(folder)
    files = _files(folder, definitions)
    differences = []
    for name, expected in files.items():
        path = folder / name
        if not path.exists():
            differences.append(f"{path} is missing.")
        elif path.read_bytes() != expected:
            differences += _explain(folder, name, definitions)
    found = {path.name for ending in ("json", "safetensors") for path in folder.glob(f"*.{ending}")}
    differences += [f"{folder / name} belongs to no definition." for name in sorted(found - set(files) - {SCHEMA})]
    return differences + _against_schema(folder, files)


def reissue(folder: Path | None = None) -> list[str]:
    """Writes the files anew where budgets, and nothing else, are no longer what is derived today; returns the ids of the cases.

    Raises UsageError, and writes nothing, where anything else differs: inputs and expected values never change.
    """
    folder = folder or golden_folder()
    definitions = read_definitions(folder)
    changed = []
    for case in definitions.cases:
        path = folder / f"{case.file}.safetensors"
        stored = read_tensors(path)
        for name, expected in _make_again(folder, case, definitions).tensors.items():
            if not _same(stored.get(name), expected):
                if name != f"{case.id}/budget":
                    raise UsageError(f"{path} differs in {name}, and nothing but budgets is issued again: see golden check.")
                changed.append(case.id)
    _replace({folder / name: content for name, content in _files(folder, definitions).items()})
    forget()
    return changed


def _same(found: np.ndarray | None, expected: np.ndarray) -> bool:
    return (
        found is not None
        and found.dtype == expected.dtype
        and found.shape == expected.shape
        and found.tobytes() == expected.tobytes()
    )


def write(folder: Path | None = None) -> list[Path]:
    """Writes the files that are missing, and returns them. Raises UsageError where a file that exists would change."""
    folder = folder or golden_folder()
    files = _files(folder, read_definitions(folder))
    changed = [name for name, expected in files.items() if (folder / name).exists() and (folder / name).read_bytes() != expected]
    if changed:
        raise UsageError(f"{folder / changed[0]} is not what its definitions give, and nothing is overwritten: remove it first.")
    missing = [folder / name for name in files if not (folder / name).exists()]
    _replace({path: files[path.name] for path in missing})
    forget()
    return missing


def _make_again(folder: Path, definition: Definition, definitions: Definitions) -> Made:
    """The case made anew; its stored budget stands where it is right but for last bits."""
    return make(definition, definitions.arrays, _stored_budgets(folder, definition.file).get(definition.id))


def _files(folder: Path, definitions: Definitions) -> dict[str, bytes]:
    """Every JSON and safetensors file that the definitions give."""
    made: dict[str, list[Made]] = {}
    for case in definitions.cases:
        made.setdefault(case.file, []).append(_make_again(folder, case, definitions))
    files = {}
    for file, cases in made.items():
        files[f"{file}.json"] = json_to_bytes(_document(file, [case.entry for case in cases]))
        files[f"{file}.safetensors"] = tensors_to_bytes({name: t for case in cases for name, t in case.tensors.items()})
    return files


def _document(file: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"format": "attention-golden-1", "file": f"{file}.safetensors", "cases": entries}


def _stored_budgets(folder: Path, file: str) -> dict[str, np.ndarray]:
    """The budgets in a file by case id; none where there is no readable file, which the comparison then says."""
    try:
        tensors = read_tensors(folder / f"{file}.safetensors")
    except UsageError:
        return {}
    return {name.removesuffix("/budget"): array for name, array in tensors.items() if name.endswith("/budget")}


def _explain(folder: Path, name: str, definitions: Definitions) -> list[str]:
    """Which cases of a differing file differ, and in what."""
    path = folder / name
    try:
        lines = [
            line
            for case in definitions.cases
            if case.file == path.stem
            for line in _compare_case(folder, _make_again(folder, case, definitions), case)
        ]
    except UsageError as error:
        return [str(error)]
    return [line for line in lines if str(path) in line] or [f"{path} differs from what its definitions give."]


def _compare_case(folder: Path, made: Made, case: Definition) -> list[str]:
    """What differs between a case made anew and its stored entry and tensors."""
    path = folder / f"{case.file}.json"
    stored = next((entry for entry in read_json(path)["cases"] if entry.get("id") == case.id), None)
    if stored is None:
        return [f"{path} lacks {case.id}."]
    lines = []
    if json_to_bytes(stored) != json_to_bytes(made.entry):
        names = [name for name in (*made.entry, *stored) if stored.get(name) != made.entry.get(name)]
        lines.append(f"{path} differs in {case.id}: {', '.join(dict.fromkeys(names)) or 'the order of its fields'}.")
    path = path.with_suffix(".safetensors")
    tensors = read_tensors(path)
    for name, expected in made.tensors.items():
        found = tensors.get(name)
        if not _same(found, expected):
            lines.append(f"{path} {'lacks' if found is None else 'differs in'} {name}.")
    return lines


def _against_schema(folder: Path, files: dict[str, bytes]) -> list[str]:
    """What in the stored JSON files the schema forbids."""
    validator = jsonschema.Draft202012Validator(read_schema(folder))
    lines = []
    for path in (folder / name for name in files if name.endswith(".json") and (folder / name).exists()):
        for error in validator.iter_errors(read_json(path)):
            lines.append(f"{path}, {error.json_path}: {error.message}")
    return lines


def read_schema(folder: Path) -> dict[str, Any]:
    """The JSON Schema of the golden files; raises UsageError where it cannot be read."""
    path = folder / SCHEMA
    try:
        schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The schema {path} cannot be read: {error}") from None
    return schema


def _demand_requirement(definition: Definition) -> None:
    requirement = requirements().get(definition.requirement)
    if requirement is None:
        raise UsageError(f"There is no requirement {cut(definition.requirement)}: see docs/specification.md for those there are.")
    if requirement.operation != definition.parsed().operation:
        raise UsageError(f"{definition.requirement} is about {requirement.operation}, not {definition.parsed().operation}.")


def _demand_unchanged(
    path: Path, entries: list[dict[str, Any]], tensors: Tensors, definition: Definition, definitions: Definitions
) -> None:
    """The file must hold what is defined so far and nothing of the new case, which is thus only appended."""
    expected = [case.id for case in definitions.cases if case.file == path.stem]
    if [entry.get("id") for entry in entries] != expected:
        raise UsageError(
            f"{path} does not hold the cases that are defined for it, {', '.join(expected) or 'none'}: run golden check."
        )
    if any(name.startswith(f"{definition.id}/") for name in tensors):
        raise UsageError(f"{path.with_suffix('.safetensors')} has tensors of {definition.id}, and nothing is overwritten.")


def _replace(contents: Mapping[Path, bytes]) -> None:
    """Writes all files or none."""
    try:
        whole.write_all(contents)
    except OSError as error:
        raise UsageError(f"{', '.join(map(str, contents))} cannot be written: {error.strerror}.") from None

"""The golden cases: frozen problems with expected values from the exact oracle, read from ``golden/``.

The text of a golden problem has ``values=golden.1#n``, n the number in the id ``GOLD-n``; its arrays, masks and biases
included, are those of the files, whatever later becomes of the value distributions that once made them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from conformance.errors import UsageError, cut, quoted
from conformance.features import features
from conformance.operations import operation_of
from conformance.problem import Problem, parse
from conformance.problem.inputs import Inputs
from conformance.system.resources import golden_folder
from conformance.values.golden_files import checked_tensor, kept_tensors, read_json

LONGEST_NUMBER = 9  # digits


@dataclass(frozen=True, kw_only=True, eq=False)
class GoldenCase:
    """One frozen case. ``inputs`` and ``expected`` describe the tensors (dtype, shape, sha256), which lie in ``file``."""

    id: str
    requirement: str
    note: str
    source: str
    generator: str
    made_from: str
    profile: str
    problem: Problem
    file: Path
    inputs: Mapping[str, dict[str, Any]]
    expected: Mapping[str, dict[str, Any]]

    @property
    def number(self) -> int:
        return int(self.id.removeprefix("GOLD-"))


def load_cases(folder: Path | None = None) -> tuple[GoldenCase, ...]:
    """All golden cases by ascending id; raises UsageError, naming the file, for what cannot be read as one."""
    return tuple(_load(folder or golden_folder()).values())


def case_of(identifier: str) -> GoldenCase:
    """The golden case called ``identifier``, such as GOLD-0007 or gold-7; raises UsageError where there is none."""
    number = identifier.upper().removeprefix("GOLD-")
    case = _load(golden_folder()).get(int(number)) if number.isdecimal() and len(number) <= LONGEST_NUMBER else None
    if case is not None:
        return case
    raise UsageError(f"There is no golden case {quoted(identifier)}: they go from {load_cases()[0].id} to {load_cases()[-1].id}.")


def golden_inputs(problem: Problem) -> Inputs:
    """The stored inputs of a golden problem, as fresh arrays; raises UsageError for a problem that is not stored."""
    return case_inputs(find_case(problem))


def find_case(problem: Problem) -> GoldenCase:
    """The golden case that ``problem`` is; raises UsageError where it is none, or one that was changed."""
    case = _load(golden_folder()).get(problem.values.seed)
    if case is None:
        raise UsageError(f"There is no golden case number {problem.values.seed}: the last one is {load_cases()[-1].id}.")
    if problem != case.problem:
        raise UsageError(f"{case.id} is the problem '{case.problem.text}', and no field of it can be changed.")
    return case


def golden_output(problem: Problem) -> np.ndarray:
    """The stored output of a golden problem, in float64; raises UsageError for a problem that is not stored."""
    case = find_case(problem)
    return _tensors(case, {"output": case.expected["output"]})["output"]


def case_inputs(case: GoldenCase) -> Inputs:
    """The inputs of ``case`` as fresh arrays; raises UsageError, naming file and tensor, for what is damaged."""
    arrays = _tensors(case, case.inputs)
    try:
        return inputs_from(case.problem, arrays)
    except (KeyError, TypeError, ValueError) as error:
        path = case.file.with_suffix(".json")
        raise UsageError(f"The golden file {path} is damaged: {case.id} has not the inputs that it needs ({error}).") from None


def golden_expected(case: GoldenCase) -> dict[str, np.ndarray]:
    """The expected arrays by name, in float64: ``output``, ``budget``, intermediates where stored.

    ``judged`` is there where some rows are not judged: boolean, of the output's shape with a last axis of 1.
    """
    return _tensors(case, case.expected)


def forget() -> None:
    """Forgets the files that were read, after they have been written."""
    _load.cache_clear()
    kept_tensors.cache_clear()


def inputs_from(problem: Problem, arrays: Mapping[str, np.ndarray]) -> Inputs:
    """The inputs that ``problem`` and its arrays by name amount to."""
    given = {
        feature.argument: arrays.get(feature.argument) if feature.is_stored else feature.given(problem)
        for feature in features(problem.operation)
    }
    return operation_of(problem).stored(problem, arrays, given)


def _tensors(case: GoldenCase, described: Mapping[str, dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: checked_tensor(case.file, f"{case.id}/{name}", entry) for name, entry in described.items()}


@lru_cache(maxsize=8)
def _load(folder: Path) -> dict[int, GoldenCase]:
    cases: dict[int, GoldenCase] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == "schema.json":
            continue
        document = read_json(path)
        for position, entry in enumerate(document["cases"]):
            case = _case(entry, path, position)
            if case.number in cases:
                raise UsageError(f"The golden case {case.id} is both in {cases[case.number].file.stem}.json and in {path}.")
            cases[case.number] = case
    if not cases:
        raise UsageError(f"There are no golden cases in {folder}: restore its files.")
    return dict(sorted(cases.items()))


class _CaseEntry(msgspec.Struct):
    """What of a case in a JSON file is read; golden/schema.json says all of it."""

    id: Annotated[str, Meta(pattern=r"^GOLD-[0-9]{1,9}$")]
    requirement: str
    note: str
    source: str
    generator: str
    made_from: str
    profile: str
    problem: str
    inputs: dict[str, dict[str, Any]]
    expected: dict[str, dict[str, Any]]


def _case(content: Any, path: Path, position: int) -> GoldenCase:
    try:
        entry = msgspec.convert(content, _CaseEntry)
        fields = {**msgspec.structs.asdict(entry), "problem": parse(entry.problem)}
        case = GoldenCase(file=path.with_suffix(".safetensors"), **fields)
        if not {"output", "budget"} <= set(case.expected):
            raise ValueError("output or budget is not expected")
        described = (*case.inputs.values(), *case.expected.values())
        if not all(key in tensor for tensor in described for key in ("dtype", "shape", "sha256")):
            raise ValueError("a tensor lacks dtype, shape or sha256")
        for name, shape in case.problem.shapes().items():
            described_so = {**case.inputs, **case.expected}.get(name, {"shape": list(shape)})["shape"]
            if described_so != list(shape):
                raise ValueError(f"{name} has not the shape of its problem")
        if case.number != case.problem.values.seed:
            raise ValueError(f"{case.id} holds the problem of number {case.problem.values.seed}")
    except (ValueError, RecursionError, UsageError) as error:  # msgspec's are ValueErrors
        told = cut(str(error))
        raise UsageError(f"The golden file {path} is damaged in its case number {position + 1} ({told}): restore it.") from None
    return case

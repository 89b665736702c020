"""``golden/definitions.toml``: from which the golden cases are made. Cases are appended, never changed.

[arrays]                     numbers written out by hand, by name
[[case]]
id, requirement, note, source
file                         the name of the JSON and safetensors file, without ending
problem                      the text of the problem whose value distributions make the arrays
written = {input = name}     inputs taken from [arrays] instead, such as {query = "coffee-embeddings"}
positions = true             the sinusoidal encoding is added to the query (multi-head self-attention)
steps = true                 the intermediate values are stored too
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from conformance.errors import UsageError, cut, quoted
from conformance.problem import Problem, parse

FILE_NAME = "definitions.toml"
# The file of a case that names none, by the area of its requirement.
FILE_OF_AREA = {
    "OUT": "outputs",
    "SCALE": "scaling",
    "MASK": "masking",
    "HEAD": "heads",
    "NUM": "numbers",
    "POS": "positions",
}
_REQUIREMENT = re.compile(rf"ATT-({'|'.join(FILE_OF_AREA)})-\d{{3}}")
_ID = re.compile(r"GOLD-\d{4}")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One case to be made. Raises UsageError for an id, requirement or text that cannot stand."""

    id: str
    requirement: str
    note: str
    source: str
    problem: str
    file: str = ""
    written: Mapping[str, str] = field(default_factory=dict)
    positions: bool = False
    steps: bool = False

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UsageError(f"The golden id {quoted(self.id)} is not of the form GOLD-0001.")
        match = _REQUIREMENT.fullmatch(self.requirement)
        if not match:
            raise UsageError(f"{self.id}: {quoted(self.requirement)} is no requirement id such as ATT-MASK-003.")
        for name in ("note", "source"):
            if not getattr(self, name).strip():
                raise UsageError(f"{self.id}: the {name} is empty; say what the case is for and where it comes from.")
        if self.file and not re.fullmatch(r"[a-z0-9_-]+", self.file):
            raise UsageError(f"{self.id}: {quoted(self.file)} is no name of a golden file, such as masking.")
        if not self.file:
            object.__setattr__(self, "file", FILE_OF_AREA[match[1]])

    @property
    def number(self) -> int:
        return int(self.id.removeprefix("GOLD-"))

    def parsed(self) -> Problem:
        return parse(self.problem)

    def entry(self) -> dict[str, Any]:
        """The fields that are not at their default."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) or f.name == "id"}


@dataclass(frozen=True)
class Definitions:
    """All definitions in ascending order of id, and the arrays written by hand."""

    cases: tuple[Definition, ...]
    arrays: Mapping[str, np.ndarray]

    def next_id(self) -> str:
        return f"GOLD-{1 + max((case.number for case in self.cases), default=0):04}"


def read_definitions(folder: Path) -> Definitions:
    """The definitions in ``folder``; raises UsageError, with file and place, for what is none."""
    path = folder / FILE_NAME
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        arrays = {name: np.array(numbers) for name, numbers in document.get("arrays", {}).items()}
        cases = tuple(Definition(**entry) for entry in document.get("case", ()))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise UsageError(f"{path} is no list of golden cases: {cut(str(error))}") from None
    numbers = [case.number for case in cases]
    if numbers != sorted(set(numbers)):
        raise UsageError(f"{path} does not list its cases by ascending id, each once: append new cases at its end.")
    return Definitions(cases, arrays)


def with_appended(text: str, definition: Definition) -> str:
    """The text of the definitions file with one more case at its end."""
    return f"{text.rstrip()}\n\n{tomlkit.dumps({'case': [definition.entry()]})}"

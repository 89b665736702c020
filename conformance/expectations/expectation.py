"""What an expectation says."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance.judging.verdict import Outcome
from conformance.records.data import Data
from conformance.records.record_types import Environment

Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}$(?!\n)")]
Cases = Literal["all", "none"] | tuple[Digest, ...]
LONGEST_STEM = 100  # bytes; most file systems take names of 255, of which endings need some
TEXT_CONDITIONS = ("platform", "machine", "instruction_set")


class Expectation(Data, frozen=True, kw_only=True):
    """A known failure: these golden and designed cases of ``requirement`` have this ``outcome``, and why.

    ``cases`` "all" are those that run, "none", which is () here, leaves the random ones; ``dtypes`` narrows the choice where
    given. Random cases in these dtypes may fail too, unless ``random`` is false. ``when`` names the environments in which this
    holds: ``platform``, ``machine``, ``instruction_set`` (a word or a list of them), ``python`` or any package (a range of
    versions, ">=2.5,<3").
    """

    requirement: str
    outcome: Outcome
    reason: Annotated[str, Meta(min_length=1)]
    link: str = ""
    cases: Cases = "all"
    dtypes: tuple[str, ...] = ()
    random: bool = True
    when: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cases == "none":
            msgspec.structs.force_setattr(self, "cases", ())

    def covers(self, dtype: str) -> bool:
        return not self.dtypes or dtype in self.dtypes

    def holds_in(self, environment: Environment) -> bool:
        """Whether every condition of ``when`` is met."""
        return not unmet(self.when, environment)


class ExpectedAnswer(Data, frozen=True, kw_only=True):
    """A known ``answer`` to ``convention`` that is none an interface may have, and why; ``when`` as in Expected."""

    convention: str
    answer: str
    reason: Annotated[str, Meta(min_length=1)]
    link: str = ""
    when: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)

    def holds_in(self, environment: Environment) -> bool:
        """Whether every condition of ``when`` is met."""
        return not unmet(self.when, environment)


Entry = Expectation | ExpectedAnswer
Conditions = Mapping[str, str | tuple[str, ...]]


def packages_named(conditions: Conditions) -> Iterator[str]:
    """The packages on whose versions ``conditions`` depend."""
    return (name for name in conditions if name not in (*TEXT_CONDITIONS, "python"))


def unmet(conditions: Conditions, environment: Environment) -> str:
    """The first condition that ``environment`` does not meet, and what is there instead, in words; empty where it meets all."""
    for name, condition in conditions.items():
        if name in TEXT_CONDITIONS:
            wanted = (condition,) if isinstance(condition, str) else condition
            here, lack = getattr(environment, name), "unknown"
            met = here in wanted
        else:
            assert isinstance(condition, str), "checked when loaded"
            wanted = (condition,)
            here, lack = environment.python if name == "python" else environment.packages.get(name), "not installed"
            met = here is not None and _within(here, condition)
        if not met:
            return f"{name} {' or '.join(wanted)}, which here is {here or lack}"
    return ""


def _within(version: str, condition: str) -> bool:
    """Whether the version is in the range; what is no version, as a record file may claim, is in none."""
    try:
        return SpecifierSet(condition).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def file_stem(implementation: str) -> str:
    """The name, without .toml, of an implementation's file: characters that file names may not have become hyphens, and the end
    of a long one becomes a hash of the whole."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", implementation)
    if len(stem) <= LONGEST_STEM:
        return stem
    digest = hashlib.sha256(implementation.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{stem[: LONGEST_STEM - len(digest) - 1]}-{digest}"

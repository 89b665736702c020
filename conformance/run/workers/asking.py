"""What a run and the processes in which implementations run say to each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from conformance.adapter.loading import Loaded, Refused
from conformance.checks.run_options import Effort
from conformance.errors import UsageError

if TYPE_CHECKING:  # processes are begun while what judges is still being loaded
    from conformance.expectations import Expectations


@dataclass(frozen=True)
class WorkerTask:
    """What a process begins with: which implementations it loads, as the user ``names`` them with the words that are ``given``,
    and how items are run. ``trail`` is the file on which it leaves what it is at. Pickled: it comes from us."""

    names: tuple[str, ...]
    given: Mapping[str, str | None]
    effort: Effort
    skips: tuple[str, ...]
    expectations: "Expectations"
    trail: str = ""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Run the requirement, or observe the convention, on an implementation."""

    identifier: str
    implementation: str


class Reply(msgspec.Struct, frozen=True, tag=True):
    """The records of an item, as lines; ``unsound``: why the implementation cannot be judged at all."""

    records: tuple[str, ...]
    unsound: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be diagnosed: the texts of problems that ``implementation`` failed, with their kinds, and of those that it
    passed; ``requirements`` that failed, with the kinds of the first of their failing problems. ``beside``: by the name of a
    further output, the texts of problems of which it alone is wrong, and the requirements that failed for that alone."""

    implementation: str
    failing: dict[str, str]
    passing: tuple[str, ...]
    requirements: dict[str, dict[str, str]] = {}
    beside: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}


def understood(message: bytes) -> Loaded | Refused | Reply:
    """Raises UsageError for what is no message of ours."""
    try:
        return msgspec.json.decode(message, type=Loaded | Refused | Reply)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"The process of the implementation says what makes no sense: {error}.") from None

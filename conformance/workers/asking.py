"""What a run and the processes in which implementations run say to each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from conformance.errors import UsageError
from conformance.loading import Loaded, Refused

if TYPE_CHECKING:  # processes are begun while what judges is still being loaded
    from conformance.checks.items import Effort
    from conformance.expectations import ImplementationExpectations


@dataclass(frozen=True)
class Task:
    """What a process begins with: which implementations it loads, as the user ``names`` them with the words that are ``given``,
    and how items are run. ``trail`` is the file on which it leaves what it is at. Pickled: it comes from us."""

    names: tuple[str, ...]
    given: Mapping[str, str | None]
    effort: "Effort"
    skips: tuple[str, ...]
    expectations: "Mapping[str, ImplementationExpectations]"
    trail: str = ""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Run the requirement, or observe the convention, on an implementation."""

    identifier: str
    implementation: str


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The records of an item, as lines; ``unsound``: why the implementation cannot be judged at all."""

    records: tuple[str, ...]
    unsound: str = ""


def understood(message: bytes) -> Loaded | Refused | Answer:
    """Raises UsageError for what is no message of ours."""
    try:
        return msgspec.json.decode(message, type=Loaded | Refused | Answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"The process of the implementation says what makes no sense: {error}.") from None

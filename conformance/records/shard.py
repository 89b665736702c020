"""A run cut into shards for several machines: ``--shard 2/5``. Which shard runs what is the same on every machine."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from conformance.errors import UsageError, quoted

_FORM = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")
Group = TypeVar("Group", bound=Hashable)


@dataclass(frozen=True)
class Shard:
    """The ``number``-th of ``count`` parts, counted from 1; the only one is the whole run. As text ``2/5``, or empty."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """What ``--shard`` says; raises UsageError where that is no part of a whole."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise UsageError(f"--shard {quoted(text)} is not of the form 2/5, the second of five.")
        number, count = (int(part) for part in match.groups())
        if not 1 <= number <= count:
            raise UsageError(f"--shard {text} does not exist: {count} shards are numbered from 1 to {count}.")
        return cls(number, count)

    def __str__(self) -> str:
        return "" if self.count == 1 else f"{self.number}/{self.count}"

    @property
    def is_first(self) -> bool:
        return self.number == 1

    def part(self, costs: Mapping[Group, float]) -> set[Group]:
        """The groups that fall to this shard: the dearest first, each to the shard that has least to do until then.

        Depends on ``costs`` and their order alone. Empty for some shards where there are fewer groups than shards.
        """
        loads = [0.0] * self.count
        mine = set()
        for group in sorted(costs, key=lambda group: -costs[group]):
            least = loads.index(min(loads))
            loads[least] += costs[group]
            if least == self.number - 1:
                mine.add(group)
        return mine

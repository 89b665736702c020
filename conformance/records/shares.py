"""How much of what an implementation could be asked is left by what it declares beside its features: limits, declined calls, a
budget of shapes. Too little is no verdict."""

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.records.record_types import Item

LEAST_SHARE = 0.1  # of the problems that are within an implementation's features
LEAST_COMPILED = 0.9  # of the calls of what is declared to be compiled


@dataclass
class Share:
    """Problems of an implementation: those run, those among them that were fitted to its limits, those left out for them; and
    ``calls`` that may be of compiled code, of which ``compiled`` are known to be, None where nothing is known."""

    run: int = 0
    fitted: int = 0
    unsupported: int = 0
    left_out: int = 0
    calls: int = 0
    compiled: int | None = None

    def add(self, item: Item) -> None:
        counts = item.counts
        self.run += counts.run
        self.fitted += counts.fitted
        self.unsupported += counts.unsupported
        self.left_out += counts.left_out
        if item.compiled is not None:
            self.calls += item.calls
            self.compiled = (self.compiled or 0) + item.compiled

    @property
    def left(self) -> float:
        """The part that was run of what was run or left out; 1 where there was neither."""
        return self.run / (self.run + self.left_out) if self.run + self.left_out else 1.0

    @property
    def is_compiled(self) -> bool:
        """Whether most calls were of compiled code, as far as is known."""
        return self.compiled is None or self.compiled >= LEAST_COMPILED * self.calls

    @property
    def is_enough(self) -> bool:
        return self.left >= LEAST_SHARE


def shares(items: Iterable[Item]) -> dict[str, Share]:
    """By implementation."""
    found: dict[str, Share] = {}
    for item in items:
        found.setdefault(item.implementation, Share()).add(item)
    return found


def too_little(found: dict[str, Share]) -> tuple[str, ...]:
    """A sentence for each implementation of which too little was judged for a verdict, or too little of what compiles."""
    interpreted = (
        f"INCONCLUSIVE: only {share.compiled} of {share.calls} calls of {name} ran compiled code, since the compiler gave it up: "
        "the run says little of what is compiled."
        for name, share in found.items()
        if not share.is_compiled
    )
    left_out = (
        f"INCONCLUSIVE: only {share.run} of {share.run + share.left_out} problems within the features of {name} were judged, "
        f"the others are beyond its limits or its budget of shapes, or declined: {LEAST_SHARE:.0%} are expected."
        for name, share in found.items()
        if not share.is_enough
    )
    return (*left_out, *interpreted)

"""What the lines of a run amount to: which may come, and which footer they allow. Writer and reader go by it alike."""

from collections import Counter

from conformance.errors import UsageError, quoted
from conformance.judging.verdict import Outcome
from conformance.records.extent import Pair, selected
from conformance.records.record_types import LISTS, Case, ConventionResult, Footer, Growth, Header, Item, Line, Timing, Totals
from conformance.system.exit_codes import ExitCode, exit_code


class Tally:
    """The lines from a header to its footer, counted as they come."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._requirements = {entry.id: entry.area for entry in header.requirements}
        self._implementations = {entry.name for entry in header.implementations}
        self._kinds: Counter[type] = Counter()
        self._outcomes: Counter[Outcome] = Counter()
        self._pairs: set[Pair] = set()
        self._recorded: set[Pair] = set()
        self._judged = self._timed = False
        self.unexpected = 0

    def demand_fitting(self, record: Line) -> None:
        """Raises UsageError, without saying where, for a record of what the header does not list, and for a second result."""
        if isinstance(record, Header):
            raise UsageError("it is a second header")
        if isinstance(record, Case | Item) and record.requirement not in self._requirements:
            raise UsageError(f"the header does not list the requirement {quoted(record.requirement)}")
        if not isinstance(record, Footer) and record.implementation not in self._implementations:
            raise UsageError(f"the header does not list the implementation {quoted(record.implementation)}")
        if isinstance(record, Item) and (record.requirement, record.implementation) in self._pairs:
            raise UsageError(f"it is a second item of {record.requirement} on {record.implementation} in one run")

    def add(self, record: Line) -> None:
        self._kinds[type(record)] += 1
        if isinstance(record, Item):
            self._outcomes[record.outcome] += 1
            self._pairs.add((record.requirement, record.implementation))
            self._judged = self._judged or record.outcome.was_run
        if isinstance(record, ConventionResult):
            self._recorded.add((record.id, record.implementation))
        if isinstance(record, Timing):
            self._timed = self._timed or record.median_seconds is not None
        if isinstance(record, Item | ConventionResult | Timing | Growth):
            self.unexpected += record.status == "unexpected"

    @property
    def counts(self) -> Totals:
        return Totals(**{name: self._kinds[kind] for kind, name in LISTS.items()})

    @property
    def outcomes(self) -> dict[Outcome, int]:
        return {outcome: self._outcomes[outcome] for outcome in sorted(self._outcomes)}

    @property
    def missing(self) -> frozenset[Pair]:
        """What is expected and has no result."""
        return selected((self._header,)) - self._pairs - self._recorded

    def exit_code(self, *, undeclared: int = 0, missing: int = 0) -> ExitCode:
        """What follows from the lines; whether enough was judged of a part of a run is seen when the parts are merged."""
        part = self._header.shard not in ("", "1/1")
        asked = self._kinds[Item] or self._kinds[ConventionResult]
        enough = part or self._judged or (not asked and self._timed)
        return exit_code(unexpected=self.unexpected + undeclared, enough_cases=enough, missing=missing)

    def contradiction(self, footer: Footer) -> str:
        """What the footer says that the lines do not allow; empty where it is true of them.

        A run may end with a worse code than its lines: it was interrupted, or something failed that left no line.
        """
        if footer.counts != self.counts:
            return f"the footer counts {_listed(footer.counts)}, but the file holds {_listed(self.counts)}"
        if {outcome: number for outcome, number in footer.outcomes.items() if number} != self.outcomes:
            return "the footer's outcomes are not those of the items"
        undeclared = footer.unexpected - self.unexpected
        if not 0 <= undeclared <= len(set(self._requirements.values())) * len(self._implementations):
            return f"the footer counts {footer.unexpected} unexpected results, but the file holds {self.unexpected}"
        allowed = {self.exit_code(undeclared=undeclared), ExitCode.UNEXPECTED, ExitCode.INCONCLUSIVE}
        if footer.exit_code not in allowed:
            expected = self.exit_code(undeclared=undeclared)
            return f"the footer says exit code {footer.exit_code}, and from the lines follows {int(expected)}: {expected.meaning}"
        return ""


def _listed(counts: Totals) -> str:
    return ", ".join(f"{getattr(counts, name)} {name.replace('_', '-')}" for name in counts.__struct_fields__)

"""Which failing cases are shown of many: those that most others do not tell already."""

from collections import Counter
from collections.abc import Iterable, Sequence

from conformance.records import Case, Run
from conformance.reports.causes import causes, properties


def in_turn(cases: Sequence[Case], numbers: Counter[str] | None = None) -> list[Case]:
    """One of each dtype, then another of each; those of dtypes with the fewest failures first, by ``numbers`` or among these."""
    numbers = Counter(case.dtype for case in cases) if numbers is None else numbers
    seen: Counter[str] = Counter()
    turns: list[tuple[int, int, int]] = []
    for place, case in enumerate(cases):
        turns.append((seen[case.dtype], numbers[case.dtype], place))
        seen[case.dtype] += 1
    return [cases[place] for _, _, place in sorted(turns)]


class Choice:
    """The order in which the unexpected cases of a run are shown."""

    def __init__(self, run: Run) -> None:
        self._common = {cause.implementation: cause.shared for cause in causes(run) if cause.shared is not None}
        self._numbers: dict[str, Counter[str]] = {}
        for case in run.cases:
            if case.status == "unexpected":
                self._numbers.setdefault(case.implementation, Counter())[case.dtype] += 1

    def of(self, cases: Iterable[Case]) -> list[Case]:
        """Cases of one requirement on one implementation: those first that do not have what nearly all failures have in common,
        then one of each dtype."""
        cases = list(cases)
        if not cases:
            return []
        name = cases[0].implementation
        common, numbers = self._common.get(name), self._numbers.get(name, Counter())
        apart = [case for case in cases if common is None or common not in properties(case)]
        others = [case for case in cases if common is not None and common in properties(case)]
        return [*in_turn(apart, numbers), *in_turn(others, numbers)]

"""Accuracy: r = error / budget over the golden and designed cases that both runs have and pass."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from conformance.comparison.change import Change, ChangeKind
from conformance.comparison.ground import Ground
from conformance.judging.verdict import Outcome
from conformance.records import Case, Run
from conformance.reports.format import short

TOLERATED = 1.25  # the factor by which r may grow
SMALL = 0.01  # an r below is as good as this: a hundredth of what rounding justifies


@dataclass
class _Pairs:
    """r of equal cases, before and after, with the case's id."""

    values: list[tuple[float, float, str]] = field(default_factory=list)

    def figures(self, which: Literal[0, 1]) -> tuple[float, float]:
        """Median and largest, before (0) or after (1)."""
        values = [pair[which] for pair in self.values]
        return median(values), max(values)

    @property
    def worst(self) -> str:
        return max(self.values, key=lambda pair: pair[1])[2]


def changed_accuracy(base: Run, new: Run, ground: Ground) -> tuple[list[Change], list[str]]:
    """Each implementation and dtype of which median or largest r changed by more than a quarter; remarks on what is left out."""
    if not ground.same_specification:
        return [], []
    remarks: list[str] = []
    changes: list[Change] = []
    for (implementation, dtype), pairs in _common(base, new, ground).items():
        profiles = [run.implementations[implementation].profile.get(dtype) for run in (base, new)]
        if profiles[0] != profiles[1]:
            remarks.append(
                f"The accuracy of {implementation} in {dtype} is not compared: it is judged by another profile "
                f"({profiles[0]} → {profiles[1]})."
            )
        else:
            changes += _change(implementation, dtype, pairs)
    return changes, remarks


def _common(base: Run, new: Run, ground: Ground) -> dict[tuple[str, str], _Pairs]:
    before = {_key(case): case.r for case in base.cases if _counts(case, ground)}
    found: dict[tuple[str, str], _Pairs] = defaultdict(_Pairs)
    for case in new.cases:
        r = before.get(_key(case)) if _counts(case, ground) else None
        if r is not None and case.r is not None:
            found[case.implementation, case.dtype].values.append((r, case.r, case.id))
    return found


def _key(case: Case) -> tuple[str, str, str, str]:
    return case.stratum, case.id, case.implementation, case.text


def _counts(case: Case, ground: Ground) -> bool:
    return case.stratum != "random" and case.outcome is Outcome.PASS and case.requirement in ground.requirements


def _change(implementation: str, dtype: str, pairs: _Pairs) -> Iterator[Change]:
    before, after = pairs.figures(0), pairs.figures(1)
    factors = [max(now, SMALL) / max(then, SMALL) for then, now in zip(before, after, strict=True)]
    if max(factors) > TOLERATED:
        kind, note = ChangeKind.LESS_ACCURATE, f"{len(pairs.values)} cases; largest in {pairs.worst}"
    elif min(factors) < 1 / TOLERATED:
        kind, note = ChangeKind.MORE_ACCURATE, f"{len(pairs.values)} cases"
    else:
        return
    then, now = (f"median {short(figures[0])}, largest {short(figures[1])}" for figures in (before, after))
    yield Change(kind, implementation, f"r in {dtype}", then, now, note)

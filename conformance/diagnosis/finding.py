"""What a diagnosis says, as data, and as the sentences that people read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from conformance.diagnosis.evidence import SYMPTOMS
from conformance.diagnosis.prediction import Candidate
from conformance.diagnosis.trial import NEARLY_ALL
from conformance.faults.fault import Fault
from conformance.problem import Problem

SOURCES_SHOWN = 3
SHOWN_LOST = 2  # of what was raised where nothing could be run again


@dataclass(frozen=True)
class Finding:
    """The faults of ``candidate``, one or several at once, explain ``explained`` of ``failing`` problems that show ``symptom``.

    ``passing`` problems were compared, of which none contradicts; ``fresh`` ones were run to make sure. ``r`` is the largest
    error / budget against the faults' own outputs, None where there are none to compare. ``alike``: the faults that explain the
    same as well, so that outputs do not tell which it is. ``problems`` are those that were explained. ``less_accurate``: dtypes
    that are less accurate besides, and what is said of that. ``open``: dtypes that fail in other ways, so that nobody knows
    whether the faults are there too.
    """

    symptom: str
    candidate: Candidate
    explained: int
    failing: int
    passing: int
    fresh: int
    r: float | None
    alike: tuple[Fault, ...] = ()
    problems: tuple[Problem, ...] = ()
    less_accurate: tuple[tuple[str, str], ...] = ()
    open: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self.candidate.faults

    @property
    def explains_nearly_all(self) -> bool:
        return self.explained >= NEARLY_ALL * self.failing

    def may_show(self, problem: Problem) -> bool:
        """Whether one of the faults can make a difference to the problem, as far as dtype and features tell."""
        return any(
            fault.needs <= problem.features and problem.dtype in (self.candidate.within(fault) or fault.dtypes)
            for fault in self.faults
        )

    def __str__(self) -> str:
        """``matches fault … on 12 of 12 failing and 0 contradicting cases of 48 that pass, r ≤ 0.4: …; seen in …``."""
        several = len(self.faults) > 1
        names = " and ".join(fault.id for fault in self.faults)
        failing = "failing" if self.symptom == "values" else f"failing (with {SYMPTOMS[self.symptom]})"
        amount = "" if self.r is None else f", r ≤ {_rounded_up(self.r)}"
        text = (
            f"matches fault{'s' if several else ''} {names}{' together' if several else ''} on {self.explained} of "
            f"{self.failing} {failing} and 0 contradicting cases of {self.passing} that pass{amount}: "
            f"{' and '.join(self._sentences())}"
        )
        in_turn = (source for sources in zip_longest(*(fault.sources for fault in self.faults)) for source in sources if source)
        sources = list(dict.fromkeys(in_turn))[:SOURCES_SHOWN]
        if sources:
            text += f"; seen in {', '.join(sources)}"
        if self.alike:
            others = "; ".join(f"{fault.id} ({fault.sentence})" for fault in self.alike)
            text += f"; outputs do not tell it from {others}"
        for dtype, how in self.less_accurate:
            text += f"; {dtype} is less accurate besides: {how}"
        return text + "."

    def _sentences(self) -> Iterator[str]:
        for fault in self.faults:
            only = self.candidate.within(fault)
            where = f", in {_all_of(only)}{'' if self.open else ' only'}" if only else ""
            yield f"{fault.sentence}{where}"


@dataclass(frozen=True)
class Unexplained:
    """Failures of one symptom that no fault of the catalogue explains, and what can be said of them all the same: ``failing``
    were run again, ``alike`` were recorded that fail so; ``dtypes`` are theirs, where faults explain the others;
    ``less_accurate``: outputs are right, and not as accurate as is expected."""

    symptom: str
    failing: int
    alike: int
    observations: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    less_accurate: bool = False

    def __str__(self) -> str:
        told = "; ".join(self.observations)
        cases = "case" if self.failing == 1 else "cases"
        cases += f" in {_all_of(self.dtypes)}" if self.dtypes else ""
        cases += f" (of {self.alike}, the others were not run again)" if self.alike > self.failing else ""
        return (
            f"no known fault explains {self.failing} failing {cases} with {SYMPTOMS[self.symptom]}{f': {told}' if told else ''}."
        )


@dataclass(frozen=True)
class Diagnosis:
    """What explains the failures of an implementation. ``failing`` and ``passing`` problems were run again, in ``seconds``;
    ``vanished`` of them had failed before and passed then. Where none of those that failed could be run again, ``lost`` holds
    what was raised instead, as far as is known."""

    implementation: str
    findings: tuple[Finding, ...]
    unexplained: tuple[Unexplained, ...]
    failing: int
    passing: int
    vanished: int
    seconds: float
    lost: tuple[str, ...] | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The ids of the faults that are named, the first of each finding first."""
        return tuple(dict.fromkeys(fault.id for finding in self.findings for fault in finding.faults))

    @property
    def less_accurate(self) -> frozenset[str]:
        """Dtypes of which it is told that they are less accurate than is expected, beside a fault or in place of one."""
        besides = (dtype for finding in self.findings for dtype, _ in finding.less_accurate)
        return frozenset([*besides, *(dtype for part in self.unexplained if part.less_accurate for dtype in part.dtypes)])

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what no fault explains."""
        remarks = [str(part) for part in self.unexplained]
        if self.vanished:
            again = "case did not fail" if self.vanished == 1 else "cases did not fail"
            remarks.append(f"{self.vanished} failing {again} when run again.")
        if self.lost is not None:
            shown = f" ({'; '.join(self.lost[:SHOWN_LOST])})" if self.lost else ""
            remarks.append(f"There is no diagnosis: the failing problems could not be run again{shown}.")
        return tuple(remarks)

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence for each finding, then for what is left."""
        return (*(str(finding) for finding in self.findings), *self.remarks)


def _all_of(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _rounded_up(r: float) -> str:
    """A bound with one digit behind the point, or the first digit that is not 0."""
    if r <= 0.001:
        return "0.001" if r > 0 else "0"
    digits = 1 if r > 0.1 else 3
    return f"{-(-r * 10**digits // 1) / 10**digits:g}"

"""Side by side: the same outputs, faulty and correct, judged by the rules of other suites and by error budgets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from cachetools import LRUCache
from tabulate import tabulate

from conformance.adapter import Implementation, registry
from conformance.cases.random import corpus
from conformance.errors import Unsupported
from conformance.evaluation import plain
from conformance.evaluation.kills import QUICK, judge_of_process
from conformance.evaluation.rules import RULES, Reference, accepts, applicable, reference
from conformance.expectations import builtin_expectations
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.faults.functions import implementation_of
from conformance.harness.subject import Subject
from conformance.judging.judge import Failed
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import float_type
from conformance.oracle import expect
from conformance.problem import Problem
from conformance.problem.inputs import Inputs
from conformance.soak import CORRECT
from conformance.specification import requirements
from conformance.system.threads import in_processes
from conformance.values.golden import load_cases

OURS = "designed and drawn"  # the problems of the quick tier
SETS = (OURS, *plain.AMPLITUDES)
CHUNK = 16  # pairs of fault and dtype that a process takes at once
Cell = tuple[str, str, bool]  # rule, set of problems, whether in 16 bits
Job = str | tuple[tuple[str, str], ...]  # a correct implementation by name, or pairs of fault and dtype


@dataclass
class RuleComparison:
    """How many faults each rule catches of how many to which it applies, by rule, set of problems and size of the dtype, a fault
    counted once per dtype; and how many correct outputs it rejects of how many."""

    caught: dict[Cell, list[int]] = field(default_factory=dict)
    rejected: dict[Cell, list[int]] = field(default_factory=dict)

    def merge(self, other: "RuleComparison") -> None:
        for mine, theirs in ((self.caught, other.caught), (self.rejected, other.rejected)):
            for cell, (some, of) in theirs.items():
                _count(mine, cell, some, of)


def _count(table: dict[Cell, list[int]], cell: Cell, some: int, of: int = 1) -> None:
    counts = table.setdefault(cell, [0, 0])
    counts[0] += some
    counts[1] += of


def comparable(faults: Iterable[Fault]) -> list[Fault]:
    """Those that an output can show; faults of behaviour show over several calls, and rows without a key have no one right
    answer, which no tolerance compares."""
    return [fault for fault in faults if fault.behaviour is None and not fault.equivalent and not _of_fully_masked_rows(fault)]


def _of_fully_masked_rows(fault: Fault) -> bool:
    return all(requirements()[identifier].check == "empty-rows" for identifier in fault.requirements)


def jobs_for(faults: Sequence[Fault], names: Sequence[str] = ()) -> list[Job]:
    """What there is to judge: correct implementations (those that do not compile, or ``names``), and ``faults`` of the catalogue
    in all their dtypes."""
    pairs = [(fault.id, dtype) for fault in comparable(faults) for dtype in fault.dtypes]
    pairs.sort(key=lambda pair: (catalogue()[pair[0]].requirements[:1], pair[1]))
    correct = names or [name for name in CORRECT if not registry.resolve(name).support.compiles]
    return [*correct, *(tuple(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK))]


def size(job: Job) -> int:
    """How many implementations, or pairs of fault and dtype, it has."""
    return 1 if isinstance(job, str) else len(job)


def run(jobs: Iterable[Job], processes: int | None = None, progress: Callable[[int], None] = lambda done: None) -> RuleComparison:
    """The jobs' results in one, from so many processes, one a core if None. ``progress`` hears the sizes of jobs as they end."""
    total = RuleComparison()
    for job, part in in_processes(_judge, jobs, processes):
        total.merge(part)
        progress(size(job))
    return total


def _judge(job: Job) -> RuleComparison:
    if isinstance(job, str):
        return judge_correct(job)
    part = RuleComparison()
    for identifier, dtype in job:
        part.merge(judge_fault(catalogue()[identifier], dtype))
    return part


def judge_fault(fault: Fault, dtype: str) -> RuleComparison:
    """Which rules catch a fault in one dtype: on the problems of the requirements that it names, and on plain ones."""
    found = RuleComparison()
    subject = Subject(implementation_of(fault, dtype))
    half = float_type(dtype).is_16_bit
    for name in SETS:
        verdicts: dict[str, list[bool]] = {}
        for output, truth in _outputs(subject, name, _posed(fault.requirements, dtype) if name == OURS else None, dtype):
            for rule, accepted in _verdicts(output, truth):
                verdicts.setdefault(rule, []).append(accepted)
        for rule, accepted_ones in verdicts.items():
            _count(found.caught, (rule, name, half), not all(accepted_ones))
    return found


def judge_correct(name: str) -> RuleComparison:
    """How many outputs of a correct implementation each rule rejects, on the problems of all requirements and on plain ones.
    Where it is known not to keep to its budget, nothing is asked."""
    implementation = registry.resolve(name)
    found = RuleComparison()
    if implementation.missing() is not None:
        return found
    subject = Subject(implementation)
    identifiers = tuple(one.id for one in requirements().values() if one.operation == implementation.operation)
    for dtype in implementation.support.dtypes:
        for name_of_set in SETS:
            ours = _without_known_failures(identifiers, dtype, implementation) if name_of_set == OURS else None
            for output, truth in _outputs(subject, name_of_set, ours, dtype):
                for rule, accepted in _verdicts(output, truth):
                    _count(found.rejected, (rule, name_of_set, float_type(dtype).is_16_bit), not accepted)
    return found


def _verdicts(output: np.ndarray | None, truth: Reference) -> Iterator[tuple[str, bool]]:
    """What each rule that applies says of an output; none accepts an exception in its place."""
    return ((rule, output is not None and accepts(rule, output, truth)) for rule in applicable(truth))


def _outputs(
    subject: Subject, name: str, ours: Iterable[Problem] | None, dtype: str
) -> Iterator[tuple[np.ndarray | None, Reference]]:
    """The outputs of one set of problems, None where the implementation raises, each with what rules compare it with."""
    operation = subject.implementation.operation
    amplitude = plain.AMPLITUDES.get(name)
    for problem in plain.problems(operation, dtype) if ours is None else ours:
        problem = subject.resolve(problem)
        try:
            route = subject.route(problem)
        except Unsupported:
            continue
        profile = subject.implementation.support.judged_by(dtype)
        inputs, truth = _truth(problem, amplitude, profile)
        if not truth.exact.size:
            continue
        try:
            with np.errstate(all="ignore"):
                output = judge_of_process().run_prepared(subject.prepare(inputs, route), subject).output
        except Failed:
            output = None
        yield output, truth


_TRUTHS: LRUCache[tuple[str, float | None, str], tuple[Inputs, Reference]] = LRUCache(2000)


def _truth(problem: Problem, amplitude: float | None, profile: str) -> tuple[Inputs, Reference]:
    key = problem.text, amplitude, profile
    if key not in _TRUTHS:
        inputs = judge_of_process().inputs(problem) if amplitude is None else plain.inputs_of(problem, amplitude)
        with np.errstate(all="ignore"):
            _TRUTHS[key] = inputs, reference(inputs, expect(inputs, profile))
    return _TRUTHS[key]


@cache
def _posed(identifiers: tuple[str, ...], dtype: str) -> tuple[Problem, ...]:
    """The problems of the quick tier that judge outputs, of some requirements, in one dtype."""
    known = requirements()
    wanted = [known[identifier] for identifier in identifiers]
    golden = [case.problem for case in load_cases() if case.requirement in identifiers]
    designed = [problem for requirement in wanted for problem in requirement.designed()]
    drawn = [
        problem
        for requirement in wanted
        for example in corpus(requirement, examples=QUICK.examples, seed=QUICK.seed, free=QUICK.free)
        for problem in example.problems
    ]
    return tuple(dict.fromkeys(problem for problem in [*golden, *designed, *drawn] if problem.dtype == dtype))


def _without_known_failures(identifiers: tuple[str, ...], dtype: str, implementation: Implementation) -> list[Problem]:
    """The problems of requirements of which no failure of the implementation is expected."""
    expected = builtin_expectations(requirements()).for_(implementation.name)
    failures = [outcome for outcome in Outcome if outcome.is_failure]
    sound = [i for i in identifiers if not any(expected.judge_item(i, outcome).expected for outcome in failures)]
    return list(_posed(tuple(sound), dtype))


def render(comparison: RuleComparison, style: str = "simple") -> str:
    """One table for 16-bit dtypes, one for the wider ones; shares of faults caught and of correct outputs rejected."""
    parts = []
    for half, title in ((True, "float16 and bfloat16"), (False, "float32 and float64")):
        cells = [(rule, [(rule, name, half) for name in SETS]) for rule in RULES]
        rows = [
            (rule, *(_share(table.get(cell)) for table in (comparison.caught, comparison.rejected) for cell in row))
            for rule, row in cells
        ]
        head = ("rule", *(f"{what} {name}" for what in ("faults:", "correct:") for name in SETS))
        faults = max((of for (_, _, h), (_, of) in comparison.caught.items() if h == half), default=0)
        correct = sum(comparison.rejected.get(cell, [0, 0])[1] for cell in cells[-1][1])
        table = tabulate(rows, head, tablefmt=style, disable_numparse=True)
        parts.append(
            f"{title}: the share of {faults} pairs of fault and dtype that is caught, and of {correct:,} correct outputs that is "
            f"rejected, by problems\n\n{table}"
        )
    return "\n\n".join(parts)


def _share(counts: list[int] | None) -> str:
    return "–" if not counts or not counts[1] else f"{counts[0] / counts[1]:.1%}"

"""Draws problems, judges them on every implementation, and keeps the largest r by implementation, dtype and profile."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from conformance.adapter import Implementation, registry
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import Problem
from conformance.records.accuracy import Distribution
from conformance.soak.draw import SHARED_SHAPES, draw
from conformance.specification.palette import SHAPES
from conformance.system.threads import in_processes

# What is correct by construction: each computes the formula, and rounds where its profile says.
CORRECT: tuple[str, ...] = (
    "numpy-direct", "numpy-blocked-lse", "numpy-einsum", "numpy-multi-head-weights", "numpy-sinusoidal",
    "torch-direct", "torch-sdpa-math", "torch-sdpa-flash", "torch-mha", "torch-sinusoidal",
    "jax-nn-sdpa", "jax-einsum",
)  # fmt: skip
CHUNK = 250  # problems that a process takes at once
Key = tuple[str, str, str]  # implementation, dtype, profile


@dataclass
class Extreme:
    """How r is distributed, and the problem that gave the largest; ``message`` where one failed otherwise than by value."""

    distribution: Distribution = field(default_factory=Distribution)
    problem: str = ""
    message: str = ""

    def add(self, r: float, problem: str, message: str) -> None:
        if r > self.distribution.max or not self.problem:
            self.problem, self.message = problem, message
        self.distribution.add(r)

    def merge(self, other: "Extreme") -> None:
        if other.distribution.max > self.distribution.max or not self.problem:
            self.problem, self.message = other.problem, other.message
        self.distribution.merge(other.distribution.count, other.distribution.max, other.distribution.histogram)


@dataclass
class Soaked:
    """The result: extremes by implementation, dtype and profile; ``missing`` could not run here, with the reason."""

    problems: int = 0
    extremes: dict[Key, Extreme] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def beyond(self) -> dict[Key, Extreme]:
        """Where r exceeds 1, an output that failed otherwise counted as infinite."""
        return {key: extreme for key, extreme in self.extremes.items() if extreme.distribution.max > 1.0}

    def merge(self, other: "Soaked") -> None:
        self.problems += other.problems
        for key, extreme in other.extremes.items():
            self.extremes.setdefault(key, Extreme()).merge(extreme)
        self.missing |= other.missing


def soak(
    problems: int,
    seed: int,
    processes: int | None = None,
    names: Sequence[str] = CORRECT,
    progress: Callable[[int], None] = lambda done: None,
) -> Soaked:
    """Judges ``problems`` random problems on the implementations ``names``, as ``registry.resolve`` understands them.

    The same problems are drawn for every number of processes, None for one a core. ``progress`` hears how many more are done.
    Raises UsageError for names that mean nothing, and where an implementation ends its process.
    """
    for name in names:
        registry.resolve(name)
    total = Soaked()
    chunks = [range(start, min(start + CHUNK, problems)) for start in range(0, problems, CHUNK)]
    for _, part in in_processes(partial(_chunk, names, seed), chunks, processes, _told):
        total.merge(part)
        progress(part.problems)
    return total


def _told(numbers: range) -> str:
    return f"problems {numbers.start} to {numbers.stop - 1}"


def _chunk(names: Sequence[str], seed: int, numbers: range) -> Soaked:
    return judge_numbers([registry.resolve(name) for name in names], numbers, seed)


def judge_numbers(implementations: Sequence[Implementation], numbers: Iterable[int], seed: int) -> Soaked:
    """Judges the problems of these numbers in this process."""
    soaked = Soaked()
    judge, subjects = Judge(), []
    for implementation in implementations:
        missing = implementation.missing()
        if missing is None:
            subjects.append(Subject(implementation))
        else:
            soaked.missing[implementation.name] = missing
    for number in numbers:
        problem = draw(seed, number)
        for subject in subjects:
            if subject.implementation.operation == problem.operation:
                _judge(judge, subject, problem, soaked)
        soaked.problems += 1
    return soaked


def _judge(judge: Judge, subject: Subject, problem: Problem, soaked: Soaked) -> None:
    if subject.implementation.support.compiles and not _at_shared_shape(problem):
        return
    profile = judge.profile(subject, problem)
    if problem.dtype == "float16" and profile in ("unfused", "low") and _overflows(judge, problem):
        return
    try:
        judgement = judge.values(subject, problem)
    except Unsupported:
        return
    verdict = judgement.verdict
    r = math.inf if verdict.r is None else verdict.r
    extreme = soaked.extremes.setdefault((subject.implementation.name, problem.dtype, profile), Extreme())
    extreme.add(r, judgement.problem.text, f"{verdict.outcome}: {verdict.message}" if verdict.outcome.is_failure else "")


def _at_shared_shape(problem: Problem) -> bool:
    """Whether a framework that compiles for each shape will have compiled this one."""
    if problem.key_lengths is not None or problem.transformations:
        return False
    sizes = {name: getattr(problem, name) for name in problem.sizes}
    return any(sizes == SHAPES[name].fields for name in SHARED_SHAPES)


def _overflows(judge: Judge, problem: Problem) -> bool:
    """Whether products in float16 come near its largest number: what a step-by-step computation then gives is no rounding."""
    inputs = judge.inputs(problem).plain
    if inputs is None:
        return False
    group = inputs.query.shape[1] // inputs.key.shape[1]
    query, key = (np.abs(array).astype(np.float32) for array in (inputs.query, np.repeat(inputs.key, group, axis=1)))
    products = float((query @ key.swapaxes(-1, -2)).max(initial=0.0))
    return max(1.0, abs(inputs.scale or 1.0)) * products > 6e4

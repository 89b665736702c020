"""The speed of forward calls, contenders in turn within one process, as a ratio to NumPy in the same rounds."""

import gc
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from conformance import registry
from conformance.adapter import Implementation
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.problem import Problem
from conformance.records.model import Timing
from conformance.timing.contender import Contender, with_seed
from conformance.timing.flops import flops
from conformance.timing.machine import load, matmul_rate, threads
from conformance.timing.shapes import TIMED
from conformance.verdict import Outcome

BASELINES: dict[str, str] = {
    "attention": "numpy-direct",
    "multi_head_attention": "numpy-multi-head",
    "sinusoidal_encoding": "numpy-sinusoidal",
}
DTYPE = "float32"


def measure(implementations: Sequence[Implementation], *, seed: int) -> Iterator[Timing]:
    """A timing for each implementation at each shape of its operation, as they come; ``seed`` makes the values.

    The operation's baseline is measured whether or not it is among ``implementations``, and recorded if it is.
    """
    for operation, shapes in TIMED.items():
        subjects = {i.name: Subject(i) for i in implementations if i.operation == operation}
        if not subjects:
            continue
        wanted = tuple(subjects)
        baseline = BASELINES[operation]
        if baseline not in subjects:
            subjects[baseline] = Subject(registry.builtin()[baseline])
        for shape, problem in shapes.items():
            timings = _at_shape(shape, problem, list(subjects.values()), baseline, seed)
            yield from (timing for timing in timings if timing.implementation in wanted)


def _at_shape(shape: str, problem: Problem, subjects: Sequence[Subject], baseline: str, seed: int) -> Iterator[Timing]:
    judge = Judge()
    before = [with_seed(problem, seed), with_seed(problem, seed + 1)]
    contenders = {subject.implementation.name: Contender(subject) for subject in subjects}
    for contender in contenders.values():
        contender.enter(judge, before)
    rate = _rounds(list(contenders.values()), contenders[baseline])
    for contender in contenders.values():
        contender.leave(judge, with_seed(problem, seed + 2))
    needed = flops(judge.inputs(problem))
    for contender in contenders.values():
        yield _timing(contender, contenders[baseline], problem.operation, shape, needed, rate)


def _rounds(contenders: Sequence[Contender], baseline: Contender) -> float:
    """Each contender has its turn in a round until all have calls enough, the baseline in every round. Returns the rate of a
    matrix product, the better one of before and after.

    Another one begins in each round, so that none always follows the same neighbour. No garbage is collected in between.
    """
    rate = matmul_rate()
    collecting = gc.isenabled()
    gc.disable()
    try:
        number = 0
        while waiting := [c for c in contenders if not c.is_done]:
            if baseline not in waiting and baseline.failure is None:
                waiting.append(baseline)
            first = number % len(waiting)
            for contender in waiting[first:] + waiting[:first]:
                contender.turn(number)
            number += 1
    finally:
        if collecting:
            gc.enable()
    return max(rate, matmul_rate())


def _timing(contender: Contender, baseline: Contender, operation: str, shape: str, needed: int, rate: float) -> Timing:
    failure = contender.failure
    if failure is not None:
        return Timing(
            implementation=contender.name, operation=operation, shape=shape, dtype=DTYPE, outcome=failure.outcome, calls=0,
            flops=needed, baseline=baseline.name, r=contender.r, message=failure.message,
        )  # fmt: skip
    low, middle, high = map(float, np.quantile(contender.seconds, (0.25, 0.5, 0.75)))
    return Timing(
        implementation=contender.name,
        operation=operation,
        shape=shape,
        dtype=DTYPE,
        outcome=Outcome.PASS,
        calls=len(contender.seconds),
        flops=needed,
        baseline=baseline.name,
        median_seconds=middle,
        low_quartile_seconds=low,
        high_quartile_seconds=high,
        ratio=_ratio(contender, baseline),
        percent_of_matmul=100.0 * needed / middle / rate if needed else None,
        r=contender.r,
        message=_circumstances(contender),
    )


def _ratio(contender: Contender, baseline: Contender) -> float | None:
    """The median, over the rounds, of the contender's time to that of the baseline in the same round."""
    if baseline.failure is not None:
        return None
    return median(median(times) / median(baseline.rounds[number]) for number, times in contender.rounds.items())


def _circumstances(contender: Contender) -> str:
    """How it was asked, what the first call took, the threads that were there, and how busy the machine was."""
    compiles = ", compilation included" if contender.subject.implementation.support.compiles else ""
    route = f"route {contender.route}; " if contender.route.ways else ""
    return f"{route}first call {contender.first_seconds:.2g} s{compiles}; threads: {threads()}; load {load()}"

"""Contenders at one shape, in turn within one process, and what is recorded of each."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from conformance.adapter import Clock
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import float_type
from conformance.problem import Problem
from conformance.records import Line, Passes, SelfComparison, Timing
from conformance.timing.clock import HostClock, clock_of
from conformance.timing.contender import Contender, with_seed
from conformance.timing.flops import bytes_of, flops_of
from conformance.timing.machine import load, threads
from conformance.timing.rates import Rates
from conformance.timing.statistics import TOLERANCE, Ratio, paired_ratio


@dataclass(frozen=True)
class StoppingRule:
    """When a contender has had turns enough: after ``least`` rounds, once half the interval of its ratio is below
    ``precision``, or its timed calls took ``seconds``; after ``most`` rounds in any case."""

    least: int = 12
    most: int = 36
    seconds: float = 0.25
    precision: float = 0.015


SMALL = StoppingRule(least=6, most=30, seconds=0.25, precision=0.03)  # for what a conformance run shows of speed


# Percent of the machine's float32 matrix product that attention can reach, by whether its dtype has 16 bits: units for those are
# up to 16 times faster.
CREDIBLE = {False: 150.0, True: 2400.0}
NOT_COMPUTED = (
    "% of the rate of a matrix product here, which nobody computes: what was timed is an answer kept from an earlier call."
)


@dataclass(frozen=True)
class TimedProblem:
    """What is timed: a problem of the implementations' operation, under the name that it has in a suite."""

    suite: str
    name: str
    problem: Problem
    passes: Passes = "forward"

    def __str__(self) -> str:
        return f"{self.suite} {self.name} {self.problem.dtype} {self.passes}"


def contest(
    shape: TimedProblem,
    subjects: Sequence[Subject],
    baseline: str | None,
    *,
    judge: Judge,
    rates: Rates,
    seed: int,
    effort: StoppingRule = SMALL,
    twin: bool = False,
    memory: bool = False,
    alone: bool = False,
    about: Callable[[str], None] = lambda name: None,
) -> list[Line]:
    """A timing of each subject, in their order. ``twin``: the baseline takes part twice, and the comparison with itself comes
    first. ``memory``: peaks are measured. ``alone``: each has one thread. ``about`` is told whose turn it is, before each."""
    problems = [with_seed(shape.problem, seed), with_seed(shape.problem, seed + 1)]
    contenders = [Contender(subject, clock_of(subject.implementation, alone), shape.passes) for subject in subjects]
    base = next((contender for contender in contenders if contender.name == baseline), None)
    double = Contender(base.subject, clock_of(base.subject.implementation, alone), shape.passes) if twin and base else None
    everybody = [*contenders, *([double] if double else [])]
    for contender in everybody:
        about(contender.name)
        contender.enter(judge, problems)
    _rounds(everybody, base, judge, rates, effort, about)
    peaks = {}
    for contender in everybody:
        about(contender.name)
        peaks[contender] = contender.peak() if memory else None
        contender.leave(judge, with_seed(shape.problem, seed + 2))
    lines: list[Line] = [_timing(contender, base, shape, judge, rates, peaks[contender]) for contender in contenders]
    for contender in everybody:
        if isinstance(contender.clock, HostClock):
            contender.clock.close()
    if double is not None and base is not None and not (double.failure or base.failure):
        return [*_compared(shape, double, base), *lines]
    return lines


def _rounds(
    contenders: Sequence[Contender],
    baseline: Contender | None,
    judge: Judge,
    rates: Rates,
    effort: StoppingRule,
    about: Callable[[str], None],
) -> None:
    """Each contender has its turn in a round until all have had enough, the baseline in every round.

    The order of a round is turned about and rotated, so that none always follows the same neighbour or comes early. Garbage is
    collected between rounds only. The matrix product is measured before, in the middle and after.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        number = 0
        while waiting := [c for c in contenders if c.failure is None and not _has_enough(c, baseline, effort)]:
            if number % effort.least == 0:
                rates.again(waiting)
            if baseline is not None and baseline.failure is None and baseline not in waiting:
                waiting.append(baseline)
            first = number // 2 % len(waiting)
            order = waiting[first:] + waiting[:first]
            for contender in order if number % 2 == 0 else order[::-1]:
                about(contender.name)
                contender.place(judge)
                contender.turn(number)
            number += 1
            gc.collect(0)
        rates.again([contender for contender in contenders if contender.failure is None])
    finally:
        if collecting:
            gc.enable()


def _has_enough(contender: Contender, baseline: Contender | None, effort: StoppingRule) -> bool:
    rounds = len(contender.rounds)
    if rounds < effort.least or rounds >= effort.most:
        return rounds >= effort.most
    if sum(contender.seconds) >= effort.seconds:
        return True
    if rounds % 3:
        return False
    ratio = _ratio(contender, baseline)
    return ratio is None or ratio.half_width <= effort.precision * ratio.value


def _ratio(contender: Contender, baseline: Contender | None) -> Ratio | None:
    return None if baseline is None or baseline.failure else paired_ratio(contender.medians, baseline.medians)


def _timing(
    contender: Contender, baseline: Contender | None, shape: TimedProblem, judge: Judge, rates: Rates, peak: int | None
) -> Timing:
    implementation, failure = contender.subject.implementation, contender.failure
    inputs = judge.inputs(contender.subject.resolve(shape.problem)) if failure is None else judge.inputs(shape.problem)
    needed = flops_of(inputs, shape.passes)
    timing = Timing(
        implementation=contender.name, operation=implementation.operation, suite=shape.suite, shape=shape.name,
        dtype=shape.problem.dtype, passes=shape.passes, device=implementation.support.device, outcome=Outcome.PASS, calls=0,
        flops=needed, baseline=baseline.name if baseline else "", r=contender.r,
    )  # fmt: skip
    if failure is not None:
        return replace(timing, outcome=failure.outcome, message=failure.message)
    assert contender.output is not None
    low, middle, high = map(float, np.quantile(contender.seconds, (0.25, 0.5, 0.75)))
    ratio, rate = _ratio(contender, baseline), rates.of(implementation.support.device)
    percent = 100.0 * needed / middle / rate if needed and rate else None
    if percent is not None and percent > CREDIBLE[float_type(shape.problem.dtype).is_16_bit]:
        return replace(timing, outcome=Outcome.WRONG_VALUE, message=f"It would reach {percent:.0f} {NOT_COMPUTED}")
    return replace(
        timing,
        calls=len(contender.seconds),
        bytes=bytes_of(inputs, contender.output, shape.passes),
        median_seconds=middle,
        low_quartile_seconds=low,
        high_quartile_seconds=high,
        ratio=None if ratio is None else ratio.value,
        ratio_low=None if ratio is None else ratio.low,
        ratio_high=None if ratio is None else ratio.high,
        first_seconds=contender.first_seconds,
        percent_of_matmul=percent,
        peak_bytes=peak,
        message=_circumstances(contender),
    )


def _compared(shape: TimedProblem, double: Contender, base: Contender) -> list[SelfComparison]:
    ratio = paired_ratio(double.medians, base.medians)
    if ratio is None:
        return []
    return [
        SelfComparison(
            implementation=base.name, operation=base.subject.implementation.operation, suite=shape.suite, shape=shape.name,
            dtype=shape.problem.dtype, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high, tolerance=TOLERANCE,
        )
    ]  # fmt: skip


def _circumstances(contender: Contender) -> str:
    """How it was asked, whether its first call compiles, the threads that were there, and how busy the machine was."""
    compiles = "first call compiles; " if contender.subject.implementation.support.compiles else ""
    route = f"route {contender.route}; " if contender.route.ways else ""
    return f"{route}{compiles}{_clock(contender.clock)}threads: {threads()}; load {load()}"


def _clock(clock: Clock) -> str:
    if not isinstance(clock, HostClock):
        return "device events, cold L2; "
    return (
        f"{100 * clock.lost / clock.wall:.0f} % of wall time waited for a core, taken off; "
        if clock.lost > 0.005 * clock.wall
        else ""
    )

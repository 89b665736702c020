"""Contests in this process, between contenders whose clock says what it is told."""

import numpy as np

from conformance.adapter import Implementation, Support
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import parse
from conformance.timing.contest import StoppingRule, TimedProblem, contest
from conformance.timing.rates import SIZES, Rates
from tests.fakes import correct
from tests.support.clocks import Clocked

TINY = parse("attention batch=1 heads=2 length=6 width=4 dtype=float32 values=spread.1#0")
SHAPE = TimedProblem("gqa", "tiny", TINY)
BRIEF = StoppingRule(least=4, most=9, seconds=1e9, precision=0.01)


class Told:
    """A clock: each call takes the next of ``times``, and ``extra`` bytes beyond its result; matrix products get ``rates``."""

    def __init__(self, times, extra=1000, rates=(1e6,)):
        self.times, self.extra, self.rates, self.calls = times, extra, list(rates), 0

    def seconds(self, call):
        result = call()
        if getattr(result, "ndim", None) == 2:
            return 2 * SIZES["cpu"] ** 3 / (self.rates.pop(0) if len(self.rates) > 1 else self.rates[0]), result
        self.calls += 1
        return self.times[self.calls % len(self.times)], result

    def peak_bytes(self, call):
        result = call()
        return self.extra + sum(array.nbytes for array in _arrays(result))


def _arrays(result):
    return [result] if isinstance(result, np.ndarray) else [result[0], *result[1]]


class Differentiating(Clocked):
    """With gradients that are zeros."""

    def gradients(self, function):
        return lambda arrays, cotangent: (function(*arrays), tuple(np.zeros_like(array) for array in arrays))


def contender(name, times, function=correct, kind=Clocked, **settings):
    return Implementation(name, function, Support(), kind(Told(times, **settings)))


def held(*implementations, baseline="base", shape=SHAPE, **settings):
    subjects = [Subject(implementation) for implementation in implementations]
    settings = {"judge": Judge(), "rates": Rates(), "seed": 1, "effort": BRIEF, **settings}
    return contest(shape, subjects, baseline, **settings)

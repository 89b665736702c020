"""Contests by a clock that says what it is told: rounds, ratios, rates, memory and gradients; and the clocks themselves."""

import itertools
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from conformance.implementations.pytorch import CudaClock

from conformance.adapter import registry
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.timing.clock import HostClock
from conformance.timing.contest import TimedProblem
from tests.fakes import correct
from tests.support.contests import BRIEF, TINY, Differentiating, contender, held


def test_times_ratio_rate_and_memory_are_what_the_clock_said():
    base, slow = held(contender("base", [1.0]), contender("slow", [2.5]), memory=True)
    assert (base.median_seconds, base.ratio, base.ratio_low, base.ratio_high) == (1.0, 1.0, 1.0, 1.0)
    assert (slow.median_seconds, slow.ratio, slow.ratio_low, slow.ratio_high) == (2.5, 2.5, 2.5, 2.5)
    assert (slow.suite, slow.shape, slow.baseline, slow.peak_bytes) == ("gqa", "tiny", "base", 1000)
    assert slow.flops == 2 * 36 * 16
    assert slow.percent_of_matmul == pytest.approx(100 * slow.flops / 2.5 / 1e6)


def test_no_peak_is_measured_unless_asked_for():
    assert held(contender("base", [1.0]))[0].peak_bytes is None


def test_a_disturbed_matrix_product_does_not_make_implementations_faster_than_the_machine():
    disturbed = contender("base", [1e-3], rates=(1e6, 5e6, 2e6))
    (timing,) = held(disturbed)
    assert timing.percent_of_matmul == pytest.approx(100 * timing.flops / 1e-3 / 5e6)


def test_a_steady_contender_is_left_alone_early_and_a_noisy_one_gets_more_rounds():
    steady, noisy = contender("steady", [1.0]), contender("noisy", [1.0, 1.9, 1.4, 1.1, 1.6, 1.3, 1.0])
    timings = {timing.implementation: timing for timing in held(contender("base", [1.0]), steady, noisy)}
    assert timings["steady"].calls == 6
    assert timings["noisy"].calls == BRIEF.most
    assert timings["noisy"].ratio_low < timings["noisy"].ratio_high


def test_the_order_within_rounds_changes():
    turns = []
    held(contender("base", [1.0]), contender("b", [1.0]), contender("c", [1.0]), about=turns.append)
    entering, rounds = turns[:3], turns[3 : 3 + 4 * 3]
    assert entering == ["base", "b", "c"]
    orders = [tuple(rounds[start : start + 3]) for start in range(0, len(rounds), 3)]
    assert all(sorted(order) == ["b", "base", "c"] for order in orders)
    assert len(set(orders)) == 4


def test_each_round_has_its_inputs_elsewhere_in_memory():
    seen = []

    def keeps(query, key, value):
        seen.append(query)
        return correct(query, key, value)

    held(contender("base", [1.0], keeps))
    places = {query.__array_interface__["data"][0] for query in seen}
    assert len(places) >= 2 * BRIEF.least


def test_forward_and_backward_has_its_own_operations_bytes_and_memory():
    shape = TimedProblem("gqa", "tiny", TINY, "forward+backward")
    base, numpy = held(contender("base", [1.0], kind=Differentiating), contender("numpy", [1.0]), shape=shape, memory=True)
    assert (base.outcome, base.passes, base.ratio, base.peak_bytes) == (Outcome.PASS, "forward+backward", 1.0, 1000)
    assert base.flops == round(3.5 * 2 * 36 * 16)
    assert (numpy.outcome, numpy.message) == (Outcome.UNSUPPORTED, "gradients in numpy")


def test_the_output_of_forward_and_backward_is_judged():
    def unscaled(query, key, value):
        return correct(query, key, value, scale=1.0)

    (timing,) = held(
        contender("base", [1.0], unscaled, Differentiating), shape=TimedProblem("gqa", "tiny", TINY, "forward+backward")
    )
    assert (timing.outcome, timing.median_seconds) == (Outcome.WRONG_VALUE, None)


@pytest.mark.parametrize("name", ["torch-direct", "torch-sdpa", "jax-einsum"])
def test_frameworks_give_gradients_that_agree_with_finite_differences(name):
    implementation = registry.builtin()[name]
    if implementation.missing():
        pytest.skip(implementation.missing())
    problem = TINY.but(dtype="float64", causal="top-left", kv_heads=1)
    subject, inputs = Subject(implementation), Judge().inputs(problem)
    prepared = subject.prepare(inputs, subject.route(problem))
    framework, arrays = implementation.framework, prepared.unbound.args[:3]
    with prepared.around() if prepared.around else nullcontext():  # as the harness calls it

        def attend(*arrays):
            return prepared.unbound.func(*arrays, **prepared.unbound.keywords)

        direction = np.random.default_rng(0).standard_normal(prepared.run().shape)
        output, gradients = framework.gradients(attend)(arrays, framework.from_numpy(direction, "cpu"))
        assert np.array_equal(framework.to_numpy(output), framework.to_numpy(prepared.run()))
        steps = [np.random.default_rng(number).standard_normal(array.shape) for number, array in enumerate(arrays)]

        def along(size):
            moved = (framework.to_numpy(array) + size * step for array, step in zip(arrays, steps, strict=True))
            return (framework.to_numpy(attend(*(framework.from_numpy(array, "cpu") for array in moved))) * direction).sum()

        slope = sum((framework.to_numpy(g) * step).sum() for g, step in zip(gradients, steps, strict=True))
        assert (along(1e-6) - along(-1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-5)


# Clocks


def test_the_host_clock_takes_off_no_more_than_was_waited_and_never_the_work_itself(monkeypatch):
    readings = iter([0.0, 0.3, 1.0, 6.0, 7.0, 7.0])  # waited before and after three calls
    wall, used = itertools.count(0.0, 1.0), itertools.cycle([0.0, 0.4])  # each call takes 1 s, 0.4 s of them at work
    monkeypatch.setattr("conformance.timing.waiting.Waiting.seconds", lambda self: next(readings))
    monkeypatch.setattr("conformance.timing.clock.time.perf_counter", lambda: next(wall))
    monkeypatch.setattr("conformance.timing.clock.time.process_time", lambda: next(used))
    clock = HostClock(alone=True)
    assert [clock.seconds(lambda: "result") for _ in range(3)] == [(0.7, "result"), (0.4, "result"), (1.0, "result")]
    assert (clock.wall, clock.lost) == (3.0, pytest.approx(0.9))
    clock.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of resident memory can be reset on Linux")
def test_the_peak_counts_memory_that_is_gone_when_the_call_returns():
    def holds(count):
        def call():
            np.ones(count << 20, np.uint8)

        return HostClock(alone=False).peak_bytes(call)

    assert (holds(64) - holds(16)) / 2**20 == pytest.approx(48, abs=2)


def test_cuda_times_are_those_of_events_with_the_cache_overwritten_before_each():
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")

        def elapsed_time(self, end):
            return 2.5  # milliseconds

    class Buffer:
        def zero_(self):
            log.append("overwritten")

    class Cuda:
        max_memory_allocated, memory_allocated = staticmethod(lambda: 900), staticmethod(lambda: 200)
        synchronize = staticmethod(lambda: log.append("waited"))
        reset_peak_memory_stats = staticmethod(lambda: log.append("reset"))

    Cuda.Event = Event

    class Torch:
        cuda, int8 = Cuda, "int8"
        empty = staticmethod(lambda *size, **settings: Buffer())

    clock = CudaClock(Torch)
    assert clock.seconds(lambda: log.append("called") or "result") == (0.0025, "result")
    assert log == ["overwritten", "event", "called", "event", "waited"]
    log.clear()
    assert clock.peak_bytes(lambda: log.append("called")) == 700
    assert log == ["waited", "reset", "called", "waited"]

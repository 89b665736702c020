"""Benchmarks: the arithmetic of ratios and growth, contests by a clock that says what it is told, and what a death costs.

No test looks at how long anything takes: where times matter, a framework with a clock of its own gives them.
"""

import itertools
import math
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from conformance import registry, reports
from conformance.adapter import Implementation, Support
from conformance.errors import UsageError
from conformance.exit_codes import ExitCode
from conformance.expectations import no_expectations
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.problem import parse
from conformance.records import Growth, SelfComparison, Timing, read_records
from conformance.timing import SUITES, shapes
from conformance.timing.bench import report, verdict
from conformance.timing.campaign import Plan, hold
from conformance.timing.clock import HostClock
from conformance.timing.contest import Effort, Shape, contest
from conformance.timing.growth import growths
from conformance.timing.rates import SIZES, Rates
from conformance.timing.statistics import exponent, median_interval, paired_ratio
from conformance.timing.worker import Died, Roster, Task, Worker
from conformance.verdict import Outcome
from implementations.pytorch import CudaClock
from tests import hostile
from tests.fakes import honest, named
from tests.support import runs
from tests.support.clocks import Clocked
from tests.support.commands import invoke

TINY = parse("attention batch=1 heads=2 length=6 width=4 dtype=float32 values=spread.1#0")
SHAPE = Shape("gqa", "tiny", TINY)
BRIEF = Effort(least=4, most=9, seconds=1e9, precision=0.01)


# Arithmetic


def test_the_interval_of_a_median_is_that_of_its_order_statistics():
    low, high = median_interval(range(1, 102))
    # of 101 values, the 41st and the 61st enclose the median with 95 % by the binomial distribution
    assert low == pytest.approx(41, abs=1.5)
    assert high == pytest.approx(61, abs=1.5)
    assert median_interval([2.0] * 7) == (2.0, 2.0)


def test_a_ratio_is_paired_so_that_drift_of_the_machine_cancels():
    slower_and_slower = {number: 1.0 + number for number in range(20)}
    twice = {number: 2.0 * seconds for number, seconds in slower_and_slower.items() if number != 7}
    ratio = paired_ratio(twice, slower_and_slower)
    assert (ratio.value, ratio.low, ratio.high) == (2.0, 2.0, 2.0)
    assert paired_ratio({1: 1.0}, {2: 1.0}) is None


def test_the_exponent_of_a_power_law_is_found():
    lengths = (128, 256, 512, 1024)
    assert exponent(lengths, [3e-9 * n**2 for n in lengths]) == pytest.approx(2.0)
    assert exponent(lengths, [7.0 * n for n in lengths]) == pytest.approx(1.0)
    assert exponent(lengths, [None, 5.0, 10.0, 20.0]) == pytest.approx(1.0)
    assert exponent(lengths, [None, None, 10.0, 20.0]) is None
    assert exponent(lengths, [0.0, 5.0, 5.0, 5.0]) == pytest.approx(0.0)


# Contests by a clock that is told what to say


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


def contender(name, times, function=honest, kind=Clocked, **settings):
    return Implementation(name, function, Support(), kind(Told(times, **settings)))


def held(*implementations, baseline="base", shape=SHAPE, **settings):
    subjects = [Subject(implementation) for implementation in implementations]
    settings = {"judge": Judge(), "rates": Rates(), "seed": 1, "effort": BRIEF, **settings}
    return contest(shape, subjects, baseline, **settings)


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
        return honest(query, key, value)

    held(contender("base", [1.0], keeps))
    places = {query.__array_interface__["data"][0] for query in seen}
    assert len(places) >= 2 * BRIEF.least


def test_forward_and_backward_has_its_own_operations_bytes_and_memory():
    shape = Shape("gqa", "tiny", TINY, "forward+backward")
    base, numpy = held(contender("base", [1.0], kind=Differentiating), contender("numpy", [1.0]), shape=shape, memory=True)
    assert (base.outcome, base.passes, base.ratio, base.peak_bytes) == (Outcome.PASS, "forward+backward", 1.0, 1000)
    assert base.flops == round(3.5 * 2 * 36 * 16)
    assert (numpy.outcome, numpy.message) == (Outcome.UNSUPPORTED, "gradients in numpy")


def test_the_output_of_forward_and_backward_is_judged():
    def unscaled(query, key, value):
        return honest(query, key, value, scale=1.0)

    (timing,) = held(contender("base", [1.0], unscaled, Differentiating), shape=Shape("gqa", "tiny", TINY, "forward+backward"))
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


# A run against itself


def compared(ratio=1.0, low=0.99, high=1.01):
    return SelfComparison(
        implementation="fine", operation="attention", suite="gqa", shape="tiny", dtype="float32", ratio=ratio, ratio_low=low,
        ratio_high=high, tolerance=0.03,
    )  # fmt: skip


def test_the_baseline_against_itself_comes_first():
    comparison, *timings = held(contender("base", [1.0]), contender("slow", [2.0]), twin=True)
    assert isinstance(comparison, SelfComparison)
    assert (comparison.implementation, comparison.ratio, comparison.is_sound) == ("base", 1.0, True)
    assert [timing.implementation for timing in timings] == ["base", "slow"]


@pytest.mark.parametrize(
    "broken", [{"ratio": 1.031, "high": 1.04}, {"ratio": 0.96, "low": 0.95}, {"low": 1.001}, {"high": 0.999}]
)
def test_a_run_that_differs_from_itself_is_inconclusive_and_says_so(tmp_path, broken):
    timing = runs.timing()
    for comparison, code, words in (
        (compared(), ExitCode.AS_EXPECTED, "can be trusted"),
        (compared(**broken), ExitCode.INCONCLUSIVE, "not to be trusted"),
    ):
        assert verdict([comparison, timing], interrupted=False) is code
        assert words in report(runs.run(tmp_path, runs.header(), comparison, timing))


def test_a_comparison_that_fails_is_held_once_more_alone_and_the_second_counts():
    asked = []

    class Unlucky:
        def run(self, task):
            asked.append(task)
            return [compared(**({"low": 1.001} if len(asked) == 1 else {})), runs.timing()]

    task = Task(SHAPE, ("fine", "other"), "fine", BRIEF, twin=True)
    lines = list(hold([task], Unlucky(), no_expectations()))
    assert [type(line) for line in lines] == [SelfComparison, Timing, SelfComparison]
    assert asked[1].names == ("fine",) and asked[1].effort.least > BRIEF.most
    assert verdict(lines, interrupted=False) is ExitCode.AS_EXPECTED


def test_exit_codes():
    known = runs.timing("theirs", outcome=Outcome.WRONG_VALUE, median_seconds=None, reason="no scale")
    wrong = runs.timing("mine", outcome=Outcome.WRONG_VALUE, median_seconds=None, status="unexpected")
    grown = Growth(implementation="mine", operation="attention", dtype="float32", outcome=Outcome.WRONG_VALUE, lengths=(),
                   status="unexpected")  # fmt: skip
    assert verdict([runs.timing(), known], interrupted=False) is ExitCode.AS_EXPECTED
    assert verdict([runs.timing(), wrong], interrupted=False) is ExitCode.UNEXPECTED
    assert verdict([runs.timing(), grown], interrupted=False) is ExitCode.UNEXPECTED
    assert verdict([known], interrupted=False) is ExitCode.INCONCLUSIVE
    assert verdict([runs.timing()], interrupted=True) is ExitCode.INCONCLUSIVE


# What is measured


def plan(**changes):
    known = {name: contender(name, [1.0]) for name in ("numpy-direct", "mine")}
    settings = {"implementations": [known["mine"]], "known": known, "suites": shapes.suites(("gqa",)), "growth": False}
    return Plan(**{**settings, **changes})


def test_a_baseline_takes_part_in_every_contest_and_first_of_all_against_itself():
    tasks = plan().tasks()
    assert [task.shape.name for task in tasks] == list(SUITES["gqa"].shapes["attention"])
    assert all(set(task.names) == {"mine", "numpy-direct"} and task.baseline == "numpy-direct" for task in tasks)
    assert [task.twin for task in tasks] == [True, False, False]
    assert [i.name for i in plan().taking_part()] == ["mine", "numpy-direct"]
    assert {task.baseline for task in plan(baseline="mine").tasks()} == {"mine"}


def test_axes_of_dtype_feature_and_passes_multiply():
    two = plan(dtypes=("float32", "bfloat16"), features=("plain", "mask"))
    names = [(task.shape.name, task.shape.problem.dtype) for task in two.tasks()]
    assert len(set(names)) == 3 * 2 * 2
    masked = [task.shape.problem for task in two.tasks() if task.shape.name.endswith("+mask")]
    assert all(problem.mask is not None and problem.causal == "none" for problem in masked)
    (decoding, *_) = plan(suites=shapes.suites(("decode",)), features=("causal",)).tasks()
    assert decoding.shape.problem.causal == "bottom-right"


def test_backward_passes_are_for_those_that_have_gradients_and_suites_that_train():
    able = contender("able", [1.0], kind=Differentiating)
    both = plan(implementations=[able, contender("mine", [1.0])], suites=shapes.suites(("gqa", "decode")), baseline=None,
                known={"numpy-direct": able, "torch-direct": able}, passes=("forward", "forward+backward"))  # fmt: skip
    backward = [task for task in both.tasks() if task.shape.passes == "forward+backward"]
    assert {task.shape.suite for task in backward} == {"gqa"}
    assert {task.names for task in backward} == {("able", "torch-direct")}


def test_every_suite_says_what_it_varies_and_after_whom():
    listing = invoke("bench", "--list").stdout
    for name, suite in SUITES.items():
        assert f"{name}: {suite.meaning}" in listing and suite.source in listing
    assert {"cpu-small", "prefill", "decode", "gqa", "long", "paper"} == set(SUITES)


# What a death costs


class Scripted:
    """A worker that dies at the implementations it is told to."""

    def __init__(self, deadly):
        self.deadly = deadly

    def run(self, task):
        for name in task.names:
            if name in self.deadly:
                raise Died(name, Outcome.CRASH, f"It ended the process at {task.shape}.")
        return [runs.timing(name, task.shape.name, suite=task.shape.suite) for name in task.names]


def test_a_dead_contender_costs_its_own_rows_alone():
    tasks = [Task(Shape("gqa", name, TINY), ("a", "deadly", "b"), "a", BRIEF) for name in ("one", "two")]
    rows = {(line.shape, line.implementation): line for line in hold(tasks, Scripted({"deadly"}), no_expectations())}
    assert [rows[shape, name].outcome for shape in ("one", "two") for name in ("a", "b")] == [Outcome.PASS] * 4
    assert rows["one", "deadly"].outcome is Outcome.CRASH
    assert rows["two", "deadly"].outcome is Outcome.SKIPPED
    assert "ended the process at gqa one" in rows["two", "deadly"].message


def test_what_was_measured_before_the_stop_is_kept():
    tasks = [Task(Shape("gqa", name, TINY), ("a",), "a", BRIEF) for name in ("one", "two", "three")]
    done = []
    lines = list(hold(tasks, Scripted(set()), no_expectations(), stopped=lambda: len(done) == 2, progress=done.append))
    assert [line.shape for line in lines] == ["one", "two"]


def test_rungs_of_a_ladder_become_growth():
    rungs = [
        runs.timing("fine", f"L{n}", suite="growth", median_seconds=1e-9 * n**2, peak_bytes=4 * n**2) for n in (512, 1024, 2048)
    ]
    failed = runs.timing("flawed", "L512", suite="growth", median_seconds=None, outcome=Outcome.CRASH, message="gone")
    fine, flawed = growths([*rungs, failed])
    assert fine.time_exponent == pytest.approx(2.0) and fine.memory_exponent == pytest.approx(2.0)
    assert (fine.lengths, fine.outcome) == ((512, 1024, 2048), Outcome.PASS)
    assert isinstance(flawed, Growth) and (flawed.outcome, flawed.lengths, flawed.message) == (Outcome.CRASH, (), "L512: gone")


def test_implementations_that_end_or_hang_their_process_leave_the_others_their_rows():
    ending, sleeping = (f"{hostile.FILE}:{function}" for function in ("ending_when_timed", "sleeping_when_timed"))
    fine = named("honest")
    task = Task(SHAPE, (fine, ending, "numpy-direct", sleeping), "numpy-direct", BRIEF)
    with Worker(Roster((ending, sleeping, fine)), threads=1, seed=1, time_limit=20.0) as worker:
        rows = {line.implementation: line for line in hold([task], worker, no_expectations())}
    assert (rows[ending].outcome, rows[sleeping].outcome) == (Outcome.CRASH, Outcome.TIMEOUT)
    assert rows[ending].median_seconds is rows[sleeping].median_seconds is None
    assert rows[fine].outcome is rows["numpy-direct"].outcome is Outcome.PASS
    assert rows[fine].ratio > 0 and math.isfinite(rows[fine].r)


# The command


@pytest.fixture
def tiny_suite(monkeypatch):
    monkeypatch.setitem(SUITES, "gqa", shapes.Suite("tiny", "none", {"attention": {"tiny": TINY}}))
    monkeypatch.setattr("conformance.timing.campaign.LADDER", (8, 16, 32))


def test_bench_records_and_shows_what_it_measured(tiny_suite, tmp_path):
    records = tmp_path / "records.jsonl"
    words = ["bench", "--implementation", named("honest"), "--suite", "gqa", "--records", str(records), "--details"]
    result = invoke(*words)
    assert result.exit_code in (ExitCode.AS_EXPECTED, ExitCode.INCONCLUSIVE), result.output  # whether noise spoiled it
    run = read_records(records)
    assert run.exit_code == result.exit_code
    assert {timing.implementation for timing in run.timings} == {named("honest"), "numpy-direct"}
    assert all(isinstance(timing, Timing) and timing.outcome is Outcome.PASS for timing in run.timings)
    assert [growth.lengths for growth in run.growths] == [(8, 16, 32)]
    assert {comparison.implementation for comparison in run.self_comparisons} == {"numpy-direct"}  # twice, if noise spoiled one
    for word in ("Timings: attention in float32, gqa", "Growth with the length", "A run against itself", "1 thread"):
        assert word in result.stdout
    assert "trusted" in result.stdout
    assert "suite" in reports.timings_csv(run).splitlines()[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--suite", "huge"], "cpu-small"),
        (["--dtype", "float8"], "float16"),
        (["--feature", "dropout"], "causal"),
        (["--baseline", "cublas"], "--implementation"),
        (["--time-limit", "nan"], "from 1 to"),
        (["--implementation", "torch-cuda-*"], "CUDA"),
        (["--suite", "decode", "--passes", "forward+backward", "--no-growth"], "nothing to measure"),
        (["--seed", str(2**64)], "is not in the range"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(words, told):
    if "torch-cuda-*" in words and registry.builtin()["torch-cuda-direct"].missing() is None:
        pytest.skip("there is a CUDA device")
    result = invoke("bench", *words)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert told in result.output and len(result.output.strip().splitlines()) == 1


def test_usage_errors_of_suites_and_features():
    with pytest.raises(UsageError, match="cpu-small"):
        shapes.suites(("huge",))
    with pytest.raises(UsageError, match="causal"):
        shapes.with_feature("tiny", TINY, "dropout")

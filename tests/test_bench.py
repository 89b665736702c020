"""Benchmarks: the arithmetic of ratios and growth, what is measured, what a death costs, and the command.

No test looks at how long anything takes: where times matter, a framework with a clock of its own gives them.
"""

import math
import os

import pytest

from conformance import reports
from conformance.adapter import registry
from conformance.adapter.known import known
from conformance.errors import UsageError
from conformance.expectations import no_expectations
from conformance.judging.verdict import Outcome
from conformance.records import Growth, SelfComparison, Timing, read_records
from conformance.system.exit_codes import ExitCode
from conformance.timing import SUITES, shapes
from conformance.timing.bench import report, verdict
from conformance.timing.campaign import Plan, hold
from conformance.timing.contest import TimedProblem
from conformance.timing.growth import growths
from conformance.timing.statistics import exponent, median_interval, paired_ratio
from conformance.timing.worker import ContestTask, Died, Roster, Worker
from tests import hostile
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke
from tests.support.contests import BRIEF, SHAPE, TINY, Differentiating, contender, held

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


def test_the_exponent_of_a_power_distribution_is_found():
    lengths = (128, 256, 512, 1024)
    assert exponent(lengths, [3e-9 * n**2 for n in lengths]) == pytest.approx(2.0)
    assert exponent(lengths, [7.0 * n for n in lengths]) == pytest.approx(1.0)
    assert exponent(lengths, [None, 5.0, 10.0, 20.0]) == pytest.approx(1.0)
    assert exponent(lengths, [None, None, 10.0, 20.0]) is None
    assert exponent(lengths, [0.0, 5.0, 5.0, 5.0]) == pytest.approx(0.0)


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

    task = ContestTask(SHAPE, ("fine", "other"), "fine", BRIEF, twin=True)
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
    names = {name: known(contender(name, [1.0])) for name in ("numpy-direct", "mine")}
    settings = {"implementations": [names["mine"]], "known": names, "suites": shapes.suites(("gqa",)), "growth": False}
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
    able = known(contender("able", [1.0], kind=Differentiating))
    both = plan(implementations=[able, known(contender("mine", [1.0]))], suites=shapes.suites(("gqa", "decode")), baseline=None,
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

SLEEPING = """
import os, time
from pathlib import Path
from tests.fakes import correct

calls = []

def attention(query, key, value):
    calls.append(1)
    if len(calls) == 5:  # judged before the timing, it is right
        Path(__file__).with_name("asleep").write_text(str(os.getpid()))
        time.sleep(10_000)
    return correct(query, key, value)
"""


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
    tasks = [ContestTask(TimedProblem("gqa", name, TINY), ("a", "deadly", "b"), "a", BRIEF) for name in ("one", "two")]
    rows = {(line.shape, line.implementation): line for line in hold(tasks, Scripted({"deadly"}), no_expectations())}
    assert [rows[shape, name].outcome for shape in ("one", "two") for name in ("a", "b")] == [Outcome.PASS] * 4
    assert rows["one", "deadly"].outcome is Outcome.CRASH
    assert rows["two", "deadly"].outcome is Outcome.SKIPPED
    assert "ended the process at gqa one" in rows["two", "deadly"].message


def test_what_was_measured_before_the_stop_is_kept():
    tasks = [ContestTask(TimedProblem("gqa", name, TINY), ("a",), "a", BRIEF) for name in ("one", "two", "three")]
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


class WhileAsleep:
    """Time that stands still but while the process lives whose id is in the file: then, 15 s go by from one look to the next, so
    that of a limit of 20 s there is time to hear what was said before."""

    def __init__(self, file):
        self.file, self.now = file, 0.0

    def monotonic(self):
        if self.file.exists() and _lives(int(self.file.read_text() or 0)):
            self.now += 15.0
        return self.now


def _lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return process > 0


def test_implementations_that_end_or_hang_their_process_leave_the_others_their_rows(tmp_path, monkeypatch):
    file = tmp_path / "sleeping.py"
    file.write_text(SLEEPING)
    monkeypatch.setattr("conformance.system.children.process.time", WhileAsleep(tmp_path / "asleep"))
    ending, sleeping, fine = f"{hostile.FILE}:ending_when_timed", f"{file}:attention", named("correct")
    task = ContestTask(SHAPE, (fine, ending, "numpy-direct", sleeping), "numpy-direct", BRIEF)
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
    words = ["bench", "--implementation", named("correct"), "--suite", "gqa", "--records", str(records), "--details"]
    result = invoke(*words)
    assert result.exit_code in (ExitCode.AS_EXPECTED, ExitCode.INCONCLUSIVE), result.output  # whether noise spoiled it
    run = read_records(records)
    assert run.exit_code == result.exit_code
    assert {timing.implementation for timing in run.timings} == {named("correct"), "numpy-direct"}
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

"""Timing: what is counted, who gets a time, and what the suite says of its own cost. No test looks at how long anything takes."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.loading import known_of
from conformance.expectations import no_expectations
from conformance.harness.subject import Subject
from conformance.judging import judge as judging
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.operations import operations
from conformance.problem import parse
from conformance.records import Timing, decode, encode
from conformance.timing import SUITES, TIMED, Roster, cost_table, measure
from conformance.timing.contest import TimedProblem, contest
from conformance.timing.cost import harness_cost, profile
from conformance.timing.flops import bytes_of, flops, flops_of
from conformance.timing.rates import Rates
from conformance.values import materialise
from tests import hostile
from tests.support.clocks import Clocked
from tests.support.contests import contender, held

BASELINES = {name: one.baselines["forward", "cpu"][0] for name, one in operations().items()}
BASELINE = BASELINES["attention"]
TINY = parse("attention batch=2 heads=4/2 length=9 width=8 dtype=float32 values=spread.1#0 causal=top-left")


def named(name, function, **support):
    return Implementation(name, function, Support(**support), registry.builtin()[BASELINE].framework)


def right(query, key, value, *, causal=False):
    return registry.builtin()[BASELINE].function(query, key, value, causal=causal)


def timings_of(*implementations):
    """Timings of one contest in this process, the baseline's among them."""
    taking_part = {i.name: i for i in (*implementations, registry.builtin()[BASELINE])}
    lines = contest(
        TimedProblem("cpu-small", "tiny", TINY),
        [Subject(i) for i in taking_part.values()],
        BASELINE,
        judge=Judge(),
        rates=Rates(),
        seed=5,
    )
    return {timing.implementation: timing for timing in lines if isinstance(timing, Timing)}


# Floating-point operations


@pytest.mark.parametrize(
    "text",
    [
        "attention batch=2 heads=3 length=5/7 width=4/6 dtype=float32 values=gaussian.1#1",
        "attention batch=2 heads=4/2 length=5/7 width=4 dtype=float32 values=gaussian.1#1 causal=top-left",
        "attention batch=2 heads=2 length=5/7 width=4 dtype=float32 values=gaussian.1#1 causal=bottom-right lengths=3,7",
        "attention batch=2 heads=2 length=7/5 width=3 dtype=float64 values=gaussian.1#1 mask=random.1:b1qk#4 causal=bottom-right",
        "attention batch=1 heads=2 length=6 width=3 dtype=float32 values=flat.1#1 mask=right-padding.1:1hqk#2 bias=holes.1:qk#3",
    ],
)
def test_flops_are_those_of_pairs_counted_one_by_one(text):
    problem = parse(text)
    inputs = materialise(problem)
    masks = [np.broadcast_to(True if inputs.mask is None else inputs.mask, _pairs(problem)).copy()]
    if inputs.bias is not None:
        masks.append(np.broadcast_to(inputs.bias > -np.inf, _pairs(problem)))
    shift = problem.key_length - problem.query_length if problem.causal == "bottom-right" else 0
    lengths = problem.key_lengths or (problem.key_length,) * problem.batch
    counted = 0
    for b, h, i, j in itertools.product(*map(range, _pairs(problem))):
        early_enough = problem.causal == "none" or j <= i + shift
        counted += early_enough and j < lengths[b] and all(mask[b, h, i, j] for mask in masks)
    assert counted > 0
    assert flops(inputs) == counted * 2 * (problem.width + problem.value_width)


def _pairs(problem):
    return problem.batch, problem.heads, problem.query_length, problem.key_length


def test_flops_of_square_causal_attention():
    inputs = materialise(parse("attention batch=3 heads=2 length=10 width=4 dtype=float32 values=gaussian.1#1 causal=top-left"))
    assert flops(inputs) == 3 * 2 * (10 * 11 // 2) * 4 * 4


def test_flops_of_multi_head_attention_add_those_of_the_projections():
    text = "multi_head_attention batch=2 heads=3 length=5/7 model=10 inner=12/18 dtype=float32 values=gaussian.1#1 source=cross"
    queries, keys = 2 * 5, 2 * 7
    attention = 2 * 3 * 5 * 7 * 2 * (4 + 6)
    into = 2 * (queries * 10 * 12 + keys * 10 * 12 + keys * 10 * 18)
    assert flops(materialise(parse(f"{text} projection=bias output=none"))) == into + attention
    assert flops(materialise(parse(f"{text} projection=bias output=bias"))) == into + attention + 2 * queries * 18 * 10


def test_both_passes_need_three_and_a_half_times_the_operations_and_twice_the_bytes():
    problem = parse("attention batch=1 heads=2/1 length=4 width=8 dtype=float32 values=gaussian.1#1 mask=random.1:qk#1")
    inputs = materialise(problem)
    visible = int(inputs.mask.sum()) * 2
    assert flops_of(inputs, "forward") == visible * 2 * 16
    assert flops_of(inputs, "forward+backward") == visible * 7 * 16
    query, key = 4 * 2 * 4 * 8, 4 * 4 * 8
    assert bytes_of(inputs, inputs.query, "forward") == 2 * query + 2 * key + 16
    assert bytes_of(inputs, inputs.query, "forward+backward") == 2 * (2 * query + 2 * key) + 16


def test_bytes_of_self_attention_count_its_one_input_once():
    text = "multi_head_attention batch=1 heads=1 length=3 model=4 inner=4 dtype=float32 values=gaussian.1#1"
    inputs = materialise(parse(f"{text} source=self projection=plain output=none"))
    assert bytes_of(inputs, inputs.query, "forward") == 4 * (3 * 4 + 3 * 16 + 3 * 4)


def test_a_table_of_positions_has_no_matrix_product():
    assert flops(materialise(parse("sinusoidal_encoding length=8 width=6 dtype=float32 arrangement=interleaved"))) == 0


# Who gets a time


def test_what_passes_has_times_a_ratio_and_its_r():
    timings = timings_of(named("mine", right), registry.builtin()[BASELINE])
    for timing in timings.values():
        assert timing.outcome is Outcome.PASS
        assert (timing.operation, timing.shape, timing.dtype, timing.baseline) == ("attention", "tiny", "float32", BASELINE)
        assert timing.suite == "cpu-small" and timing.passes == "forward" and timing.device == "cpu"
        assert timing.calls >= 6
        assert 0 < timing.low_quartile_seconds <= timing.median_seconds <= timing.high_quartile_seconds
        assert timing.flops == 2 * 4 * (9 * 10 // 2) * 2 * (8 + 8)
        assert timing.percent_of_matmul > 0
        assert 0 < timing.r <= 1
        assert timing.ratio_low <= timing.ratio <= timing.ratio_high
        assert timing.first_seconds > 0
        assert timing.bytes == 4 * (2 * 2 * 4 * 9 * 8 + 2 * 2 * 2 * 9 * 8)
        assert "threads" in timing.message
        assert decode(encode(timing)) == timing
    assert timings[BASELINE].ratio == 1.0
    assert timings["mine"].ratio > 0


def test_the_baseline_is_measured_but_not_recorded_unless_asked_for():
    lines = list(measure(known_of(["torch-sinusoidal"], {}), Roster(), no_expectations(), seed=5))
    assert {line.implementation for line in lines} == {"torch-sinusoidal"}
    assert {line.shape for line in lines} == set(TIMED["sinusoidal_encoding"])
    assert all(line.ratio is not None for line in lines)


def test_one_that_ends_the_process_costs_its_own_row():
    spec = f"{hostile.FILE}:dying_of_length"
    lines = list(measure(known_of([spec, "numpy-direct"], {}), Roster((spec,)), no_expectations(), seed=5))
    timings = {(line.implementation, line.shape): line for line in lines if isinstance(line, Timing)}
    assert timings[spec, "prefill"].outcome is Outcome.CRASH
    assert "It ended the process" in timings[spec, "prefill"].message
    assert all(timings["numpy-direct", shape].outcome is Outcome.PASS for shape in TIMED["attention"])


class Hands:
    """A clock that goes on by a second in each call, and by what else is added to ``now``."""

    def __init__(self):
        self.now = 0.0

    def seconds(self, call):
        start = self.now
        result = call()
        self.now += 1.0
        return self.now - start, result

    def peak_bytes(self, call):
        return None


def test_what_no_machine_computes_was_not_computed_in_the_call():
    (timing,) = held(contender("cached", [1e-12], rates=(1e6,)), baseline=None)
    assert timing.outcome is Outcome.WRONG_VALUE
    assert "kept from an earlier call" in timing.message
    assert timing.median_seconds is timing.percent_of_matmul is None


def test_compilation_is_no_part_of_the_times(monkeypatch):
    clock, compiles = Hands(), [400.0]
    monkeypatch.setattr(judging, "time", SimpleNamespace(perf_counter=lambda: clock.now))  # the first calls are for the judge

    def compiled(query, key, value):
        clock.now += compiles.pop() if compiles else 0.0
        return right(query, key, value)

    (timing,) = held(Implementation("compiled", compiled, Support(compiles=True), Clocked(clock)), baseline=None)
    assert timing.outcome is Outcome.PASS
    assert "compiles" in timing.message
    assert timing.first_seconds == 400.0
    assert timing.low_quartile_seconds == timing.high_quartile_seconds == 1.0


def unscaled(query, key, value, *, causal=False):
    return registry.builtin()[BASELINE].function(query, key, value, causal=causal, scale=1.0)


def answers_the_first_question_again():
    kept = []

    def remembers(query, key, value, *, causal=False):
        if not kept:
            kept.append(right(query, key, value, causal=causal))
        return kept[0]

    return remembers


def right_for(calls):
    asked = itertools.count()

    def tires(query, key, value, *, causal=False):
        output = right(query, key, value, causal=causal)
        return output if next(asked) < calls else np.zeros_like(output)

    return tires


def knows_two_answers():
    kept = {}

    def remembers(query, key, value, *, causal=False):
        if len(kept) < 2:
            kept[query.tobytes()] = right(query, key, value, causal=causal)
        return kept.get(query.tobytes(), next(iter(kept.values())))

    return remembers


def raises_after(calls):
    asked = itertools.count()

    def breaks(query, key, value, *, causal=False):
        if next(asked) >= calls:
            raise RuntimeError("worn out")
        return right(query, key, value, causal=causal)

    return breaks


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (unscaled, Outcome.WRONG_VALUE),
        (answers_the_first_question_again(), Outcome.WRONG_VALUE),  # shows on the second inputs
        (right_for(calls=2), Outcome.WRONG_VALUE),  # shows in what was timed
        (knows_two_answers(), Outcome.WRONG_VALUE),  # shows on fresh inputs
        (raises_after(calls=0), Outcome.ERROR),
        (raises_after(calls=9), Outcome.ERROR),
        (lambda query, key, value, *, causal=False: value.astype(np.float64), Outcome.WRONG_SHAPE),
        (lambda query, key, value: value, Outcome.UNSUPPORTED),
    ],
)
def test_what_does_not_pass_has_no_times_and_does_not_stop_the_others(function, outcome):
    timings = timings_of(named("wrong", function), named("mine", right))
    wrong = timings["wrong"]
    assert wrong.outcome is outcome
    assert wrong.message
    assert wrong.calls == 0
    times = (wrong.median_seconds, wrong.low_quartile_seconds, wrong.high_quartile_seconds, wrong.ratio, wrong.ratio_low)
    assert times == (None,) * 5
    assert (wrong.percent_of_matmul, wrong.first_seconds, wrong.peak_bytes) == (None,) * 3
    assert timings["mine"].outcome is Outcome.PASS


def test_what_cannot_run_here_is_skipped_with_the_reason():
    timing = timings_of(named("elsewhere", right, device="cuda"))["elsewhere"]
    assert timing.outcome is Outcome.SKIPPED
    assert "cuda" in timing.message
    assert timing.median_seconds is None


def test_every_operation_has_a_baseline_on_board():
    assert SUITES["cpu-small"].shapes.keys() == BASELINES.keys()
    assert all(registry.builtin()[name].operation == operation for operation, name in BASELINES.items())


# The suite's own cost


def test_harness_cost_runs_real_items():
    cost = harness_cost(seed=3, problems=300)
    assert cost.problems >= 300
    assert 0 < cost.inside < cost.seconds
    assert cost.milliseconds == pytest.approx(1e3 * (cost.seconds - cost.inside) / cost.problems)
    assert min(cost.per_item) <= cost.median_milliseconds <= max(cost.per_item)
    assert f"{cost.problems:,} problems" in cost_table(cost)


def test_profile_names_functions_of_the_harness():
    assert "score_error" in profile(seed=3, entries=2000, problems=200)  # all functions, in whatever order

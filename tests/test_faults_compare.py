"""Other suites' rules beside the error budget: what they let through, and what they reject that is right."""

import numpy as np
import pytest

from conformance.evaluation import compare, plain, rules
from conformance.faults import catalogue
from conformance.faults.fault import Fault
from conformance.numerics.dtypes import round_to
from conformance.oracle import expect
from conformance.problem import parse
from conformance.values import materialise

BUDGET = "error budget (this suite)"
ZEROS = Fault(
    id="zeros", sentence="gives zeros", requirements=("ATT-OUT-004",), sources=(), compute=lambda i: np.zeros_like(i.query)
)
HARMLESS = Fault(id="harmless", sentence="does nothing", requirements=("ATT-OUT-004",), sources=(), rewrite=lambda inputs: inputs)


def truth_of(text, profile="strict", amplitude=None):
    problem = parse(text)
    inputs = materialise(problem) if amplitude is None else plain.inputs_of(problem, amplitude)
    return inputs, rules.reference(inputs, expect(inputs, profile))


MULTI_HEAD = "multi_head_attention batch=2 heads=2 length=5/5 model=8 inner=8/8 dtype=bfloat16 values=gaussian.1#1"
SQUARE = "attention batch=2 heads=3/3 length=13/13 width=8/8 dtype={} values=gaussian.1#1"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_rule_accepts_the_truth(dtype):
    _, truth = truth_of(SQUARE.format(dtype))
    output = round_to(truth.expected.output, dtype)
    assert all(rules.accepts(name, output, truth) for name in rules.applicable(truth))


def test_rules_that_compare_with_low_precision_apply_in_16_bits_only():
    applied = {dtype: set(rules.applicable(truth_of(SQUARE.format(dtype))[1])) for dtype in ("float32", "bfloat16")}
    assert applied["bfloat16"] == set(rules.RULES)
    assert len(applied["float32"]) == len(rules.RULES) - 2


def test_no_rule_accepts_another_shape_or_dtype():
    _, truth = truth_of(SQUARE.format("float32"))
    output = round_to(truth.expected.output, "float32")
    for wrong in (output[..., :-1], output.astype(np.float64)):
        assert not any(rules.accepts(name, wrong, truth) for name in rules.RULES if name in rules.applicable(truth))


def test_zeros_pass_for_small_inputs_where_the_budget_rejects_them():
    _, truth = truth_of(SQUARE.format("float32"), amplitude=0.001)
    zeros = np.zeros(truth.expected.shape, np.float32)
    assert rules.accepts("rtol 1e-2, atol 1e-2 (KernelBench, BackendBench)", zeros, truth)
    assert not rules.accepts(BUDGET, zeros, truth)


def test_the_low_precision_reference_is_near_and_not_exact():
    for text in (SQUARE.format("bfloat16"), MULTI_HEAD):
        inputs = materialise(parse(text))
        expected = expect(inputs, "unfused")
        ratio = np.abs(rules.unfused(inputs).astype(np.float64) - expected.output) / expected.budget
        assert 0.02 < ratio.max() <= 1.0


def test_plain_inputs_have_the_amplitude_that_is_asked_for():
    for problem in plain.problems("attention", "float32"):
        inputs = plain.inputs_of(problem, 0.1)
        for array in (inputs.query, inputs.key, inputs.value):
            assert 0.09 < array.std() < 0.11 and abs(array.mean()) < 0.01
    features = frozenset().union(*(problem.features for problem in plain.problems("attention", "float32")))
    assert features == {
        "mask", "bias", "causal", "key-lengths", "scale", "grouped-heads", "value-width", "cross-length",
    }  # fmt: skip


def test_a_fault_is_counted_once_per_set_of_problems_and_rule():
    found = compare.judge_fault(ZEROS, "float32")
    assert found.caught[BUDGET, compare.OURS, False] == [1, 1]
    assert found.caught[BUDGET, "0.1 · N(0, 1)", False] == [1, 1]
    assert {of for _, of in found.caught.values()} == {1}
    harmless = compare.judge_fault(HARMLESS, "float32")
    assert harmless.caught[BUDGET, compare.OURS, False] == [0, 1]


def test_faults_of_behaviour_equivalent_ones_and_those_of_rows_without_a_key_are_left_out():
    left = set(catalogue()) - {fault.id for fault in compare.comparable(catalogue().values())}
    empty = {fault.id for fault in catalogue().values() if set(fault.requirements) <= {"ATT-MASK-043", "ATT-HEAD-034"}}
    assert left == empty | {fault.id for fault in catalogue().values() if fault.behaviour is not None or fault.equivalent}
    assert "empty-row-gives-infinity" in left


def test_jobs_have_each_pair_and_each_correct_implementation_once():
    faults = [catalogue()["scale-missing"], catalogue()["sinusoid-not-added"]]
    jobs = compare.jobs_for(faults, ["numpy-direct", "numpy-sinusoidal"])
    assert sum(map(compare.size, jobs)) == 2 + sum(len(fault.dtypes) for fault in faults)
    pairs = {pair for job in jobs if not isinstance(job, str) for pair in job}
    assert pairs == {(fault.id, dtype) for fault in faults for dtype in fault.dtypes}


def test_correct_outputs_are_accepted_by_the_budget_and_not_by_all():
    rejected = compare.judge_correct("numpy-multi-head").rejected
    by_budget = [counts for (rule, _, _), counts in rejected.items() if rule == BUDGET]
    assert sum(of for _, of in by_budget) > 200 and sum(some for some, _ in by_budget) == 0
    assert any(some for (rule, _, _), (some, _) in rejected.items() if rule != BUDGET)


def test_the_table_has_a_row_for_each_rule_and_no_share_where_nothing_was_judged():
    table = compare.render(compare.judge_fault(ZEROS, "float32"))
    wide = table.partition("float32 and float64")[2]
    assert "the share of 1 pairs" in wide
    for rule in rules.RULES:
        row = next(line for line in wide.splitlines() if line.startswith(rule))
        assert (row.count("%") == 3) == ("low precision" not in rule)
        assert "–" in row  # nothing correct was judged

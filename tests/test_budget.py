"""The error budget: correct code that rounds where its profile says is within it, and each addition allows for what it names."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.checks.procedures import PROCEDURES
from conformance.errors import ProblemError, UsageError
from conformance.evaluation.correct_list import variants
from conformance.faults.functions import CONVENTIONS
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.numerics.profiles import DECLARABLE, PROFILES, roundoffs
from conformance.operations import operation_of
from conformance.oracle import budget, expect
from conformance.oracle.attention import sampled_rows
from conformance.problem import parse
from conformance.problem.inputs import MultiHeadInputs
from conformance.specification import requirements
from conformance.values import materialise

BIASED = (
    "attention batch=3 heads=3/3 length=8/2 width=8/8 dtype=float32 values=gaussian.1#432 bias=row-constant.1:bhqk*300.0#432",
    "attention batch=2 heads=3/3 length=7/13 width=8/8 dtype=float32 values=spread.1#7 bias=low.1:qk*-20000.0#7",
    "attention batch=2 heads=3/3 length=7/13 width=1/8 dtype=float64 values=gaussian.1#8 bias=row-constant.1:qk*300.0#8",
)


def judged(implementation, text, check="values"):
    subject = Subject(implementation)
    (judgement,) = PROCEDURES[check](Judge(), subject, parse(text))
    return judgement.verdict


def redeclared(implementation, **support):
    return replace(implementation, support=replace(implementation.support, **support))


@pytest.mark.parametrize("text", BIASED)
@pytest.mark.parametrize("name", ["correct-biased-powers-of-two", "correct-merged-by-lse"])
def test_a_large_bias_leaves_room_for_one_more_rounding_of_the_score(name, text):
    assert judged(variants()[name], text).outcome is Outcome.PASS


def test_weights_normalised_through_the_log_sum_exp_are_within_the_profile_that_says_so_and_told_where_it_is_not_declared():
    text = BIASED[0].replace("gaussian.1#432", "ones-value.1#432")
    declared = variants()["correct-normalised-by-lse"]
    assert judged(declared, text).outcome is Outcome.PASS
    found = judged(redeclared(declared, profile="strict"), text)
    assert found.outcome is Outcome.WRONG_VALUE
    assert "within the budget of strict+lse: everything in the dtype of the inputs" in found.message
    wrong = judged(_doubled(), text)
    assert wrong.outcome is Outcome.WRONG_VALUE and "+lse" not in wrong.message


def test_parts_moved_towards_each_other_lose_what_their_largest_values_lose_under_the_profile_that_says_so():
    text = "attention batch=2 heads=3 length=7/13 width=8 dtype=float32 values=spread.1#2 mask=left-padding.1:b11k#2"
    text += " edits=loud-value.1#2"
    declared = variants()["correct-moved-by-sigmoids"]
    assert 0.05 < judged(declared, text).r <= 1.0
    assert judged(redeclared(declared, profile="strict+lse"), text).r > 10.0
    assert "+merges" not in judged(_doubled(), text).message


def _doubled():
    return Implementation(
        "doubled",
        operation_of("attention").function(lambda inputs: 2 * expect(inputs, "strict").output.astype(inputs.query.dtype)),
        Support(dtypes=("float32",), profile="strict", conventions=CONVENTIONS),
        frameworks()["numpy"],
    )


def test_products_of_split_numbers_have_a_profile_between_strict_and_tf32():
    text = "attention batch=2 heads=3/3 length=7/13 width=2/8 dtype=float32 values=spread.1#3"
    split = variants()["correct-three-products"]
    assert judged(redeclared(split, profile="strict"), text).r > 5.0
    assert 0.01 < judged(split, text).r <= 1.0
    assert judged(redeclared(split, profile="tf32"), text).r < 0.02


def test_unknown_profiles_and_additions_are_refused():
    for name in ("strictest", "strict+lsd", "strict+lse+lse", "+lse"):
        with pytest.raises(UsageError, match="Unknown numerics profile"):
            roundoffs(name, "float32")
    assert set(DECLARABLE) == {f"{name}{addition}" for name in PROFILES for addition in ("", "+lse", "+merges")}


def test_float16_that_flushes_subnormal_numbers_says_so():
    texts = (
        "attention batch=2 heads=3/3 length=7/13 width=8/8 dtype=float16 values=subnormal.1#12",
        "attention batch=2 heads=3/3 length=7/13 width=8/8 dtype=float16 values=peaked.1#9",
        "attention batch=3 heads=5/5 length=17/19 width=11/11 dtype=float16 values=gaussian.1*3.0#71 edits=loud-value.1#71",
    )
    flushing = variants()["correct-flushing"]
    undeclared = redeclared(flushing, flushes=())
    for text in texts:
        assert judged(flushing, text).outcome is Outcome.PASS
    assert any(judged(undeclared, text).outcome is Outcome.WRONG_VALUE for text in texts)
    assert "count as 0 only where that is declared" in requirements()["ATT-NUM-008"].sentence


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("fused-multiply-add", "ATT-MASK-041"), ("lazily-rescaled", "ATT-NUM-010"), ("compensated", "ATT-NUM-006")],
)
def test_what_algorithms_cannot_hold_is_a_convention_and_no_failure(name, identifier):
    requirement, implementation = requirements()[identifier], variants()[f"correct-{name}"]
    assert requirement.check == "beyond"
    outcomes = {judged(implementation, problem.text).outcome for problem in requirement.designed()}
    assert outcomes != {Outcome.PASS}, "as plain values it would fail"
    for problem in requirement.designed():
        assert judged(implementation, problem.text, "beyond").outcome is Outcome.PASS


def test_beyond_still_rejects_finite_numbers_that_are_wrong():
    problem = next(iter(requirements()["ATT-NUM-006"].designed()))
    assert judged(_doubled(), problem.text.replace("float64", "float32"), "beyond").outcome is Outcome.WRONG_VALUE


def _every_step(inputs, inner):
    """Multi-head attention with each intermediate result rounded to ``inner``, the parts of the heads added up in it too."""

    def short(array):
        return array.astype(inner).astype(np.float32)

    weights, heads = inputs.weights, inputs.num_heads

    def projected(x, matrix):
        whole = short(x.astype(np.float32) @ matrix.astype(np.float32))
        return whole.reshape(*whole.shape[:2], heads, -1).swapaxes(1, 2)

    query, key, value = (
        projected(x, matrix)
        for x, matrix in ((inputs.query, weights.query), (inputs.key, weights.key), (inputs.value, weights.value))
    )
    scores = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[-1]))
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    attended = short(exponentials / exponentials.sum(-1, keepdims=True) @ value)
    per_head = attended @ weights.output.astype(np.float32).reshape(heads, value.shape[-1], -1)
    total = short(per_head[:, 0])
    for head in range(1, heads):
        total = short(total + short(per_head[:, head]))
    return total.astype(inputs.query.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_profiles_say_where_projections_round(dtype):
    text = (
        f"multi_head_attention batch=2 heads=8 length=5 model=16 inner=16 dtype={dtype} values=gaussian.1#3 source=self "
        "weights=full projection=plain output=plain"
    )
    problem = parse(text)

    def implementation(inner, profile):
        def output(inputs):
            assert isinstance(inputs, MultiHeadInputs)
            return _every_step(inputs, inner)

        support = Support(operation="multi_head_attention", dtypes=(dtype,), profile=profile, conventions={})
        return Implementation("mine", operation_of("multi_head_attention").function(output), support, frameworks()["numpy"])

    rounded = materialise(problem).query.dtype
    assert judged(implementation(np.float32, "inner32"), text).outcome is Outcome.PASS
    assert judged(implementation(rounded, "inner32"), text).r > 3.0
    assert judged(implementation(rounded, "fused"), text).outcome is Outcome.PASS


def test_the_sum_of_distances_is_below_its_bound_and_hundreds_of_times_smaller_beside_a_loud_value():
    text = "attention batch=2 heads=3/3 length=7/13 width=8/8 dtype=float32 values=spread.1#71 edits=loud-value.1*1e6#71"
    inputs = materialise(parse(text))
    value = budget.KeyArray(inputs.value.astype(np.float64))
    rng = np.random.default_rng(1)
    lift = rng.random((2, 3, 7, 13)) ** 40
    output = lift @ value.array / lift.sum(-1, keepdims=True)
    exact, bound = budget._distances(lift, value.array, output), budget._bound_of_distances(lift, value, output)
    direct = sum(lift[..., j, None] * np.abs(value.array[:, :, j, None] - output) for j in range(13))
    np.testing.assert_allclose(exact, direct, rtol=1e-12)
    assert (exact <= bound * (1 + 1e-9)).all()
    assert (bound / exact).max() > 100.0


def test_the_bound_of_distances_is_that_of_cauchy_and_schwarz():
    rng = np.random.default_rng(2)
    value = budget.KeyArray(rng.normal(3.0, 2.0, (2, 3, 13, 8)))
    lift, output = rng.random((2, 3, 7, 13)), rng.normal(3.0, 2.0, (2, 3, 7, 8))
    squares = (lift[..., None] * (value.array[:, :, None] - output[..., None, :]) ** 2).sum(-2)
    expected = np.sqrt(lift.sum(-1, keepdims=True) * squares)
    np.testing.assert_allclose(budget._bound_of_distances(lift, value, output), expected, rtol=1e-9)
    equal = budget.KeyArray(np.full((2, 3, 13, 8), 5.0))
    assert (budget._bound_of_distances(lift, equal, np.full((2, 3, 7, 8), 5.0)) == 0.0).all()
    cancelled = budget.KeyArray(np.tile([1.0, -1.0], 13)[:, None])
    alone = np.where(np.arange(26) % 2 == 0, 1.0, 0.0)[None]
    left = budget._bound_of_distances(alone, cancelled, np.array([[1.0]]))  # squares of 1 cancel: some of their digits are kept
    np.testing.assert_allclose(left, 13.0 * np.sqrt(2.0 * 2.0**-46), rtol=1e-9)


@pytest.mark.parametrize("case", list(requirements()["ATT-OUT-040"].designed()), ids=lambda problem: problem.digest)
def test_answers_known_to_the_last_bit_are_those_of_all_right_code_and_of_no_other(case):
    inputs = materialise(case)
    for name, implementation in variants().items():
        if case.dtype in implementation.support.dtypes:
            assert judged(implementation, case.text, "exact").outcome is Outcome.PASS, name

    def off(inputs):
        output = expect(inputs, "strict").output.astype(inputs.query.dtype)
        flat = output.reshape(-1)
        middle = flat.size // 2
        flat[middle] = np.nextafter(flat[middle], np.array(np.inf, flat.dtype))
        return output

    support = Support(dtypes=(inputs.query.dtype.name,), profile="unfused", conventions=CONVENTIONS)
    found = judged(
        Implementation("off", operation_of("attention").function(off), support, frameworks()["numpy"]), case.text, "exact"
    )
    assert found.outcome is Outcome.WRONG_VALUE and "known to the last bit" in found.message


def test_sampled_rows_change_with_the_seed_and_stand_at_the_edges_of_tiles():
    first, second = (sampled_rows(131_072, seed) for seed in (1, 2))
    assert set(first) != set(second)
    for rows in (first, second):
        assert rows[0] == 0 and rows[-1] == 131_071 and len(rows) <= 64
        assert sum(row % 16 == 0 for row in rows) >= 6 and sum(row % 16 == 15 for row in rows) >= 6
        assert np.diff(rows).max() < 2 * 131_072 // 46, "no part is left out"
    for rows in (first, second, sampled_rows(65, 3)):
        assert rows.dtype.kind == "i" and (np.diff(rows) > 0).all()
    seen = np.unique(np.concatenate([sampled_rows(4096, seed) for seed in range(200)]) // 64)
    assert len(seen) == 64, "each tile of 64 rows is judged for some seed"


@pytest.mark.parametrize(
    ("length", "seed", "number", "total"), [(131_072, 1, 64, 4_427_162), (4096, 7, 61, 112_737), (65, 3, 47, 1512)]
)
def test_a_seed_draws_the_same_rows_everywhere(length, seed, number, total):
    rows = sampled_rows(length, seed)
    assert (len(rows), int(rows.sum())) == (number, total)


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "mask=random.1:bhqk#3 bias=gaussian.1:1hqk#3 causal=bottom-right lengths=80,90",
        "mask=random.1:qk#3 bias=gaussian.1:bhqk#3",
    ],
)
def test_a_problem_of_many_pairs_is_judged_row_by_row_as_a_small_one(asked, monkeypatch):
    from conformance.oracle import attention as oracle

    text = f"attention batch=2 heads=6/2 length=70/90 width=8/8 dtype=float32 values=spread.1#3 {asked}"
    inputs = materialise(parse(text))
    monkeypatch.setattr(budget, "EXACT", 0)  # which of two bounds is taken depends on how much is computed at once
    whole = expect(inputs, "strict")
    monkeypatch.setattr(oracle, "SAMPLED_PAIRS", 1000)
    sampled = expect(inputs, "strict")
    assert sampled.rows is not None and sampled.shape == whole.shape
    for name in ("output", "budget", "judged"):
        np.testing.assert_allclose(getattr(sampled, name), getattr(whole, name)[:, :, sampled.rows], rtol=1e-9, atol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_every_number_of_an_encoding_may_be_off_by_something(dtype):
    found = expect(materialise(parse(f"sinusoidal_encoding length=5 width=6 dtype={dtype}")), "strict")
    assert found.output.shape == found.budget.shape and (found.budget > 0).all()


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("float64", ("strict", "unfused", "soft32")),
        ("float32", ("strict", "unfused", "bf16x3", "tf32")),
        ("float16", ("inner32", "fused", "fused_q", "fused_qk")),
        ("float16", ("fused", "unfused", "low")),
        ("bfloat16", ("inner32", "fused", "fused_q", "fused_qk")),
        ("bfloat16", ("fused", "unfused", "low")),
    ],
)
def test_who_rounds_more_is_allowed_more(dtype, names):
    inputs = materialise(parse(f"attention batch=2 heads=3 length=17/19 width=7 dtype={dtype} values=gaussian.1*3.0#5"))
    budgets = [expect(inputs, name).budget for name in names]
    for tight, loose in pairwise(budgets):
        assert np.median(loose / tight) > 1.02 and (loose >= tight * 0.999).all()


def test_budgets_grow_with_the_values_beyond_what_can_be_squared():
    inputs = materialise(parse("attention batch=2 heads=3 length=17/19 width=7 dtype=float64 values=gaussian.1#5"))
    plain, large = (expect(inputs.but(value=inputs.value * factor), "unfused").budget for factor in (1.0, 2.0**600))
    np.testing.assert_allclose(large, plain * 2.0**600, rtol=1e-6)


def test_heads_that_do_not_divide_the_width_are_refused():
    inputs = materialise(parse("multi_head_attention batch=1 heads=2 length=3 model=4 inner=4 dtype=float32 values=gaussian.1#1"))
    with pytest.raises(ProblemError):
        expect(inputs.but(num_heads=3), "strict")


@pytest.mark.parametrize(
    "text",
    [
        "attention batch=2 heads=4/2 length=5/7 width=4 dtype=float32 values=spread.1#1",
        "multi_head_attention batch=2 heads=3 length=5/7 model=4 inner=6/9 dtype=float32 values=gaussian.1#2 source=cross",
        (
            "multi_head_attention batch=2 heads=2 length=5/7 model=6 inner=4 dtype=float32 values=gaussian.1#3 source=cross "
            "output=none"
        ),
    ],
)
def test_the_budget_of_a_row_is_its_own(text):
    inputs = materialise(parse(text))
    rows = [slice(None)] * (inputs.query.ndim - 2) + [slice(1, 3)]
    for name in ("strict", "unfused"):
        whole, part = expect(inputs, name), expect(inputs.but(query=inputs.query[tuple(rows)]), name)
        np.testing.assert_allclose(part.budget, whole.budget[tuple(rows)], rtol=1e-6)

"""No case is blind: null models are told from the truth by every designed case and every value distribution."""

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks
from conformance.cases.admissible import (
    LEAST_RATIO,
    LEAST_RATIO_BFLOAT16,
    indistinguishable,
    least_ratio,
    null_outputs,
    reference_profile,
    told_by_none,
)
from conformance.cases.random import corpus
from conformance.checks.items import Effort
from conformance.errors import ProblemError
from conformance.faults import catalogue
from conformance.faults.functions import CONVENTIONS
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES, float_type
from conformance.numerics.profiles import TIGHTEST_FIRST, UNDECLARED
from conformance.operations import operation_of
from conformance.oracle import expect
from conformance.problem import AttentionProblem, Problem, Recipe, parse
from conformance.problem.inputs import AttentionInputs
from conformance.specification import requirements
from conformance.specification.requirement import NULLS
from conformance.values import materialise
from conformance.values.distributions import DISTRIBUTIONS
from tests.support.items import run_item

TESTING = [requirement for requirement in requirements().values() if requirement.judges_values]
BY_AREA = {area: [r for r in TESTING if r.area == area] for area in dict.fromkeys(r.area for r in TESTING)}

# What a distribution cannot show, by its purpose, in any dtype. A distribution that is not here must show all of them.
BLIND_DISTRIBUTIONS: dict[str, set[str]] = {
    "ones-value": {"mean", "argmax", "uniform", "heads"},  # every mean of ones is 1
    "zero-query": {"mean", "uniform"},  # the mean of V is the truth
    "flat": {"mean", "uniform"},  # nearly so
    "subnormal": {"zeros", "mean", "argmax", "uniform", "heads"},  # products may flush to zero
}
# Numbers that a distribution must be given to stay within a dtype.
ARGUMENTS = {("offset", "float16"): 1e4, ("all-low", "float16"): -1e4}


@pytest.mark.parametrize("area", BY_AREA)
def test_designed_cases_tell_null_models_from_the_truth(area):
    for requirement in BY_AREA[area]:
        for problem in requirement.designed():
            blind = set(indistinguishable(problem)) - set(requirement.cannot_tell)
            assert not blind, f"{requirement.id} takes {blind} for the truth: {problem.text}"


@pytest.mark.parametrize("area", BY_AREA)
def test_nothing_is_exempt_without_need(area):
    for requirement in BY_AREA[area]:
        if requirement.cannot_tell:
            assert set(requirement.cannot_tell) <= set(NULLS)
            met = {name for problem in requirement.designed() for name in indistinguishable(problem)}
            assert set(requirement.cannot_tell) == met, requirement.id


@pytest.mark.parametrize("area", BY_AREA)
def test_every_requirement_says_what_it_cannot_tell_in_each_dtype_and_profile(area):
    """Neither more nor less: what stands under a profile by which outputs are judged is found, and what is found stands there."""
    wrong = []
    for requirement in BY_AREA[area]:
        for (dtype, profile), untold in told_by_none(requirement.designed()).items():
            found, said = untold - set(requirement.cannot_tell), requirement.blind_to(dtype, profile)
            if found != said:
                wrong.append(f"{requirement.id} in {dtype} under {profile} is blind to {sorted(found)}, not to {sorted(said)}")
        dtypes = {problem.dtype for problem in requirement.designed()}
        for lost in requirement.blind:
            assert lost.dtype in dtypes, requirement.id
            assert set(lost.profiles) <= set(TIGHTEST_FIRST[lost.dtype]), requirement.id
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS.names())
def test_value_distributions_tell_null_models_from_the_truth(distribution):
    for dtype in DTYPES:
        for seed in (1, 2, 3):
            problem = of_distribution(distribution, dtype, seed)
            least = LEAST_RATIO_BFLOAT16 if dtype == "bfloat16" else LEAST_RATIO
            assert set(indistinguishable(problem, least)) <= BLIND_DISTRIBUTIONS.get(distribution, set()), problem.text


def of_distribution(distribution: str, dtype: str, seed: int) -> AttentionProblem:
    return AttentionProblem(
        batch=2, heads=3, kv_heads=3, query_length=7, key_length=13, width=8, value_width=13, dtype=dtype,
        values=Recipe(distribution, seed, argument=ARGUMENTS.get((distribution, dtype))),
    )  # fmt: skip


def test_nearly_all_random_cases_tell_null_models_from_the_truth():
    """A random case may be blind (a mask that shows one key a row); more than one in fifty would be waste."""
    blind, total = 0, 0
    for requirement in TESTING:
        for example in corpus(requirement, examples=1, seed=3, free=False):
            for problem in example.problems[:4]:
                least = LEAST_RATIO_BFLOAT16 if problem.dtype == "bfloat16" else LEAST_RATIO
                blind += bool(set(indistinguishable(problem, least)) - set(requirement.cannot_tell))
                total += 1
    assert total > 400
    assert blind <= total / 50


def test_random_cases_in_16_bits_tell_null_models_where_no_profile_is_declared():
    """``unfused`` is taken there. One in twenty may be blind; and no requirement draws nothing but cases in which zeros, a mean
    or another head's output would do."""
    blind: list[bool] = []
    for requirement in TESTING:
        missed = []
        for example in corpus(requirement, examples=3, seed=3, free=False):
            for problem in example.problems:
                if float_type(problem.dtype).is_16_bit:
                    least = least_ratio(problem.dtype, UNDECLARED)
                    known = {*requirement.cannot_tell, *requirement.blind_to(problem.dtype, UNDECLARED)}
                    missed.append(set(indistinguishable(problem, least, UNDECLARED)) - known)
        blind += map(bool, missed)
        assert not missed or set.intersection(*missed) <= {"argmax"}, requirement.id
    assert len(blind) > 1000
    assert sum(blind) <= len(blind) / 20


def test_the_truth_is_no_null_model_and_a_constant_v_is_told_as_blind():
    """The measure itself: what it calls blind is blind, and the right output never counts as a null model."""
    problem = of_distribution("ones-value", "float32", 1)
    assert set(indistinguishable(problem)) == {"mean", "argmax", "uniform", "heads"}
    assert indistinguishable(of_distribution("spread", "float32", 1)) == ()


def test_a_budget_as_wide_as_the_values_is_told_as_blind():
    """Scores near 200, as they stood alone until ``far`` came: in bfloat16 nothing is told under unfused, in float32 all is."""
    problems = [
        of_distribution("offset", dtype, 1).but(values=Recipe("offset", 1, argument=200.0)) for dtype in ("bfloat16", "float32")
    ]
    untold = told_by_none(problems)
    assert untold["bfloat16", "unfused"] == {"zeros", "mean", "argmax", "uniform", "heads"}
    assert untold["bfloat16", "fused"] == untold["float32", "strict"] == set()
    far = [problem.but(values=Recipe("far", 1, argument=200.0)) for problem in problems]
    assert told_by_none(far)["bfloat16", "unfused"] == {"argmax"}


@pytest.mark.parametrize(
    ("fault", "requirement"),
    [
        *(("scores-clipped-to-50", f"ATT-{name}") for name in ("SCALE-010", "SCALE-012", "SCALE-014", "MASK-023", "MASK-032")),
        *(("scores-clipped-to-1e4", f"ATT-{name}") for name in ("SCALE-012", "SCALE-014", "MASK-023")),
    ],
)
def test_clipped_scores_are_seen_in_bfloat16_where_no_profile_is_declared(fault, requirement):
    """Its weights are then equal. The budgets of scores that differ by ordinary amounts, as wide as V there, let that through."""
    found = catalogue()[fault]
    support = Support(dtypes=("bfloat16",), conventions=CONVENTIONS)
    implementation = Implementation(fault, operation_of("attention").function(found.output), support, frameworks()["numpy"])
    result = run_item(requirement, implementation, Effort(examples=0, free=False, seed=1))
    assert result.item.outcome is Outcome.WRONG_VALUE


def test_null_models_do_what_they_say():
    problem = parse(
        "attention batch=2 heads=4/2 length=5/7 width=8 dtype=float64 values=spread.1#3 mask=random.1:bhqk#3 bias=gaussian.1:qk#3"
    )
    inputs = materialise(problem)
    assert isinstance(inputs, AttentionInputs)
    nulls = null_outputs(inputs)
    value = np.repeat(inputs.value, 2, axis=1)
    truth = expect(inputs, reference_profile("float64")).output
    assert set(nulls) == {"zeros", "mean", "argmax", "uniform", "heads"}
    assert not nulls["zeros"].any()
    np.testing.assert_allclose(nulls["uniform"], np.broadcast_to(value.mean(axis=2, keepdims=True), truth.shape))
    np.testing.assert_allclose(nulls["heads"], np.roll(truth.astype(np.float64), 1, axis=1), rtol=1e-10)
    for b, h, i in np.ndindex(2, 4, 5):
        seen = inputs.mask[b, h, i]
        np.testing.assert_allclose(nulls["mean"][b, h, i], value[b, h, seen].mean(axis=0))
        assert (nulls["argmax"][b, h, i] == value[b, h, seen]).all(axis=-1).any()


def test_a_distribution_that_does_not_fit_its_shape_is_refused():
    problem: Problem = AttentionProblem(
        kv_heads=1, query_length=2, key_length=3, width=2, value_width=2, values=Recipe("identity-value")
    )
    with pytest.raises(ProblemError, match="value width"):
        materialise(problem)

"""The log-sum-exp and the weights: by hand, against the exact oracle, and within budgets that correct code uses up in part."""

from collections.abc import Callable

import numpy as np
import pytest

from conformance.judging.verdict import Outcome, judge
from conformance.numerics.dtypes import round_to
from conformance.oracle import attention as oracle_of_attention
from conformance.oracle import exact, truth_of
from conformance.oracle import multihead as oracle_of_multi_head
from conformance.problem import Problem, parse
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs
from conformance.specification import requirements
from conformance.values import materialise

Array = np.ndarray
Compute = Callable[[AttentionInputs], tuple[Array, Array]]
NAMES = ("lse", "weights")
LEAST = 0.25  # of a budget, which some correct computation uses up


def designed(check: str, operation: str = "attention") -> list[Problem]:
    of_check = [r for r in requirements().values() if r.check == check and r.operation == operation]
    return list(dict.fromkeys(problem for requirement in of_check for problem in requirement.designed()))


def scores_of(inputs: AttentionInputs, work: type[np.floating]) -> Array:
    query, key = inputs.query.astype(work), inputs.key.astype(work)
    key = key.repeat(query.shape[1] // key.shape[1], axis=1)
    scores = query @ key.swapaxes(-1, -2) * work(query.shape[-1] ** -0.5 if inputs.scale is None else inputs.scale)
    scores = scores if inputs.bias is None else scores + inputs.bias.astype(work)
    return np.where(visible_pairs(inputs), scores, work(-np.inf))


def natural(scores: Array) -> tuple[Array, Array]:
    """The maximum taken off and added again."""
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - top)
    total = exponentials.sum(-1, keepdims=True)
    return (top + np.log(total))[..., 0], exponentials / total


def of_powers_of_two(scores: Array) -> tuple[Array, Array]:
    """2^x of scores times log₂ e, and the result times ln 2."""
    work = scores.dtype.type
    scores = scores * work(np.log2(np.e))
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp2(scores - top)
    total = exponentials.sum(-1, keepdims=True)
    return ((top + np.log2(total)) * work(np.log(2.0)))[..., 0], exponentials / total


def online(scores: Array) -> tuple[Array, Array]:
    """One key after the other."""
    top = np.full((*scores.shape[:-1], 1), -np.inf, scores.dtype)
    total = np.zeros_like(top)
    for key in range(scores.shape[-1]):
        score = scores[..., key : key + 1]
        new = np.maximum(top, score)
        origin = np.where(new == -np.inf, scores.dtype.type(0), new)
        total, top = total * np.exp(top - origin) + np.exp(score - origin), new
    return (top + np.log(total))[..., 0], np.exp(scores - top) / total


def merged(scores: Array) -> tuple[Array, Array]:
    """Parts of the keys, merged by their log-sum-exps."""
    found: Array | None = None
    for part in np.array_split(scores, min(5, scores.shape[-1]), axis=-1):
        seen = (part > -np.inf).any(-1)
        lse = np.where(seen, natural(np.where(seen[..., None], part, scores.dtype.type(0)))[0], scores.dtype.type(-np.inf))
        found = lse if found is None else np.logaddexp(found, lse)
    assert found is not None
    return found, natural(scores)[1]


def each_step_rounded(inputs: AttentionInputs) -> tuple[Array, Array]:
    """As code that holds every step as a tensor in 16 bits."""
    dtype = inputs.query.dtype.name

    def held(array: Array) -> Array:
        return round_to(array, dtype).astype(np.float32)

    query, key = inputs.query.astype(np.float32), inputs.key.astype(np.float32)
    key = key.repeat(query.shape[1] // key.shape[1], axis=1)
    scores = held(held(query @ key.swapaxes(-1, -2)) * np.float32(inputs.scale or query.shape[-1] ** -0.5))
    scores = scores if inputs.bias is None else held(scores + inputs.bias.astype(np.float32))
    scores = np.where(visible_pairs(inputs), scores, np.float32(-np.inf))
    top = scores.max(-1, keepdims=True)
    exponentials = held(np.exp(held(scores - top)))
    total = held(exponentials.sum(-1, keepdims=True))
    return held(top + held(np.log(total)))[..., 0], held(exponentials / total)


WAYS: tuple[Callable[[Array], tuple[Array, Array]], ...] = (natural, of_powers_of_two, online, merged)


def seen_rows(inputs: AttentionInputs) -> bool:
    return bool(visible_pairs(inputs).any(-1).all())


def largest(
    name: str, dtype: str, profile: str, returned: str, compute: Callable[[AttentionInputs], tuple[Array, Array]]
) -> float:
    """r over the designed problems in ``dtype``, each of which must be within its budget."""
    found = []
    for problem in designed(name):
        inputs = materialise(problem)
        if problem.dtype != dtype or not seen_rows(inputs):
            continue
        truth = truth_of(inputs).of(name, returned)
        with np.errstate(all="ignore"):
            array = round_to(compute(inputs)[NAMES.index(name)], returned)
        verdict = judge(array, truth.expected(truth.bound(profile)))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"
        found.append(verdict.r)
    assert len(found) > 10
    return max(found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("dtype", "profile", "returned"),
    [
        ("float64", "strict", "float64"),
        ("float32", "strict", "float32"),
        ("float16", "inner32", "float32"),
        ("float16", "inner32", "float16"),
        ("bfloat16", "inner32", "float32"),
        ("bfloat16", "inner32", "bfloat16"),
    ],
)
def test_correct_code_is_within_the_budget_and_uses_up_a_quarter_of_it(name, dtype, profile, returned):
    work = np.float64 if dtype == "float64" else np.float32
    found = [largest(name, dtype, profile, returned, lambda inputs, way=way: way(scores_of(inputs, work))) for way in WAYS]
    assert LEAST <= max(found) <= 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("in_float32", [False, True])
def test_so_is_code_that_holds_each_step_in_16_bits(name, dtype, in_float32):
    assert LEAST <= largest(name, dtype, "unfused", "float32" if in_float32 else dtype, each_step_rounded) <= 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_returned_in_float32_may_not_be_rounded_to_16_bits(name, dtype):
    """The budget is that of the dtype in which it comes."""
    inputs = next(materialise(problem) for problem in designed(name) if problem.dtype == dtype)
    target = truth_of(inputs).of(name, "float32")
    assert target.dtypes == (dtype, "float32")
    array = round_to(round_to(target.output, dtype), "float32")
    assert judge(array, target.expected(target.bound("inner32"))).r > 100.0
    own = truth_of(inputs).of(name, dtype)
    assert judge(round_to(array, dtype), own.expected(own.bound("inner32"))).outcome is Outcome.PASS


def test_weights_through_a_rounded_log_sum_exp_need_the_profile_that_says_so():
    inputs = next(materialise(p) for p in designed("lse") if p.dtype == "float32" and "row-constant" in p.text)
    scores = scores_of(inputs, np.float32)
    weights = np.exp(scores - natural(scores)[0][..., None])
    truth = truth_of(inputs).of("weights", "float32")
    assert judge(weights, truth.expected(truth.bound("strict"))).outcome is Outcome.WRONG_VALUE
    assert judge(weights, truth.expected(truth.bound("strict+lse"))).outcome is Outcome.PASS


def test_by_hand() -> None:
    """Scores ln 3 and 0: a sum of 4, weights 3/4 and 1/4."""
    query = np.full((1, 1, 1, 1), np.log(3.0))
    key = np.array([1.0, 0.0]).reshape(1, 1, 2, 1)
    truth = truth_of(AttentionInputs(query=query, key=key, value=key))
    assert truth.of("lse", "float64").output == pytest.approx(np.log(4.0), abs=1e-15)
    assert truth.of("weights", "float64").output[0, 0, 0] == pytest.approx([0.75, 0.25], abs=1e-15)


def test_only_names_that_are_known_have_a_truth() -> None:
    with pytest.raises(KeyError):
        truth_of(materialise(designed("lse")[0])).of("logits", "float32")


@pytest.mark.parametrize("operation", ["attention", "multi_head_attention"])
@pytest.mark.parametrize("name", NAMES)
def test_the_exact_oracle_agrees_on_every_designed_problem(name: str, operation: str) -> None:
    steps = {"attention": exact.attention_steps, "multi_head_attention": exact.multi_head_steps}[operation]
    compared = 0
    for problem in designed(name, operation):
        if problem.batch * problem.heads * problem.query_length * problem.key_length > 1000:
            continue
        inputs = materialise(problem)
        truth, target = truth_of(inputs).of(name, problem.dtype), steps(inputs)[name]
        expected = truth.expected(truth.bound("strict"))
        judged = np.broadcast_to(expected.judged, target.shape)
        allowed = 0.01 * expected.budget + 0.5 * np.spacing(np.abs(target))
        assert judged.any() and (np.abs(expected.output - target) <= allowed)[judged].all(), problem.text
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize("operation", ["attention", "multi_head_attention"])
@pytest.mark.parametrize("name", NAMES)
def test_float64_is_judged_by_the_exact_oracle_where_there_is_no_longer_type(name, operation, monkeypatch):
    problem = next(p for p in designed(name, operation) if p.dtype == "float64")
    usual = truth_of(materialise(problem)).of(name, "float64")
    for module in (oracle_of_attention, oracle_of_multi_head):
        monkeypatch.setattr(module, "EXTENDED", False)
    found = truth_of(materialise(problem)).of(name, "float64")
    assert found.output.dtype == np.float64 and found.output.shape == usual.output.shape
    assert np.allclose(found.output, usual.output.astype(np.float64), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("limits", [{"BLOCK_PAIRS": 700}, {"SAMPLED_PAIRS": 1000}])
@pytest.mark.parametrize("name", NAMES)
def test_long_problems_are_computed_in_blocks_or_some_of_their_rows_alone(name, limits, monkeypatch):
    """Rows are the last axis of a log-sum-exp; a failure is told by its place in the whole."""
    inputs = materialise(
        parse("attention batch=2 heads=4/2 length=200/9 width=4 dtype=float32 values=spread.1#1 causal=top-left")
    )
    whole = truth_of(inputs).of(name, "float32")
    for constant, limit in limits.items():
        monkeypatch.setattr(oracle_of_attention, constant, limit)
    truth = truth_of(inputs).of(name, "float32")
    expected = truth.expected(truth.bound("strict"))
    assert expected.shape == whole.output.shape
    assert (expected.rows is None) == ("BLOCK_PAIRS" in limits)
    array = whole.output.astype(np.float32)
    assert judge(array, expected).outcome is Outcome.PASS
    row = 3 if expected.rows is None else int(expected.rows[3])
    place = (1, 2, row) if name == "lse" else (1, 2, row, 1)
    array[place] += 1.0
    found = judge(array, expected)
    assert (found.outcome, found.index) == (Outcome.WRONG_VALUE, place)

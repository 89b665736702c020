"""Keys hidden as real code hides them: by the lowest finite number, behind long tiles, and in numbers at which counts wrap."""

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support
from conformance.checks.fully_masked_rows import judge_fully_masked_rows
from conformance.checks.items import Effort
from conformance.faults.steps import compute
from conformance.judging.verdict import Outcome, judge
from conformance.numerics.dtypes import DTYPES, float_type
from conformance.oracle import expect
from conformance.problem import parse
from conformance.problem.visibility import visible_pairs
from conformance.specification import conventions, requirements
from conformance.values import materialise
from tests.support.faults import of_kinds
from tests.support.items import run_item

QUICK = Effort(examples=1, free=False, seed=1)
LOWEST_ROWS = "attention batch=2 heads=3 length=7/13 width=8 dtype={} values=gaussian.1#1 bias=lowest-rows.1:qk#1"


def outcome(identifier, attention, dtypes=("float32",)):
    return run_item(identifier, Implementation("lying", attention, Support(dtypes=dtypes), FRAMEWORK), QUICK).item.outcome


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_lowest_number_of_a_bias_is_that_of_the_dtype_and_finite(dtype):
    bias = materialise(parse(LOWEST_ROWS.format(dtype))).bias.astype(np.float64)
    assert np.isfinite(bias).all()
    assert (bias[::3] == -float_type(dtype).largest).all()
    assert (bias[1] == -float_type(dtype).largest).any() and (np.abs(bias[1]) < 10).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_that_is_the_lowest_number_throughout_is_not_judged_by_value(dtype):
    expected = expect(materialise(parse(LOWEST_ROWS.format(dtype))), "strict")
    assert not expected.judged[:, :, ::3].any()
    assert expected.judged[:, :, 1:3].all() and expected.judged[:, :, 4:6].all()


def test_keys_with_the_lowest_bias_have_no_weight_beside_others():
    inputs = materialise(parse(LOWEST_ROWS.format("float32")))
    moved = np.where((inputs.bias == inputs.bias.min())[1][:, None], 1e4, inputs.value).astype(np.float32)
    judged = expect(inputs, "strict").output[:, :, 1]
    assert (judged == expect(inputs.but(value=moved), "strict").output[:, :, 1]).all()


def test_what_rows_of_the_lowest_bias_give_is_known_in_every_way_and_nothing_else_is():
    inputs = materialise(parse(f"{LOWEST_ROWS.format('float32')} mask=random.1:b1qk#1"))
    visible, output = visible_pairs(inputs), compute(inputs)
    wide = inputs.value.astype(np.float64)
    shown = visible / visible.sum(-1, keepdims=True)
    hidden = ~visible / np.maximum(1, (~visible).sum(-1, keepdims=True))
    everything = np.full(visible.shape, 1 / 13)
    exact = expect(inputs, "strict").output[:, :, ::3]
    for given in (0.0, np.nan, exact, *((weights @ wide)[:, :, ::3] for weights in (shown, hidden, everything))):
        output[:, :, ::3] = given
        assert judge_fully_masked_rows(output, inputs).outcome is Outcome.PASS
    output[:, :, ::3] = 3.0
    assert judge_fully_masked_rows(output, inputs).outcome is Outcome.WRONG_VALUE


def answered(identifier, give):
    def ask(problem):
        inputs = materialise(problem)
        with np.errstate(all="ignore"):
            return give(inputs, problem)

    return conventions()[identifier].observe(ask, "attention").answer


def of_lowest(fill):
    def give(inputs, problem):
        output = compute(inputs)
        output[:, :, ::3] = fill(inputs) if callable(fill) else fill
        return output

    return give


def mean(inputs):
    value = np.repeat(inputs.value.astype(np.float64), inputs.query.shape[1] // inputs.value.shape[1], axis=1)
    return value.mean(axis=2, keepdims=True)


def as_without_bias(inputs):
    return expect(inputs.but(bias=None), "strict").output[:, :, ::3]


@pytest.mark.parametrize(
    ("fill", "answer"), [(mean, "number"), (as_without_bias, "number"), (0.0, "zeros"), (np.nan, "nan"), (3.0, "other")]
)
def test_what_rows_of_the_lowest_bias_give_is_a_convention(fill, answer):
    assert answered("CON-LOWEST-BIAS", of_lowest(fill)) == answer
    assert (answer in conventions()["CON-LOWEST-BIAS"].legitimate) is (answer in ("number", "zeros", "nan"))


@pytest.mark.parametrize(("fill", "answer"), [(mean, "mean"), (0.0, "zeros"), (np.nan, "nan"), (3.0, "other")])
def test_what_rows_give_that_causal_empties_is_a_convention(fill, answer):
    def give(inputs, problem):
        output = compute(inputs)
        empty = ~visible_pairs(inputs).any(-1)
        assert empty.any()
        output[empty] = np.broadcast_to(fill(inputs) if callable(fill) else fill, output.shape)[empty]
        return output

    assert answered("CON-EMPTY-ROW-CAUSAL", give) == answer


def test_noise_where_causal_empties_rows_is_unstable():
    dice = np.random.default_rng(3)

    def give(inputs, problem):
        output = compute(inputs)
        empty = ~visible_pairs(inputs).any(-1)
        output[empty] = dice.choice([0.0, np.nan])
        return output

    assert answered("CON-EMPTY-ROW-CAUSAL", give) in ("unstable", "mixed")


@pytest.mark.parametrize("tile", [256, 512, 1024])
@pytest.mark.parametrize("by", ["mask", "bias"])
def test_a_first_tile_without_a_visible_key_is_asked_at_each_size_by_each_way(tile, by):
    found = [problem for problem in requirements()["ATT-MASK-048"].designed() if getattr(problem, by) is not None]
    first = {int(visible_pairs(materialise(problem)).argmax(-1).max()) for problem in found}
    assert tile in first


def test_a_kernel_whose_first_tile_of_512_keys_is_hidden_is_seen():
    def attention(query, key, value, *, mask=None):
        output = direct(query, key, value, mask=mask)
        if mask is None or key.shape[2] <= 512:
            return output
        begun = np.broadcast_to(mask, (*output.shape[:3], key.shape[2]))[..., :512].any(-1, keepdims=True)
        return np.where(begun, output, output.dtype.type(np.nan))

    assert outcome("ATT-MASK-048", direct) is Outcome.PASS
    assert outcome("ATT-MASK-048", attention) is Outcome.NONFINITE


COUNTS = of_kinds("hidden_keys", where=lambda fault: "count-in" in fault.id or fault.id.endswith("-gives-nan"))


@pytest.mark.parametrize("fault", COUNTS.values(), ids=lambda fault: fault.id)
def test_a_fault_shows_in_the_requirements_that_it_names_and_not_in_plain_problems(fault):
    for text in ("length=7/13", "length=13 causal=top-left", "length=65/67 mask=random.1:b1qk#3"):
        sizes, *rest = text.split(" ", 1)
        problem = parse(" ".join(["attention batch=2 heads=3", sizes, "width=8 dtype=float32 values=spread.1#1", *rest]))
        inputs = materialise(problem)
        assert judge(fault.output(inputs), expect(inputs, "strict")).outcome is Outcome.PASS
    for dtype in fault.dtypes:
        seen = []
        for problem in requirements()[fault.requirements[0]].designed():
            if problem.dtype == dtype:
                inputs = materialise(problem)
                seen.append(judge(fault.output(inputs), expect(inputs, "unfused")).outcome.is_failure)
        assert any(seen), dtype

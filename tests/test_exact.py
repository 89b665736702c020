"""The exact oracle: by hand, against fractions, and against the NumPy oracle, whose only common ground is the formulas."""

import ast
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.errors import UsageError
from conformance.features import every_feature
from conformance.oracle import exact, expect
from conformance.problem import parse
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, SinusoidalInputs
from conformance.values import materialise

MULTI = "multi_head_attention dtype={}"
PROBLEMS = (
    "attention batch=2 heads=3 length=5/7 width=4/3 dtype={} values=spread.1#1",
    "attention batch=2 heads=4/2 length=6 width=5 dtype={} values=gaussian.1*3.0#2 causal=default",
    "attention batch=1 heads=2 length=7/4 width=4 dtype={} values=frontier.1#3 causal=bottom-right",
    "attention batch=1 heads=2 length=4/7 width=4 dtype={} values=frontier.1#4 causal=top-left scale=0.25",
    "attention batch=2 heads=2 length=4/6 width=4 dtype={} values=heavy.1#5 mask=random.1:b1qk#6 bias=holes.1:1hqk#7",
    "attention batch=2 heads=2 length=4/6 width=4 dtype={} values=spread.1#8 mask=empty-rows.1:qk#9 lengths=5,0",
    "attention batch=1 heads=2 length=4/6 width=4 dtype={} values=peaked.1#10",
    "attention batch=1 heads=1 length=3/4 width=4 dtype={} values=gaussian.1#11 scale=-1.5",
    f"{MULTI} batch=2 heads=2 length=5 model=8 inner=8 values=gaussian.1#12 projection=bias output=bias",
    f"{MULTI} batch=2 heads=3 length=4/6 model=5 inner=6/9 values=gaussian.1#13 source=cross output=none mask=random.1:b1qk#14",
    f"{MULTI} batch=1 heads=2 length=5 model=6 inner=6 values=gaussian.1#15 weights=shared causal=top-left lengths=4",
    "sinusoidal_encoding length=5000 width=10 dtype={} arrangement=interleaved rows=0,1,17,4999",
    "sinusoidal_encoding length=9 width=7 dtype={} arrangement=concatenated",
    "sinusoidal_encoding length=5000 width=10 dtype={} arrangement=concatenated frequencies=d/2-1 rows=0,1,17,4999",
    "sinusoidal_encoding length=9 width=7 dtype={} arrangement=interleaved frequencies=d/2-1",
    "sinusoidal_encoding length=9 width=2 dtype={} arrangement=interleaved frequencies=d/2-1",
    "sinusoidal_encoding length=6 width=8 dtype={} arrangement=interleaved batch=2 values=gaussian.1#16",
)
EXACT = {
    "attention": exact.attention,
    "multi_head_attention": exact.multi_head_attention,
    "sinusoidal_encoding": exact.sinusoidal_encoding,
}
# How much of the budget the NumPy oracle may be off: it has eleven more bits than float64, and twenty-nine more than float32.
SHARE = {"float64": 0.01, "float32": 1e-6, "float16": 1e-6, "bfloat16": 1e-6}


def plain_inputs(lq: int, lk: int, **more: Any) -> AttentionInputs:
    inputs = materialise(parse(f"attention length={lq}/{lk} batch=1 heads=1 width=3 dtype=float64 values=spread.1#1"))
    assert isinstance(inputs, AttentionInputs)
    return inputs.but(**more)


def multi_head_inputs(fields: str, heads: int = 2) -> MultiHeadInputs:
    inputs = materialise(parse(f"{MULTI.format('float64')} batch=1 heads={heads} length=3 values=gaussian.1#5 {fields}"))
    assert isinstance(inputs, MultiHeadInputs)
    return inputs


@pytest.mark.parametrize("dtype", SHARE)
@pytest.mark.parametrize("text", PROBLEMS)
def test_the_two_oracles_agree_far_below_the_budget(text: str, dtype: str) -> None:
    problem = parse(text.format(dtype))
    inputs = materialise(problem)
    first, output = expect(inputs, "strict"), EXACT[problem.operation](inputs)
    assert output.shape == first.output.shape
    rounding = 0.5 * np.spacing(np.abs(output))  # of the exact result to float64
    allowed = SHARE[dtype] * first.budget + rounding
    assert np.broadcast_to(first.judged, output.shape).any()
    assert (np.abs(first.output - output) <= allowed)[np.broadcast_to(first.judged, output.shape)].all()


def test_it_shares_no_code_with_the_first_oracle() -> None:
    tree = ast.parse(Path(exact.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    ours = {name for name in imported if name and name.startswith("conformance")}
    assert ours == {"conformance.errors", "conformance.features", "conformance.problem.inputs"}


@pytest.mark.parametrize("twin", ["hide_exactly", "score_exactly", "added_exactly"])
def test_the_exact_twins_of_features_are_written_apart(twin: str) -> None:
    for feature in every_feature():
        code = getattr(type(feature), twin).__code__
        first = {"visible", "of_scores", "of_logits", "value", "self", "offset", "expect", "truth_of", "visible_block"}
        assert set(code.co_names) & first == set(), feature.name
        assert "self" not in code.co_varnames[code.co_argcount :]


def test_a_zero_query_gives_the_mean_of_v_to_the_last_bit() -> None:
    inputs = materialise(parse("attention batch=1 heads=2 length=1/7 width=3/50 dtype=float64 values=zero-query.1#3"))
    output = exact.attention(inputs)
    for h, c in np.ndindex(2, 50):
        assert output[0, h, 0, c] == float(sum(Fraction(float(v)) for v in inputs.value[0, h, :, c]) / 7)


def test_subnormal_results_are_rounded_once() -> None:
    inputs = materialise(parse("attention batch=1 heads=1 length=1/3 width=2/99 dtype=float64 values=zero-query.1#4"))
    value = np.ldexp(inputs.value, -1066)
    output = exact.attention(inputs.but(value=value))
    assert (np.abs(output) < 2.0**-1060).all() and (output != 0).any()
    for c in range(99):
        assert output[0, 0, 0, c] == float(sum(Fraction(float(v)) for v in value[0, 0, :, c]) / 3)


def test_weights_too_small_for_float64_are_zero_and_the_others_add_up_to_one() -> None:
    key = np.array([[0.0], [-3000.0], [-1.0]])[None, None]
    inputs = AttentionInputs(query=np.ones((1, 1, 1, 1)), key=key, value=np.ones((1, 1, 3, 1)))
    weights = exact.attention_steps(inputs)["weights"][0, 0, 0]
    assert weights[1] == 0.0
    assert weights[0] == pytest.approx(1 / (1 + math.exp(-1)), rel=2e-16)
    assert weights[2] == pytest.approx(math.exp(-1) / (1 + math.exp(-1)), rel=2e-16)


@pytest.mark.parametrize(
    ("lq", "lk", "causal", "seen"),
    [
        (3, 3, "default", [1, 2, 3]),
        (2, 4, "top-left", [1, 2]),
        (2, 4, "bottom-right", [3, 4]),
        (4, 2, "top-left", [1, 2, 2, 2]),
        (4, 2, "bottom-right", [0, 0, 1, 2]),
    ],
)
def test_causal_rows_see_their_leading_keys(lq: int, lk: int, causal: str, seen: list[int]) -> None:
    steps = exact.attention_steps(plain_inputs(lq, lk, causal=causal))
    rows = steps["weights"][0, 0]
    assert [[j < n for j in range(lk)] for n in seen] == (rows > 0).tolist() == steps["visible"][0, 0].tolist()
    assert rows.sum(axis=1) == pytest.approx([min(n, 1) for n in seen], abs=1e-15)


def test_bias_is_added_after_the_scale_and_minus_infinity_hides() -> None:
    key = np.array([[1.0], [2.0], [3.0]])[None, None]
    bias = np.array([[0.5, 0.0, -np.inf]])
    inputs = AttentionInputs(query=np.full((1, 1, 1, 1), 4.0), key=key, value=np.eye(3)[None, None], bias=bias, scale=0.25)
    total = math.exp(1.5) + math.exp(2.0)
    expected = [math.exp(1.5) / total, math.exp(2.0) / total, 0.0]
    assert exact.attention(inputs)[0, 0, 0] == pytest.approx(expected, rel=4e-16)


def test_rows_that_see_nothing_are_zero() -> None:
    inputs = plain_inputs(2, 3, mask=np.array([[False, False, False], [True, False, True]]))
    output = exact.attention(inputs)[0, 0]
    assert (output[0] == 0).all()
    assert (output[1] != 0).all()


def test_multi_head_steps_lead_to_the_output() -> None:
    inputs = multi_head_inputs("model=4 inner=4/6 projection=bias output=bias")
    steps = exact.multi_head_steps(inputs)
    weights, value = steps["weights"], steps["projected_value"]
    heads = [weights[0, h] @ value[0][:, 3 * h : 3 * h + 3] for h in range(2)]
    assert steps["merged_heads"][0] == pytest.approx(np.concatenate(heads, axis=1), rel=1e-14)
    target = steps["merged_heads"][0] @ inputs.weights.output + inputs.weights.output_bias
    assert steps["output"][0] == pytest.approx(target, rel=1e-13)
    assert (exact.multi_head_attention(inputs) == steps["output"]).all()


def test_sinusoidal_arrangements_and_an_odd_width() -> None:
    inputs = SinusoidalInputs(length=3, width=5, dtype="float64", arrangement="interleaved")
    waves = [(math.sin(2 * w), math.cos(2 * w)) for w in (1.0, 10000 ** (-2 / 5), 10000 ** (-4 / 5))]
    interleaved = [x for pair in waves for x in pair][:5]
    concatenated = [s for s, _ in waves] + [c for _, c in waves[:2]]
    assert exact.sinusoidal_encoding(inputs)[2] == pytest.approx(interleaved, rel=1e-15)
    assert exact.sinusoidal_encoding(inputs.but(arrangement="concatenated"))[2] == pytest.approx(concatenated, rel=1e-15)
    x = np.full((2, 3, 5), 8.0)
    added = exact.sinusoidal_encoding(inputs.but(rows=(2,), x=x))
    assert added.shape == (2, 1, 5)
    assert added[1, 0] == pytest.approx([8.0 + e for e in interleaved], rel=1e-15)


@pytest.mark.parametrize(
    ("width", "frequencies"), [(6, (1.0, 1e-2, 1e-4)), (5, (1.0, 1e-2, 1e-4)), (3, (1.0, 1e-4)), (2, (1.0,))]
)
def test_frequencies_from_1_to_a_ten_thousandth(width: int, frequencies: tuple[float, ...]) -> None:
    inputs = SinusoidalInputs(length=4, width=width, dtype="float64", arrangement="concatenated", frequencies="d/2-1")
    target = [math.sin(3 * w) for w in frequencies] + [math.cos(3 * w) for w in frequencies[: width // 2]]
    assert exact.sinusoidal_encoding(inputs)[3] == pytest.approx(target, rel=1e-15)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (plain_inputs(2, 3, query=np.full((1, 1, 2, 3), np.nan)), "query holds nan"),
        (plain_inputs(2, 3, value=np.full((1, 1, 3, 3), np.inf)), "value holds inf"),
        (plain_inputs(2, 3, bias=np.full((2, 3), np.inf)), "bias makes a score inf"),
        (plain_inputs(2, 3, scale=math.inf), "scale holds inf"),
        (plain_inputs(2, 3, causal="default"), "name the alignment"),
        (plain_inputs(2, 3, query=np.zeros((1, 3, 2, 3)), key=np.zeros((1, 2, 3, 3))), "3 query heads cannot be shared"),
    ],
)
def test_what_it_cannot_compute_it_refuses(inputs: AttentionInputs, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        exact.attention(inputs)


def test_inner_widths_must_be_divisible_by_the_heads() -> None:
    inputs = multi_head_inputs("model=4 inner=4")
    with pytest.raises(UsageError, match="3 heads do not divide"):
        exact.multi_head_attention(inputs.but(num_heads=3))
    for heads, inner, value_inner in ((3, 6, 4), (2, 6, 3), (2, 3, 6)):
        wide = multi_head_inputs(f"model=4 inner={inner}/{value_inner}", heads=1)
        with pytest.raises(UsageError, match=f"{heads} heads do not divide the inner widths {inner} and {value_inner}."):
            exact.multi_head_attention(wide.but(num_heads=heads))


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_an_array_that_is_not_finite_is_named(name: str) -> None:
    inputs, layer = plain_inputs(2, 3), multi_head_inputs("model=4 inner=4 projection=bias output=bias")

    def refused(compute, inputs) -> str:
        with pytest.raises(UsageError) as error:
            compute(inputs)
        return str(error.value).partition(" holds")[0]

    assert refused(exact.attention, inputs.but(**{name: np.full_like(getattr(inputs, name), np.nan)})) == name
    assert refused(exact.multi_head_attention, layer.but(**{name: np.full_like(getattr(layer, name), np.nan)})) == name
    for field in (name, f"{name}_bias", "output", "output_bias"):
        weights = replace(layer.weights, **{field: np.full_like(getattr(layer.weights, field), np.nan)})
        assert refused(exact.multi_head_attention, layer.but(weights=weights)) == f"weights.{field}"
    assert refused(exact.multi_head_attention, layer.but(scale=math.inf)) == "scale"
    x = np.full((1, 3, 4), np.nan)
    table = SinusoidalInputs(length=3, width=4, dtype="float64", arrangement="interleaved", x=x)
    assert refused(exact.sinusoidal_encoding, table) == "x"


def test_heads_that_cannot_be_shared_out_are_counted() -> None:
    inputs = plain_inputs(2, 3, query=np.zeros((1, 3, 2, 3)), key=np.zeros((1, 2, 5, 3)), value=np.zeros((1, 2, 5, 3)))
    with pytest.raises(UsageError, match="3 query heads cannot be shared out over 2 key heads"):
        exact.attention(inputs)


def test_a_given_scale_of_multi_head_attention_takes_the_place_of_the_default() -> None:
    inputs = multi_head_inputs("model=4 inner=6/4 projection=bias output=bias")
    steps, given = exact.multi_head_steps(inputs), exact.multi_head_steps(inputs.but(scale=0.25))
    assert steps["scaled_scores"] == pytest.approx(steps["scores"] / math.sqrt(3), rel=1e-15)
    assert given["scaled_scores"] == pytest.approx(steps["scores"] * 0.25, rel=1e-15)


def test_multi_head_steps_are_what_the_formula_says() -> None:
    inputs = multi_head_inputs("model=4 inner=6/4 projection=bias output=bias mask=random.1:b1qk#1")
    steps, weights = exact.multi_head_steps(inputs), inputs.weights
    assert set(steps) == {
        "projected_query", "projected_key", "projected_value", "scores", "scaled_scores", "weights", "visible", "merged_heads",
        "lse", "output",
    }  # fmt: skip
    for name in ("query", "key", "value"):
        target = getattr(inputs, name) @ getattr(weights, name) + getattr(weights, f"{name}_bias")
        assert steps[f"projected_{name}"] == pytest.approx(target, rel=1e-12)
    query, key = (steps[f"projected_{name}"][0, :, :3] for name in ("query", "key"))
    assert steps["scores"][0, 0] == pytest.approx(query @ key.T, rel=1e-12)
    assert (steps["visible"][0, 0] == inputs.mask[0, 0]).all()
    assert ((steps["weights"] > 0) == steps["visible"]).all()

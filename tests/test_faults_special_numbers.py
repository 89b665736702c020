"""Faults with special numbers, of relations and of bias change what they say and leave everything else alone."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.evaluation.kills import try_fault
from conformance.faults.steps import compute
from conformance.judging.judge import Judge
from conformance.numerics.dtypes import DTYPES
from conformance.problem import parse
from conformance.values import materialise
from tests.support.faults import of_kinds

ORDINARY = {
    "attention": "attention batch=2 heads=3/3 length=7/13 width=8/8 dtype={} values=gaussian.1#1",
    "multi_head_attention": "multi_head_attention batch=2 heads=3 length=5/5 model=15 inner=15/15 dtype={} values=gaussian.1#1",
    "sinusoidal_encoding": "sinusoidal_encoding length=9 width=8 dtype={} arrangement=interleaved",
}
SPECIAL = of_kinds("special_numbers")
RELATIONS = of_kinds("outputs", "heads", "causal", "layers", "positions")
BIASED = of_kinds("approximations", where=lambda fault: fault.id.startswith("log2e-") or "newton" in fault.id)
GROUPED = "attention batch=1 heads=6/2 length=7/13 width=8/8 dtype=float32 values=gaussian.1#1"


def inputs_of(operation="attention", dtype="float32"):
    return materialise(parse(ORDINARY[operation].format(dtype)))


def same(fault, inputs):
    return fault.output(inputs).tobytes() == compute(inputs).tobytes()


def with_entry(inputs, name, number):
    array = getattr(inputs, name).copy()
    array[0, 0, 1, 0] = number
    return inputs.but(**{name: array})


@pytest.mark.parametrize("name", SPECIAL)
def test_without_special_numbers_nothing_changes(name):
    fault = SPECIAL[name]
    inputs = inputs_of(fault.operation, "float16" if fault.operation == "multi_head_attention" else "float64")
    if name == "value-scale-overflows":
        assert np.allclose(fault.output(inputs), compute(inputs), rtol=1e-12)
    else:
        assert same(fault, inputs)


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("nan-in-query-as-zero", "query", np.nan),
        ("nan-in-key-as-zero", "key", np.nan),
        ("nan-in-value-as-zero", "value", np.nan),
        ("nan-scores-hidden", "key", np.nan),
        ("nan-output-as-zero", "value", np.nan),
        ("nan-spreads-over-channels", "value", np.nan),
        ("nan-spreads-over-head", "query", np.nan),
        ("nan-spreads-over-heads", "key", np.nan),
        ("infinity-in-query-spoils-head", "query", np.inf),
        ("infinity-in-key-spoils-all", "key", -np.inf),
        ("infinite-value-clipped", "value", np.inf),
        ("infinite-value-spoils-channels", "value", -np.inf),
        ("minus-zero-in-query", "query", -0.0),
        ("minus-zero-in-key", "key", -0.0),
        ("minus-zero-in-value", "value", -0.0),
        ("zero-means-padding", "key", 0.0),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_special_number_brings_the_fault_out(name, place, number, dtype):
    assert not same(SPECIAL[name], with_entry(inputs_of(dtype=dtype), place, number))


def test_plus_zero_is_no_minus_zero():
    for name in ("query", "key", "value"):
        assert same(SPECIAL[f"minus-zero-in-{name}"], with_entry(inputs_of(), name, 0.0))


@pytest.mark.parametrize(
    "name", ["output-beyond-the-mean", "scale-by-row-number", "query-channels-in-halves", "query-without-signs"]
)
def test_relations_are_broken_by_every_ordinary_problem(name):
    assert not same(RELATIONS[name], inputs_of())


def test_faults_of_features_show_with_the_feature_only():
    grouped, causal = RELATIONS["heads-averaged-in-groups"], RELATIONS["causal-without-mask-ignored"]
    assert same(grouped, inputs_of()) and not same(grouped, materialise(parse(GROUPED)))
    triangle = inputs_of().but(causal="top-left")
    assert same(causal, inputs_of()) and not same(causal, triangle)
    assert same(causal, triangle.but(mask=np.ones((1, 1, 1, 13), dtype=bool)))
    one_head = inputs_of("multi_head_attention").but(num_heads=1)
    single = RELATIONS["multi-head-single-head-unscaled"]
    assert same(single, inputs_of("multi_head_attention")) and not same(single, one_head)
    bare = inputs_of("multi_head_attention")
    laid_out = RELATIONS["multi-head-interleaved-without-output"]
    assert same(laid_out, bare) and not same(laid_out, bare.but(weights=replace(bare.weights, output=None)))


@pytest.mark.parametrize("fault", BIASED.values(), ids=lambda fault: fault.id)
def test_biased_constants_are_caught_in_every_dtype_that_they_list(fault):
    judge = Judge()
    for dtype in fault.dtypes:
        assert try_fault(fault, dtype, judge).kill is not None, dtype


def test_a_given_scale_needs_no_inverse_root():
    given = inputs_of().but(scale=0.25)
    newton = BIASED["scale-by-one-newton-step"]
    assert same(newton, given) and not same(newton, inputs_of())

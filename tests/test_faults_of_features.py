"""A feature that is added to the folder of features gets its faults without anybody writing them."""

import inspect
from typing import Any, ClassVar

import numpy as np
import pytest

from conformance.evaluation.correct_variants import in_float32
from conformance.faults import catalogue, of_features
from conformance.faults.fault import ALL_DTYPES
from conformance.faults.functions import function_of
from conformance.faults.online import merged, online, proportions
from conformance.faults.steps import compute
from conformance.features import features
from conformance.features.feature import Feature, Wrong
from conformance.problem.fields import Field, Number
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs
from conformance.specification.build import attention, multi_head
from conformance.values import materialise


class First(Feature):
    """Only the first ``first`` keys are seen."""

    name = argument = "first"
    words = "the number of first keys"
    alone: ClassVar = {"attention": ("ATT-MASK-001",), "multi_head_attention": ("ATT-HEAD-023",)}
    beside: ClassVar = {"attention": {"mask": ("ATT-MASK-002",)}}
    field = Field(key="first", kind=Number(), names=("first",), defaults=(None,))

    def visible(self, inputs: Any, start: int, stop: int) -> np.ndarray | None:
        return None if inputs.first is None else (np.arange(inputs.key.shape[-2]) < inputs.first)[None, None, None]

    def faults(self) -> tuple[Wrong, ...]:
        one_more = Wrong(
            id="first-one-more",
            sentence="shows one key more",
            requirements={"attention": ("ATT-MASK-001",), "multi_head_attention": ("ATT-HEAD-023",)},
            rewrite=lambda inputs: inputs if inputs.first is None else inputs.but(first=inputs.first + 1),
        )
        without_bias = Wrong(
            id="first-drops-bias",
            sentence="adds no bias",
            requirements={"attention": ("ATT-MASK-001",)},
            needs=frozenset({"bias"}),
            chain=lambda stages: tuple(stage for stage in stages if stage.name != "bias"),
        )
        return one_more, without_bias


@pytest.fixture
def known(monkeypatch):
    """The faults that there are with the feature, by id."""
    both = {operation: (*features(operation), First()) for operation in ("attention", "multi_head_attention")}
    for module in ("faults.of_features", "operations.attending", "faults.grammar"):
        monkeypatch.setattr(f"conformance.{module}.features", lambda operation: both.get(operation, ()))
    monkeypatch.setattr("conformance.problem.visibility.features", lambda operation: both.get(operation, ()))
    for inputs in (AttentionInputs, MultiHeadInputs):
        defaults = {**inputs.defaults(), "first": None}
        monkeypatch.setattr(inputs, "defaults", classmethod(lambda cls, defaults=defaults: defaults))
    asked = frozenset({"first", "mask", "causal", "key-lengths", "bias", "scale", "cross-length"})
    monkeypatch.setattr(of_features, "_asked", lambda identifier: {("float32", asked)})
    return {fault.id: fault for fault in of_features.made()}


@pytest.fixture
def plain():
    return materialise(attention("wide", ("float64",), mask="random.1:b1qk#1")[0])


def first_keys(inputs, count):
    """The inputs with all but the first keys hidden by a mask."""
    mask = np.ones((1, 1), bool) if inputs.mask is None else inputs.mask
    return inputs.but(mask=mask & (np.arange(inputs.key.shape[-2]) < count), first=None)


def test_faults_are_made_for_it_in_both_operations(known):
    made = {"first-ignored", "first-sticks", "first-dropped-with-mask", "mask-dropped-with-first", "first-only-with-mask"}
    made |= {
        "mask-or-first",
        "first-one-more",
        "first-drops-bias",
        "multi-head-first-ignored",
        "multi-head-first-sticks",
        "multi-head-first-one-more",
    }
    assert known.keys() - catalogue().keys() == made
    assert known["first-dropped-with-mask"].sentence == "leaves the number of first keys out beside the mask"
    assert known["first-dropped-with-mask"].needs == {"first", "mask"}
    assert known["first-ignored"].requirements == ("ATT-MASK-001",)
    assert known["multi-head-first-one-more"].operation == "multi_head_attention"
    assert known["mask-or-first"].dtypes == ("float32",)


def test_they_are_in_the_dtypes_in_which_a_requirement_asks_for_what_they_need():
    assert catalogue()["multi-head-mask-lost-beside-lengths"].dtypes == ("float32",)
    assert catalogue()["mask-dropped-with-causal"].dtypes == ALL_DTYPES
    assert "scale-dropped-with-mask" not in catalogue()


def test_what_is_left_out_is_left_out_and_nothing_else(known, plain):
    asked, expected = plain.but(first=5), compute(plain)
    np.testing.assert_array_equal(known["first-ignored"].output(asked), expected)
    np.testing.assert_array_equal(known["first-dropped-with-mask"].output(asked), expected)
    np.testing.assert_array_equal(known["first-one-more"].output(asked), compute(first_keys(plain, 6)))
    np.testing.assert_array_equal(known["mask-dropped-with-first"].output(asked), compute(first_keys(plain.but(mask=None), 5)))
    united = plain.mask | (np.arange(13) < 5)
    np.testing.assert_array_equal(known["mask-or-first"].output(asked), compute(plain.but(mask=united)))


def test_it_may_bring_another_chain_of_stages(known, plain):
    asked = plain.but(first=5, bias=np.arange(13.0)[None])
    assert known["first-drops-bias"].needs == {"first", "bias"}
    np.testing.assert_array_equal(known["first-drops-bias"].output(asked), compute(first_keys(plain, 5)))


def test_it_reaches_every_computation(known, plain):
    asked, expected = plain.but(first=5), compute(first_keys(plain, 5))
    np.testing.assert_array_equal(compute(asked), expected)
    np.testing.assert_array_equal(known["mask-ignored"].output(asked), compute(first_keys(plain.but(mask=None), 5)))
    for right in (online, lambda inputs: merged(inputs, proportions), in_float32):
        np.testing.assert_allclose(right(asked), expected, rtol=1e-10, atol=1e-12)


def test_it_reaches_the_heads_of_multi_head_attention(known):
    layer = materialise(multi_head("square", ("float64",))[0])
    expected = compute(first_keys(layer, 3))
    np.testing.assert_array_equal(compute(layer.but(first=3)), expected)
    np.testing.assert_array_equal(known["multi-head-first-one-more"].output(layer.but(first=2)), expected)


def test_functions_have_its_parameter_and_it_sticks(known, plain):
    function = function_of(known["first-sticks"])
    assert "first" in inspect.signature(function).parameters
    given = plain.query, plain.key, plain.value
    expected = compute(first_keys(plain.but(mask=None), 5))
    np.testing.assert_array_equal(function(*given), compute(plain.but(mask=None)))
    np.testing.assert_array_equal(function(*given, first=5), expected)
    np.testing.assert_array_equal(function(*given), expected)
    with pytest.raises(TypeError, match="no parameter second"):
        function(*given, second=5)


@pytest.mark.parametrize(("operation", "prefix"), [("attention", ""), ("multi_head_attention", "multi-head-")])
def test_every_feature_that_problems_ask_for_sticks(operation, prefix):
    asked = {f"{prefix}{feature.name}-sticks" for feature in features(operation) if feature.field is not None}
    assert asked == {name for name, one in catalogue().items() if name.endswith("-sticks") and one.operation == operation}
    assert all(catalogue()[name].dtypes == ALL_DTYPES for name in asked)


def test_a_source_is_given_for_what_was_seen_alone():
    seen = {name for name, one in catalogue().items() for source in one.sources if source.endswith("xformers/issues/103")}
    assert seen == {"causal-only-with-mask"}

"""What layers cannot be built without: zeros for a bias that is not there, an identity for a missing output projection; and a
scale that is held in a dtype of its own."""

from dataclasses import fields, replace

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct, multi_head

from conformance.adapter import Implementation, Support, registry
from conformance.adapter.declarations import unknown_words
from conformance.commands.describe import describe
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.problem.inputs import Weights
from conformance.records import implementation_entry
from conformance.timing.contender import Contender
from conformance.timing.contest import clock_of
from conformance.timing.shapes import TIMED
from tests.support.items import run_item

BIASES = tuple(field.name for field in fields(Weights) if field.name.endswith("_bias"))
LAYER = Support(operation="multi_head_attention", conventions={"CON-POLARITY": "true-attends", "CON-ALIGNMENT": "top-left"})
TEXT = (
    "multi_head_attention batch=2 heads=3 length=7 model=15 inner=15 dtype=float32 values=gaussian.1#5 source=self "
    "projection={} output={}"
)


def layer(accepts, *lacks: str) -> Implementation:
    """A layer that takes weights if ``accepts`` is true of the biases that are there; it must have an output projection."""

    def attention(query, key, value, weights, *, num_heads, mask=None, causal=False, key_lengths=None):
        there = {name for name in BIASES if getattr(weights, name) is not None}
        if weights.output is None or not accepts(there):
            raise ValueError(f"no such layer: {sorted(there)}")
        return multi_head(
            query, key, value, weights, num_heads=num_heads, mask=mask, causal=causal, key_lengths=key_lengths
        )  # fmt: skip

    return Implementation("layer", attention, replace(LAYER, lacks=frozenset({"no-output-projection", *lacks})), FRAMEWORK)


LAYERS = {
    "one flag": layer(lambda there: len(there) in (0, 4), "separate-biases"),
    "biases always": layer(lambda there: len(there) == 4, "no-projection-bias", "no-output-bias"),
    "output bias always": layer(lambda there: "output_bias" in there, "no-output-bias"),
    "one flag, which is set": layer(lambda there: len(there) == 4, "no-output-bias", "separate-biases"),
    "output bias alone": layer(lambda there: there == {"output_bias"}, "projection-bias", "no-output-bias"),
    "no bias": layer(lambda there: not there, "projection-bias", "output-bias"),
    "no output bias": layer(lambda there: "output_bias" not in there, "output-bias"),
}
POSSIBLE = {
    "output bias alone": {("plain", "plain"), ("plain", "bias"), ("plain", "none")},
    "no bias": {("plain", "plain"), ("plain", "none")},
    "no output bias": {("plain", "plain"), ("bias", "plain"), ("plain", "none"), ("bias", "none")},
}


@pytest.mark.parametrize("output", ["plain", "bias", "none"])
@pytest.mark.parametrize("projection", ["plain", "bias"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_given_what_it_cannot_do_without(name, projection, output):
    subject = Subject(LAYERS[name])
    problem = parse(TEXT.format(projection, output))
    if (projection, output) not in POSSIBLE.get(name, {(projection, output)}):
        with pytest.raises(Unsupported):
            subject.route(problem)
        return
    judgement = Judge().values(subject, problem)
    assert judgement.verdict.outcome is Outcome.PASS, (judgement.route, judgement.verdict)
    if output == "none":
        assert "no-output-projection=identity" in judgement.route, "reported as emulated"


def test_routes_may_be_limited():
    strict = replace(LAYERS["one flag"].support, routes={"no-output-projection": ("native",), "separate-biases": ("native",)})
    subject = Subject(replace(LAYERS["one flag"], support=strict))
    for projection, output in (("bias", "none"), ("bias", "plain")):
        with pytest.raises(Unsupported):
            subject.route(parse(TEXT.format(projection, output)))


def test_an_identity_needs_a_value_width_like_the_models():
    problem = parse(TEXT.format("plain", "none").replace("inner=15", "inner=15/18"))
    with pytest.raises(Unsupported, match="no-output-projection"):
        Subject(LAYERS["one flag"]).route(problem)


def test_the_module_of_torch_is_asked_for_all_of_it():
    implementation = registry.builtin()["torch-mha"]
    if implementation.missing():
        pytest.skip(implementation.missing())
    for projection in ("plain", "bias"):
        for output in ("plain", "bias", "none"):
            judgement = Judge().values(Subject(implementation), parse(TEXT.format(projection, output)))
            assert judgement.verdict.outcome is Outcome.PASS
            assert (judgement.route == "native") == (output != "none" and (projection == "bias") == (output == "bias"))


@pytest.mark.parametrize("name", ["no output bias", "no bias", "one flag"])
def test_a_layer_is_timed_without_the_bias_that_it_lacks(name):
    problem = TIMED["multi_head_attention"]["short"].but(batch=1, query_length=4, key_length=4)
    contender = Contender(Subject(LAYERS[name]), clock_of(LAYERS[name], alone=False), "forward")
    contender.enter(Judge(), [problem])
    assert contender.failure is None, contender.failure


# The scale


def in_float32(function):
    def attention(query, key, value, *, scale=None):
        return direct(query, key, value, scale=float(np.float32(query.shape[-1] ** -0.5 if scale is None else scale)))

    return attention


def declaring(scale_dtype: str | None) -> Implementation:
    support = Support(dtypes=("float64", "float32"), profile={"float64": "strict", "float32": "strict"}, scale_dtype=scale_dtype)
    return Implementation("rounds-the-scale", in_float32(direct), support, FRAMEWORK)


@pytest.mark.parametrize("requirement", ["ATT-SCALE-001", "ATT-SCALE-005", "ATT-OUT-001", "ATT-OUT-039"])
def test_a_scale_in_float32_is_judged_as_such_where_it_is_declared(requirement):
    assert run_item(requirement, declaring("float32")).item.outcome is Outcome.PASS
    assert run_item("ATT-SCALE-001", declaring(None)).item.outcome is Outcome.WRONG_VALUE


def test_who_declares_it_is_held_to_it():
    exact = Implementation("exact", direct, declaring("float32").support, FRAMEWORK)
    assert run_item("ATT-SCALE-001", exact).item.outcome is Outcome.WRONG_VALUE


def test_multi_head_attention_too():
    def attention(query, key, value, weights, *, num_heads):
        width = weights.query.shape[1] // num_heads
        factor = float(np.float32(width**-0.5)) / width**-0.5
        scaled = {"query": weights.query * factor}
        if weights.query_bias is not None:
            scaled["query_bias"] = weights.query_bias * factor
        return multi_head(query, key, value, replace(weights, **scaled), num_heads=num_heads)

    support = replace(LAYER, dtypes=("float64",), profile="strict", scale_dtype="float32")
    rounded = Implementation("rounds-the-scale", attention, support, FRAMEWORK)
    assert run_item("ATT-HEAD-018", rounded).item.outcome is Outcome.PASS
    undeclared = replace(rounded, support=replace(support, scale_dtype=None))
    assert run_item("ATT-HEAD-018", undeclared).item.outcome is Outcome.WRONG_VALUE


def test_it_is_told():
    implementation = declaring("float32")
    assert "held in float32" in describe(implementation)
    assert implementation_entry(implementation).scale_dtype == "float32"
    assert any("Support.scale_dtype names 'half'" in sentence for sentence in unknown_words(Support(scale_dtype="half")))

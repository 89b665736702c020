"""Routes: which of several ways a feature is asked for, where features exclude each other, and where layers cannot do without."""

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.routes import Route, all_routes, default_route, fold, offered_ways
from conformance.errors import Unsupported
from conformance.problem import parse
from conformance.problem.forms import MASK_FORMS
from conformance.values import materialise
from tests.test_folding import BESIDE, MEANT, NUMPY, hidden_by, inputs_with, masked_only, one_of_two


def exclusive(*features, signature="mask=None, bias=None, causal=False", **support):
    """The default route of a problem for a function that takes one of the ``features`` at a time."""
    namespace = {}
    exec(f"def function(query, key, value, *, {signature}): raise AssertionError('it is not called')", namespace)
    mine = Implementation("mine", namespace["function"], Support(exclusive=frozenset(features), **support, **MEANT), NUMPY)

    def route(*names):
        text = "attention batch=2 heads=3 length=7 width=4 dtype=float32 values=spread.1#3"
        asked = {**BESIDE, "causal": "causal=top-left", "key-lengths": "lengths=5,7"}
        problem = parse(" ".join([text, *(asked[name] for name in names)]))
        return str(default_route(problem, mine, dict(MEANT["conventions"])))

    return route


def test_of_features_that_exclude_each_other_one_is_folded_into_the_other():
    route = exclusive("mask", "bias")
    assert route("mask") == route("bias") == route("causal") == "native"
    assert route("mask", "bias") == "mask=bias"
    assert route("bias", "causal") == "native"
    route = exclusive("mask", "causal")
    assert route("mask", "causal") == "causal=mask"
    assert route("mask", "bias") == "native"
    route = exclusive("bias", "causal")
    assert route("bias", "causal") == "causal=bias"
    route = exclusive("mask", "bias", "causal")
    assert route("mask", "bias", "causal") == "causal=bias,mask=bias"
    assert route("key-lengths", "causal") == "causal=mask,key-lengths=mask"
    assert route("key-lengths", "bias") == "key-lengths=bias", "what is folded into a rival is folded on"
    route = exclusive("causal", "key-lengths", signature="causal=False, key_lengths=None")
    with pytest.raises(Unsupported, match=r"^causal and key-lengths together$"):
        route("causal", "key-lengths")


LAYER = "multi_head_attention batch=2 heads=2 length=5 model=4 dtype=float32 values=gaussian.1#1 source=self weights=full"


def layer_routes(projection, output, lacks=(), inner=4, **support):
    namespace = {}
    signature = "query, key, value, weights, *, num_heads, mask=None, causal=False"
    exec(f"def function({signature}): raise AssertionError('it is not called')", namespace)
    mine = Implementation(
        "mine",
        namespace["function"],
        Support(operation="multi_head_attention", lacks=frozenset(lacks), **support, **MEANT),
        NUMPY,
    )
    problem = parse(f"{LAYER} inner={inner} projection={projection} output={output}")
    return [str(route) for route in all_routes(problem, mine, dict(MEANT["conventions"]))]


def test_a_layer_without_an_output_projection_is_asked_for_itself_then_for_an_identity():
    assert layer_routes("plain", "plain")[0] == "native"
    found = layer_routes("plain", "none")
    assert found[0] == "native" and "no-output-projection=identity" in found
    found = layer_routes("plain", "none", lacks=["no-output-projection"])
    assert all("no-output-projection=identity" in route for route in found) and found
    never = {"no-output-projection": ("native",)}
    with pytest.raises(Unsupported) as refused:
        layer_routes("plain", "none", lacks=["no-output-projection"], routes=never)
    assert (str(refused.value), refused.value.feature) == ("no-output-projection", "no-output-projection")
    assert layer_routes("plain", "plain", lacks=["no-output-projection"], routes=never)[0] == "native"


@pytest.mark.parametrize(
    ("projection", "output", "lacks", "first"),
    [
        ("bias", "plain", (), "native"),
        ("bias", "plain", ("separate-biases",), "no-output-bias=zeros,separate-biases=zeros"),
        ("plain", "bias", ("separate-biases",), "no-projection-bias=zeros,separate-biases=zeros"),
        ("plain", "plain", ("no-projection-bias",), "no-projection-bias=zeros"),
        ("bias", "plain", ("separate-biases", "output-bias"), None),
        ("plain", "bias", ("separate-biases", "projection-bias"), None),
    ],
)
def test_biases_of_one_flag_are_given_as_zeros_where_there_are_such(projection, output, lacks, first):
    if first is None:
        with pytest.raises(Unsupported, match="separate-biases"):
            layer_routes(projection, output, lacks)
    else:
        assert layer_routes(projection, output, lacks)[0] == first


def test_masks_of_layers_are_folded_as_those_of_attention():
    crossed = LAYER.replace("length=5", "length=5/7").replace("self", "cross")
    asked = "projection=bias output=plain mask=random.1:bhqk#1 causal=bottom-right lengths=5,7"
    inputs = materialise(parse(f"{crossed} inner=4 {asked}"))
    ways = {"separate-biases": "zeros", "causal": "mask", "key-lengths": "mask", "no-output-projection": "identity"}
    folded = fold(inputs, Route(ways), MASK_FORMS)
    seen = inputs.mask.copy()
    for row in range(5):
        seen[:, :, row, row + 3 :] = False
    seen[0, :, :, 5:] = False
    np.testing.assert_array_equal(folded.mask, seen)
    assert folded.mask.shape == (2, 2, 5, 7)
    assert folded.weights.output_bias.tolist() == [0.0] * 4
    assert (folded.causal, folded.key_lengths) == ("none", None)
    causal = fold(inputs.but(mask=None), Route({"causal": "mask"}), ("bhqk",))
    assert causal.mask.shape == (2, 2, 5, 7)
    of_keys = fold(inputs.but(mask=None), Route({"key-lengths": "padding"}), MASK_FORMS)
    assert of_keys.padding.tolist() == [[True] * 5 + [False] * 2, [True] * 7] and of_keys.mask is None


def test_repeated_heads_stand_beside_what_else_is_folded():
    inputs = materialise(
        parse("attention batch=1 heads=6/2 length=3/4 width=2 dtype=float32 values=signatures.1#1 causal=top-left")
    )
    for ways in ({"grouped-heads": "repeat", "causal": "mask"}, {"causal": "mask", "grouped-heads": "repeat"}):
        folded = fold(inputs, Route(ways), MASK_FORMS)
        assert folded.key.shape == folded.value.shape == (1, 6, 4, 2)
        np.testing.assert_array_equal(folded.mask, np.tri(3, 4, dtype=bool))
        assert folded.causal == "none"


def test_a_mask_that_is_folded_itself_is_not_kept_beside():
    inputs = inputs_with("mask", "key-lengths")
    folded = fold(inputs, Route({"mask": "bias", "key-lengths": "mask"}), MASK_FORMS)
    np.testing.assert_array_equal(np.broadcast_to(folded.mask, (2, 3, 6, 7)), ~hidden_by("key-lengths", inputs))
    np.testing.assert_array_equal(np.broadcast_to(folded.bias, (2, 3, 6, 7)) == -np.inf, hidden_by("mask", inputs))


def test_a_single_rival_is_no_rival_and_what_is_folded_into_one_counts():
    assert exclusive("causal", "key-lengths", signature="causal=False, key_lengths=None")("causal") == "native"
    route = exclusive("bias", "causal", signature="bias=None, causal=False")
    assert route("key-lengths", "causal") == "causal=bias,key-lengths=bias"


def test_no_route_comes_twice():
    mine = Implementation("mine", one_of_two, Support(exclusive=frozenset({"mask", "bias"}), **MEANT), NUMPY)
    text = "attention batch=2 heads=3 length=7 width=4 dtype=float32 values=spread.1#3 mask=random.1:b1qk#3 bias=gaussian.1:qk#3"
    found = [str(route) for route in all_routes(parse(text), mine, dict(MEANT["conventions"]))]
    assert found == ["mask=bias"]


def test_what_a_way_needs_must_be_offered():
    only = Implementation("only", masked_only, Support(features=frozenset({"mask"}), **MEANT), NUMPY)
    assert offered_ways("mask", only) == ["native"]
    support = Support(operation="multi_head_attention", lacks=frozenset({"projection-bias", "no-projection-bias"}), **MEANT)
    layer = Implementation("layer", lambda query, key, value, weights, *, num_heads: None, support, NUMPY)
    assert offered_ways("no-projection-bias", layer) == []
    with pytest.raises(Unsupported) as refused:
        layer_routes("plain", "plain", lacks=["projection-bias", "no-projection-bias"])
    assert refused.value.feature == "no-projection-bias"


def test_layers_of_one_flag_need_no_zeros_and_natively_no_identity():
    assert layer_routes("plain", "plain", lacks=["separate-biases"])[0] == "native"
    found = layer_routes("plain", "none", routes={"no-output-projection": ("native",)})
    assert found[0] == "native" and not any("identity" in route for route in found)


def test_an_alignment_of_layers_is_what_is_known_of_it():
    def layer(query, key, value, weights, *, num_heads, causal=False):
        raise AssertionError("it is not called")

    for lacks in (frozenset(), frozenset({"no-output-projection"})):
        mine = Implementation("mine", layer, Support(operation="multi_head_attention", lacks=lacks), NUMPY)
        crossed = LAYER.replace("length=5", "length=5/7").replace("self", "cross")
        problem = parse(f"{crossed} inner=4 projection=plain output=none causal=bottom-right")
        known = {"CON-ALIGNMENT": "bottom-right"}
        assert "causal" not in str(default_route(problem, mine, known))
        with pytest.raises(Unsupported, match="causal bottom-right"):
            default_route(problem, mine, {"CON-ALIGNMENT": "top-left"})
        plain = problem.but(output="plain")
        assert str(default_route(plain, mine, known)) == "native"


def test_a_mask_of_two_heads_is_no_mask_of_all():
    text = "attention batch=1 heads=2 length=5 width=4 dtype=float32 values=spread.1#3 mask=random.1:1hqk#3 causal=top-left"
    inputs = materialise(parse(text))
    folded = fold(inputs, Route({"causal": "mask"}), MASK_FORMS)
    np.testing.assert_array_equal(folded.mask, inputs.mask & np.tri(5, dtype=bool))
    assert folded.mask.shape == (1, 2, 5, 5)

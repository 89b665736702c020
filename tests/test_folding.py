"""Features that an implementation lacks, asked for by another one: what is folded hides what it must and keeps what was given."""

from itertools import combinations

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks, resolve
from conformance.adapter.routes import Route, all_routes, default_route, fold, offered_ways
from conformance.errors import Unsupported
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.problem.forms import MASK_FORMS
from conformance.problem.inputs import AttentionInputs
from conformance.values import materialise

NUMPY = frameworks()["numpy"]
DIRECT = resolve("numpy-direct").function
BESIDE = {
    "mask": "mask=random.1:b1qk#3",
    "bias": "bias=gaussian.1:bhqk*3.0#3",
    "causal": "causal=bottom-right",
    "key-lengths": "lengths=5,7",
}
MEANT = {"conventions": {"CON-POLARITY": "true-attends", "CON-PADDING-POLARITY": "true-attends"}}


def inputs_with(*names: str) -> AttentionInputs:
    text = "attention batch=2 heads=3 length=6/7 width=4 dtype=float32 values=spread.1#3"
    inputs = materialise(parse(" ".join([text, *(BESIDE[name] for name in BESIDE if name in names)])))
    assert isinstance(inputs, AttentionInputs)
    return inputs


def hidden_by(name: str, inputs: AttentionInputs) -> np.ndarray:
    """The pairs (B, H, Lq, Lk) that a feature hides, counted by hand."""
    hidden = np.zeros((2, 3, 6, 7), bool)
    if name == "mask":
        hidden[:] = ~inputs.mask
    if name == "causal":
        for row in range(6):
            hidden[:, :, row, row + 2 :] = True
    if name == "key-lengths":
        hidden[0, :, :, 5:] = True
    return hidden


FOLDED = [names for count in (1, 2, 3) for names in combinations(("mask", "causal", "key-lengths"), count)]


@pytest.mark.parametrize("own_bias", [True, False])
@pytest.mark.parametrize("names", FOLDED, ids=" ".join)
def test_what_is_folded_into_the_bias_keeps_the_bias_that_was_given(names, own_bias):
    inputs = inputs_with(*names, *(["bias"] if own_bias else []))
    folded = fold(inputs, Route(dict.fromkeys(names, "bias")), MASK_FORMS)
    hidden = np.logical_or.reduce([hidden_by(name, inputs) for name in names])
    whole = np.broadcast_to(folded.bias, hidden.shape)
    assert hidden.any() and not hidden.all()
    assert (whole[hidden] == -np.inf).all()
    np.testing.assert_array_equal(whole[~hidden], inputs.bias[~hidden] if own_bias else 0.0)
    assert whole.dtype == np.float32
    assert (folded.mask, folded.causal, folded.key_lengths) == (None, "none", None)
    assert inputs.causal == ("bottom-right" if "causal" in names else "none"), "the inputs themselves stay as they are"


@pytest.mark.parametrize("own_mask", [True, False])
@pytest.mark.parametrize("names", [("causal",), ("key-lengths",), ("causal", "key-lengths")], ids=" ".join)
def test_what_is_folded_into_the_mask_keeps_the_mask_that_was_given(names, own_mask):
    inputs = inputs_with("bias", *names, *(["mask"] if own_mask else []))
    folded = fold(inputs, Route(dict.fromkeys(names, "mask")), MASK_FORMS)
    hiding = [*names, *(["mask"] if own_mask else [])]
    hidden = np.logical_or.reduce([hidden_by(name, inputs) for name in hiding])
    np.testing.assert_array_equal(np.broadcast_to(folded.mask, hidden.shape), ~hidden)
    assert folded.bias is inputs.bias
    assert (folded.causal, folded.key_lengths) == ("none", None)


def test_a_feature_that_is_not_folded_stays():
    inputs = inputs_with("causal", "key-lengths")
    folded = fold(inputs, Route({"key-lengths": "mask"}), MASK_FORMS)
    assert folded.causal == "bottom-right" and folded.key_lengths is None
    np.testing.assert_array_equal(np.broadcast_to(folded.mask, (2, 3, 6, 7)), ~hidden_by("key-lengths", inputs))
    assert fold(inputs, Route(), MASK_FORMS) is inputs


def test_key_lengths_and_masks_of_keys_become_a_mask_of_keys_alone():
    inputs = inputs_with("key-lengths").but(mask=np.array([1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1], bool).reshape(2, 1, 1, 7))
    folded = fold(inputs, Route({"key-lengths": "padding", "mask": "padding"}), MASK_FORMS)
    assert folded.padding.tolist() == [[True, False, True, True, True, False, False], [True] * 4 + [False, True, True]]
    assert folded.padding.flags.c_contiguous
    assert (folded.mask, folded.key_lengths) == (None, None)


def test_heads_are_repeated_group_by_group():
    inputs = materialise(parse("attention batch=1 heads=6/2 length=3/4 width=2 dtype=float32 values=signatures.1#1"))
    folded = fold(inputs, Route({"grouped-heads": "repeat"}), MASK_FORMS)
    for name in ("key", "value"):
        array, repeated = getattr(inputs, name), getattr(folded, name)
        np.testing.assert_array_equal(repeated, array[:, [0, 0, 0, 1, 1, 1]])
    assert folded.query is inputs.query


@pytest.mark.parametrize(
    ("names", "smallest"),
    [
        (("causal",), (6, 7)),
        (("key-lengths",), (2, 1, 1, 7)),
        (("causal", "key-lengths"), (2, 1, 6, 7)),
    ],
)
def test_a_folded_mask_has_the_smallest_form_that_is_taken(names, smallest):
    inputs, route = inputs_with(*names), Route(dict.fromkeys(names, "mask"))
    forms = {(6, 7): "qk", (2, 1, 1, 7): "b11k", (2, 1, 6, 7): "b1qk", (1, 3, 6, 7): "1hqk", (2, 3, 6, 7): "bhqk"}
    assert fold(inputs, route, MASK_FORMS).mask.shape == smallest
    for shape, form in forms.items():
        holds = all(have in (1, size) for have, size in zip((1, 1, *smallest)[-4:], (1, 1, *shape)[-4:], strict=True))
        if holds:
            folded = fold(inputs, route, (form,))
            assert folded.mask.shape == shape and folded.mask.flags.c_contiguous
        else:
            with pytest.raises(Unsupported, match="a mask of shape"):
                fold(inputs, route, (form,))


def biased_only(query, key, value, *, bias=None):
    return DIRECT(query, key, value, bias=bias)


def masked_only(query, key, value, *, mask=None):
    return DIRECT(query, key, value, mask=mask)


def one_of_two(query, key, value, *, mask=None, bias=None):
    assert mask is None or bias is None
    return DIRECT(query, key, value, mask=mask, bias=bias)


@pytest.mark.parametrize(
    ("function", "support", "names"),
    [
        (biased_only, {}, ("mask", "bias", "causal", "key-lengths")),
        (biased_only, {}, ("bias", "causal")),
        (masked_only, {}, ("mask", "causal", "key-lengths")),
        (one_of_two, {"exclusive": frozenset({"mask", "bias"})}, ("mask", "bias")),
        (one_of_two, {"exclusive": frozenset({"mask", "bias"})}, ("mask", "bias", "causal", "key-lengths")),
    ],
)
def test_who_lacks_a_feature_is_asked_for_it_by_another_one_and_is_right(function, support, names):
    subject = Subject(Implementation("lacking", function, Support(**support, **MEANT), NUMPY))
    text = "attention batch=2 heads=3 length=6/7 width=4 dtype=float32 values=spread.1#3"
    problem = parse(" ".join([text, *(BESIDE[name] for name in BESIDE if name in names)]))
    judgement = Judge().values(subject, problem)
    assert judgement.verdict.outcome is Outcome.PASS, judgement.verdict.message
    assert judgement.route != "native"


def test_weights_that_a_layer_cannot_do_without_are_zeros_and_an_identity():
    text = "multi_head_attention batch=1 heads=2 length=3 model=4 inner=4 dtype=float32 values=gaussian.1#1 source=self"
    inputs = materialise(parse(f"{text} weights=full projection=plain output=none"))
    ways = {"no-projection-bias": "zeros", "no-output-projection": "identity", "no-output-bias": "zeros"}
    weights = fold(inputs, Route(ways), MASK_FORMS).weights
    np.testing.assert_array_equal(weights.output, np.eye(4))
    assert weights.output.dtype == np.float32
    for name in ("query_bias", "key_bias", "value_bias", "output_bias"):
        array = getattr(weights, name)
        assert array.shape == (4,) and array.dtype == np.float32 and not array.any()
    for name in ("query", "key", "value"):
        assert getattr(weights, name) is getattr(inputs.weights, name)
    given = materialise(parse(f"{text} weights=full projection=bias output=bias"))
    kept = fold(given, Route({"no-output-bias": "zeros"}), MASK_FORMS).weights
    assert all(getattr(kept, name) is getattr(given.weights, name) for name in ("query_bias", "output_bias"))


@pytest.mark.parametrize("ways", [{"separate-biases": "zeros"}, {"no-projection-bias": "zeros"}, {"no-output-bias": "zeros"}, {}])
@pytest.mark.parametrize(("projection", "output"), [("plain", "bias"), ("bias", "plain"), ("plain", "none"), ("bias", "bias")])
def test_zeros_take_the_place_of_the_biases_that_are_asked_for_so_and_of_no_others(projection, output, ways):
    text = "multi_head_attention batch=1 heads=2 length=3 model=4 inner=6/8 dtype=float32 values=gaussian.1#1 source=self"
    inputs = materialise(parse(f"{text} weights=full projection={projection} output={output}"))
    before, after = inputs.weights, fold(inputs, Route(ways), MASK_FORMS).weights
    of_projections = bool(ways.keys() & {"separate-biases", "no-projection-bias"}) and projection == "plain"
    of_output = bool(ways.keys() & {"separate-biases", "no-output-bias"}) and output == "plain"
    for name, size in (("query_bias", 6), ("key_bias", 6), ("value_bias", 8), ("output_bias", 4)):
        added = of_output if name == "output_bias" else of_projections
        if added:
            assert getattr(before, name) is None and getattr(after, name).tolist() == [0.0] * size
        else:
            assert getattr(after, name) is getattr(before, name)


@pytest.mark.parametrize("asked", ["interleaved", "concatenated"])
@pytest.mark.parametrize("known", ["interleaved", "concatenated", "other", None])
def test_columns_are_asked_for_where_they_lie_as_asked(asked, known):
    conventions = {} if known is None else {"CON-SINUSOID-ARRANGEMENT": known}
    problem = parse(f"sinusoidal_encoding length=5 width=6 dtype=float32 arrangement={asked}")

    def own(length, width):
        raise AssertionError("it is not called")

    def told(length, width, *, arrangement):
        raise AssertionError("it is not called")

    def route(function):
        support = Support(operation="sinusoidal_encoding", conventions=conventions)
        return str(default_route(problem, Implementation("mine", function, support, NUMPY), conventions))

    assert route(told) == "native", "who has a parameter for it is told"
    if asked == (known if known in ("interleaved", "concatenated") else "interleaved"):
        assert route(own) == "native"
    else:
        with pytest.raises(Unsupported, match=asked):
            route(own)


@pytest.mark.parametrize(
    ("frequencies", "known"), [("d", "d"), ("d/2-1", "d/2-1"), ("d", None), ("d", "other"), ("default", "d/2-1")]
)
def test_frequencies_of_its_own_are_those_that_are_known_or_the_papers(frequencies, known):
    conventions = {"CON-SINUSOID-ARRANGEMENT": "interleaved"} | ({} if known is None else {"CON-SINUSOID-FREQUENCIES": known})
    support = Support(operation="sinusoidal_encoding", conventions=conventions)
    mine = Implementation("mine", lambda length, width: None, support, NUMPY)
    asked = "" if frequencies == "default" else f" frequencies={frequencies}"
    problem = parse(f"sinusoidal_encoding length=5 width=6 dtype=float32{asked}")
    assert str(default_route(problem, mine, conventions)) == "native"
    other = {"d": "d/2-1", "d/2-1": "d"}[frequencies if frequencies != "default" else "d"]
    if known in ("d", "d/2-1", None) and frequencies != "default":
        with pytest.raises(Unsupported, match=f"frequencies {other}"):
            default_route(problem.but(frequencies=other), mine, conventions)


@pytest.mark.parametrize(
    ("text", "support", "told"),
    [
        ("sinusoidal_encoding length=5 width=6 dtype=float32", {}, "operation sinusoidal_encoding"),
        (
            "attention batch=1 heads=1 length=3 width=4 dtype=float64 values=gaussian.1#1",
            {"dtypes": ("float32",)},
            "dtype float64",
        ),
        (
            "attention batch=1 heads=1 length=3 width=4 dtype=float32 values=gaussian.1#1 layout=reversed",
            {"layouts": ("contiguous",)},
            "layout reversed",
        ),
        ("attention batch=9 heads=1 length=3 width=4 dtype=float32 values=gaussian.1#1", {"at_most": {"batch": 3}}, "batch"),
        (
            "attention batch=1 heads=4/2 length=3 width=4 dtype=float32 values=gaussian.1#1",
            {"lacks": {"grouped-heads"}},
            "grouped",
        ),
        (
            "attention batch=1 heads=2 length=3 width=4 dtype=float32 values=gaussian.1#1 mask=random.1:bhqk#1",
            {"mask_forms": ("qk",), "routes": {"mask": ("native",)}},
            "mask of form bhqk",
        ),
    ],
)
def test_what_is_not_offered_is_named(text, support, told):
    mine = Implementation("mine", lambda query, key, value, mask=None: None, Support(**support, **MEANT), NUMPY)
    with pytest.raises(Unsupported, match=told):
        default_route(parse(text), mine, dict(MEANT["conventions"]))


def test_routes_are_the_default_and_those_that_ask_for_one_feature_otherwise():
    def function(query, key, value, *, mask=None, bias=None, causal=False, key_lengths=None):
        raise AssertionError("it is not called")

    mine = Implementation("mine", function, Support(**MEANT), NUMPY)
    text = "attention batch=2 heads=4/2 length=7 width=4 dtype=float32 values=gaussian.1#1 causal=top-left lengths=5,7"
    found = [str(route) for route in all_routes(parse(text), mine, dict(MEANT["conventions"]))]
    assert found[0] == "native" and len(found) == len(set(found))
    assert set(found) >= {"native", "causal=mask", "causal=bias", "key-lengths=mask", "key-lengths=bias", "grouped-heads=repeat"}
    assert all(route.count("=") <= 1 for route in found)
    assert str(Route({"b": "mask", "a": "bias"})) == "a=bias,b=mask" and str(Route()) == "native"
    assert offered_ways("causal", mine) == ["native", "mask", "bias"]
    assert offered_ways("grouped-heads", mine) == ["native", "repeat"]
    none = Implementation("none", lambda query, key, value: None, Support(lacks=frozenset({"grouped-heads"})), NUMPY)
    assert offered_ways("causal", none) == [] and offered_ways("grouped-heads", none) == []
    limited = Implementation("limited", function, Support(routes={"causal": ("bias", "native")}, **MEANT), NUMPY)
    assert offered_ways("causal", limited) == ["bias", "native"]

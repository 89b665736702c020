"""How a problem is put: which arguments a function gets and in which form, what is observed of it and how often, what is left."""

from dataclasses import replace

import numpy as np
import pytest

from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks, resolve
from conformance.adapter.routes import Route
from conformance.errors import Declined, LeftOut, Unsupported
from conformance.harness.subject import Asking, Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.problem.inputs import Weights
from conformance.specification import conventions
from conformance.values import materialise

NUMPY = frameworks()["numpy"]
DIRECT = resolve("numpy-direct").function
LAYER = resolve("numpy-multi-head").function
MEANT = {"CON-POLARITY": "true-attends", "CON-PADDING-POLARITY": "true-attends", "CON-ALIGNMENT": "top-left"}
PLAIN = "attention batch=2 heads=3 length=5/7 width=4 dtype=float32 values=spread.1#1"
MULTI = "multi_head_attention batch=2 heads=2 length=5 model=4 inner=4 dtype=float32 values=gaussian.1#1"


def given_to(text: str, signature: str, *, conventions=MEANT, **support):
    """The positional and named arguments that a function of that signature gets for a problem, and the inputs."""
    seen = []
    namespace = {"seen": seen}
    exec(
        f"def function({signature}):\n    seen.append(dict(locals()))\n    return query if 'query' in locals() else x", namespace
    )
    subject = Subject(Implementation("mine", namespace["function"], Support(conventions=conventions, **support), NUMPY))
    problem = subject.resolve(parse(text))
    inputs = materialise(problem)
    subject.call(subject.prepare(inputs, subject.route(problem)))
    (arguments,) = seen
    return arguments, inputs


def test_arguments_of_attention_are_the_arrays_of_the_problem_by_its_names():
    signature = "query, key, value, *, mask=None, bias=None, causal=False, alignment='', scale=None, key_lengths=None"
    more = "mask=random.1:b1qk#1 bias=gaussian.1:qk#1 causal=bottom-right lengths=6,7 scale=0.5"
    got, inputs = given_to(f"{PLAIN} {more}", signature)
    for name in ("query", "key", "value", "mask", "bias", "key_lengths"):
        np.testing.assert_array_equal(got[name], getattr(inputs, name))
        assert got[name] is not getattr(inputs, name)
    assert (got["causal"], got["alignment"], got["scale"]) == (True, "bottom-right", 0.5)
    assert got["key_lengths"].dtype == np.int64
    got, _ = given_to(PLAIN, signature)
    rest = {name: value for name, value in got.items() if name not in ("query", "key", "value")}
    assert rest == {"mask": None, "bias": None, "causal": False, "alignment": "", "scale": None, "key_lengths": None}


def test_length_comes_before_heads_where_that_is_declared_and_the_output_is_turned_back():
    def function(query, key, value):
        return DIRECT(*(array.swapaxes(1, 2) for array in (query, key, value))).swapaxes(1, 2)

    problem = parse(PLAIN)
    subject = Subject(Implementation("mine", function, Support(axes="blhd"), NUMPY))
    assert Judge().values(subject, problem).verdict.outcome is Outcome.PASS
    got, inputs = given_to(PLAIN, "query, key, value", axes="blhd")
    np.testing.assert_array_equal(got["key"], inputs.key.swapaxes(1, 2))
    assert got["query"].shape == (2, 5, 3, 4) and got["query"].flags.c_contiguous


def test_one_array_for_query_key_and_value_stays_one():
    text = PLAIN.replace("5/7", "5")
    got, _ = given_to(f"{text} edits=one-tensor.1#0", "query, key, value")
    assert got["query"] is got["key"] is got["value"]
    got, _ = given_to(text, "query, key, value")
    assert got["query"] is not got["key"] and got["key"] is not got["value"]


@pytest.mark.parametrize(("source", "alike"), [("self", (True, True)), ("memory", (False, True)), ("cross", (False, False))])
def test_arguments_of_multi_head_attention_and_what_is_one_array(source, alike):
    text = f"{MULTI} source={source} weights=full projection=bias output=bias mask=random.1:b1qk#1 causal=top-left lengths=4,5"
    signature = "query, key, value, weights, *, num_heads, mask=None, causal=False, alignment='', key_lengths=None"
    got, inputs = given_to(text, signature, operation="multi_head_attention")
    assert (got["query"] is got["key"], got["key"] is got["value"]) == alike
    for name in ("query", "key", "value", "mask", "key_lengths"):
        np.testing.assert_array_equal(got[name], getattr(inputs, name))
    assert got["num_heads"] == 2 and got["causal"] is True
    assert isinstance(got["weights"], Weights)
    assert got["weights"].arrays().keys() == inputs.weights.arrays().keys()
    for name, array in inputs.weights.arrays().items():
        np.testing.assert_array_equal(got["weights"].arrays()[name], array)
        assert got["weights"].arrays()[name] is not array


def test_arguments_of_an_encoding_are_those_that_it_takes():
    text = "sinusoidal_encoding batch=1 length=5 width=6 dtype=float16 values=gaussian.1#1"
    signature = "length, width, *, dtype=None, arrangement=None, frequencies=None, x=None"
    got, inputs = given_to(f"{text} arrangement=concatenated frequencies=d/2-1", signature, operation="sinusoidal_encoding")
    assert (got["length"], got["width"], got["dtype"]) == (5, 6, np.float16)
    assert (got["arrangement"], got["frequencies"]) == ("concatenated", "d/2-1")
    np.testing.assert_array_equal(got["x"], inputs.x)
    known = {"CON-SINUSOID-ARRANGEMENT": "concatenated", "CON-SINUSOID-FREQUENCIES": "d"}
    got, _ = given_to(
        f"{text} arrangement=default", "length, width, *, x=None", conventions=known, operation="sinusoidal_encoding"
    )
    assert set(got) == {"length", "width", "x"}


def test_what_an_encoding_leaves_open_is_filled_in_with_what_is_known_of_it():
    problem = parse("sinusoidal_encoding length=5 width=6 dtype=float32 values=gaussian.1#1")

    def resolved(arrangement, frequencies, problem=problem):
        known = {"CON-SINUSOID-ARRANGEMENT": arrangement, "CON-SINUSOID-FREQUENCIES": frequencies}
        support = Support(operation="sinusoidal_encoding", conventions=known)
        found = Subject(Implementation("mine", lambda length, width: None, support, NUMPY)).resolve(problem)
        return found.arrangement, found.frequencies

    assert resolved("concatenated", "d/2-1") == ("concatenated", "d/2-1")
    assert resolved("interleaved", "d") == ("interleaved", "default")
    assert resolved("other", "other") == ("interleaved", "default")
    said = problem.but(arrangement="interleaved", frequencies="d/2-1")
    assert resolved("concatenated", "d", said) == ("interleaved", "d/2-1")


@pytest.mark.parametrize(("polarity", "turned"), [("true-attends", False), ("true-ignores", True)])
def test_a_mask_means_what_the_function_takes_it_for(polarity, turned):
    got, inputs = given_to(
        f"{PLAIN} mask=random.1:b1qk#1", "query, key, value, mask=None", conventions={"CON-POLARITY": polarity}
    )
    np.testing.assert_array_equal(got["mask"], ~inputs.mask if turned else inputs.mask)
    text = f"{PLAIN} mask=random.1:b11k#1"
    known = {"CON-PADDING-POLARITY": polarity}
    got, inputs = given_to(text, "query, key, value, key_padding_mask=None", conventions=known)
    of_keys = inputs.mask[:, 0, 0]
    np.testing.assert_array_equal(got["key_padding_mask"], ~of_keys if turned else of_keys)


def test_lengths_come_in_the_declared_dtype():
    got, _ = given_to(f"{PLAIN} lengths=6,7", "query, key, value, key_lengths=None", lengths_dtype="int32")
    assert got["key_lengths"].dtype == np.int32 and got["key_lengths"].tolist() == [6, 7]


def test_a_function_that_binds_is_called_with_arguments_once_and_without_any_each_time():
    calls = []

    def function(query, key, value):
        calls.append("bound")

        def run():
            calls.append("run")
            return DIRECT(query, key, value)

        return run

    subject, judge = Subject(Implementation("mine", function, Support(binds=True), NUMPY)), Judge()
    prepared = judge.prepare(subject, parse(PLAIN), Route())
    assert calls == ["bound"]
    for _ in range(2):
        judge.run_prepared(prepared, subject)
    assert calls == ["bound", "run", "run"]


def counting(**support):
    asked = []

    def function(query, key, value, *, scale=None):
        asked.append((query.shape, query.dtype.name, scale))
        return DIRECT(query, key, value, scale=scale)

    told = []
    subject = Subject(
        Implementation("mine", function, Support(**support), NUMPY), lambda problem, convention: told.append(convention)
    )
    return subject, asked, told


def test_a_convention_is_observed_once_in_as_many_places_as_are_needed():
    subject, asked, told = counting()
    assert subject.convention("CON-NEGATIVE-SCALE") == "ordinary"
    first = len(asked)
    assert told == ["CON-NEGATIVE-SCALE"] * first and first >= 1
    assert subject.convention("CON-NEGATIVE-SCALE") == "ordinary" and len(asked) == first
    assert subject.observe("CON-NEGATIVE-SCALE") == "ordinary"
    everywhere = len(asked)
    assert everywhere > 2 * first, "to observe it is to ask in all places"
    assert subject.observation("CON-NEGATIVE-SCALE").answer == "ordinary" and len(asked) == everywhere
    assert {scale for _, _, scale in asked} >= {-0.25, -0.5, -1.0}


def test_where_each_shape_is_compiled_a_few_places_stand_for_all():
    few, all_of_them = counting(compiles=True), counting()
    for subject, _, _ in (few, all_of_them):
        assert subject.observe("CON-NEGATIVE-SCALE") == "ordinary"
    assert len({shape for shape, _, _ in few[1]}) < len({shape for shape, _, _ in all_of_them[1]})


def test_what_is_declared_is_not_asked_until_it_is_to_be_observed():
    subject, asked, _ = counting(conventions={"CON-NEGATIVE-SCALE": "nan"})
    assert subject.convention("CON-NEGATIVE-SCALE") == "nan" and not asked
    assert subject.observe("CON-NEGATIVE-SCALE") == "ordinary" and asked
    assert subject.convention("CON-NEGATIVE-SCALE") == "nan"


def test_what_cannot_be_observed_is_unsupported():
    subject, asked, _ = counting()
    assert subject.observe("CON-ODD-WIDTH") == "unsupported", "asked of another operation"
    assert subject.observation("CON-ODD-WIDTH") is None
    assert subject.convention("CON-POLARITY") == "unsupported", "it has no mask"
    assert not asked


def test_an_exception_of_any_kind_is_an_answer():
    def function(query, key, value, *, scale=None):
        raise SystemExit(3)

    subject = Subject(Implementation("mine", function, Support(), NUMPY))
    observed = subject.observation("CON-ZERO-SCALE")
    assert observed.answer == "raises" and "SystemExit" in observed.raised["raises"]


def test_a_declined_question_is_counted_and_left_out():
    def function(query, key, value, *, scale=None):
        if scale is not None and scale < 0:
            raise NotImplementedError("no")
        return DIRECT(query, key, value, scale=scale)

    subject = Subject(Implementation("mine", function, Support(declines=(NotImplementedError,)), NUMPY))
    assert subject.observation("CON-NEGATIVE-SCALE") is None
    assert subject.declined["CON-NEGATIVE-SCALE"] > 0
    question = conventions()["CON-NEGATIVE-SCALE"]
    problem = next(iter(question.questions["attention"].problems()))
    with pytest.raises(Declined, match="declined: NotImplementedError: no"):
        Asking(subject, question, frozenset())(problem)


def test_a_question_is_put_by_the_way_that_it_is_about_or_not_at_all():
    def biased(query, key, value, *, bias=None):
        return DIRECT(query, key, value, bias=bias)

    subject = Subject(Implementation("mine", biased, Support(), NUMPY))
    native = next(
        one for one in conventions().values() if one.native and "attention" in one.questions and one.id == "CON-POLARITY"
    )
    problem = parse(f"{PLAIN} mask=random.1:b1qk#1")
    with pytest.raises(Unsupported, match="mask by a parameter of its own"):
        Asking(subject, native, frozenset())(problem)
    by = replace(native, native=False, by="padding")
    with pytest.raises(Unsupported, match="padding by a parameter of its own"):
        Asking(subject, by, frozenset())(problem)
    folded = Asking(subject, replace(native, native=False), frozenset())(problem)
    np.testing.assert_allclose(folded, DIRECT(*(getattr(materialise(problem), n) for n in ("query", "key", "value")),
                                              mask=materialise(problem).mask), rtol=1e-6)  # fmt: skip


def test_problems_are_brought_within_limits_and_those_of_a_question_too():
    subject = Subject(Implementation("mine", lambda query, key, value, scale=None: query, Support(widths=(16,)), NUMPY))
    assert subject.fitted(parse(PLAIN)).width == 16
    question = conventions()["CON-NEGATIVE-SCALE"]
    assert Asking(subject, question, frozenset()).fitted(parse(PLAIN)).width == 16


def test_memory_of_one_array_is_asked_for_where_two_are_not_taken():
    def layer(query, memory, weights, *, num_heads):
        raise AssertionError("it is not called")

    support = Support(operation="multi_head_attention", lacks=frozenset({"separate-values"}), conventions=MEANT)
    subject = Subject(Implementation("mine", layer, support, NUMPY))
    problem = parse(f"{MULTI.replace('length=5', 'length=5/7')} source=cross projection=plain output=plain")
    assert subject.takeable(problem, "CON-WIDTH-REFUSED").source == "memory"
    able = Subject(Implementation("mine", layer, replace(support, lacks=frozenset()), NUMPY))
    assert able.takeable(problem, "CON-WIDTH-REFUSED").source == "cross"


def test_the_alignment_is_asked_with_the_alignment_left_open():
    subject = Subject(Implementation("mine", lambda query, key, value, causal=False: query, Support(), NUMPY))
    problem = parse(f"{PLAIN} causal=top-left")
    assert subject.takeable(problem, "CON-ALIGNMENT").causal == "default"
    assert subject.takeable(problem, "CON-EMPTY-ROW").causal == "top-left"


def test_arrays_of_a_shape_that_is_not_taken_are_left_out():
    subject = Subject(Implementation("mine", lambda query, key, value: query, Support(at_most={"batch": 1}), NUMPY))
    with pytest.raises(LeftOut, match="batch"):
        subject.prepare(materialise(parse(PLAIN)), Route())


def test_a_budget_of_shapes_leaves_out_what_is_beyond_it():
    subject = Subject(Implementation("mine", lambda query, key, value: query, Support(shapes=1, dtypes=("float32",)), NUMPY))
    with pytest.raises(LeftOut, match="beyond its budget of 1 shapes"):
        subject.demand_affordable(parse(PLAIN.replace("width=4", "width=5")))
    free = Subject(Implementation("mine", lambda query, key, value: query, Support(), NUMPY))
    assert free.demand_affordable(parse(PLAIN.replace("width=4", "width=5"))) is None


def test_all_ways_of_asking_rest_on_what_is_observed():
    def function(query, key, value, *, causal=False):
        return DIRECT(query, key, value, causal=causal, alignment="bottom-right")

    subject = Subject(Implementation("mine", function, Support(), NUMPY))
    assert [str(route) for route in subject.routes(parse(f"{PLAIN} causal=bottom-right"))] == ["native"]
    assert subject.conventions["CON-ALIGNMENT"] == "bottom-right"
    with pytest.raises(Unsupported, match="causal top-left"):
        subject.routes(parse(f"{PLAIN} causal=top-left"))
    grouped = parse("attention batch=1 heads=4/2 length=5 width=4 dtype=float32 values=spread.1#1")
    assert [str(route) for route in subject.routes(grouped)] == ["native", "grouped-heads=repeat"]

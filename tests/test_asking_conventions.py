"""What is observed of an implementation before it is asked: in how many places, and what becomes of who declines."""

import pytest

from conformance.adapter import Implementation, Support
from conformance.errors import Unsupported
from conformance.harness.subject import Asking, Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.specification import conventions
from tests.test_asking import DIRECT, MEANT, NUMPY, PLAIN, counting


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
def test_what_is_always_causal_is_asked_for_the_triangle_that_is_observed_of_it(alignment):
    def always(query, key, value):
        return DIRECT(query, key, value, causal=True, alignment=alignment)

    subject = Subject(Implementation("mine", always, Support(causal="always"), NUMPY))
    problem = subject.fitted(parse(PLAIN))
    assert problem == parse(f"{PLAIN} causal={alignment}")
    assert Judge().values(subject, problem).verdict.outcome is Outcome.PASS
    other = "bottom-right" if alignment == "top-left" else "top-left"
    with pytest.raises(Unsupported):
        subject.route(subject.fitted(parse(f"{PLAIN} causal={other}")))
    encoding = parse("sinusoidal_encoding length=5 width=6 dtype=float32 values=gaussian.1#1")
    assert subject.fitted(encoding) == encoding


def test_a_triangle_that_does_not_lie_the_same_everywhere_is_not_used():
    def function(query, key, value, *, causal=False):
        """Bottom-right where there are more queries than keys."""
        alignment = "bottom-right" if query.shape[-2] > key.shape[-2] else "top-left"
        return DIRECT(query, key, value, causal=causal, alignment=alignment)

    subject = Subject(Implementation("mine", function, Support(), NUMPY))
    assert subject.convention("CON-ALIGNMENT") == "mixed"
    for alignment in ("top-left", "bottom-right"):
        with pytest.raises(Unsupported):
            subject.route(parse(f"{PLAIN} causal={alignment}"))


def test_where_each_shape_is_compiled_more_than_one_place_is_asked():
    places = {}
    for compiles in (False, True):
        subject, asked, _ = counting(compiles=compiles)
        subject.observe("CON-NEGATIVE-SCALE")
        places[compiles] = len(asked)
    first, asked, _ = counting()
    first.convention("CON-NEGATIVE-SCALE")
    assert len(asked) < places[True] < places[False]


def test_who_declines_what_may_be_refused_has_answered():
    def layer(query, memory, weights, *, num_heads):
        raise NotImplementedError

    support = Support(operation="multi_head_attention", declines=(NotImplementedError,), conventions=MEANT)
    subject = Subject(Implementation("mine", layer, support, NUMPY))
    assert subject.observe("CON-WIDTH-REFUSED") == "refused"
    assert not subject.declined


def test_each_declined_call_of_a_question_counts_once():
    calls = []

    def function(query, key, value, *, scale=None):
        calls.append(scale)
        raise NotImplementedError

    subject = Subject(Implementation("mine", function, Support(declines=(NotImplementedError,)), NUMPY))
    subject.observe("CON-NEGATIVE-SCALE")
    assert calls and subject.declined == {"CON-NEGATIVE-SCALE": len(calls)}


def test_a_question_says_which_problem_will_be_put():
    subject = Subject(Implementation("mine", lambda query, key, value, causal=False: query, Support(), NUMPY))
    problem = parse(f"{PLAIN} causal=top-left")
    asked = {name: Asking(subject, conventions()[name], frozenset()).fitted(problem).causal for name in MEANT}
    assert asked["CON-ALIGNMENT"] == "default" and asked["CON-POLARITY"] == "top-left"

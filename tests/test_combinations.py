"""Each argument is asked beside each other one, in each relation of the lengths, and with each form of a mask and of a bias."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from conformance.implementations.numpy_ import FRAMEWORK, direct

from conformance.adapter import Implementation, Support
from conformance.checks.items import Effort
from conformance.judging.verdict import Outcome
from conformance.problem import LAYOUTS, MASK_FORMS, AttentionProblem
from conformance.specification import requirements
from conformance.specification.combinations import ARGUMENTS, RELATIONS, met, pairs_of_arguments
from conformance.specification.draw import Draw
from tests.support.items import run_item

QUICK = Effort(examples=1, free=False, seed=1)
MEMORY = tuple(layout for layout in LAYOUTS if layout != "contiguous")


def relation(problem: AttentionProblem) -> str:
    if problem.query_length == 1 < problem.key_length:
        return "decode"
    lengths = problem.query_length, problem.key_length
    return "wide" if lengths[0] < lengths[1] else "square" if lengths[0] == lengths[1] else "tall"


def asked() -> list[AttentionProblem]:
    """The designed problems of attention whose values are judged."""
    judged = [r for r in requirements().values() if r.operation == "attention" and r.judges_values]
    return [problem for requirement in judged for problem in requirement.designed() if isinstance(problem, AttentionProblem)]


@pytest.fixture(scope="module")
def problems() -> list[AttentionProblem]:
    return asked()


@pytest.mark.parametrize("pair", pairs_of_arguments(), ids="+".join)
def test_each_pair_of_arguments_is_asked_alone_in_each_relation_of_the_lengths(problems, pair):
    alone = {relation(problem) for problem in problems if met(problem) == set(pair)}
    assert alone == set(RELATIONS)


@pytest.mark.parametrize("kind", ["mask", "bias"])
@pytest.mark.parametrize("form", MASK_FORMS)
def test_each_form_meets_each_relation_and_each_other_argument(problems, kind, form):
    found = [problem for problem in problems if (recipe := getattr(problem, kind)) and recipe.form == form]
    assert {relation(problem) for problem in found} == set(RELATIONS)
    assert set(ARGUMENTS) <= {argument for problem in found for argument in met(problem)}


@pytest.mark.parametrize("layout", MEMORY)
def test_each_layout_meets_each_relation_each_argument_and_each_form(problems, layout):
    found = [problem for problem in problems if problem.layout == layout]
    assert {relation(problem) for problem in found} == set(RELATIONS)
    assert set(ARGUMENTS) <= {argument for problem in found for argument in met(problem)}
    for kind in ("mask", "bias"):
        assert {recipe.form for problem in found if (recipe := getattr(problem, kind))} == set(MASK_FORMS)


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
@pytest.mark.parametrize("beside", ["masks", "biases", "key_lengths"])
def test_what_is_drawn_beside_causal_has_unequal_lengths_too(alignment, beside):
    drawn = [r.random for r in requirements().values() if isinstance(r.random, Draw) and alignment in r.random.causal]
    unequal = [draw for draw in drawn if draw.shapes in ("core", "any", "unequal")]
    assert any(any(np.atleast_1d(getattr(draw, beside)) != "") and getattr(draw, beside) for draw in unequal)


# What an implementation does that is right elsewhere: by name, the arguments that have to be there, and what it makes of them.
MISTAKES = {
    "drops the mask": ({"mask", "causal"}, lambda named: named | {"mask": None}),
    "drops causal beside a mask": ({"mask", "causal"}, lambda named: named | {"causal": False}),
    "drops causal beside a bias": ({"bias", "causal"}, lambda named: named | {"causal": False}),
    "drops the bias": ({"bias", "causal"}, lambda named: named | {"bias": None}),
    "drops the lengths": ({"key_lengths", "causal"}, lambda named: named | {"key_lengths": None}),
    "drops the scale": ({"scale", "mask"}, lambda named: named | {"scale": None}),
    "takes the other alignment": (
        {"mask", "causal"},
        lambda named: named | {"alignment": "top-left" if named["alignment"] == "bottom-right" else "bottom-right"},
    ),
}


# With equal lengths both alignments are one.
PLACES = [place for place in product(MISTAKES, RELATIONS) if place != ("takes the other alignment", "square")]


@pytest.mark.parametrize(("name", "lengths"), PLACES)
def test_a_mistake_in_one_relation_of_the_lengths_alone_is_seen(name, lengths):
    needed, mistaken = MISTAKES[name]

    def attention(query, key, value, *, mask=None, bias=None, causal=False, alignment="top-left", scale=None, key_lengths=None):
        named = {"mask": mask, "bias": bias, "causal": causal, "alignment": alignment, "scale": scale, "key_lengths": key_lengths}
        given = {name for name, value in named.items() if value is not None and value is not False}
        here = {"wide": 1 < query.shape[2] < key.shape[2], "square": query.shape[2] == key.shape[2]}
        here |= {"tall": query.shape[2] > key.shape[2], "decode": query.shape[2] == 1}
        return direct(query, key, value, **(mistaken(named) if here[lengths] and needed <= given else named))

    lying = Implementation("lying", attention, Support(dtypes=("float32",)), FRAMEWORK)
    found = {identifier: run_item(identifier, lying, QUICK).item.outcome for identifier in ("ATT-MASK-045", "ATT-MASK-046")}
    assert Outcome.WRONG_VALUE in found.values()


def test_who_compiles_is_asked_few_of_them_in_the_quick_tier_and_all_in_the_full_one():
    requirement = requirements()["ATT-MASK-045"]
    plain = Implementation("plain", direct, Support(dtypes=("float32",)), FRAMEWORK)
    compiles = replace(plain, support=replace(plain.support, compiles=True))
    number = sum(problem.dtype == "float32" for problem in requirement.designed())
    assert run_item("ATT-MASK-045", plain, QUICK).item.counts.designed == number
    assert run_item("ATT-MASK-045", compiles, QUICK).item.counts.designed == len(list(requirement.few())) < number / 4
    assert run_item("ATT-MASK-045", compiles, replace(QUICK, free=True)).item.counts.designed == number


@pytest.mark.parametrize("form", ["qk", "bhqk"])
@pytest.mark.parametrize("kind", ["mask", "bias"])
def test_a_mask_of_stride_0_that_is_taken_for_its_first_row_of_other_memory_is_seen(kind, form):
    def attention(query, key, value, *, mask=None, bias=None, causal=False, alignment="top-left", scale=None, key_lengths=None):
        named = {"mask": mask, "bias": bias, "causal": causal, "alignment": alignment, "scale": scale, "key_lengths": key_lengths}
        array = named[kind]
        if array is not None and array.ndim == len(form) and array.strides[0] == 0 < array.shape[0] - 1:
            other = array.copy()
            other[..., -1] = 0
            named[kind] = other
        return direct(query, key, value, **named)

    lying = Implementation("lying", attention, Support(dtypes=("float32",)), FRAMEWORK)
    assert run_item("ATT-MASK-050", lying, QUICK).item.outcome is Outcome.WRONG_VALUE

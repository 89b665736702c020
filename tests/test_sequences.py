"""Several calls of one function: each output is its own whatever was asked before, and stays so whatever is asked afterwards."""

from collections.abc import Callable

import numpy as np
import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.checks.company import company, difference
from conformance.checks.one_changed import one_changed
from conformance.checks.procedures import PROCEDURES
from conformance.commands.reproduce import reproduce
from conformance.features import every_feature
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge, Judgement, worst
from conformance.judging.verdict import Outcome
from conformance.numerics.dtypes import DTYPES
from conformance.problem import Problem, parse
from conformance.specification import requirements
from conformance.specification.build import attention, multi_head, sinusoidal
from conformance.specification.palette import MULTI_HEAD_SHAPES, SHAPES
from conformance.specification.second_values import LATER, LATER_OF, SECOND
from conformance.values import materialise

DIRECT = registry.resolve("numpy-direct")
STALE = [p for r in requirements().values() if r.check == "stale" for p in r.designed()]
SEQUENCES = [p for r in requirements().values() if r.check == "sequence" for p in r.designed()]


def wrapped(act: Callable, of: str = "numpy-direct", **support) -> Implementation:
    """``act(right, query, key, value, **named)`` in place of the attention ``of``; ``right()`` gives what is expected."""
    correct = registry.resolve(of)

    def function(query, key, value, *, mask=None, bias=None, causal=False, alignment="top-left", scale=None, key_lengths=None):
        named = {"mask": mask, "bias": bias, "scale": scale, "key_lengths": key_lengths}
        given = {name: argument for name, argument in named.items() if argument is not None}
        if causal:
            given |= {"causal": True} | ({"alignment": alignment} if correct.has("alignment") else {})
        return act(lambda: correct.function(query, key, value, **correct.spelled(given)), query, key, value, **given)

    return Implementation("wrapped", function, Support(framework=correct.framework.name, **support), correct.framework)


def checked(check: str, implementation: Implementation, problem: Problem) -> Judgement:
    with np.errstate(all="ignore"):
        return worst(PROCEDURES[check](Judge(), Subject(implementation), problem))


# Which calls there are


@pytest.mark.parametrize("problem", SEQUENCES, ids=str)
def test_the_company_of_a_problem_is_of_few_problems_and_each_differs(problem):
    others = company(problem)
    assert len(others) <= 11 + len([one for one in every_feature() if one.example is not None]) and len(
        {other.text for other in others}
    ) == len(others)
    assert others == company(parse(problem.text)), "which problems there are follows from the text alone"
    assert all(difference(other, problem) != "other values" for other in others)
    assert all(other.values != problem.values for other in others)


def test_the_company_is_larger_then_smaller_of_another_dtype_and_asks_for_all_that_there_is():
    (problem,) = attention("wide")
    others = company(problem)
    sizes = [SHAPES["wide"].work, *(o.batch * o.heads * o.query_length * o.key_length * o.width for o in others[:2])]
    assert sizes[1] > sizes[0] > sizes[2]
    assert {other.dtype for other in others} == {"float32", "bfloat16"}
    assert {len({getattr(o, name) for o in (problem, *others)}) > 1 for name in ("batch", "heads", "value_width", "width")} == {
        True
    }
    assert frozenset().union(*(other.features for other in others)) >= {
        "mask", "bias", "causal", "scale", "key-lengths", "grouped-heads", "value-width",
    }  # fmt: skip
    shapes = [shape.fields for shape in SHAPES.values()]
    assert all({name: getattr(other, name) for name in shapes[0]} in shapes for other in others)


def test_arguments_that_are_there_go_and_lengths_fit_other_shapes():
    (problem,) = attention("wide", key_lengths=(5, 11), mask="random.1:b1qk#1")
    asked = [difference(other, problem) for other in company(problem)]
    assert {"no lengths", "no mask"} <= set(asked)
    assert all(other.key_lengths is None or len(other.key_lengths) == other.batch for other in company(problem))


def test_multi_head_attention_has_company_and_a_table_has_none():
    others = company(multi_head("square")[0])
    assert {"mask", "causal", "key-lengths", "projection-bias"} <= frozenset().union(*(other.features for other in others))
    assert {other.heads for other in others} >= {1, 3, 8}
    assert all(other.model_width in {shape.model_width for shape in MULTI_HEAD_SHAPES.values()} for other in others)
    assert not company(sinusoidal(5, 6)[0])


# What is caught, and what is said of it


def test_correct_code_passes_in_every_dtype_also_where_little_is_offered():
    few = wrapped(
        lambda right, *arrays, **named: right(), lacks=frozenset({"mask", "bias", "causal", "grouped-heads"}), widths=(8,)
    )
    for problem in attention("wide", DTYPES):
        assert checked("sequence", DIRECT, problem).verdict.outcome is Outcome.PASS
        assert checked("sequence", few, problem).verdict.outcome is Outcome.PASS


def after_groups():
    grouped = []

    def act(right, query, key, value, **named):
        grouped.append(query.shape[1] != key.shape[1])
        return right() * (1 + (any(grouped) and query.shape == (2, 3, 7, 8)))

    return wrapped(act)


def test_what_goes_wrong_after_a_call_names_that_call():
    judgement = checked("sequence", after_groups(), attention("wide", values="gaussian.1#1")[0])
    assert judgement.verdict.outcome is Outcome.WRONG_VALUE
    assert "It was right before the call with heads=6/2" in judgement.verdict.message


def test_what_is_wrong_when_first_asked_in_company_says_how_to_ask_it_alone():
    calls = []

    def act(right, query, key, value, **named):
        calls.append(1)
        return right() * (2 if len(calls) > 1 and value.shape[3] == 11 and key.shape[2] == 13 else 1)

    judgement = checked("sequence", wrapped(act), attention("wide", values="gaussian.1#1")[0])
    assert judgement.problem.value_width == 11
    assert (
        "asked with width=8/11, after a call without that; asked again at once it is WRONG_VALUE too" in judgement.verdict.message
    )
    assert f"Whether it is right alone, `reproduce` tells: '{judgement.problem.text}'." in judgement.verdict.message


def test_what_fails_from_the_first_call_on_says_nothing_of_company():
    judgement = checked("sequence", wrapped(lambda right, *arrays, **named: right() * 2), attention("wide")[0])
    assert "call" not in judgement.verdict.message


def test_an_output_in_memory_that_a_later_call_uses_is_caught_at_the_end():
    buffer = np.empty(1 << 16, np.float32)

    def act(right, *arrays, **named):
        output = right()
        view = buffer[: output.size].reshape(output.shape)
        view[...] = output
        return view

    judgement = checked("sequence", wrapped(act, dtypes=("float32",)), attention("wide")[0])
    assert "A later call changed this output, which was right." in judgement.verdict.message


def test_inputs_of_an_earlier_call_stay_as_they_were():
    kept = []

    def act(right, query, key, value, **named):
        output = right()
        if kept:
            kept[-1][0, 0, 0, 0] += 1
        kept.append(value)
        return output

    judgement = checked("sequence", wrapped(act), attention("wide")[0])
    assert judgement.verdict.outcome is Outcome.MUTATED_INPUT
    assert judgement.verdict.message == "A later call reached the inputs of this one. The call changed its input value."


def test_repro_shows_it_again():
    (problem,) = attention("wide", values="gaussian.1#1")
    found = reproduce(problem.text, after_groups(), "sequence")
    assert found.judgement.verdict.outcome is Outcome.WRONG_VALUE and "heads=6/2" in found.report
    assert reproduce(problem.text, after_groups()).judgement.verdict.outcome is Outcome.PASS


# One element in one argument, in the same memory


def test_one_element_is_changed_in_each_argument_and_the_output_with_it():
    for problem in [p for p in STALE if p.dtype == "float32"]:
        inputs, right = materialise(problem), Judge().expected(problem, "strict")
        for what, changed in one_changed(problem, inputs):
            others, target = materialise(changed), Judge().expected(changed, "strict")
            arrays = {**inputs.arrays(), "mask": getattr(inputs, "mask", None)}
            now = {**others.arrays(), "mask": getattr(others, "mask", None)}
            differing = {id(arrays[n]): int((arrays[n] != now[n]).sum()) for n in arrays if arrays[n] is not None}
            if "one element" in what:
                assert sum(differing.values()) == 1, what
            assert np.any(np.abs(target.output - right.output) > 100 * (target.budget + right.budget)), (
                f"{what} of {problem.text}"
            )


def test_every_argument_is_changed_in_every_dtype():
    found: dict[str, dict[str, set[str]]] = {}
    for problem in STALE:
        for what, _ in one_changed(problem, materialise(problem)):
            found.setdefault(problem.operation, {}).setdefault(what, set()).add(problem.dtype)
    assert {"one element of mask", "one element of bias", "one key length", "the scale"} <= set(found["attention"])
    assert {"one element of weights.output", "the order of elements of weights"} <= set(found["multi_head_attention"])
    for whats in found.values():
        everywhere = {what: dtypes for what, dtypes in whats.items() if what != "one element of weights.query_bias"}
        assert all(dtypes == set(DTYPES) for dtypes in everywhere.values()), everywhere


def test_sums_corners_and_extremes_do_not_tell_an_order_of_elements():
    (problem,) = attention("wide", values="gaussian.1#26")
    changed = dict(one_changed(problem, materialise(problem)))
    for before, after in zip(
        materialise(problem).arrays().values(), materialise(changed["the order of elements"]).arrays().values(), strict=True
    ):
        assert before.astype(np.float64).sum() == pytest.approx(after.astype(np.float64).sum(), abs=1e-12)
        assert sorted(before.ravel()) == sorted(after.ravel()) and (before != after).sum() == 2


@pytest.mark.parametrize(("of", "again"), [("numpy-direct", True), ("torch-direct", True), ("jax-einsum", False)])
def test_memory_is_used_again_where_arrays_can_be_written_to(of, again):
    pytest.importorskip(of.partition("-")[0], reason="PyTorch and JAX are extras")
    seen = []

    def act(right, query, key, value, **named):
        seen.append(query)
        return right()

    (problem,) = attention("wide", values="gaussian.1#26")
    assert checked("stale", wrapped(act, of), problem).verdict.outcome is Outcome.PASS
    later = [query for query in seen[2:] if query is seen[0]]
    assert len(later) == (len(seen) - 2 if again else 0)
    if of.startswith("torch"):
        assert seen[0]._version >= len(later), "torch is told that the tensor has changed"


@pytest.mark.parametrize("what", ["key", "value"])
def test_an_answer_that_is_kept_by_the_object_is_said_to_be_that(what):
    kept = {}

    def act(right, query, key, value, **named):
        return kept.setdefault(id({"key": key, "value": value}[what]), (right(), query, key, value))[0].copy()

    judgement = checked("stale", wrapped(act, lacks=frozenset({"mask"})), attention("wide", values="gaussian.1#26")[0])
    assert judgement.verdict.outcome is Outcome.WRONG_VALUE
    assert "It is the output of the call before, from which " in judgement.verdict.message


def test_a_call_is_bound_anew_where_its_memory_is_used_again():
    """What was bound may hold a copy of the weights."""

    def function(query, key, value):
        copied = query.copy(), key.copy(), value.copy()
        return lambda: DIRECT.function(*copied)

    binding = Implementation("binding", function, Support(binds=True), DIRECT.framework)
    assert checked("stale", binding, attention("wide", values="gaussian.1#26")[0]).verdict.outcome is Outcome.PASS


def test_a_problem_that_is_asked_twice_exists_and_keeps_its_shape():
    for identifier, seeds in SECOND.items():
        problems = list(requirements()[identifier].designed())
        for seed in seeds:
            first = [p for p in problems if p.values.seed == seed]
            again = {p.values.seed - LATER_OF.get(identifier, LATER) for p in problems} & {seed}
            assert first and again, f"{identifier} has no problem of seed {seed}"

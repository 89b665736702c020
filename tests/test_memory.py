"""Cross-attention with one memory for key and value: one array, for everyone; a layer that takes no other is asked for it."""

from dataclasses import replace

import pytest
from conformance.implementations.numpy_ import FRAMEWORK, multi_head

from conformance.adapter import Implementation, Support, registry
from conformance.harness.subject import Subject
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.specification import requirements
from conformance.specification.requirement import Requirement
from conformance.values import materialise
from tests.support.items import run_item

MEMORY = parse(
    "multi_head_attention batch=2 heads=3 length=5/7 model=15 inner=15 dtype=float32 values=gaussian.1#3 source=memory "
    "projection=bias output=bias"
)


def of_two(tokens, memory, weights, **named):
    """A decoder's layer: it has no parameter for values of their own."""
    return multi_head(tokens, memory, memory, weights, **named)


def takes_one_memory(query, key, value, weights, *, num_heads, mask=None, causal=False, key_lengths=None):
    """Raises where value is another array than key."""
    if value is not key:
        raise ValueError("one memory, please")
    return of_two(query, key, weights, num_heads=num_heads, mask=mask, causal=causal, key_lengths=key_lengths)


ONE_MEMORY = Implementation(
    "one-memory",
    takes_one_memory,
    Support(operation="multi_head_attention", lacks=frozenset({"separate-values"}), conventions={"CON-POLARITY": "true-attends"}),
    FRAMEWORK,
)


def crossed() -> list[Requirement]:
    of_layers = [r for r in requirements().values() if r.is_asked_of("multi_head_attention", ("output",))]
    return [r for r in of_layers if any("separate-values" in problem.features for problem in r.designed())]


def test_key_and_value_are_one_array_also_as_the_implementation_has_them():
    inputs = materialise(MEMORY)
    assert inputs.key is inputs.value and inputs.key is not inputs.query
    for name in ("numpy-multi-head", "torch-mha", "jax-multi-head"):
        implementation = registry.builtin()[name]
        if implementation.missing():
            continue
        seen = []

        def look(query, key, value, *rest, seen=seen, **named):
            seen.append((key is value, key is query))
            return query

        subject = Subject(replace(implementation, function=look, support=replace(implementation.support, binds=False)))
        subject.prepare(inputs, subject.route(MEMORY)).run()
        assert seen == [(True, False)], name


@pytest.mark.parametrize("transformation", ["batch-row.1#0", "loud-hidden.1#0", "low-visible.1#0", "suffix.1#0"])
def test_transformations_leave_the_memory_one_array(transformation):
    inputs = materialise(parse(f"{MEMORY.text} mask=right-padding.1:b11k#47 edits={transformation}"))
    assert inputs.key is inputs.value and inputs.key is not inputs.query


def test_what_is_asked_with_three_inputs_is_asked_with_two():
    assert crossed()
    for requirement in crossed():
        found = [problem.features for problem in requirement.designed()]
        assert any("cross-attention" in features and "separate-values" not in features for features in found), requirement.id


@pytest.mark.parametrize("requirement", crossed(), ids=lambda requirement: requirement.id)
def test_a_layer_with_one_memory_is_judged_in_cross_attention(requirement):
    result = run_item(requirement.id, ONE_MEMORY)
    assert result.item.outcome is Outcome.PASS, result.unexpected[:1]
    assert any("source=memory" in case.text for case in result.cases)


def test_random_problems_have_one_memory_too():
    result = run_item("ATT-HEAD-014", ONE_MEMORY)
    assert result.item.counts.random > 0


def test_a_layer_that_takes_values_for_keys_of_the_query_is_caught():
    def forgets_the_memory(query, key, value, weights, **named):
        return multi_head(query, query, query, weights, num_heads=named["num_heads"])

    implementation = replace(ONE_MEMORY, function=forgets_the_memory, support=replace(ONE_MEMORY.support, features=frozenset()))
    assert run_item("ATT-HEAD-014", implementation).item.outcome is Outcome.WRONG_VALUE


def test_conventions_of_lengths_are_observed_with_one_memory():
    assert Subject(ONE_MEMORY).observe("CON-ALIGNMENT") == "top-left"
    assert Subject(ONE_MEMORY).observe("CON-NAN-BEHIND-MASK-K") == "unsupported", "key and value cannot be told apart"

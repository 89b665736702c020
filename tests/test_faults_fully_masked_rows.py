"""Faults of what rows without a key give: no other row is wrong, and such a row is none of the known answers."""

import pytest

from conformance.faults.steps import compute
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs
from conformance.specification.build import attention, multi_head
from conformance.values import materialise
from tests.support.fault_probes import assert_wrong_in_values_only
from tests.support.faults import of_kinds

FAULTS = of_kinds("hidden_keys", where=lambda fault: fault.requirements[0] in ("ATT-MASK-043", "ATT-HEAD-034"))
PROBLEMS = {
    "attention": [
        *attention("wide", mask="empty-rows.1:b1qk#1"),
        *attention("wide", bias="empty-rows.1:bhqk#2"),
        *attention("wide", key_lengths=(0, 7)),
        *attention("tall", causal="bottom-right"),
    ],
    "multi_head_attention": multi_head("square", mask="empty-rows.1:b1qk#3"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_is_wrong_in_values_only(fault):
    assert_wrong_in_values_only(fault)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_shows_in_rows_without_a_key_alone(fault):
    shown = []
    for problem in PROBLEMS[fault.operation]:
        inputs = materialise(problem)
        pairs = visible_pairs(inputs)
        seen = pairs.any(-1) if isinstance(inputs, AttentionInputs) else pairs.any((1, 3))
        wrong = (fault.output(inputs) != compute(inputs)).any(-1)
        assert not (wrong & seen).any(), problem.text
        assert not wrong.any() or fault.needs <= problem.features, problem.text
        shown.append(wrong.any())
    assert any(shown)

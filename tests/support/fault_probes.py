"""Problems on which faults of visibility are tried, and what is demanded of every fault."""

from collections.abc import Iterable
from functools import cache

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.features import every_feature
from conformance.judging.verdict import Outcome, judge
from conformance.oracle import expect
from conformance.oracle.stages import added_keys
from conformance.problem import Problem
from conformance.problem.inputs import AttentionInputs, Inputs
from conformance.problem.visibility import visible_pairs
from conformance.specification import requirements
from conformance.specification.build import attention, joined, multi_head
from conformance.values import materialise

_FORMS = ("qk", "b11k", "b1qk", "1hqk", "bhqk", "bhq1")
PROBLEMS: dict[str, list[Problem]] = {
    "attention": joined(
        attention("wide"),
        attention("square"),
        *(attention("wide", mask=f"{'empty-rows' if form == 'bhq1' else 'random'}.1:{form}#1") for form in _FORMS),
        attention("square", mask="random.1:b1qk#2"),
        attention("wide", mask="left-padding.1:b11k#48"),
        attention("tile", mask="random.1:b1qk#3"),
        attention("wide", mask="left-padding.1:b11k#48", transformations=("loud-hidden.1*100.0#0",)),
        attention("wide", mask="random.1:bhqk#4", bias="gaussian.1:qk#4"),
        *(attention("wide", bias=f"gaussian.1:{form}#5") for form in _FORMS),
        attention("wide", bias="holes.1:bhqk#6"),
        attention("tile", bias="gaussian.1:qk#7"),
        *(attention(shape, causal=side) for shape in ("wide", "tall", "decode") for side in ("top-left", "bottom-right")),
        *(
            attention(shape, causal="bottom-right", **beside)
            for shape, beside in (
                ("grouped", {}),
                ("wide", {"mask": "random.1:b1qk#8"}),
                ("wide", {"bias": "gaussian.1:qk#8"}),
                ("wide", {"key_lengths": (6, 11)}),
            )
        ),
        attention("square", causal="top-left"),
        attention("square", causal="top-left", mask="random.1:b1qk#8"),
        attention("square", causal="top-left", bias="gaussian.1:qk#8"),
        attention("decode", causal="top-left", mask="all.1:qk#0"),
        attention((1, 1, 1, 9, 7, 8, 8), causal="bottom-right"),
        attention((1, 1, 1, 129, 129, 8, 8), causal="top-left"),
        attention((1, 1, 1, 5, 263, 8, 8), causal="bottom-right"),
        attention("wide", key_lengths=(5, 12)),
        attention((3, 2, 2, 4, 9, 8, 8), key_lengths=(2, 6, 3)),
        attention("wide", key_lengths=(0, 7)),
        attention("wide", key_lengths=(6, 11), mask="random.1:b1qk#9"),
        attention("wide", key_lengths=(2, 9), mask="random.1:bhqk*0.4#9"),  # queries without a key in some heads only
        attention("wide", key_lengths=(6, 11), bias="gaussian.1:qk#9"),
        attention("square", key_lengths=(5, 9), causal="top-left"),
    ),
    "multi_head_attention": joined(
        multi_head("square"),
        multi_head("square", mask="random.1:b1qk#1"),
        multi_head("square", mask="right-padding.1:b11k#47"),
        multi_head("square", causal="top-left"),
        multi_head("square", causal="top-left", mask="random.1:b1qk#1"),
        multi_head("square", causal="top-left", key_lengths=(4, 6)),
        multi_head("square", key_lengths=(4, 6)),
        multi_head("square", key_lengths=(4, 6), mask="random.1:b1qk#2"),
    ),
}


@cache
def tried(problem: Problem) -> tuple[Inputs, np.ndarray]:
    """The inputs of a problem and the right output."""
    inputs = materialise(problem)
    return inputs, compute(inputs)


@cache
def _further() -> frozenset[str]:
    """Features that PROBLEMS do without."""
    every = {feature.name for feature in every_feature() if feature.field is not None}
    return frozenset(every.difference(*(problem.features for problems in PROBLEMS.values() for problem in problems)))


def probes(fault: Fault) -> list[Problem]:
    """PROBLEMS, and for what needs another feature those by which its requirements ask for it."""
    if not fault.needs & _further():
        return PROBLEMS[fault.operation]
    own = (problem for name in fault.requirements for problem in requirements()[name].designed())
    return [*PROBLEMS[fault.operation], *(problem for problem in own if problem.dtype == "float32")]


def differs(fault: Fault, problem: Problem) -> bool:
    """Whether the fault shows, beyond rounding, in a row that sees a key, or in any where it is one of the others."""
    inputs, right = tried(problem)
    wrong = fault.output(inputs)
    if isinstance(inputs, AttentionInputs) and "ATT-MASK-043" not in fault.requirements and not added_keys(inputs):
        seen = visible_pairs(inputs).any(-1)
        wrong, right = wrong[seen], right[seen]
    return not np.allclose(wrong, right, rtol=1e-5, atol=1e-5)


def assert_shows_where_it_can(fault: Fault) -> None:
    """The fault shows on some probe, and changes not a bit of those that lack what it needs; an equivalent one never shows."""
    shown = []
    for problem in probes(fault):
        inputs, right = tried(problem)
        if fault.needs <= problem.features:
            shown.append(differs(fault, problem))
        else:
            assert fault.output(inputs).tobytes() == right.tobytes(), problem.text
    assert any(shown) != bool(fault.equivalent)


def assert_wrong_in_values_only(fault: Fault) -> None:
    """Shape and dtype are right, and the inputs stay as they are: others are faults of their own."""
    for problem in probes(fault):
        inputs, right = tried(problem)
        before = _bytes(inputs)
        wrong = fault.output(inputs)
        assert (wrong.shape, wrong.dtype) == (right.shape, right.dtype), problem.text
        assert _bytes(inputs) == before, problem.text


def assert_known_to_the_oracle(fault: Fault) -> None:
    """What a rewriting fault gives is within the oracle's budget for the rewritten inputs: diagnosis compares the two."""
    assert fault.rewrite is not None
    for problem in probes(fault):
        inputs, _ = tried(problem)
        verdict = judge(fault.output(inputs), expect(fault.rewrite(inputs), "strict"))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"


def _bytes(inputs: Inputs) -> list[bytes]:
    arrays: Iterable[np.ndarray] = [array for array in vars(inputs).values() if isinstance(array, np.ndarray)]
    return [array.tobytes() for array in arrays]

"""Problems on which faults of scale, softmax, fill and precision are tried, and what is demanded of every one."""

from functools import cache

from conformance.checks.fully_masked_rows import judge_fully_masked_rows
from conformance.errors import ProblemError
from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.judging.verdict import Outcome, judge
from conformance.oracle import Expected, expect
from conformance.problem import AttentionProblem, Problem
from conformance.problem.inputs import Inputs
from conformance.specification.build import attention, joined, multi_head
from conformance.values import materialise

_PROFILE = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}
_PADDING = "right-padding.1:b11k#47"


def _low(score: float, scale: float | None = None) -> list[AttentionProblem]:
    """Visible scores near ``score`` under the default scale, hidden keys with a large V."""
    transformations = (f"low-visible.1*{score!r}#0", "hidden-value.1#0")
    return attention("wide", values="spread.1#1", mask=_PADDING, transformations=transformations, scale=scale)


_PROBLEMS: dict[str, list[Problem]] = {
    "attention": joined(
        attention("wide", values="spread.1#1"),
        attention("prime", values="gaussian.1#2"),
        attention("wide", values="heavy.1#4"),
        attention("wide", values="ones-value.1#10"),
        attention((2, 3, 3, 7, 13, 13, 13), values="identity-value.1#20"),
        attention((2, 3, 3, 7, 1, 8, 8), values="all-low.1*-2000.0#13"),
        attention("long", values="flat.1#3"),
        attention("tile", values="spread.1#3"),
        attention("decode", values="spread.1#1"),
        attention("value-width", values="spread.1#1"),
        attention("grouped", values="spread.1#1"),
        attention("wide", values="spread.1#7", transformations=("zero-channels.1#0",)),
        attention("wide", values="gaussian.1#14", transformations=("value-between.1*30000.0#14",)),
        attention("wide", values="offset.1*200.0#15"),
        attention("wide", values="offset.1*100000.0#21"),
        attention("wide", values="all-low.1*-200.0#16"),
        attention("wide", values="gaussian.1*10000.0#18"),
        attention("wide", values="large-products.1*100000.0#23"),
        attention("wide", values="gaussian.1#25", scale=2.0, transformations=("perturb-query.1#16",)),
        *(attention("wide", values="gaussian.1#8", scale=scale) for scale in (0.1, 1.0, 2.5, -2.0)),
        attention("wide", values="gaussian.1*2048.0#11", scale=0.0002),
        attention("wide", values="gaussian.1#8", scale=0.1, mask="random.1:b1qk#8"),
        attention("wide", values="gaussian.1#8", scale=0.1, bias="gaussian.1:qk#8"),
        attention("wide", values="gaussian.1#8", scale=0.1, key_lengths=(5, 11)),
        attention("square", values="gaussian.1#8", scale=0.1, causal="top-left"),
        attention("wide", values="spread.1#85", mask="empty-rows.1:b1qk#85"),
        attention("decode", values="gaussian.1#8", scale=0.1),
        attention("grouped", values="gaussian.1#8", scale=0.1),
        attention("wide", values="gaussian.1#8", bias="gaussian.1:qk#8"),
        attention("wide", values="spread.1#1", mask="random.1:b1qk#1"),
        attention("wide", values="spread.1#1", mask="left-padding.1:b11k#48", transformations=("loud-hidden.1*100.0#0",)),
        attention("square", values="spread.1#1", causal="top-left"),
        attention("wide", values="spread.1#1", key_lengths=(5, 11)),
        *(_low(score) for score in (-2e4, -1e6, -1e10, -1e22)),
        _low(-18000.0, scale=1.0),
    ),
    "multi_head_attention": joined(
        multi_head("square", values="gaussian.1*3.0#28"),
        multi_head("many", values="gaussian.1*3.0#22"),
        multi_head("square", values="gaussian.1*60.0#46"),
        multi_head("square", values="gaussian.1#1", mask="random.1:b1qk#1"),
        *(
            multi_head("square", mask=_PADDING, transformations=(f"low-visible.1*{score!r}#0", "loud-hidden.1#0"))
            for score in (-2e4, -1e10, -1e22)
        ),
    ),
}


def probes(fault: Fault) -> list[Problem]:
    """The problems of the fault's operation, in float32 where it shows there, of those that the dtype can hold."""
    dtype = "float32" if "float32" in fault.dtypes else fault.dtypes[0]
    return [problem.but(dtype=dtype) for problem in _PROBLEMS[fault.operation] if _exists(problem.but(dtype=dtype))]


@cache
def _exists(problem: Problem) -> bool:
    try:
        materialise(problem)
    except ProblemError:
        return False
    return True


@cache
def tried(problem: Problem) -> tuple[Inputs, bytes, Expected]:
    """The inputs, the right output's bytes, and what the oracle expects."""
    inputs = materialise(problem)
    return inputs, compute(inputs).tobytes(), expect(inputs, _PROFILE[problem.dtype])


def shows(fault: Fault, problem: Problem) -> bool:
    """Whether the output is beyond the error budget of a precise implementation, or no answer in fully masked rows."""
    inputs, _, expected = tried(problem)
    output = fault.output(inputs)
    in_fully_masked_rows = (
        "ATT-MASK-043" in fault.requirements and judge_fully_masked_rows(output, inputs).outcome is not Outcome.PASS
    )
    return in_fully_masked_rows or judge(output, expected).outcome is not Outcome.PASS


def assert_shows_where_it_can(fault: Fault) -> None:
    """The fault shows on some probe, and changes not a bit of those that lack what it needs; an equivalent one never shows."""
    able = [problem for problem in probes(fault) if fault.needs <= problem.features]
    for problem in probes(fault):
        if problem not in able:
            inputs, right, _ = tried(problem)
            assert fault.output(inputs).tobytes() == right, problem.text
    assert any(shows(fault, problem) for problem in able) != bool(fault.equivalent)


def assert_known_to_the_oracle(fault: Fault) -> None:
    """What a rewriting fault gives is within the oracle's budget for the rewritten inputs: diagnosis compares with it."""
    assert fault.rewrite is not None
    for problem in probes(fault):
        inputs, _, _ = tried(problem)
        verdict = judge(fault.output(inputs), expect(fault.rewrite(inputs), _PROFILE[problem.dtype]))
        assert verdict.outcome is Outcome.PASS, f"{problem.text}: {verdict.message}"

"""torch's flex_attention: windows, softcaps and sinks by its own means; run where it is named."""

import pytest

from conformance.adapter import registry
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import parse

PLAIN = "attention batch=2 heads=4/2 length=5/9 width=8 dtype=float32 values=spread.1#1"


@pytest.mark.parametrize(
    "asked",
    [
        "window=2/1/bottom-right",
        "causal=bottom-right window=3/0",
        "lengths=4,9 window=2/-/top-left",
        "bias=gaussian.1:qk#1 softcap=2.0",
        "mask=random.1:b1qk#1 softcap=1.0 sinks=gaussian.1#1",
        "mask=empty-rows.1:b1qk#1 sinks=gaussian.1#1",
    ],
)
def test_it_gives_what_is_expected_natively(asked):
    subject, problem = Subject(registry.builtin()["torch-flex"]), parse(f"{PLAIN} {asked}")
    assert str(subject.route(problem)) == "native"
    assert Judge().values(subject, problem).verdict.outcome == "PASS"


def test_what_takes_long_runs_where_it_is_named():
    assert "torch-flex" not in registry.by_default()
    assert [one.name for one in registry.select(["torch-fl*x"])] == ["torch-flex"]

"""Runs a requirement on an implementation as a run does, without known failures."""

from conformance.adapter import Implementation
from conformance.checks.items import Effort, ItemResult, ItemRun
from conformance.expectations import ImplementationExpectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.specification import requirements

EFFORT = Effort(examples=6, free=True, seed=1)
_NONE = ImplementationExpectations("", ())
_JUDGE = Judge()


def run_item(requirement: str, implementation: Implementation, effort: Effort = EFFORT) -> ItemResult:
    """The requirement of that id, with its golden, designed and random cases."""
    return ItemRun(requirements()[requirement], Subject(implementation), _JUDGE, _NONE, effort).run()

"""Whether an implementation is right but less accurate than it says: within the budget of a looser profile or narrower dtype."""

from collections.abc import Sequence
from dataclasses import replace

from conformance.diagnosis.evidence import Evidence, excess
from conformance.dtypes import DTYPES, float_type
from conformance.inputs import SinusoidalInputs
from conformance.oracle import Expected, expect
from conformance.oracle.profiles import PROFILES, TIGHTEST_FIRST


def less_accurate(failing: Sequence[Evidence]) -> str:
    """The first looser claim that all failing problems meet, as a sentence; empty where none is met."""
    compared = [evidence for evidence in failing if evidence.output is not None]
    if not compared:
        return ""
    for claim, words in _claims(compared[0]).items():
        if all(_meets(evidence, claim) for evidence in compared):
            return words
    return ""


def _claims(evidence: Evidence) -> dict[str, str]:
    """Profiles for attention, and dtypes for a table of sines, with what is said of an implementation that keeps to each."""
    if isinstance(evidence.inputs, SinusoidalInputs):
        narrower = sorted(DTYPES, key=lambda name: float_type(name).unit_roundoff)
        return {name: f"outputs are as accurate as a table in {name}" for name in narrower}
    profiles = TIGHTEST_FIRST[evidence.problem.dtype]
    return {name: f"outputs are within the budget of the profile {name} ({PROFILES[name]})" for name in profiles}


def _meets(evidence: Evidence, claim: str) -> bool:
    assert evidence.output is not None
    expected = _under(evidence, claim)
    return expected is not None and float(excess(evidence.output, expected).max(initial=0.0)) <= 1.0


def _under(evidence: Evidence, claim: str) -> Expected | None:
    """What is right, with the budget that the claim leaves; None where the claim does not go with the dtype."""
    if isinstance(evidence.inputs, SinusoidalInputs):
        looser = expect(replace(evidence.inputs, dtype=claim, x=None), evidence.profile)
        return replace(evidence.expected, budget=evidence.expected.budget + looser.budget)
    return expect(evidence.inputs, claim) if claim in TIGHTEST_FIRST[evidence.problem.dtype] else None

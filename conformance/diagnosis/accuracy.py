"""Whether an implementation is right but less accurate than it says: within the budget of a looser profile or narrower dtype."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from conformance.diagnosis.evidence import Evidence, excess, with_output
from conformance.numerics.dtypes import DTYPES, float_type
from conformance.numerics.profiles import PROFILES, TIGHTEST_FIRST, roundoffs
from conformance.oracle import Expected, expect
from conformance.problem.inputs import Inputs

SHARP = 2.0**-22


def less_accurate(failing: Sequence[Evidence]) -> str:
    """The first looser claim that all failing problems meet, as a sentence; empty where none is met."""
    compared = [evidence for evidence in failing if evidence.output is not None]
    if not compared:
        return ""
    for claim in _claims(compared[0]):
        if all(_meets(evidence, claim) for evidence in compared):
            return told(compared[0], claim)
    return ""


def told(evidence: Evidence, claim: str) -> str:
    """What is said of an implementation that keeps to the claim: profiles for attention, and dtypes for a table of sines."""
    if not evidence.by_profile:
        return f"outputs are as accurate as a table in {claim}"
    return f"outputs are within the budget of the profile {claim} ({PROFILES[claim]})"


def looser(evidence: Evidence) -> Iterator[str]:
    """The claims that leave more room than the one by which it was judged, the tightest first."""
    claims = _claims(evidence)
    own = evidence.profile if evidence.by_profile else evidence.problem.dtype
    yield from claims[claims.index(own) + 1 :] if own in claims else claims


def is_sharp(evidence: Evidence, claim: str) -> bool:
    """Whether faults can be told apart as well under the claim as in float32."""
    if not evidence.by_profile:
        return float_type(claim).unit_roundoff <= SHARP
    units = roundoffs(claim, evidence.problem.dtype)
    return max(units.scores, units.probabilities) <= SHARP


def judged_by(evidence: Evidence, claim: str) -> Evidence | None:
    """The same output judged by another claim; as it is without one. None where that cannot be."""
    if not claim or evidence.output is None:
        return evidence
    allowed = _under(evidence, claim)
    if allowed is None:
        return None
    profile = claim if evidence.by_profile else evidence.profile
    others = {symptom: how for symptom, how in evidence.symptoms.items() if symptom != "values"}
    again = with_output(replace(evidence, expected=allowed, claim=claim, profile=profile), evidence.output)
    return replace(again, symptoms={**others, **again.symptoms})


def expected_by(inputs: Inputs, evidence: Evidence) -> Expected:
    """What is expected for other ``inputs``, with the budget that the claim of the evidence leaves."""
    expected = expect(inputs, evidence.profile)
    if not evidence.claim or evidence.by_profile:
        return expected
    return replace(expected, budget=expected.budget + _of_table(inputs, evidence.claim, evidence.profile))


def _claims(evidence: Evidence) -> tuple[str, ...]:
    if not evidence.by_profile:
        return tuple(sorted(DTYPES, key=lambda name: float_type(name).unit_roundoff))
    return TIGHTEST_FIRST[evidence.problem.dtype]


def _meets(evidence: Evidence, claim: str) -> bool:
    assert evidence.output is not None
    expected = _under(evidence, claim)
    return expected is not None and float(excess(evidence.output, expected).max(initial=0.0)) <= 1.0


def _under(evidence: Evidence, claim: str) -> Expected | None:
    """What is right, with the budget that the claim leaves; None where the claim does not go with the dtype."""
    if not evidence.by_profile:
        more = _of_table(evidence.inputs, claim, evidence.profile)
        return replace(evidence.expected, budget=evidence.expected.budget + more)
    return expect(evidence.inputs, claim) if claim in TIGHTEST_FIRST[evidence.problem.dtype] else None


def _of_table(inputs: Inputs, dtype: str, profile: str) -> np.ndarray:
    """The budget of a table in another dtype, and of its sum with x."""
    return expect(inputs.but(dtype=dtype), profile).budget

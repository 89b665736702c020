"""Entries of expectation files, and the words for what they speak of."""

from conformance.judging.verdict import Outcome
from tests.support import runs

OUT, NUM = "ATT-OUT-001", "ATT-NUM-002"
KNOWN = (OUT, NUM)
PASS, WRONG, NONFINITE, ERROR = Outcome.PASS, Outcome.WRONG_VALUE, Outcome.NONFINITE, Outcome.ERROR
A, B, C = runs.digest(1), runs.digest(2), runs.digest(3)


def entry(more: str = "", requirement: str = OUT, outcome: str = "WRONG_VALUE", reason: str = "a reason") -> str:
    return f'[[expected]]\nrequirement = "{requirement}"\noutcome = "{outcome}"\nreason = "{reason}"\n{more}\n'

"""How fast implementations are, and what the suite itself costs.

Nothing is fast unless it is right: an implementation gets a time only where its own output, before and after the timing and on
fresh inputs, is within its budget.
"""

from conformance.timing.measure import BASELINES, measure
from conformance.timing.shapes import TIMED

__all__ = ["BASELINES", "TIMED", "measure"]

"""How fast implementations are, and what the suite itself costs.

Nothing is fast unless it is right: an implementation gets a time only where its own output, before and after the timing and on
fresh inputs, is within its budget.
"""

from conformance.timing.cost_table import cost_table
from conformance.timing.measure import measure
from conformance.timing.shapes import SUITES, TIMED, describe_suites
from conformance.timing.worker import Roster

__all__ = ["SUITES", "TIMED", "Roster", "cost_table", "describe_suites", "measure"]

"""The soak test: many random problems, on which correct implementations must stay within their budgets.

Where one does not, its profile, or the rule from which budgets come, is wrong. A budget that nothing comes near is wrong too: it
would let faults through.
"""

from conformance.soak.run import CORRECT, Extreme, Soaked, judge_numbers, soak
from conformance.soak.table import render, slack

__all__ = ["CORRECT", "Extreme", "Soaked", "judge_numbers", "render", "slack", "soak"]

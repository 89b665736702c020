"""Ways of failing: failures of one kind are likely to have one cause."""

import re

from conformance.judging.verdict import Outcome

_PLACE = re.compile(r" \([^()]*:\d+\)$")  # the line that raised, at the end of a message
_NUMBER = re.compile(r"\d[\d.]*(e[+-]?\d+)?")
_LIST = re.compile(r"#(\s*[,x]\s*#)+,?")


def kind_of(outcome: Outcome, message: str) -> str:
    """The outcome; for exceptions their type and text too, less the numbers in it, which are every problem's own."""
    if outcome is not Outcome.ERROR:
        return str(outcome)
    return _LIST.sub("#", _NUMBER.sub("#", _PLACE.sub("", message)))

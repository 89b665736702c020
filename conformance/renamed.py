"""Words that were others in earlier versions, which are still read: in commands, declarations and records.

Fields of records keep the names that they have in the file (``rename`` in conformance/records/record_types.py).
"""

from collections.abc import Mapping
from typing import Any

COMMANDS = {"repro": "reproduce"}  # what is written now by what was
PROFILES = {"eager": "unfused"}
OPTIONS = {"--correct": "--honest"}  # what was written, of ``faults``, by what is now


def profile_of_today(declared: Any) -> Any:
    """The numerics profile that is meant, with whatever is added to it: unfused+lse where eager+lse was written. Of a dictionary
    all that it has; what is neither stays as it is."""
    if isinstance(declared, str):
        base, plus, added = declared.partition("+")
        return PROFILES.get(base, base) + plus + added
    if isinstance(declared, Mapping):
        return {dtype: profile_of_today(name) for dtype, name in declared.items()}
    return declared

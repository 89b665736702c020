"""A process of its own for what runs an implementation after the checks: it may end or hang it, or change what it likes."""

import time
from dataclasses import dataclass

from conformance.children import Child
from conformance.errors import UsageError
from conformance.records import Line, decode
from conformance.threads import VARIABLES


@dataclass(frozen=True)
class Apart:
    """What came of it: the last record that the process has sent, None where there is none, and whether it ended ``in_time``,
    in whatever way."""

    record: Line | None
    in_time: bool


def run_apart(module: str, task: bytes, limit: float) -> Apart:
    """Runs ``main`` of ``module`` with ``task`` to its end, or for ``limit`` seconds, in one thread."""
    child = Child(module, variables=dict.fromkeys(VARIABLES, "1"))
    last, until = b"", time.monotonic() + limit
    try:
        child.send(task)
        while (message := child.next(until - time.monotonic())) is not None:
            last = message
    except TimeoutError:
        return Apart(_understood(last), in_time=False)
    finally:
        child.end()
    return Apart(_understood(last), in_time=True)


def _understood(message: bytes) -> Line | None:
    try:
        return decode(message)
    except UsageError:
        return None

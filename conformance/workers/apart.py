"""A process of its own for what runs an implementation after the checks: it may end or hang it, or change what it likes."""

import queue
import time
from dataclasses import dataclass

from conformance.children import Child
from conformance.children.process import Arrived
from conformance.errors import UsageError
from conformance.records import Line, decode
from conformance.threads import VARIABLES

INTERVAL = 0.05  # seconds between two looks at the process


@dataclass(frozen=True)
class Apart:
    """What came of it: the last record that the process has sent, None where there is none, and whether it ended ``in_time``,
    in whatever way."""

    record: Line | None
    in_time: bool


def run_apart(module: str, task: bytes, limit: float) -> Apart:
    """Runs ``main`` of ``module`` with ``task`` to its end, or for ``limit`` seconds, in one thread."""
    arrived: Arrived = queue.SimpleQueue()
    child = Child(module, arrived, variables=dict.fromkeys(VARIABLES, "1"))
    last, since, in_time = b"", time.monotonic(), True
    try:
        child.send(task)
        while in_time:
            try:
                message = arrived.get(timeout=INTERVAL)[1]
            except queue.Empty:
                in_time = time.monotonic() - since <= limit
                if not child.has_ended:  # a process that it has started may hold its connection open
                    continue
                message = None if arrived.empty() else arrived.get()[1]
            if message is None:
                break
            last = message
    finally:
        child.end()
    return Apart(_understood(last), in_time)


def _understood(message: bytes) -> Line | None:
    try:
        return decode(message)
    except UsageError:
        return None

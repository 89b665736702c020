"""Processes that are started before anything else of a run: they load what is ours while the process of the user still does."""

import os
import queue
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.errors import UsageError
from conformance.system.children import Child
from conformance.system.children.process import Arrived
from conformance.system.threads import VARIABLES

MODULE = "conformance.run.workers.worker"


class Started:
    """``count`` processes that wait for what they are to do; what they print lies in ``folder``, what they say in ``arrived``."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.arrived: Arrived = queue.SimpleQueue()
        self._temporary = TemporaryDirectory(prefix="attention-conformance-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self._variables = _threads_of_each(count)
        self._children: list[Child | None] = [self.another(number) for number in range(count)]

    def another(self, number: int) -> Child:
        """A new process in place ``number``."""
        self.printed(number).write_bytes(b"")
        return Child(MODULE, self.arrived, output=self.printed(number), variables=self._variables)

    def first(self, number: int) -> Child | None:
        """The one that was started in this place, once."""
        child, self._children[number] = self._children[number], None
        return child

    def printed(self, number: int) -> Path:
        return self.folder / f"printed-{number}"

    def trail(self, number: int) -> Path:
        return self.folder / f"trail-{number}"

    def end(self) -> None:
        """Ends those that nobody has taken."""
        for child in filter(None, self._children):
            child.end()
        self._temporary.cleanup()


def number_of(text: str | int | None) -> int:
    """What -n says: a number of processes, one at least, or auto, one a core. Raises UsageError for anything else."""
    word = str(text or 1)
    if word in ("auto", "logical"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not re.fullmatch("[0-9]{1,3}", word):
        raise UsageError(f"-n {word[:20]} is neither a number of processes, at most 999, nor auto.")
    return max(1, int(word))


def _threads_of_each(processes: int) -> Mapping[str, str]:
    """Its share of the cores for each of several processes: threads of several on one core mostly wait.

    Measured with torch, two processes on two cores: 5 times slower without. Libraries read this when they are first imported.
    """
    if processes == 1:
        return {}
    share = str(max(1, (os.cpu_count() or 1) // processes))
    return {name: os.environ.get(name, share) for name in VARIABLES}

"""Ends workers of which an item runs over its time limit, from outside: even out of compiled code, and when they are stopped."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.session.trail import Trace, trace

INTERVAL = 0.1  # seconds between two looks
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no SIGKILL; there, SIGTERM ends a process at once


class Watchdog:
    """Looks at the trails of the workers of a run, each named by its id. ``ended``: those that it has ended."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.ended: set[str] = set()
        self._folder = TemporaryDirectory(prefix="attention-conformance-")
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def path(self, worker: str) -> Path:
        """Where the worker writes its trail. The first call begins the watch."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return Path(self._folder.name) / worker

    def trace(self, worker: str) -> Trace:
        return trace(self.path(worker))

    def end_all(self) -> None:
        """Ends the workers at once, whatever they do."""
        for path in Path(self._folder.name).iterdir():
            self._end(trace(path).process)

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._folder.cleanup()

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL):
            for path in Path(self._folder.name).iterdir():
                seen = trace(path)
                if seen.since and path.name not in self.ended and time.monotonic() - seen.since > self.limit:
                    self.ended.add(path.name)
                    self._end(seen.process)

    def _end(self, process: int) -> None:
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, KILL)

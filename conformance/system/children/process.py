"""The side of the process that starts a child, asks it, and ends it."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.system.children.channel import read_frame, write_frame
from conformance.system.children.descendants import end_session
from conformance.system.world import environment_outside

Arrived = queue.SimpleQueue[tuple["Child", bytes | None]]
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"  # modules are found as here
_INTERVAL = 0.05  # seconds between two looks at whether it lives
_PATIENCE = 2.0  # seconds for what was sent before a death to be read


class Child:
    """A Python process that runs ``main`` of one of our modules.

    It is the leader of a session of its own: Ctrl-C in the terminal is not for it, and it is ended with all that it has started.
    Its messages are put into ``arrived`` as they come, None after the last; ``next`` gives them where that is not shared with
    other children. What it prints goes to ``output``, nowhere if None;
    ``variables`` are added to the environment, which is otherwise that of the user.
    """

    def __init__(
        self,
        module: str,
        arrived: Arrived | None = None,
        *,
        output: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._arrived: Arrived = queue.SimpleQueue() if arrived is None else arrived
        program = _PROGRAM.format(path=sys.path, module=module)
        with open(output or os.devnull, "ab") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                env={**environment_outside(), **(variables or {})},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def id(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """All that it has sent is in ``arrived`` then, though a process that it has started may hold its connection open."""
        if self._process.poll() is None:
            return False
        end_session(self.id)
        self._reader.join(_PATIENCE)
        return True

    @property
    def code(self) -> int | None:
        """With which it ended: negative for a signal."""
        return self._process.returncode

    def send(self, message: bytes) -> None:
        """One that has ended hears nothing, which shows by ``has_ended``."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            write_frame(self._process.stdin, message)

    def next(self, limit: float) -> bytes | None:
        """Its next message; None where it has ended, though a process that it has started may hold its connection open. Raises
        TimeoutError where neither comes within ``limit`` seconds."""
        until = time.monotonic() + limit
        while True:
            try:
                return self._arrived.get(timeout=max(0.0, min(_INTERVAL, limit)))[1]
            except queue.Empty:
                if self.has_ended and self._arrived.empty():
                    return None
                if time.monotonic() > until:
                    raise TimeoutError from None

    def end(self) -> None:
        """Kills it with all that it has started, and returns when it is gone."""
        end_session(self.id)
        self._process.wait()
        end_session(self.id)
        self._reader.join(_PATIENCE)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not (stream is self._process.stdout and self._reader.is_alive()):
                _close(stream)

    def kill(self) -> None:
        """Kills it and waits for nothing, as befits a signal handler."""
        end_session(self.id)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while (message := read_frame(self._process.stdout)) is not None:
            self._arrived.put((self, message))
        self._arrived.put((self, None))


def _close(stream: Any) -> None:
    with contextlib.suppress(OSError):  # what was still to be written has no reader
        stream.close()


def how_it_ended(code: int | None) -> str:
    """In words: ``by signal SIGSEGV``, ``with code 3``."""
    if code is None:
        return "in a way that is not known"
    if code >= 0:
        return f"with code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"

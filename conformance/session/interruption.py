"""Ctrl-C: the item at hand is finished and recorded, then the run ends; a second one ends it at once."""

import signal
import sys
import threading
from types import FrameType
from typing import Any

import pytest

# Ctrl-C, a request to end, a closed terminal (not on Windows).
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
UNTOUCHED = (signal.SIG_DFL, signal.default_int_handler)


class Interruption:
    """Hooks of the process that the user started. ``asked`` becomes true with the first Ctrl-C.

    An exception raised wherever the program happens to be could be lost in compiled code, be taken for the implementation's own,
    or leave a record written that is not counted; so the first Ctrl-C raises none, and the second ends the process.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.asked = True
            print("\nInterrupted: the items at hand are finished first; Ctrl-C again stops at once.", file=sys.stderr)
            # pytest looks at the first between items, pytest-xdist at its own at least every two seconds
            distributed: Any = session.config.pluginmanager.get_plugin("dsession")
            for looked_at in filter(None, (session, distributed)):
                looked_at.shouldstop = "interrupted"

        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) in UNTOUCHED:  # not ignored, and nobody else's
                self._before[number] = signal.signal(number, stop)

    def pytest_unconfigure(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

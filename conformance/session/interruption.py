"""Ctrl-C: the item at hand is finished and recorded, then the run ends; a second one ends it at once."""

import signal
import sys
import threading
from types import FrameType
from typing import Any

import pytest


class Interruption:
    """Hooks of the process that the user started. ``asked`` becomes true with the first Ctrl-C.

    An exception raised wherever the program happens to be could be lost in compiled code, be taken for the implementation's own,
    or leave a record written that is not counted; so the first Ctrl-C raises none.
    """

    def __init__(self) -> None:
        self.asked = False
        self._installed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return  # ignored, or somebody else's

        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.asked = True
            print("\nInterrupted: the items at hand are finished first; Ctrl-C again stops at once.", file=sys.stderr)
            # pytest looks at the first between items, pytest-xdist at its own at least every two seconds
            distributed: Any = session.config.pluginmanager.get_plugin("dsession")
            for looked_at in filter(None, (session, distributed)):
                looked_at.shouldstop = "interrupted"

        signal.signal(signal.SIGINT, stop)
        self._installed = True

    def pytest_unconfigure(self) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

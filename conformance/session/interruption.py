"""Ctrl-C in a run: the item at hand is finished and recorded, then the run ends; a second one ends it at once."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.interruption import FirstInterrupt


class Interruption:
    """Hooks of the process that the user started. ``asked`` becomes true with the first Ctrl-C; ``at_once`` is called with the
    second."""

    def __init__(self, at_once: Callable[[], None]) -> None:
        self._first = FirstInterrupt("the items at hand are finished", at_once)

    @property
    def asked(self) -> bool:
        return self._first.asked

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        def stop() -> None:
            # pytest looks at the first between items, pytest-xdist at its own at least every two seconds
            distributed: Any = session.config.pluginmanager.get_plugin("dsession")
            for looked_at in filter(None, (session, distributed)):
                looked_at.shouldstop = "interrupted"

        self._first.install(stop)

    def pytest_unconfigure(self) -> None:
        self._first.remove()

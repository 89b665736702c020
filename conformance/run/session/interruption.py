"""Ctrl-C in a run: the item at hand is finished and recorded, then the run ends; a second one ends it at once."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.system.interruption import FirstInterrupt


def stop(config: pytest.Config, why: str) -> None:
    """Ends the run after the items at hand."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None:
        session.shouldstop = why


class Interruption:
    """Hooks of the process that the user started. ``asked`` becomes true with the first Ctrl-C; ``at_once`` is called with the
    second."""

    def __init__(self, config: pytest.Config) -> None:
        self.at_once: Callable[[], None] = lambda: None
        self._first = FirstInterrupt("the items at hand are finished", lambda: self.at_once())
        self._first.install(lambda: stop(config, "interrupted"))

    @property
    def asked(self) -> bool:
        return self._first.asked

    def pytest_unconfigure(self) -> None:
        self._first.remove()

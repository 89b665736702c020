"""Ctrl-C in a run: the item at hand is finished and recorded, then the run ends; a second one ends it at once."""

from collections.abc import Callable

import pytest

from conformance.interruption import FirstInterrupt


def stop(config: pytest.Config, why: str) -> None:
    """Ends the run after the items at hand."""
    # pytest looks at the first between items, pytest-xdist at its own at least every two seconds
    session, distributed = (config.pluginmanager.get_plugin(name) for name in ("session", "dsession"))
    for looked_at in filter(None, (session, distributed)):
        looked_at.shouldstop = why


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
        self._first.install(lambda: stop(session.config, "interrupted"))

    def pytest_unconfigure(self) -> None:
        self._first.remove()

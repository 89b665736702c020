"""What the reports need, loaded while the workers start: the process that the user started has nothing else to do then."""

from typing import Any

import pytest

from conformance.session.options import Settings


class Ahead:
    """Not where the implementation runs in this process: it must not find there what the reports have loaded."""

    def __init__(self, settings: Settings, config: pytest.Config) -> None:
        self._settings = settings
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        """pytest-xdist has started its workers before this."""
        if self._settings.reports and self._config.pluginmanager.get_plugin("dsession"):
            from conformance.report_files import load

            load()

"""A plugin of pytest for processes that mutmut forks, which the suite would take for those that an implementation forks."""

import os

from conformance import errors


def pytest_sessionstart() -> None:
    errors._PROCESS = os.getpid()

"""A plugin of pytest for the processes that mutmut forks: ours ends those that an implementation forks, and takes them for such."""

import os

from conformance import errors


def pytest_sessionstart() -> None:
    errors._PROCESS = os.getpid()

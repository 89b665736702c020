"""The pytest plugin's entry point. It is loaded in every pytest run where the package is installed, so it does nothing, and adds
no option, unless the run is one of ours: ``pytest --pyargs conformance.checks …`` or ``attention-conformance run``."""

import os
import sys

import pytest

from conformance import threads
from conformance.world import SWITCH

CHECKS = "conformance.checks"


def pytest_addoption(parser: pytest.Parser) -> None:
    if SWITCH not in os.environ and not any(CHECKS in argument for argument in sys.argv):
        return
    os.environ.setdefault(SWITCH, "{}")
    _share_cores()
    from conformance.session.options import add_options

    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    if SWITCH in os.environ and hasattr(config.option, "conformance_implementations"):
        from conformance.session import activate

        activate(config)


def _share_cores() -> None:
    """Gives each of pytest-xdist's workers its share of the cores: threads of several workers on one core mostly wait.

    Measured with torch, two workers on two cores: 5 times slower without. Libraries read this when they are first imported.
    """
    workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if workers.isdecimal() and int(workers) > 1:
        for name in threads.VARIABLES:
            os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // int(workers))))

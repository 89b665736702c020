"""The pytest plugin's entry point. It is loaded in every pytest run where the package is installed, so it does nothing, and adds
no option, unless the run is one of ours: ``pytest --pyargs conformance.checks …`` or ``attention-conformance run``."""

import os
import sys

import pytest

from conformance.system.world import SWITCH

CHECKS = "conformance.checks"


def pytest_addoption(parser: pytest.Parser) -> None:
    if SWITCH not in os.environ and not any(CHECKS in argument for argument in sys.argv):
        return
    os.environ.setdefault(SWITCH, "{}")
    from conformance.run.session.options import add_options

    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    if SWITCH in os.environ and hasattr(config.option, "conformance_implementations"):
        from conformance.run.session import activate

        activate(config)

"""A run inside pytest: options, items, records. ``activate`` is what the plugin's entry point calls."""

import os
from typing import Any

import pytest

from conformance.errors import UsageError


def activate(config: pytest.Config) -> None:
    """Understands the options, has the implementations loaded, and registers the run's hooks. Ends pytest with a sentence where
    that makes no sense."""
    from conformance.session.interruption import Interruption
    from conformance.workers.pool import Pool

    interruption = Interruption(config)
    config.pluginmanager.register(interruption, "conformance-interruption")
    pool = Pool(_processes(config), lambda: interruption.asked)  # they load what is ours while this one does
    interruption.at_once = pool.kill
    config.add_cleanup(pool.end)
    try:
        _register(config, interruption, pool)
    except UsageError as error:
        pool.end()
        raise pytest.UsageError(str(error)) from None


def _register(config: pytest.Config, interruption: Any, pool: Any) -> None:
    from conformance.session.items import Items
    from conformance.session.loop import Loop
    from conformance.session.options import demand_askable, groups, settings_from
    from conformance.session.recorder import Recorder

    settings = settings_from(config)
    pool.begin(groups(settings), settings.time_limit)
    implementations = tuple(pool.loaded())
    demand_askable(settings, implementations)
    config.pluginmanager.register(Items(settings, implementations), "conformance-items")
    config.pluginmanager.register(Loop(pool, settings.expectations, implementations), "conformance-loop")
    config.pluginmanager.register(Recorder(settings, implementations, config, interruption), "conformance-recorder")


def _processes(config: pytest.Config) -> int:
    """How many implementations run at a time: as -n says, of pytest-xdist where that is loaded; else one."""
    option = config.option
    asked = getattr(option, "conformance_processes", None) or getattr(option, "numprocesses", None)
    if getattr(option, "dist", "no") != "no":  # pytest-xdist's processes would each have some of their own
        option.dist, option.tx, option.numprocesses = "no", [], None
    if asked in ("auto", "logical"):
        return os.cpu_count() or 1
    return max(1, int(asked or 1))

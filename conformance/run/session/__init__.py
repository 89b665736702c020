"""A run inside pytest: options, items, records. ``activate`` is what the plugin's entry point calls."""

from typing import Any

import pytest

from conformance.errors import UsageError


def activate(config: pytest.Config) -> None:
    """Understands the options, has the implementations loaded, and registers the run's hooks. Ends pytest with a sentence where
    that makes no sense."""
    from conformance.run.session.interruption import Interruption
    from conformance.run.workers.pool import Pool

    interruption = Interruption(config)
    config.pluginmanager.register(interruption, "conformance-interruption")
    pool = Pool(_started(config), lambda: interruption.asked)
    interruption.at_once = pool.kill
    config.add_cleanup(pool.end)
    try:
        _register(config, interruption, pool)
    except UsageError as error:
        pool.end()
        raise pytest.UsageError(str(error)) from None


def _register(config: pytest.Config, interruption: Any, pool: Any) -> None:
    from conformance.run.session.items import Items
    from conformance.run.session.loop import Loop
    from conformance.run.session.options import demand_askable, groups, settings_from
    from conformance.run.session.recorder import Recorder

    settings = settings_from(config)
    pool.begin(groups(settings), settings.time_limit)
    implementations = tuple({one.name: one for one in pool.loaded()}.values())
    demand_askable(settings, implementations)
    config.pluginmanager.register(Items(settings, implementations), "conformance-items")
    config.pluginmanager.register(Loop(pool, settings.expectations, implementations), "conformance-loop")
    config.pluginmanager.register(Recorder(settings, implementations, config, interruption), "conformance-recorder")


def _started(config: pytest.Config) -> Any:
    """The processes that are there already, or as many as -n says, of pytest-xdist where that is loaded; else one."""
    from conformance.run.workers.started import Started, number_of

    option = config.option
    number = option.conformance_processes or getattr(option, "numprocesses", None)
    if getattr(option, "dist", "no") != "no":  # pytest-xdist's processes would each have some of their own
        option.dist, option.tx, option.numprocesses = "no", [], None
    ahead = [getattr(plugin, "started", None) for plugin in config.pluginmanager.get_plugins()]
    return next((one for one in ahead if isinstance(one, Started)), None) or Started(number_of(number))

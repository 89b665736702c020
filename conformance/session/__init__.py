"""A run inside pytest: options, items, records. ``activate`` is what the plugin's entry point calls."""

import signal
from pathlib import Path

import pytest

from conformance.errors import UsageError


def activate(config: pytest.Config) -> None:
    """Understands the options and registers the run's hooks. Ends pytest with a sentence where they make no sense."""
    from conformance.interruption import SIGNALS
    from conformance.session.ahead import Ahead
    from conformance.session.interruption import Interruption
    from conformance.session.items import Items
    from conformance.session.options import settings_from
    from conformance.session.recorder import TRAIL, Recorder
    from conformance.session.trail import Trail
    from conformance.session.watchdog import Watchdog

    try:
        settings = settings_from(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    given = getattr(config, "workerinput", None)  # in a worker of pytest-xdist
    trail = Trail(Path(given[TRAIL])) if given else None
    if given:
        for number in SIGNALS:  # Ctrl-C reaches all processes of a terminal; the controller decides
            signal.signal(number, signal.SIG_IGN)
    config.pluginmanager.register(Items(settings, trail), "conformance-items")
    if given is None:
        watchdog = Watchdog(settings.time_limit)
        interruption = Interruption(at_once=watchdog.end_all)
        config.pluginmanager.register(interruption, "conformance-interruption")
        config.pluginmanager.register(Recorder(settings, config, interruption, watchdog), "conformance-recorder")
        config.pluginmanager.register(Ahead(settings, config), "conformance-ahead")
        if getattr(config.option, "maxworkerrestart", "absent") is None:
            config.option.maxworkerrestart = 10_000  # a crash costs its own item, however many there are

"""A run inside pytest: options, items, records. ``activate`` is what the plugin's entry point calls."""

import pytest

from conformance.errors import UsageError


def activate(config: pytest.Config) -> None:
    """Understands the options and registers the run's hooks. Ends pytest with a sentence where they make no sense."""
    from conformance.session.interruption import Interruption
    from conformance.session.items import Items
    from conformance.session.options import settings_from
    from conformance.session.recorder import Recorder

    try:
        settings = settings_from(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(Items(settings, in_worker=hasattr(config, "workerinput")), "conformance-items")
    if not hasattr(config, "workerinput"):
        interruption = Interruption()
        config.pluginmanager.register(interruption, "conformance-interruption")
        config.pluginmanager.register(Recorder(settings, config, interruption), "conformance-recorder")
        if getattr(config.option, "maxworkerrestart", "absent") is None:
            config.option.maxworkerrestart = 10_000  # a crash costs its own item, however many there are

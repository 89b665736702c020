"""A run inside pytest: options, items, records. ``activate`` is what the plugin's entry point calls."""

import os

import pytest

from conformance.errors import UsageError


def activate(config: pytest.Config) -> None:
    """Understands the options and registers the run's hooks. Ends pytest with a sentence where they make no sense."""
    from conformance.session.items import Items
    from conformance.session.options import settings_from
    from conformance.session.recorder import Recorder

    if hasattr(config, "workerinput"):
        _share_cores(int(config.workerinput["workercount"]))
    try:
        settings = settings_from(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(Items(settings, in_worker=hasattr(config, "workerinput")), "conformance-items")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(settings, config), "conformance-recorder")
        if getattr(config.option, "maxworkerrestart", "absent") is None:
            config.option.maxworkerrestart = 10_000  # a crash costs its own item, however many there are


def _share_cores(workers: int) -> None:
    """As many threads as this worker's share of the cores, unless the user said otherwise: frameworks read it when imported."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // workers)))

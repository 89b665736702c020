"""Which items there are: requirement or convention × implementation, as pytest's, and which of them this run has."""

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.adapter.known import Known
from conformance.run.session.options import Settings
from conformance.run.workers.asking import Ask
from conformance.specification import conventions, requirements
from conformance.specification.requirement import Convention, Requirement

SELECTED = pytest.StashKey[int]()  # how many items -k selects, of all shards
GROUPED_BY = ("requirement_id", "convention_id")


class Items:
    """pytest hooks that make the items of the ``implementations``."""

    def __init__(self, settings: Settings, implementations: tuple[Known, ...]) -> None:
        self._settings = settings
        self._implementations = implementations

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "requirement_id" in metafunc.fixturenames:
            area = metafunc.module.AREA
            self._parametrize(metafunc, "requirement_id", [r for r in requirements().values() if r.area == area])
        elif "convention_id" in metafunc.fixturenames:
            self._parametrize(metafunc, "convention_id", conventions().values())

    def _parametrize(self, metafunc: pytest.Metafunc, name: str, wanted: Iterable[Requirement | Convention]) -> None:
        """Requirement by requirement, so that the oracle's answers, which are kept a while, serve all implementations."""
        pairs = [
            pytest.param(asked.id, one.name, id=f"{asked.id}-{one.name}")
            for asked in wanted
            for one in self._implementations
            if asked.is_asked_of(one.operation, one.entry.outputs)
        ]
        metafunc.parametrize((name, "implementation"), pairs)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leaves what falls to this shard of what -k selects: whole requirements, for which the oracle is asked once."""
        items[:] = [item for item in items if not _stands_for_none(item)]
        config.stash[SELECTED] = len(items)
        if self._settings.shard.count == 1:
            return
        groups = {group: cost(group, self._settings.effort.examples) for group in filter(None, map(_group, items))}
        mine = self._settings.shard.part(groups)
        others = [item for item in items if _group(item) not in {None, *mine}]
        items[:] = [item for item in items if _group(item) in {None, *mine}]
        config.hook.pytest_deselected(items=others)


def asked_by(item: pytest.Item) -> Ask | None:
    """What an item of ours stands for."""
    group = _group(item)
    return Ask(group, str(_parameters(item)["implementation"])) if group is not None else None


def _stands_for_none(item: pytest.Item) -> bool:
    """Whether pytest made the item for an area of which no requirement is about what the implementations offer."""
    return _group(item) is not None and not isinstance(_parameters(item).get("implementation"), str)


def _group(item: pytest.Item) -> str | None:
    """The requirement or convention of an item of ours."""
    parameters = _parameters(item)
    return next((str(parameters[name]) for name in GROUPED_BY if name in parameters), None)


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def cost(identifier: str, examples: int) -> float:
    """What a requirement or convention costs, roughly: its number of problems, golden and designed ones and examples."""
    requirement = requirements().get(identifier)
    if requirement is None:
        return 1.0
    from conformance.values.golden import load_cases

    golden = sum(case.requirement == identifier for case in load_cases())
    return 1.0 + golden + len(list(requirement.designed())) + (examples if requirement.random else 0)

"""The worker's side of a run: which items there are, and running one."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.adapter import Framework, Implementation
from conformance.cases.golden import load_cases
from conformance.checks.conventions import observe_convention
from conformance.checks.items import ItemResult, ItemRun
from conformance.expectations import is_skipped
from conformance.harness import Subject
from conformance.judging import Judge
from conformance.records import Convention, Item, encode
from conformance.records.model import StatusWord
from conformance.session.kept import kept
from conformance.session.messages import failure_message
from conformance.session.options import Settings
from conformance.session.trail import Trail
from conformance.soundness import Soundness, of_the_first_call, soundness
from conformance.specification import conventions, requirements
from conformance.verdict import Outcome
from conformance.world import outside

PROPERTY = "conformance-records"
UNSOUND = "conformance-unsound"  # name of an implementation that cannot be judged, and why
SELECTED = pytest.StashKey[int]()  # how many items -k selects, of all shards
SELECTED_OF_WORKER = "conformance_selected"  # what a worker tells it as
GROUPED_BY = ("requirement_id", "convention_id")


class Items:
    """pytest hooks that make items of requirement × implementation, and the fixture with which a check runs one."""

    def __init__(self, settings: Settings, trail: Trail | None) -> None:
        self.settings = settings
        self.trail = trail  # in a worker
        self.judge = Judge()
        self._subjects: dict[str, Subject] = {}
        self._soundness: dict[str, Soundness] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "requirement_id" in metafunc.fixturenames:
            area = metafunc.module.AREA
            wanted = {r.id: (r.operation,) for r in requirements().values() if r.area == area}
            self._parametrize(metafunc, "requirement_id", wanted)
        elif "convention_id" in metafunc.fixturenames:
            self._parametrize(metafunc, "convention_id", {c.id: c.operations for c in conventions().values()})

    def _parametrize(self, metafunc: pytest.Metafunc, name: str, wanted: Mapping[str, tuple[str, ...]]) -> None:
        """Requirement by requirement, so that the oracle's answers, which are kept a while, serve all implementations."""
        pairs = [
            pytest.param(identifier, implementation, id=f"{identifier}-{implementation.name}")
            for identifier, operations in wanted.items()
            for implementation in self.settings.implementations
            if implementation.operation in operations
        ]
        metafunc.parametrize((name, "implementation"), pairs)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leaves what falls to this shard of what -k selects: whole requirements, for which the oracle is asked once."""
        items[:] = [item for item in items if not _stands_for_none(item)]
        note_selected(config, len(items))
        if self.settings.shard.count == 1:
            return
        groups = {group: cost(group, self.settings.effort.examples) for group in filter(None, map(_group, items))}
        mine = self.settings.shard.part(groups)
        others = [item for item in items if _group(item) not in {None, *mine}]
        items[:] = [item for item in items if _group(item) in {None, *mine}]
        config.hook.pytest_deselected(items=others)

    @pytest.fixture
    def run_item(self, request: pytest.FixtureRequest) -> Any:
        """Runs a requirement on an implementation; the test passes exactly where the result is as expected."""

        def run(requirement_id: str, implementation: Implementation) -> None:
            with outside():  # pytest itself sets a variable for each test
                records = self._records(requirement_id, implementation)
            request.node.user_properties.append((PROPERTY, [encode(record).decode() for record in records]))
            if self._unsound(implementation):
                request.node.user_properties.append((UNSOUND, (implementation.name, self._unsound(implementation))))
                pytest.skip(self._unsound(implementation))  # said once, at the end
            _conclude(records[0], records[1:])

        return run

    @pytest.fixture
    def run_convention(self, request: pytest.FixtureRequest) -> Any:
        """Observes a convention on an implementation; fails where what is observed is not as it should be, or as expected."""

        def run(convention_id: str, implementation: Implementation) -> None:
            reason = self._skip_reason(convention_id, implementation)
            if is_skipped(convention_id, self.settings.skips):
                request.node.user_properties.append((PROPERTY, [encode(_skipped(convention_id, implementation)).decode()]))
            with outside():
                reason = reason or self._unsound(implementation)
            if reason and not request.node.user_properties and implementation.missing() is None:
                request.node.user_properties.append(
                    (PROPERTY, [encode(_unanswered(convention_id, implementation, reason)).decode()])
                )
            if reason:
                pytest.skip(reason)
            expectations, subject = self.settings.expectations.for_(implementation.name), self._subject(implementation)
            with outside():
                record = observe_convention(subject, convention_id, expectations)
            record = replace(record, declined=subject.declined[convention_id])
            request.node.user_properties.append((PROPERTY, [encode(record).decode()]))
            if record.status == "unexpected":
                pytest.fail(f"{convention_id} on {implementation.name}: {record.message}", pytrace=False)
            if record.reason:
                pytest.xfail(record.reason)

        return run

    def _records(self, requirement_id: str, implementation: Implementation) -> list[Any]:
        reason = self._skip_reason(requirement_id, implementation)
        if reason:
            return [_not_run(requirement_id, implementation, Outcome.SKIPPED, reason)]
        unsound = self._unsound(implementation)
        if unsound:
            return [_not_run(requirement_id, implementation, Outcome.ERROR, unsound)]
        expectations = self.settings.expectations.for_(implementation.name)
        requirement = requirements()[requirement_id]
        run = ItemRun(requirement, self._subject(implementation), self.judge, expectations, self.settings.effort)
        result: ItemResult = run.run()
        item = result.item
        if requirement.check == "repeat" and item.outcome is Outcome.PASS:
            told = of_the_first_call(self._soundness[implementation.name], self._subject(implementation), self.judge)
            if told:
                item = replace(item, outcome=Outcome.NONDETERMINISTIC, status="unexpected", reason=told)
        return [item, *result.cases]

    def _skip_reason(self, identifier: str, implementation: Implementation) -> str | None:
        if is_skipped(identifier, self.settings.skips):
            return "listed in the skips file"
        return implementation.missing()

    def _unsound(self, implementation: Implementation) -> str:
        """Why the adapter cannot be judged; found once, by its first item."""
        name = implementation.name
        if name not in self._soundness:
            missing = implementation.missing()
            self._soundness[name] = Soundness() if missing else soundness(self._subject(implementation), self.judge)
        return self._soundness[name].unsound

    def _subject(self, implementation: Implementation) -> Subject:
        if implementation.name not in self._subjects:
            self._subjects[implementation.name] = subject = Subject(implementation)
            if self.trail:
                subject.announce = self.trail.note
        return self._subjects[implementation.name]

    @pytest.hookimpl(wrapper=True, trylast=True)  # innermost, or pytest's capture would replace the streams again
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """What an implementation does to the process is undone after each item, where it can be."""
        framework = _framework(item)
        if self.trail is None:
            with kept(framework):
                return (yield)
        self.trail.begin()
        try:
            with kept(framework):
                return (yield)
        finally:
            self.trail.end()


def _not_run(requirement: str, implementation: Implementation, outcome: Outcome, reason: str) -> Item:
    status: StatusWord = "unexpected" if outcome.is_failure else "expected"
    return Item(
        requirement=requirement, implementation=implementation.name, outcome=outcome, status=status, reason=reason,
    )  # fmt: skip


def _skipped(convention: str, implementation: Implementation) -> Convention:
    return replace(_unanswered(convention, implementation, "Not asked: listed in the skips file."), skipped=True)


def _unanswered(convention: str, implementation: Implementation, message: str) -> Convention:
    declared = implementation.support.conventions.get(convention)
    return Convention(
        id=convention, implementation=implementation.name, declared=declared, observed=None, agrees=None, status="expected",
        message=message,
    )  # fmt: skip


def _framework(item: pytest.Item) -> Framework | None:
    """The framework of an item of ours."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    found = parameters.get("implementation")
    return found.framework if isinstance(found, Implementation) else None


def note_selected(config: pytest.Config, number: int) -> None:
    """Tells the recorder, in this process or in that of the controller."""
    config.stash[SELECTED] = number
    if hasattr(config, "workeroutput"):
        config.workeroutput[SELECTED_OF_WORKER] = number


def _stands_for_none(item: pytest.Item) -> bool:
    """Whether pytest made the item for an area of which no requirement is about what the implementations offer."""
    return _group(item) is not None and _framework(item) is None


def _group(item: pytest.Item) -> str | None:
    """The requirement or convention of an item of ours."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((str(parameters[name]) for name in GROUPED_BY if name in parameters), None)


def cost(identifier: str, examples: int) -> float:
    """What a requirement or convention costs, roughly: its number of problems, golden and designed ones and examples."""
    requirement = requirements().get(identifier)
    if requirement is None:
        return 1.0
    golden = sum(case.requirement == identifier for case in load_cases())
    return 1.0 + golden + len(list(requirement.designed())) + (examples if requirement.random else 0)


def _conclude(item: Item, cases: list[Any]) -> None:
    if item.status == "unexpected":
        pytest.fail(failure_message(item, cases), pytrace=False)
    if not item.outcome.was_run:
        pytest.skip(f"{item.outcome}: {item.reason}")
    if item.outcome.is_failure:
        pytest.xfail(item.reason)

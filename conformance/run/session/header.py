"""The first record of a run: what is asked, of which implementations, and where."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import UNSET
from msgspec.structs import replace

from conformance import __version__
from conformance.adapter.known import Known
from conformance.problem.returned import OUTPUT
from conformance.records import SCHEMA_VERSION, Header, command_line, expected_of, requirement_entry
from conformance.run.session.options import Settings
from conformance.specification import SPEC_VERSION, conventions, requirements


def header(settings: Settings, implementations: Sequence[Known], selection: str, pairs: Iterable[tuple[str, str]]) -> Header:
    """``selection``: the expression of -k; ``pairs``: the requirements and conventions to run, each with an implementation."""
    made = _header(settings, implementations, selection)
    return replace(made, expected=expected_of(made, pairs))


def _header(settings: Settings, implementations: Sequence[Known], selection: str) -> Header:
    asked = [(implementation.operation, implementation.entry.outputs) for implementation in implementations]
    questions = [one for one in conventions().values() if any(one.is_asked_of(*whom) for whom in asked)]
    further = {one.id: one.output for one in questions if one.output != OUTPUT}
    return Header(
        schema=SCHEMA_VERSION,
        suite=__version__,
        specification=SPEC_VERSION,
        started=datetime.now(UTC),
        seed=settings.effort.seed,
        tier=settings.tier,
        shard=str(settings.shard),
        selection=selection,
        command=command_line(),
        environment=settings.expectations.environment,
        implementations=tuple(implementation.entry for implementation in implementations),
        requirements=tuple(requirement_entry(r) for r in requirements().values() if any(r.is_asked_of(*whom) for whom in asked)),
        conventions={one.id: one.operations for one in questions},
        outputs=further or UNSET,
    )

"""What the header says of implementations and requirements, from what they declare."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from conformance.errors import cut
from conformance.problem.returned import OUTPUT, judged
from conformance.records.distribution import distribution_of
from conformance.records.record_types import ImplementationEntry, RequirementEntry
from conformance.system.terminal_text import printable
from conformance.system.user_files import LONGEST_NAME

if TYPE_CHECKING:  # whoever only reads records needs neither adapters nor the specification
    from conformance.adapter import Implementation
    from conformance.specification.requirement import Requirement


def implementation_entry(implementation: "Implementation") -> ImplementationEntry:
    """The implementation's declaration; its framework's version is null where the framework is missing."""
    from conformance.adapter.declarations import declared_lacking, unread
    from conformance.adapter.limits import in_words
    from conformance.adapter.narrowing import narrowed, own_not_asked, taken_away

    support = implementation.support
    missing = implementation.missing()
    found = distribution_of(implementation)
    return ImplementationEntry(
        name=implementation.name,
        operation=implementation.operation,
        framework=_line(implementation.framework.name),
        framework_version=None if missing else _line(implementation.framework.version()),
        device=_line(support.device),
        dtypes=tuple(support.dtypes),
        profile={
            dtype: support.judged_by(dtype)
            for dtype in support.dtypes
            if support.profile_for(dtype) is not None or dtype in support.flushes
        },
        features=tuple(sorted(implementation.features)),
        routes={feature: tuple(routes) for feature, routes in support.routes.items()},
        layouts=tuple(support.layouts),
        conventions=dict(support.conventions),
        source=_line(implementation.source),
        missing=missing,
        lacks=declared_lacking(implementation),
        unread=unread(implementation),
        limits=in_words(support),
        own_not_asked=own_not_asked(implementation),
        taken_away=taken_away(implementation),
        narrowed=narrowed(implementation),
        scale_dtype=support.scale_dtype,
        distribution=_line(found[0]) if found else None,
        distribution_version=_line(found[1]) if found else None,
        returns=UNSET if judged(support.returns) == (OUTPUT,) else judged(support.returns),
    )


def requirement_entry(requirement: "Requirement") -> RequirementEntry:
    return RequirementEntry(
        id=requirement.id,
        area=requirement.area,
        operation=requirement.operation,
        sentence=requirement.sentence,
        output=UNSET if requirement.output == OUTPUT else requirement.output,
    )


def _line(text: str) -> str:
    """The text as records may have it: what a framework says of itself may be anything."""
    return cut(printable(str(text)).replace("\n", " ").replace("\t", " "), LONGEST_NAME // 2)

"""What is tested: requirements and conventions as data. ``docs/specification.md`` is rendered from them."""

from functools import cache

from conformance.features import every_feature
from conformance.operations import operations
from conformance.specification import (
    calls,
    combinations,
    heads,
    hiding,
    many_tokens,
    masking,
    multi_head,
    numbers,
    outputs,
    own_sizes,
    own_sizes_of_layers,
    positions,
    scaling,
    second_outputs,
    sizes,
    visibility,
)
from conformance.specification.requirement import Convention, Requirement
from conformance.specification.second_values import with_second_values

SPEC_VERSION = "1.4"

# Requirements that no implementation could fail, and the convention that shows what they were about. Their ids stay taken.
WITHDRAWN: dict[str, str] = {"ATT-HEAD-006": "CON-GROUPS-REFUSED", "ATT-HEAD-031": "CON-WIDTH-REFUSED"}

_PARTS = (
    outputs,
    calls,
    own_sizes,
    scaling,
    masking,
    visibility,
    combinations,
    hiding,
    heads,
    multi_head,
    many_tokens,
    numbers,
    positions,
    own_sizes_of_layers,
    sizes,
    second_outputs,
)


@cache
def requirements() -> dict[str, Requirement]:
    """All requirements by id, area by area, ids ascending within an area."""
    own = [requirement for part in _PARTS for requirement in part.REQUIREMENTS]
    of_operations = [requirement for operation in operations().values() for requirement in operation.requirements()]
    of_features = [requirement for feature in every_feature() for requirement in feature.requirements()]
    parts = [with_second_values(requirement) for requirement in (*own, *of_operations, *of_features)]
    areas = list(dict.fromkeys(requirement.area for requirement in parts))
    ordered = sorted(parts, key=lambda requirement: (areas.index(requirement.area), requirement.id))
    table = {requirement.id: requirement for requirement in ordered}
    assert len(table) == len(parts) and table.keys().isdisjoint(WITHDRAWN), "an id is given twice"
    return table


@cache
def conventions() -> dict[str, Convention]:
    """All conventions by id."""
    from conformance.specification.questions import CONVENTIONS  # they observe with the oracle, which few callers need

    of_operations = (convention for operation in operations().values() for convention in operation.conventions())
    of_features = (convention for feature in every_feature() for convention in feature.conventions())
    return {convention.id: convention for convention in (*CONVENTIONS, *of_operations, *of_features)}


__all__ = ["SPEC_VERSION", "WITHDRAWN", "conventions", "requirements"]

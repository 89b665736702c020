"""Special numbers (ATT-NUM): each requirement of the area on each implementation."""

from collections.abc import Callable

AREA = "NUM"


def test_numbers(requirement_id: str, implementation: str, run_item: Callable[[str, str], None]) -> None:
    run_item(requirement_id, implementation)

"""Outputs (ATT-OUT): each requirement of the area on each implementation."""

from collections.abc import Callable

AREA = "OUT"


def test_outputs(requirement_id: str, implementation: str, run_item: Callable[[str, str], None]) -> None:
    run_item(requirement_id, implementation)

"""Positional encoding (ATT-POS): each requirement of the area on each implementation."""

from collections.abc import Callable

AREA = "POS"


def test_positions(requirement_id: str, implementation: str, run_item: Callable[[str, str], None]) -> None:
    run_item(requirement_id, implementation)

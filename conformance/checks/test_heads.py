"""Heads (ATT-HEAD): each requirement of the area on each implementation."""

from collections.abc import Callable

from conformance.adapter import Implementation

AREA = "HEAD"


def test_heads(requirement_id: str, implementation: Implementation, run_item: Callable[[str, Implementation], None]) -> None:
    run_item(requirement_id, implementation)

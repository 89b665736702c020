"""Conventions (CON-…): what each implementation does where released APIs differ, beside what it declares."""

from collections.abc import Callable


def test_conventions(convention_id: str, implementation: str, run_item: Callable[[str, str], None]) -> None:
    run_item(convention_id, implementation)

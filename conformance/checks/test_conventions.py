"""Conventions (CON-…): what each implementation does where released APIs differ, beside what it declares."""

from collections.abc import Callable

from conformance.adapter import Implementation


def test_conventions(
    convention_id: str, implementation: Implementation, run_convention: Callable[[str, Implementation], None]
) -> None:
    run_convention(convention_id, implementation)

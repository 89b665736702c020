"""Continuous integration: annotations at the adapter, a job summary, badges, and what the GitHub Action does with them."""

from conformance.ci.annotations import annotations
from conformance.ci.badge import badge, badges

__all__ = ["annotations", "badge", "badges"]

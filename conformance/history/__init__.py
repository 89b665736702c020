"""Many runs over time: how each implementation fared, version by version, as tables and a plot."""

from conformance.history.trend import trends

__all__ = ["trends"]

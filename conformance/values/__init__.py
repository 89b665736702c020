"""From a problem to its arrays, the same bits on every machine."""

from conformance.values.materialise import materialise

__all__ = ["materialise"]

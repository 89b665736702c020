"""From a problem to its arrays, the same bits on every machine: drawn, or, of golden problems, read from their files."""

from conformance.values.materialise import materialise

__all__ = ["materialise"]

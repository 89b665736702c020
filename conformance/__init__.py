"""attention-conformance: the conformance suite for Transformer attention."""

__version__ = "0.1.0"

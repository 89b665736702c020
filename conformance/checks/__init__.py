"""The checks that an implementer runs, one pytest module per area: ``pytest --pyargs conformance.checks``."""

"""The maintainer's tool for ``golden/``: adds cases, and checks that every file is what its definitions give."""

from conformance.golden_tool.maintain import add, check, reissue, write

__all__ = ["add", "check", "reissue", "write"]

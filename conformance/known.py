"""What is known of an implementation where it is not loaded: the code of a user's own function runs in processes apart alone."""

from typing import TYPE_CHECKING

import msgspec

from conformance.records.entries import implementation_entry
from conformance.records.model import ImplementationEntry

if TYPE_CHECKING:
    from conformance.adapter import Implementation


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """``entry`` is what records say of it; ``options`` are the command-line options that were needed to make it; ``dear``: each
    new shape costs a compilation; ``differentiates``: its framework has gradients; ``files``: those of its own code."""

    entry: ImplementationEntry
    options: tuple[str, ...]
    dear: bool
    differentiates: bool
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def operation(self) -> str:
        return self.entry.operation

    @property
    def missing(self) -> str | None:
        """Why it cannot run here."""
        return self.entry.missing


def known(implementation: "Implementation") -> Known:
    """Of an implementation that is loaded."""
    from conformance.adapter import Differentiates
    from conformance.own_code import own_files
    from conformance.own_sizes import is_dear

    return Known(
        entry=implementation_entry(implementation),
        options=implementation.options,
        dear=is_dear(implementation),
        differentiates=isinstance(implementation.framework, Differentiates),
        files=own_files(implementation),
    )

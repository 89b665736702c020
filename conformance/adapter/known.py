"""What is known of an implementation where it is not loaded: the code of a user's own function runs in processes apart alone."""

import shlex
from typing import TYPE_CHECKING

import msgspec

from conformance.records.entries import implementation_entry
from conformance.records.record_types import ImplementationEntry

if TYPE_CHECKING:
    from conformance.adapter import Implementation


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """``entry`` is what records say of it; ``spec``: how the user named it; ``options``: those of the command line that it was
    made with; ``dear``: each new shape costs a compilation; ``differentiates``: its framework has gradients; ``files``: those of
    its own code."""

    entry: ImplementationEntry
    spec: str
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


def known(implementation: "Implementation", spec: str = "") -> Known:
    """Of an implementation that is loaded, named ``spec`` where that is not its own name."""
    from conformance.adapter import Differentiates
    from conformance.adapter.own_code import is_dear, own_files

    return Known(
        entry=implementation_entry(implementation),
        spec=spec or implementation.name,
        options=implementation.options,
        dear=is_dear(implementation),
        differentiates=isinstance(implementation.framework, Differentiates),
        files=own_files(implementation),
    )


def reproduce_command(text: str, implementation: "Implementation | Known", check: str = "values") -> str:
    """The command that reproduces what became of the problem of ``text``."""
    checked = "" if check == "values" else f" --check {check}"
    options = "".join(f" {option}" for option in implementation.options)
    return f"attention-conformance reproduce '{text}' --implementation {shlex.quote(implementation.name)}{options}{checked}"

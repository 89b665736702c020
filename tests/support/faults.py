"""Faults of the catalogue by kind."""

from collections.abc import Callable

from conformance.faults import kinds
from conformance.faults.fault import Fault


def of_kinds(*names: str, where: Callable[[Fault], bool] = lambda fault: True) -> dict[str, Fault]:
    """The faults of the kinds by id, siblings in multi-head attention among them, ``where`` that is so."""
    return {fault.id: fault for name in names for fault in kinds()[name] if where(fault)}


def calculates(fault: Fault) -> bool:
    """Whether it is wrong in one call by itself."""
    return fault.behaviour is None

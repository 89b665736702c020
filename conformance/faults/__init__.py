"""The catalogue of faults: known ways to get attention wrong, each as data and a small executable variant.

It is used twice. As implementations, faults go through the real checks, which must catch every one of them: the proof that the
suite is not blind (``attention-conformance faults``). And where somebody's implementation fails, they are what its outputs are
compared with, so that the mistake gets a name.

Each kind of fault is a module of this package with ``FAULTS``, found by walking the package: adding a kind is adding a file.
"""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.faults.model import Fault


@cache
def kinds() -> "dict[str, tuple[Fault, ...]]":
    """The faults of each kind; a kind is called as its module is."""
    found = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "FAULTS"):
            found[name] = tuple(module.FAULTS)
    return found


@cache
def catalogue() -> "dict[str, Fault]":
    """All faults by id, kind by kind."""
    faults = [fault for members in kinds().values() for fault in members]
    table = {fault.id: fault for fault in faults}
    assert len(table) == len(faults), "an id is given twice"
    return table


__all__ = ["catalogue", "kinds"]

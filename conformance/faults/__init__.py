"""The catalogue of faults: known ways to get attention wrong, each as data and a small executable variant.

It is used twice. As implementations, faults go through the real checks, which must catch every one of them: the proof that the
suite is not blind (``attention-conformance faults``). And where somebody's implementation fails, they are what its outputs are
compared with, so that the mistake gets a name.

Each kind of fault is a module of this package with ``FAULTS``, found by walking the package: adding a kind is adding a file. How
an entry is written is in grammar.py.
"""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.faults.fault import Fault


@cache
def kinds() -> "dict[str, tuple[Fault, ...]]":
    """The faults of each kind, with their siblings in multi-head attention; a kind is called as its module is."""
    from conformance.faults.alike import alike
    from conformance.faults.grammar import sibling

    found = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        faults = getattr(importlib.import_module(f"{__name__}.{name}"), "FAULTS", ())
        if faults:
            all_of_them = (*faults, *(sibling(fault, fault.layer) for fault in faults if fault.layer))
            found[name] = tuple(fault.but(alike=alike(fault.id)) for fault in all_of_them)
    return found


@cache
def catalogue() -> "dict[str, Fault]":
    """All faults by id, kind by kind."""
    faults = [fault for members in kinds().values() for fault in members]
    table = {fault.id: fault for fault in faults}
    assert len(table) == len(faults), "an id is given twice"
    return table


__all__ = ["catalogue", "kinds"]

"""Operations, a module each, found by walking this folder: all that the suite knows of one stands there, or is named there."""

import pkgutil
from functools import cache
from importlib import import_module

from conformance.operations.operation import Operation
from conformance.problem.base import Problem
from conformance.problem.inputs import Arguments


@cache
def operations() -> dict[str, Operation]:
    """All of them by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found = [module.OPERATION for module in modules if hasattr(module, "OPERATION")]
    return {operation.name: operation for operation in sorted(found, key=lambda operation: operation.name)}


def operation_of(asked: Problem | Arguments | str) -> Operation:
    """That of a problem or of inputs, or of a name."""
    return operations()[asked if isinstance(asked, str) else asked.operation]


__all__ = ["Operation", "operation_of", "operations"]

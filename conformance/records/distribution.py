"""Which installed distribution an implementation comes from, with its version."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import TYPE_CHECKING, Any

from conformance.adapter.user_function import is_of_a_file

if TYPE_CHECKING:
    from conformance.adapter import Implementation

OWN = "attention-conformance"


def distribution_of(implementation: "Implementation") -> tuple[str, str] | None:
    """Name and version: the declared one, else that of the package in which the function is defined; None where there is none."""
    name = implementation.support.distribution or _providing(_module_of(implementation.function))
    if not name:
        return None
    try:
        return name, version(name)
    except PackageNotFoundError:
        return (name, "not installed") if implementation.support.distribution else None


def _module_of(function: Callable[..., Any]) -> str:
    target: Any = inspect.unwrap(function)
    while isinstance(target, partial):
        target = inspect.unwrap(target.func)
    target = getattr(target, "__func__", target)
    if not isinstance(getattr(target, "__module__", None), str) or not inspect.isroutine(target):
        target = type(target)
    return str(target.__module__)


def _providing(module: str) -> str:
    """The distribution that has the top-level package of ``module``; empty for a file of the user's and for the suite itself."""
    top = module.partition(".")[0]
    if top == "conformance" or is_of_a_file(module):  # a look through all that is installed takes a fifth of a second
        return ""
    names = _distributions().get(top, [])
    return "" if OWN in names or not names else names[0]


@cache
def _distributions() -> dict[str, list[str]]:
    return {package: list(names) for package, names in packages_distributions().items()}

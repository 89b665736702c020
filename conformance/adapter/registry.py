"""What can be tested: built-in implementations, found by walking the folder ``implementations``, and a user's own functions.

Adding an implementation, or a framework, is adding a module there; nothing is listed here. No framework is imported.
"""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from types import ModuleType
from typing import Any

from conformance.adapter.contract import AXES, COLLECTIONS, Framework, Implementation, Support
from conformance.adapter.support_types import of_expected_types
from conformance.adapter.user_function import check_signature, load
from conformance.errors import UsageError
from conformance.numerics.profiles import DECLARABLE
from conformance.operations import operations
from conformance.system.resources import shown

DEFAULT_FRAMEWORK = "numpy"
BUILTIN = "conformance.implementations"  # the package of what is built in


def builtin() -> dict[str, Implementation]:
    """The implementations that come with the suite, by name."""
    return dict(_builtin())


def by_default() -> dict[str, Implementation]:
    """Those of them that run where none is named."""
    return {name: implementation for name, implementation in _builtin().items() if not implementation.when_named}


def frameworks() -> dict[str, Framework]:
    """The frameworks that the suite can convert arrays for, by name, installed or not."""
    found = (getattr(module, "FRAMEWORK", None) for module in _modules())
    return {framework.name: framework for framework in found if framework is not None}


def select(patterns: Iterable[str]) -> list[Implementation]:
    """The built-in implementations that match any of ``patterns`` (as file names do: ``torch-*``), in the order of ``builtin``.

    Raises UsageError for a pattern that matches none.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        matching = [name for name in _builtin() if fnmatchcase(name, pattern)]
        if not matching:
            raise _not_builtin(pattern)
        chosen.update(matching)
    return [implementation for name, implementation in _builtin().items() if name in chosen]


def resolve(
    spec: str,
    *,
    framework: str | None = None,
    operation: str | None = None,
    axes: str | None = None,
    profile: str | None = None,
    dtypes: str | None = None,
    lacks: str | None = None,
    returns: str | None = None,
    sizes: str | None = None,
) -> Implementation:
    """The implementation that ``spec`` names: a built-in name, ``module:function`` or ``path/to/file.py:function``.

    A function of the user's own becomes an implementation called ``spec``. It declares what its attribute ``conformance``
    (a ``Support``) says, or the defaults; the other arguments, of which ``dtypes``, ``lacks``, ``returns`` and ``sizes`` are
    lists with commas, go before both. They mean nothing for what is built in.
    Raises UsageError for whatever cannot be found, loaded or called.
    """
    if ":" not in spec:
        if spec not in _builtin():
            raise _not_builtin(spec)
        return _builtin()[spec]
    found = load(spec)
    if isinstance(found, Implementation):
        sound = replace(found, support=of_expected_types(spec, found.support))
        return sound if sound.source else replace(sound, source=source_of(sound.function))
    words = {
        "framework": framework, "operation": operation, "axes": axes, "profile": profile, "dtypes": dtypes, "lacks": lacks,
        "returns": returns, "sizes": sizes,
    }  # fmt: skip
    given = {name: word for name, word in words.items() if word is not None}
    support = _support(spec, found, {name: _meant(name, word) for name, word in given.items()})
    known = frameworks()
    name = DEFAULT_FRAMEWORK if support.framework is None else support.framework
    words = {name: ",".join(_listed(word)) if name in COLLECTIONS else word for name, word in given.items()}
    options = tuple(f"--{option}={word}" for option, word in words.items())
    made = Implementation(spec, found, support, known[name], source_of(found), options)
    check_signature(made)
    return made


def _meant(name: str, word: str) -> Any:
    """What the word of an option means as the field of a Support. Raises UsageError for a size that is no number."""
    if name != "sizes":
        return _listed(word) if name in COLLECTIONS else word
    for size in _listed(word):
        if not (size.isascii() and size.isdigit()):
            raise UsageError(f"--sizes {size!r} is no whole number: write sizes with commas, such as --sizes 128,4096.")
    return tuple(map(int, _listed(word)))


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def source_of(function: Callable[..., Any]) -> str:
    """``file:line`` where ``function`` is defined, as reports show it; empty if unknown."""
    try:
        target = inspect.unwrap(function)
        while isinstance(target, partial):
            target = inspect.unwrap(target.func)
        if not inspect.isroutine(target):
            target = type(target)  # an instance that can be called: its class
        path = inspect.getfile(target)
        line = inspect.getsourcelines(target)[1]
    except (TypeError, OSError, ValueError):
        return ""
    return f"{shown(path)}:{line}"


def _support(spec: str, function: Callable[..., Any], given: Mapping[str, Any]) -> Support:
    """What ``function`` declares, with what was ``given`` in its place. Raises UsageError for words that mean nothing."""
    declaring: Any = function
    while isinstance(declaring, partial) and not hasattr(declaring, "conformance"):
        declaring = declaring.func
    support = getattr(declaring, "conformance", Support())
    if not isinstance(support, Support):
        raise UsageError(
            f"{spec} has an attribute conformance of type {type(support).__name__}: make it a conformance.adapter.Support."
        )
    support = of_expected_types(spec, replace(support, **given))
    for field, what, known in (
        ("operation", "operation", operations()),
        ("axes", "order of axes", AXES),
        ("profile", "numerics profile", DECLARABLE),
        ("framework", "framework", frameworks()),
    ):
        value = getattr(support, field)
        if isinstance(value, str) and value not in known:
            place = "" if field in given else f"Support.{field} of {spec}: "
            raise UsageError(place + _unknown(what, value, known))
    return support


@cache
def _modules() -> tuple[ModuleType, ...]:
    package = importlib.import_module(BUILTIN)
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return tuple(importlib.import_module(info.name) for info in found if not info.ispkg)


@cache
def _builtin() -> dict[str, Implementation]:
    named: dict[str, Implementation] = {}
    for module in _modules():
        for implementation in getattr(module, "IMPLEMENTATIONS", ()):
            assert implementation.name not in named, implementation.name
            named[implementation.name] = replace(implementation, source=_relative_source(module, implementation))
    return dict(sorted(named.items()))


def _relative_source(module: ModuleType, implementation: Implementation) -> str:
    """``implementations/module.py:line``, the same wherever the suite is installed."""
    line = inspect.unwrap(implementation.function).__code__.co_firstlineno  # reading its source takes a hundred times longer
    return f"{module.__name__.removeprefix('conformance.').replace('.', '/')}.py:{line}"


def _not_builtin(name: str) -> UsageError:
    return UsageError(_unknown("implementation", name, _builtin()) + " A function of your own is written module:function.")


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not among ``known``, with those that it may stand for."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}."
    return f"Unknown {what} {name!r}: {advice}"

"""Functions of the user's own: loaded from ``module:function`` or ``path/to/file.py:function``, and checked before a call."""

import dataclasses
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.adapter import Implementation, Support
from conformance.adapter.parameters import by_name, named_parameters, parameter_features, read_signature
from conformance.errors import UsageError, demand_own, told
from conformance.operations import operation_of
from conformance.system.world import outside

_files: set[str] = set()  # names of modules that were loaded from a path
FORM = "write module:function or path/to/file.py:function"


def load(spec: str) -> Callable[..., Any] | Implementation:
    """The function, or the ready Implementation, that ``spec`` names. Raises UsageError where it cannot be had."""
    place, _, attribute = spec.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"{spec!r} names no function: {FORM}.")
    is_path = place.endswith(".py") or os.sep in place
    if not is_path and not all(part.isidentifier() for part in place.split(".")):
        raise UsageError(f"{place!r} in {spec!r} is the name of no module: {FORM}.")
    module = _load_file(Path(place)) if is_path else _load_module(place)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{place} has no {attribute!r}{_offer(attribute, _functions_of(module))}") from None
        except BaseException as error:
            demand_own(error)
            raise UsageError(f"Reading {attribute!r} of {place} failed: {told(error)}.") from None
    if isinstance(found, Implementation):
        return found
    if inspect.isclass(found):
        raise UsageError(f"{spec} is a class: name a function, or an instance that can be called.")
    if not callable(found):
        advice = _offer(attribute, _functions_of(module))
        raise UsageError(f"{spec} has the type {type(found).__name__} and cannot be called{advice}")
    function: Callable[..., Any] = found
    return function


def check_signature(implementation: Implementation) -> None:
    """Raises UsageError where the suite could not call the function, with what to change."""
    spec, operation, how = implementation.name, implementation.operation, implementation.calling
    signature, _ = read_signature(implementation.function, spec, operation)
    parameters = list(signature.parameters.values())
    expected = operation_of(operation).positional
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(by_place) < len(expected) and not any_number:
        other = " For a positional encoding, say --operation sinusoidal_encoding." if len(by_place) == 2 else ""
        raise UsageError(
            f"{spec} takes {len(by_place)} positional parameters, where {operation} passes {len(expected)}: "
            f"{', '.join(expected)}.{other}"
        )
    ours = {theirs: name for name, theirs in how.spelled.items()}
    for parameter, role in zip(by_place, expected, strict=False):
        if parameter.name in by_name(operation):
            raise UsageError(
                f"{spec} has {parameter.name!r} in the place of {role}: {operation} passes {', '.join(expected)} first."
            )
    late = [p.name for p in named_parameters(signature, operation) if p.name in expected and p.default is p.empty]
    if late:
        first = ", ".join(p.name for p in by_place[: len(expected)])
        raise UsageError(
            f"{spec} begins with {first}, and {operation} passes {', '.join(expected)} first: wrap it in a function whose "
            "parameters are in that order."
        )
    for parameter in named_parameters(signature, operation):
        known = ours.get(parameter.name)
        if parameter.default is not parameter.empty or known in operation_of(operation).always_passed:
            continue
        if known is not None:
            raise UsageError(
                f"{spec} demands {parameter.name!r}, which is passed only where a problem asks for it: give it a default."
            )
        raise UsageError(
            f"{spec} demands {parameter.name!r}, which {operation} does not know: give it a default, use one of "
            f"{', '.join(by_name(operation))}, or say which of them it is in Support.parameters."
        )
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in operation_of(operation).demanded:
        if not any_name and name not in how.spelled:
            raise UsageError(f"{spec} has no parameter {name!r}, which {operation} always passes by name.")
    _demand_parameters(implementation, any_name)


def _demand_parameters(implementation: Implementation, any_name: bool) -> None:
    """Raises UsageError for a feature that is declared and for which the function has no parameter."""
    if any_name or implementation.support.features is None:
        return
    for name, feature in parameter_features(implementation.operation).items():
        if feature in implementation.features and not implementation.has(name):
            raise UsageError(
                f"Support.features of {implementation.name} offers {feature!r}, and the function has no parameter {name!r} by "
                "which it could be asked for: add one, or say in Support.parameters which one it is."
            )


def _load_module(name: str) -> ModuleType:
    try:
        with _importable(Path.cwd()):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"There is no module {error.name!r} in the current folder or on Python's path: {FORM}.") from None
        raise UsageError(_failed(name, error)) from None
    except BaseException as error:
        demand_own(error)
        raise UsageError(_failed(name, error)) from None


def _load_file(path: Path) -> ModuleType:
    """The file as a module with a name of its own, so that it stands in the way of no other; loaded once in a process."""
    try:
        path = path.resolve()
        is_file = path.suffix == ".py" and path.is_file()
    except (OSError, RuntimeError):  # too long, or links in a circle
        is_file = False
    if not is_file:
        raise UsageError(f"There is no Python file {path}: {FORM}.")
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    _files.add(name)
    try:
        with _importable(path.parent):
            specification.loader.exec_module(module)
    except BaseException as error:
        demand_own(error)
        sys.modules.pop(name, None)
        raise UsageError(_failed(path.name, error)) from None
    return module


def is_of_a_file(module: str) -> bool:
    """Whether the module was loaded from a path, and so is part of no package."""
    return module in _files


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """``folder`` first on Python's path for the time of an import, and last on it from then on, for imports made in calls."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        with outside():
            yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _failed(what: str, error: BaseException) -> str:
    """What was raised, and the last line of the user's own code that led to it."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}"
    else:
        libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen", __file__)
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(libraries)] or frames
        place = f"{own[-1].filename}:{own[-1].lineno}"
    text = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else _no_such_field(error) or told(error)
    return f"Importing {what} failed: {text} ({place})."


def _no_such_field(error: BaseException) -> str:
    """What Python says of an unknown field of a Support, in our words; empty for everything else."""
    found = re.search(r"Support\.__init__\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if found is None:
        return ""
    fields = [field.name for field in dataclasses.fields(Support)]
    near = difflib.get_close_matches(found[1], fields, n=3, cutoff=0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(fields)}"
    return f"Support has no field {found[1]!r}: {advice}"


def _functions_of(module: ModuleType) -> list[str]:
    """The functions and implementations that ``module`` itself defines."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, Implementation) or (inspect.isfunction(value) and value.__module__ == module.__name__)
    ]


def _offer(attribute: str, names: list[str]) -> str:
    near = difflib.get_close_matches(attribute, names, n=3, cutoff=0.5)
    if near:
        return f": did you mean {' or '.join(near)}?"
    return f": it defines {', '.join(names)}." if names else ": it defines no function."

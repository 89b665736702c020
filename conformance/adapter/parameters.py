"""How a function is called: which parameters each operation passes, by which names released libraries call them, and what a
function's own signature says of it, read through modules, compilers and decorators.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType
from typing import Any

from conformance.errors import UsageError, demand_own
from conformance.features import features
from conformance.operations import operation_of

# Where a callable keeps what it stands for: torch.compile, decorators, torch modules, keras layers, parallel wrappers.
KEPT_IN = ("_orig_mod", "_torchdynamo_orig_callable", "__wrapped__", "forward", "call", "module")
_DEEPEST = 8  # wrappers within wrappers


@cache
def parameter_features(operation: str) -> dict[str, str]:
    """Features that parameters of a function stand for: parameter name → feature of a problem."""
    return {feature.parameter: feature.name for feature in features(operation)} | dict(operation_of(operation).parameters)


def aliases(operation: str, parameter: str) -> tuple[str, ...]:
    """Other names of a parameter, as released interfaces have them: torch, flax, keras, Pallas, xformers, ONNX …"""
    of_features = {feature.parameter: feature.aliases for feature in features(operation)}
    return of_features.get(parameter) or operation_of(operation).aliases.get(parameter, ())


def by_name(operation: str) -> tuple[str, ...]:
    """The parameters that the suite passes by name, always or where a problem asks for them."""
    of = operation_of(operation)
    return (*of.always_passed, *parameter_features(operation), *of.sometimes_passed)


@dataclass(frozen=True)
class Calling:
    """How a function is called for an operation.

    ``spelled`` gives, for each parameter of the suite that the function has, the function's own name of it. ``strangers`` are
    further parameters, which keep their defaults. ``takes_any`` names the catch-alls, such as ``**kwargs``, of which nothing can
    be read. ``read_from`` says whose signature it is, where that is not the function's own.
    """

    spelled: Mapping[str, str]
    strangers: tuple[str, ...] = ()
    takes_any: tuple[str, ...] = ()
    read_from: str = ""


def calling(function: Callable[..., Any], operation: str, declared: Mapping[str, str], called: str) -> Calling:
    """How ``function``, which messages call ``called``, is to be called; ``declared`` maps the suite's names to the function's.

    Raises UsageError where Python cannot tell its parameters, and where it has not what is declared.
    """
    signature, read_from = read_signature(function, called, operation)
    parameters = list(signature.parameters.values())
    catch_alls = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [p.name for p in named_parameters(signature, operation)]
    any_name = any(p.kind is p.VAR_KEYWORD for p in catch_alls)
    for ours, theirs in declared.items():
        if theirs not in names and not any_name:
            raise UsageError(
                f"Support.parameters of {called} says that {ours!r} is called {theirs!r}, and the function has no such "
                f"parameter: it has {', '.join(names) or 'none by name'}."
            )
    spelled = dict(declared)
    taken = set(declared.values())
    for ours in by_name(operation):
        found = next((name for name in (ours, *aliases(operation, ours)) if name in names and name not in taken), None)
        if ours not in spelled and found is not None:
            spelled[ours] = found
            taken.add(found)
    by_place_alone = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY][len(operation_of(operation).positional) :]
    strangers = tuple(name for name in (*names, *by_place_alone) if name not in taken)
    takes_any = tuple(f"{'*' if p.kind is p.VAR_POSITIONAL else '**'}{p.name}" for p in catch_alls)
    return Calling(spelled, strangers, takes_any, read_from)


def named_parameters(signature: inspect.Signature, operation: str) -> list[inspect.Parameter]:
    """The parameters behind those that are passed by position, which can be given by name."""
    parameters = list(signature.parameters.values())
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][
        : len(operation_of(operation).positional)
    ]
    return [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p not in by_place]


def read_signature(function: Callable[..., Any], called: str, operation: str) -> tuple[inspect.Signature, str]:
    """The signature of ``function`` and, where that has a catch-all, of what it hands the rest on to; and whose that is.

    Raises UsageError where Python cannot tell it.
    """
    found = _read(function, _DEEPEST, len(operation_of(operation).positional))
    if found is None:
        raise UsageError(
            f"The parameters of {called} cannot be read: wrap it in a Python function whose parameter names say what it takes."
        )
    return found


def _read(function: Any, depth: int, least: int) -> tuple[inspect.Signature, str] | None:
    """``least``: how many parameters by position what is wrapped must have, or it is a helper, such as a softmax."""
    if isinstance(function, partial):
        return _of_partial(function, depth, least)
    try:
        own = inspect.signature(function)
    except BaseException as error:  # whatever an object answers to the question
        demand_own(error)
        own = None
    if depth == 0 or (own is not None and not any(p.kind is p.VAR_KEYWORD for p in own.parameters.values())):
        return None if own is None else (own, "")
    for inner, where in _wrapped(function):
        found = _read(inner, depth - 1, least)
        if found is not None and _by_place(found[0]) >= least and (own is None or _says_more(found[0], own)):
            return (found[0] if own is None or _by_place(own) < least else _together(own, found[0])), where
    return None if own is None else (own, "")


def _by_place(signature: inspect.Signature) -> int:
    """How many parameters can be given by position; any number for a catch-all."""
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 1000
    return sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)


def _together(own: inspect.Signature, inner: inspect.Signature) -> inspect.Signature:
    """The own parameters, which receive what has their names, then those that only what is wrapped has.

    An own ``*args`` holds what is wrapped has by position: where nothing is named before it, that is known.
    """
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in own.parameters.values() if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    if named and named[0].kind is inspect.Parameter.VAR_POSITIONAL:
        by_name = {parameter.name for parameter in named[1:]}
        handed_on = [parameter for name, parameter in inner.parameters.items() if name not in by_name]
        return inspect.Signature(sorted([*handed_on, *named[1:]], key=lambda parameter: parameter.kind))
    more = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=None)
        for name, parameter in list(inner.parameters.items())
        if name not in own.parameters and parameter.kind not in kinds and parameter.default is not inspect.Parameter.empty
    ]
    return inspect.Signature([*named, *more])


def _of_partial(function: "partial[Any]", depth: int, least: int) -> tuple[inspect.Signature, str] | None:
    """The signature of what is called in the end, without the arguments that are settled."""
    inner = _read(function.func, depth - 1, least) if depth else None
    if inner is None:
        return None

    def stand_in(*_: Any, **__: Any) -> None: ...

    stand_in.__dict__["__signature__"] = inner[0]  # where inspect looks first
    try:
        return inspect.signature(partial(stand_in, *function.args, **function.keywords)), inner[1]
    except (TypeError, ValueError):  # more arguments than there are parameters
        return None


def _says_more(inner: inspect.Signature, own: inspect.Signature) -> bool:
    """Whether a wrapped callable names parameters that its wrapper does not."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {name for name, parameter in inner.parameters.items() if parameter.kind not in kinds}
    return bool(named - set(own.parameters))


def _wrapped(function: Any) -> Iterator[tuple[Any, str]]:
    """What ``function`` may hand its arguments on to, with words for it, the likeliest first."""
    for name in KEPT_IN:
        inner = _attribute(function, name)
        if callable(inner) and inner is not function:
            yield inner, f"its {name}" if name in ("forward", "call") else "what it wraps"
    if isinstance(function, FunctionType):
        cells = [_content(cell) for cell in function.__closure__ or ()]
    else:
        cells = list(getattr(function, "__dict__", {}).values())
    inside = [one for one in cells if callable(one) and not inspect.isclass(one) and one is not function]
    if len(inside) == 1:
        yield inside[0], "what it wraps"


def _attribute(function: Any, name: str) -> Any:
    try:
        return getattr(function, name, None)
    except BaseException as error:  # a property of the user's may raise anything
        demand_own(error)
        return None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty still
        return None

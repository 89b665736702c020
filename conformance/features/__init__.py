"""Variants of attention, a module each, found by walking this folder. Nothing else names them."""

import pkgutil
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from typing import Any

from conformance.features.feature import Feature, ScoreIndex


@cache
def features(operation: str) -> tuple[Feature, ...]:
    """Those of an operation: first those that the first texts of problems named, in that order, then the others by name."""
    return tuple(one for one in every_feature() if operation in one.operations)


@cache
def every_feature() -> tuple[Feature, ...]:
    """Those of all operations."""
    return tuple(sorted(_found(), key=_place))


def _found() -> list[Feature]:
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return [module.FEATURE for module in modules if hasattr(module, "FEATURE")]


@cache
def feature(operation: str, name: str) -> Feature | None:
    """The one of that name; None for what follows from sizes or is another operation's."""
    return next((one for one in features(operation) if one.name == name), None)


@cache
def _unasked() -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of problems and arguments of inputs, of all features, as they are where nobody asks for them."""
    described = [(one, one.field) for one in every_feature()]
    fields = {name: value for _, of in described if of for name, value in zip(of.names, of.defaults, strict=True)}
    return fields, {one.argument: one.default for one, _ in described}


def unasked(name: str, *, of_problem: bool) -> Any:
    """That of the feature called ``name``. Raises AttributeError where there is none."""
    known = _unasked()[0 if of_problem else 1]
    if name not in known:
        raise AttributeError(f"There is no field {name!r}." if of_problem else f"There is no argument {name!r}.")
    return known[name]


def examples(operation: str) -> list[dict[str, Any]]:
    """The field of a problem that asks for one of them, for each that brings an example."""
    return [{one.argument: one.example} for one in features(operation) if one.example is not None]


@cache
def in_order(operation: str) -> tuple[Feature, ...]:
    """Those of an operation in the order in which scores pass through them."""
    return tuple(one for one in ordered(every_feature()) if operation in one.operations)


def ordered(features: Iterable[Feature]) -> list[Feature]:
    """Each after those that it ``follows``, before those that it ``precedes``; with ``of_logits``, after all with ``of_scores``.
    Raises ValueError for a name that none of them has, and for a circle."""
    named = {feature.name: feature for feature in features}
    of_scores = tuple(name for name, feature in named.items() if feature.of_scores is not None)
    before = {name: [*one.follows, *(of_scores if one.of_logits is not None else ())] for name, one in named.items()}
    for name, one in named.items():
        for other in (*one.follows, *one.precedes):
            if other not in named:
                raise ValueError(f"The feature {name} follows or precedes {other}, which is the name of no feature.")
        for later in one.precedes:
            before[later].append(name)
    try:
        return [named[name] for name in TopologicalSorter(before).static_order()]
    except CycleError as error:
        raise ValueError(f"Features come before one another in a circle: {', '.join(error.args[1])}.") from None


_FIRST = ("mask", "bias", "causal", "key_lengths", "scale")


def _place(feature: Feature) -> tuple[int, str]:
    first = feature.argument in _FIRST
    return (_FIRST.index(feature.argument) if first else len(_FIRST)), feature.argument


def is_first(feature: Feature) -> bool:
    """Whether its word stands before layout and transformations in the text of a problem, as it did from the first."""
    return feature.argument in _FIRST


__all__ = [
    "Feature",
    "ScoreIndex",
    "every_feature",
    "examples",
    "feature",
    "features",
    "in_order",
    "is_first",
    "ordered",
    "unasked",
]

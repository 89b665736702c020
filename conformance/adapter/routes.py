"""How a problem is put to an implementation: natively, or rewritten so that a feature it lacks is asked for by another one.

The suite rewrites the inputs (``fold``), adapters do not: causal limits and key lengths into the boolean mask, any of them
into the additive bias as −inf, key lengths and masks of keys alone into a key padding mask, kv heads repeated. Reports tell
native from emulated.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformance.adapter import Implementation
from conformance.adapter.limits import outside
from conformance.errors import LeftOut, Unsupported
from conformance.features import feature as of_name
from conformance.operations import operation_of
from conformance.problem import Problem
from conformance.problem.forms import four_axes
from conformance.problem.inputs import Inputs, Weights

WAYS = ("native", "padding", "mask", "bias", "repeat", "zeros", "identity")


@dataclass(frozen=True)
class Route:
    """For each feature that is not asked for natively, the way in which it is: one of WAYS."""

    ways: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ",".join(f"{feature}={way}" for feature, way in sorted(self.ways.items())) or "native"


def default_route(problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> Route:
    """The first way to ask for every feature of ``problem``; raises Unsupported, with what is lacking."""
    return next(all_routes(problem, implementation, conventions))


def all_routes(problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> Iterator[Route]:
    """The default route, then those that ask for one feature in another way; raises Unsupported if there is none."""
    _check_kind(problem, implementation)
    operation = operation_of(problem)
    operation.demand(problem, implementation, conventions)
    yield from operation.routes(problem, implementation, lambda one: _combined(one, implementation, conventions))


def _combined(problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> Iterator[Route]:
    ways = {f: _ways(f, problem, implementation, conventions) for f in sorted(problem.features)}
    first = {feature: options[0] for feature, options in ways.items()}
    seen = set()
    for choice in (first, *({**first, f: way} for f in ways for way in ways[f][1:])):
        route = _settle(choice, problem, implementation)
        if str(route) not in seen:
            seen.add(str(route))
            yield route


def _check_kind(problem: Problem, implementation: Implementation) -> None:
    support = implementation.support
    if problem.operation != implementation.operation:
        raise Unsupported(f"operation {problem.operation}")
    if problem.dtype not in support.dtypes:
        raise Unsupported(f"dtype {problem.dtype}")
    if problem.has("layout") and problem.layout not in support.layouts:
        raise Unsupported(f"layout {problem.layout}")
    beyond = outside(problem, support)
    if beyond:
        raise LeftOut(beyond)


def offered_ways(feature: str, implementation: Implementation) -> list[str]:
    """The ways in which the implementation can be asked for ``feature``, by preference; none where it cannot."""
    offered, of_folder = implementation.features, of_name(implementation.operation, feature)
    operation = operation_of(implementation.operation)
    default = operation.ways.get(feature, ("native",)) if of_folder is None else of_folder.ways
    ways = implementation.support.routes.get(feature, default)
    # heads are repeated only where groups are offered too: repeated ones alone would test nothing
    needs = {way: {way} for way in ("padding", "mask", "bias")}
    needs |= {"native": {feature}, "repeat": {feature}, "zeros": set(operation.zeros.get(feature, ()))}
    return [way for way in ways if needs.get(way, set()) <= offered]


def _ways(feature: str, problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> list[str]:
    options, of_folder = offered_ways(feature, implementation), of_name(implementation.operation, feature)
    if of_folder is not None:
        options = [way for way in options if of_folder.can(way, problem, implementation, conventions)]
        if not options:
            raise of_folder.lacking(problem, implementation)
        return options
    operation = operation_of(problem)
    options = [way for way in options if operation.can(feature, way, problem, implementation, conventions)]
    if not options:
        raise Unsupported(feature, feature)
    return options


def _settle(choice: Mapping[str, str], problem: Problem, implementation: Implementation) -> Route:
    """``choice`` with features that exclude each other folded into one of them, and the folded mask's form checked."""
    ways = {feature: way for feature, way in choice.items() if way != "native"}
    if "zeros" in ways.values() and "separate-biases" not in implementation.features:  # one flag for all
        ways |= dict.fromkeys(problem.features.intersection(operation_of(problem).zeros), "zeros")
    targets = {way for way in ways.values() if way in ("mask", "bias")}
    asked = {feature for feature, way in choice.items() if way == "native"} | targets
    rivals = asked & implementation.exclusive
    if len(rivals) > 1:
        target = "bias" if "bias" in rivals else "mask"
        if target not in implementation.features:
            raise Unsupported(" and ".join(sorted(rivals)) + " together")
        for name in rivals - {target}:
            feature = of_name(problem.operation, name)
            if feature is not None and feature.hides and name in choice:
                ways[name] = target
        ways = {feature: target if way in rivals else way for feature, way in ways.items()}
    return Route(ways)


def fold(inputs: Inputs, route: Route, mask_forms: tuple[str, ...]) -> Inputs:
    """``inputs`` rewritten as ``route`` says. Raises Unsupported where the folded mask has a form that is not taken."""
    if not route.ways:
        return inputs
    into_mask: list[np.ndarray] = []
    into_bias: list[np.ndarray] = []
    into_padding: list[np.ndarray] = []
    targets = {"mask": into_mask, "bias": into_bias, "padding": into_padding}
    changes: dict[str, Any] = {}
    for name, way in route.ways.items():
        if way in ("zeros", "identity"):
            continue  # of weights, below
        if way == "repeat":
            times = inputs.query.shape[1] // inputs.key.shape[1]
            changes |= {"key": np.repeat(inputs.key, times, axis=1), "value": np.repeat(inputs.value, times, axis=1)}
            continue
        feature = of_name(inputs.operation, name)
        if feature is not None and way != feature.argument:
            # as the inputs are, whatever else is folded: it may depend on that
            visible = feature.visible(inputs, 0, inputs.query.shape[-2])
            assert visible is not None
            targets[way].append(visible)
            changes[feature.argument] = feature.default
    if into_mask:
        own = [] if inputs.mask is None or "mask" in changes else [four_axes(inputs.mask)]
        changes["mask"] = _in_form(_all_of(own + into_mask), mask_forms, inputs.pairs)
    if into_padding:
        changes["padding"] = np.ascontiguousarray(_all_of(into_padding)[:, 0, 0])
    if into_bias:
        visible = _all_of(into_bias)
        own_bias = np.zeros((), inputs.query.dtype) if inputs.bias is None else four_axes(inputs.bias)
        infinity = np.array(-np.inf).astype(inputs.query.dtype)
        changes["bias"] = _in_form(np.where(visible, own_bias, infinity), mask_forms, inputs.pairs)
    if {"zeros", "identity"}.intersection(route.ways.values()):
        changes["weights"] = _completed(inputs.weights, inputs.query.dtype, route.ways)
    return inputs.but(**changes)


def _completed(weights: Weights, dtype: np.dtype[Any], ways: Mapping[str, str]) -> Weights:
    """The weights with an identity for the output projection, and zeros for biases, where they are asked for so."""
    zeros = {feature for feature, way in ways.items() if way == "zeros"}
    if ways.get("no-output-projection") == "identity":
        weights = replace(weights, output=np.eye(weights.value.shape[1], dtype=dtype))
    if zeros & {"no-projection-bias", "separate-biases"} and weights.query_bias is None:
        sizes = {name: getattr(weights, name).shape[1] for name in ("query", "key", "value")}
        weights = replace(weights, **{f"{name}_bias": np.zeros(size, dtype) for name, size in sizes.items()})
    if zeros & {"no-output-bias", "separate-biases"} and weights.output is not None and weights.output_bias is None:
        weights = replace(weights, output_bias=np.zeros(weights.output.shape[1], dtype))
    return weights


def _all_of(masks: list[np.ndarray]) -> np.ndarray:
    combined = masks[0]
    for mask in masks[1:]:
        combined = combined & mask
    return combined


def _in_form(array: np.ndarray, forms: tuple[str, ...], full: tuple[int, int, int, int]) -> np.ndarray:
    """``array`` (four axes) in the smallest broadcast form that it fits and that is taken."""
    batch, heads, query_length, key_length = full
    shapes = {
        "qk": (1, 1, query_length, key_length),
        "b11k": (batch, 1, 1, key_length),
        "b1qk": (batch, 1, query_length, key_length),
        "1hqk": (1, heads, query_length, key_length),
        "bhqk": full,
    }
    for form, shape in shapes.items():
        if form in forms and all(have in (1, asked) for have, asked in zip(array.shape, shape, strict=True)):
            wide = np.ascontiguousarray(np.broadcast_to(array, shape))
            return wide[0, 0] if form == "qk" else wide
    raise Unsupported(f"a mask of shape {array.shape}")

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
from conformance.problem import ARRANGEMENTS, FREQUENCIES, AttentionProblem, MultiHeadProblem, Problem, SinusoidalProblem
from conformance.problem.forms import four_axes
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, Weights

WAYS = ("native", "padding", "mask", "bias", "repeat", "zeros", "identity")

# What the suite tries where ``Support.routes`` says nothing of a feature, beside what features say (conformance/features).
DEFAULT_ROUTES: dict[str, tuple[str, ...]] = {
    "grouped-heads": ("native", "repeat"),
    "no-projection-bias": ("native", "zeros"),
    "no-output-bias": ("native", "zeros"),
    "separate-biases": ("native", "zeros"),
    "no-output-projection": ("native", "identity"),
}
# What must be offered for a bias that is not there to be given as zeros.
_ZEROS: dict[str, set[str]] = {"no-projection-bias": {"projection-bias"}, "no-output-bias": {"output-bias"}}


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
    _check_frequencies(problem, implementation, conventions)
    if isinstance(problem, MultiHeadProblem):
        yield from _multi_head_routes(problem, implementation, conventions)
        return
    yield from _combined(problem, implementation, conventions)


def _multi_head_routes(
    problem: MultiHeadProblem, implementation: Implementation, conventions: Mapping[str, str]
) -> Iterator[Route]:
    """Without an output projection, natively or as the problem with an identity for it, whatever that one needs in turn."""
    ways = offered_ways("no-output-projection", implementation)
    if problem.output != "none" or "native" in ways:
        yield from _combined(problem, implementation, conventions)
    if problem.output == "none" and "identity" in ways and problem.value_inner_width == problem.model_width:
        for route in _combined(problem.but(output="plain"), implementation, conventions):
            yield Route({**route.ways, "no-output-projection": "identity"})
    elif problem.output == "none" and "native" not in ways:
        raise Unsupported("no-output-projection", "no-output-projection")


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
    if isinstance(problem, AttentionProblem) and problem.layout not in support.layouts:
        raise Unsupported(f"layout {problem.layout}")
    beyond = outside(problem, support)
    if beyond:
        raise LeftOut(beyond)


def _check_frequencies(problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> None:
    """A function without a parameter for them has frequencies of its own, the paper's where those are none that are known."""
    if not isinstance(problem, SinusoidalProblem) or implementation.has("frequencies"):
        return
    frozen = problem.values.name == "golden" and problem.frequencies == "default"
    asked = FREQUENCIES[0] if frozen else problem.frequencies
    observed = conventions.get("CON-SINUSOID-FREQUENCIES")
    if asked not in ("default", observed if observed in FREQUENCIES else FREQUENCIES[0]):
        raise Unsupported(f"frequencies {asked}")


def offered_ways(feature: str, implementation: Implementation) -> list[str]:
    """The ways in which the implementation can be asked for ``feature``, by preference; none where it cannot."""
    offered, of_folder = implementation.features, of_name(implementation.operation, feature)
    default = DEFAULT_ROUTES.get(feature, ("native",)) if of_folder is None else of_folder.ways
    ways = implementation.support.routes.get(feature, default)
    # heads are repeated only where groups are offered too: repeated ones alone would test nothing
    needs = {way: {way} for way in ("padding", "mask", "bias")}
    needs |= {"native": {feature}, "repeat": {feature}, "zeros": _ZEROS.get(feature, set())}
    return [way for way in ways if needs.get(way, set()) <= offered]


def _ways(feature: str, problem: Problem, implementation: Implementation, conventions: Mapping[str, str]) -> list[str]:
    options, of_folder = offered_ways(feature, implementation), of_name(implementation.operation, feature)
    if of_folder is not None:
        options = [way for way in options if of_folder.can(way, problem, implementation, conventions)]
        if not options:
            raise of_folder.lacking(problem, implementation)
        return options
    if feature == "separate-biases" and isinstance(problem, MultiHeadProblem):
        absent = "output-bias" if problem.projection_bias else "projection-bias"
        options = [way for way in options if way != "zeros" or absent in implementation.features]
    if isinstance(problem, SinusoidalProblem) and not _arranged(feature, implementation, conventions):
        options = [way for way in options if way != "native"]
    if not options:
        raise Unsupported(feature, feature)
    return options


def _arranged(feature: str, implementation: Implementation, conventions: Mapping[str, str]) -> bool:
    """Whether the implementation's columns lie as asked; where neither arrangement is known, they count as interleaved."""
    if feature not in ARRANGEMENTS or implementation.has("arrangement"):
        return True
    observed = conventions.get("CON-SINUSOID-ARRANGEMENT")
    return feature == (observed if observed in ARRANGEMENTS else "interleaved")


def _settle(choice: Mapping[str, str], problem: Problem, implementation: Implementation) -> Route:
    """``choice`` with features that exclude each other folded into one of them, and the folded mask's form checked."""
    ways = {feature: way for feature, way in choice.items() if way != "native"}
    if isinstance(problem, MultiHeadProblem) and "zeros" in ways.values():
        one_flag = "separate-biases" not in implementation.features
        ways |= {feature: "zeros" for feature in _ZEROS if feature in problem.features and one_flag}
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
    if not route.ways or not isinstance(inputs, AttentionInputs | MultiHeadInputs):
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
            assert isinstance(inputs, AttentionInputs)
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
        changes["mask"] = _in_form(_all_of(own + into_mask), mask_forms, _full_shape(inputs))
    if into_padding:
        changes["padding"] = np.ascontiguousarray(_all_of(into_padding)[:, 0, 0])
    if into_bias and isinstance(inputs, AttentionInputs):
        visible = _all_of(into_bias)
        own_bias = np.zeros((), inputs.query.dtype) if inputs.bias is None else four_axes(inputs.bias)
        infinity = np.array(-np.inf).astype(inputs.query.dtype)
        changes["bias"] = _in_form(np.where(visible, own_bias, infinity), mask_forms, _full_shape(inputs))
    folded = inputs.but(**changes)
    return folded.but(weights=_completed(folded, route.ways)) if isinstance(folded, MultiHeadInputs) else folded


def _completed(inputs: MultiHeadInputs, ways: Mapping[str, str]) -> Weights:
    """The weights with an identity for the output projection, and zeros for biases, where they are asked for so."""
    weights, dtype = inputs.weights, inputs.query.dtype
    zeros = {feature for feature, way in ways.items() if way == "zeros"}
    if ways.get("no-output-projection") == "identity":
        weights = replace(weights, output=np.eye(weights.value.shape[1], dtype=dtype))
    if zeros & {"no-projection-bias", "separate-biases"} and weights.query_bias is None:
        sizes = {name: getattr(weights, name).shape[1] for name in ("query", "key", "value")}
        weights = replace(weights, **{f"{name}_bias": np.zeros(size, dtype) for name, size in sizes.items()})
    if zeros & {"no-output-bias", "separate-biases"} and weights.output is not None and weights.output_bias is None:
        weights = replace(weights, output_bias=np.zeros(weights.output.shape[1], dtype))
    return weights


def _full_shape(inputs: AttentionInputs | MultiHeadInputs) -> tuple[int, int, int, int]:
    heads = inputs.query.shape[1] if isinstance(inputs, AttentionInputs) else inputs.num_heads
    return inputs.query.shape[0], heads, inputs.query.shape[-2], inputs.key.shape[-2]


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

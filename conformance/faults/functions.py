"""Faults as implementations: functions that the checks can run like anybody's, with the parameters of all features."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from conformance.adapter import Implementation, Support, registry
from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.features import features
from conformance.problem import LAYOUTS
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs, Weights

Array = np.ndarray
# The numerics profile that a computation in float64 with one rounding keeps to.
PROFILE = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}
CONVENTIONS = {
    "CON-ALIGNMENT": "top-left",
    "CON-POLARITY": "true-attends",
    "CON-LSE-BASE": "natural",
    "CON-SINUSOID-ARRANGEMENT": "interleaved",
    "CON-SINUSOID-FREQUENCIES": "d",
}  # declared, so that a fault in them is a contradiction and not an observation
CONVENTIONS |= {convention: answer for feature in features("attention") for convention, answer in feature.meant.items()}


def _parameters(operation: str) -> dict[str, Any]:
    """Those by which features are asked for, with their defaults."""
    return {name: value for one in features(operation) if one.field is not None for name, value in one.plain().items()}


def _asked(operation: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the parameters ask for; TypeError for one that there is not."""
    named = _parameters(operation)
    unknown = given.keys() - named.keys()
    if unknown:
        raise TypeError(f"{operation} has no parameter {min(unknown)}")
    return {one.argument: one.read(named | given) for one in features(operation) if one.field is not None}


def _with_signature(function: Callable[..., Array], operation: str, needed: Iterable[str], own: Iterable[str] = ()) -> Any:
    """``function`` with all parameters spelled out where it is looked at: ``own`` are those by name that have no default."""
    positional = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in needed]
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in own]
    of_features = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in _parameters(operation).items()
    ]
    function.__signature__ = inspect.Signature([*positional, *named, *of_features])  # type: ignore[attr-defined]  # where inspect looks first
    return function


def attention(on: Callable[[Inputs], Array]) -> Callable[..., Array]:
    """``on`` as a plain attention function."""

    def function(query: Array, key: Array, value: Array, **asked: Any) -> Array:
        return on(AttentionInputs(query=query, key=key, value=value, **_asked("attention", asked)))

    return _with_signature(function, "attention", ("query", "key", "value"))


def multi_head_attention(on: Callable[[Inputs], Array]) -> Callable[..., Array]:
    """``on`` as a plain multi-head function."""

    def function(query: Array, key: Array, value: Array, weights: Weights, *, num_heads: int, **asked: Any) -> Array:
        if weights.query.shape[1] % num_heads or weights.value.shape[1] % num_heads:
            raise ValueError(f"{num_heads} heads do not divide the inner widths")
        given = {"query": query, "key": key, "value": value, "weights": weights, "num_heads": num_heads}
        return on(MultiHeadInputs(**given, **_asked("multi_head_attention", asked)))

    return _with_signature(function, "multi_head_attention", ("query", "key", "value", "weights"), ("num_heads",))


def sinusoidal_encoding(on: Callable[[Inputs], Array]) -> Callable[..., Array]:
    """``on`` as a plain encoding function."""

    def function(length: int, d_model: int, *, dtype: Any = np.float32, arrangement: str = "interleaved", x: Any = None) -> Array:
        return on(SinusoidalInputs(length=length, width=d_model, dtype=np.dtype(dtype).name, arrangement=arrangement, x=x))

    return function


MAKERS: dict[str, Callable[[Callable[[Inputs], Array]], Callable[..., Array]]] = {
    "attention": attention,
    "multi_head_attention": multi_head_attention,
    "sinusoidal_encoding": sinusoidal_encoding,
}


def function_of(fault: Fault) -> Callable[..., Any]:
    """A fresh function with the fault; a behaviour wraps the right function anew each time, so that it begins without a past."""
    make = MAKERS[fault.operation]
    if fault.behaviour is not None:
        return fault.behaviour(make(compute))
    return make(fault.output)


def implementation_of(fault: Fault, dtype: str | None = None) -> Implementation:
    """The fault as an implementation, of all dtypes in which it shows, or of one."""
    support = Support(
        operation=fault.operation,
        lacks=fault.lacks,
        returns=fault.returns,
        dtypes=fault.dtypes if dtype is None else (dtype,),
        layouts=LAYOUTS,
        profile=PROFILE,
        conventions=CONVENTIONS,
    )
    return Implementation(f"fault-{fault.id}", function_of(fault), support, registry.frameworks()["numpy"])

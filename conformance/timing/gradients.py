"""Forward and backward as one call: the output, and the gradients with respect to query, key and value."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from conformance.adapter import Differentiates, Implementation, Surrounds
from conformance.adapter.known import Known
from conformance.errors import Unsupported
from conformance.harness.prepared import PreparedCall
from conformance.operations import operation_of
from conformance.problem.returned import OUTPUT

DIFFERENTIATED = 3  # positional arguments: query, key, value

Both = Callable[[tuple[Any, ...], Any], tuple[Any, tuple[Any, ...]]]


def lacking(known: Known) -> str:
    """What there is not, where no backward pass can be timed; empty where one can."""
    return _lack(known.differentiates, known.entry.framework, known.operation)


def _lack(differentiates: bool, framework: str, operation: str) -> str:
    if not differentiates:
        return f"gradients in {framework}"
    differentiated = any(passes == "forward+backward" for passes, _ in operation_of(operation).baselines)
    return "" if differentiated else f"the backward pass of {operation}"


def differentiated(implementation: Implementation, prepared: PreparedCall) -> Both:
    """The function of (query, key, value) and a cotangent, for the mask and whatever else ``prepared`` was made with.

    Made once for each shape, because that is when a framework that compiles does so. What a function that binds does before
    its computation is part of it here: it belongs to what is differentiated.
    Raises Unsupported where there is nothing to time.
    """
    differentiates, name = isinstance(implementation.framework, Differentiates), implementation.framework.name
    if lack := _lack(differentiates, name, implementation.operation):
        raise Unsupported(lack)
    unbound = prepared.unbound
    assert unbound is not None and isinstance(implementation.framework, Differentiates)
    rest, named, binds = unbound.args[DIFFERENTIATED:], unbound.keywords, implementation.support.binds

    def attend(*arrays: Any) -> Any:
        result = unbound.func(*arrays, *rest, **named)
        return prepared.parts(result() if binds else result)[OUTPUT]

    both, around = implementation.framework.gradients(attend), prepared.around
    if around is None:
        return both

    def surrounded(arrays: tuple[Any, ...], cotangent: Any) -> tuple[Any, tuple[Any, ...]]:
        with around():
            return both(arrays, cotangent)

    return surrounded


def cotangent_like(implementation: Implementation, output: np.ndarray, seed: int) -> Any:
    """Normal numbers in the shape and dtype of the implementation's own output, as an array of its framework."""
    numbers = np.random.default_rng(seed).standard_normal(output.shape).astype(output.dtype)
    framework = implementation.framework
    around = framework.surroundings(output.dtype.name) if isinstance(framework, Surrounds) else None
    with around or nullcontext():
        return framework.from_numpy(numbers, implementation.support.device)


def one_call(both: Both, prepared: PreparedCall, cotangent: Any) -> Callable[[], Any]:
    """The call with the arrays of ``prepared``; it waits for the output and the gradients."""
    assert prepared.unbound is not None
    arrays, wait = prepared.unbound.args[:DIFFERENTIATED], prepared.framework.wait
    return lambda: wait(both(arrays, cotangent))

"""Faults as implementations: functions that the checks can run like anybody's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance import registry
from conformance.adapter import Implementation, Support
from conformance.faults.honest import compute
from conformance.faults.model import Fault
from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs, Weights
from conformance.problem import LAYOUTS

# The numerics profile that a computation in float64 with one rounding keeps to.
PROFILE = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}
CONVENTIONS = {
    "CON-ALIGNMENT": "top-left",
    "CON-POLARITY": "true-attends",
    "CON-LSE-BASE": "natural",
    "CON-SINUSOID-ARRANGEMENT": "interleaved",
    "CON-SINUSOID-FREQUENCIES": "d",
}  # declared, so that a fault in them is a contradiction and not an observation


def attention(on: Callable[[Inputs], np.ndarray]) -> Callable[..., np.ndarray]:
    """``on`` as a plain attention function."""

    def function(
        query: np.ndarray, key: np.ndarray, value: np.ndarray, *, mask: Any = None, bias: Any = None, causal: bool = False,
        alignment: str = "top-left", scale: float | None = None, key_lengths: Any = None,
    ) -> np.ndarray:  # fmt: skip
        return on(
            AttentionInputs(
                query=query,
                key=key,
                value=value,
                mask=mask,
                bias=bias,
                causal=alignment if causal else "none",
                scale=scale,
                key_lengths=key_lengths,
            )
        )

    return function


def multi_head_attention(on: Callable[[Inputs], np.ndarray]) -> Callable[..., np.ndarray]:
    """``on`` as a plain multi-head function."""

    def function(
        query: np.ndarray, key: np.ndarray, value: np.ndarray, weights: Weights, *, num_heads: int, mask: Any = None,
        causal: bool = False, alignment: str = "top-left", key_lengths: Any = None,
    ) -> np.ndarray:  # fmt: skip
        if weights.query.shape[1] % num_heads or weights.value.shape[1] % num_heads:
            raise ValueError(f"{num_heads} heads do not divide the inner widths")
        return on(
            MultiHeadInputs(
                query=query,
                key=key,
                value=value,
                weights=weights,
                num_heads=num_heads,
                mask=mask,
                causal=alignment if causal else "none",
                key_lengths=key_lengths,
            )
        )

    return function


def sinusoidal_encoding(on: Callable[[Inputs], np.ndarray]) -> Callable[..., np.ndarray]:
    """``on`` as a plain encoding function."""

    def function(
        length: int, d_model: int, *, dtype: Any = np.float32, arrangement: str = "interleaved", x: Any = None
    ) -> np.ndarray:
        return on(SinusoidalInputs(length=length, width=d_model, dtype=np.dtype(dtype).name, arrangement=arrangement, x=x))

    return function


MAKERS: dict[str, Callable[[Callable[[Inputs], np.ndarray]], Callable[..., np.ndarray]]] = {
    "attention": attention,
    "multi_head_attention": multi_head_attention,
    "sinusoidal_encoding": sinusoidal_encoding,
}


def function_of(fault: Fault) -> Callable[..., Any]:
    """A fresh function with the fault; a behaviour wraps the honest function anew each time, so that it begins without a past."""
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

"""Faults as implementations: functions that the checks can run like anybody's, with the parameters of all features."""

from collections.abc import Callable
from typing import Any

from conformance.adapter import Implementation, Support, registry
from conformance.faults.fault import Fault
from conformance.faults.steps import compute
from conformance.features import every_feature
from conformance.operations import operation_of
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
CONVENTIONS |= {convention: answer for feature in every_feature() for convention, answer in feature.meant.items()}


def function_of(fault: Fault) -> Callable[..., Any]:
    """A fresh function with the fault; a behaviour wraps the right function anew each time, so that it begins without a past."""
    make = operation_of(fault.operation).function
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

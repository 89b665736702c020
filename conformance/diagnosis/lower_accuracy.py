"""Faults in implementations that compute float64 in float32, to see whether the diagnosis names them all the same."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.steps import compute
from conformance.problem.inputs import Inputs, Weights

Array = np.ndarray
EVERYWHERE, LIMITED = 10, 5  # faults in all dtypes, and in one of 16 bits only
_16_BIT = ("float16", "bfloat16")


def in_float32(fault: Fault, only: str = "") -> Fault:
    """The fault, in one dtype ``only`` if that is given, in a computation that casts float64 to float32. Roundings of its own are
    up to two units in the last place, so that nothing of the catalogue gives the same bits."""

    def faulty(inputs: Inputs) -> Array:
        return np.asarray(fault.output(inputs) if only in ("", inputs.dtype) else compute(inputs))

    def output(inputs: Inputs) -> Array:
        if inputs.dtype != "float64":
            return faulty(inputs)
        given = faulty(_cast(inputs))
        steps = (np.arange(given.size) * 2654435761 % 5 - 2).reshape(given.shape).astype(np.float32)
        return np.asarray((given * (1 + steps * np.float32(2.0**-24))).astype(np.float64))

    return replace(fault, rewrite=None, compute=output, dtypes=ALL_DTYPES)


def chosen(faults: Sequence[Fault]) -> list[str]:
    """Evenly over the catalogue, faults of arithmetic in all dtypes, and between them others in one dtype: ``fault@dtype``."""
    arithmetic = [fault for fault in faults if fault.behaviour is None and fault.dtypes == ALL_DTYPES]
    step = len(arithmetic) // EVERYWHERE
    others = arithmetic[step // 2 :: len(arithmetic) // LIMITED][:LIMITED]
    limited = [f"{fault.id}@{_16_BIT[number % 2]}" for number, fault in enumerate(others)]
    return [*(fault.id for fault in arithmetic[::step][:EVERYWHERE]), *limited]


def _cast(inputs: Inputs) -> Inputs:
    return inputs.but(**{name: _single(value) for name, value in inputs.named().items()})


def _single(value: Any) -> Any:
    """Arrays of float64 in float32, those of weights too, and the name of the dtype; all else as it is."""
    if isinstance(value, str):
        return "float32" if value == "float64" else value
    if isinstance(value, Weights):
        return replace(value, **{field.name: _single(getattr(value, field.name)) for field in fields(value)})
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype == np.float64 else value

"""Faults that are small everywhere and on one side: hidden in the budget of each element, seen in all of them together."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from conformance.dtypes import float_type, round_to
from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.rounding import significand
from conformance.faults.steps import attend, mix, softmax
from conformance.inputs import AttentionInputs

Array = np.ndarray
PROBE = ("ATT-OUT-039", "ATT-OUT-040", "ATT-OUT-003")
EXACT = ("ATT-OUT-040", "ATT-OUT-039", "ATT-OUT-003")
GATED = ("float32", "float16", "bfloat16")
BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def _result(change: Callable[[Array, str], Array]) -> Callable[[AttentionInputs], Array]:
    """The result before it is rounded, changed, then rounded to nearest."""

    def compute(inputs: AttentionInputs) -> Array:
        dtype = inputs.query.dtype.name
        whole = attend(_in_float64(inputs))
        with np.errstate(all="ignore"):
            return round_to(change(whole, dtype), dtype)

    return compute


def _in_float64(inputs: AttentionInputs) -> AttentionInputs:
    wide: dict[str, Any] = {name: array.astype(np.float64) for name, array in inputs.arrays().items()}
    return inputs.but(**wide)


def _cut(whole: Callable[[Array], Array]) -> Callable[[Array, str], Array]:
    """Rounded to the significand of the dtype in another direction."""
    return lambda result, dtype: significand(BITS[dtype], whole)(result)


def _units_up(result: Array, dtype: str) -> Array:
    nearest = round_to(result, dtype).astype(np.float64)
    return nearest + 4.0 * float_type(dtype).unit_roundoff * np.exp2(np.floor(np.log2(np.abs(nearest) + float_type(dtype).tiny)))


def _sum_of(by: dict[str, float]) -> Callable[[Array, str], Array]:
    return lambda result, dtype: result * (1.0 + by[dtype])


def _weights(change: Callable[[Array], Array]) -> Callable[[AttentionInputs], Array]:
    return lambda inputs: attend(inputs, softmax=lambda scores: change(softmax(scores)))


def _short_weights(bits: dict[str, int]) -> Callable[[AttentionInputs], Array]:
    """Weights cut off at the significand of the dtype, and divided by no sum of theirs."""
    return lambda inputs: _weights(significand(bits[inputs.query.dtype.name], np.trunc))(inputs)


def _key(index: int, factor: float) -> Callable[[Array], Array]:
    def change(weights: Array) -> Array:
        changed = weights.copy()
        changed[..., index] *= factor
        return changed

    return change


def _short_value(bits: int) -> Callable[[AttentionInputs], Array]:
    return lambda inputs: attend(inputs, mix=lambda weights, value: mix(weights, significand(bits, np.trunc)(value)))


def _fault(name: str, sentence: str, compute: Callable[[AttentionInputs], Array], *named: str, dtypes: tuple[str, ...]) -> Fault:
    return Fault(id=name, sentence=sentence, requirements=named, sources=(), compute=compute, dtypes=dtypes)


_of = partial(_fault, dtypes=ALL_DTYPES)

FAULTS: tuple[Fault, ...] = (
    _fault("results-truncated", "rounds results towards 0", _result(_cut(np.trunc)), *PROBE, dtypes=GATED),
    _fault("results-rounded-up", "rounds results upwards", _result(_cut(np.ceil)), *PROBE, dtypes=GATED),
    _fault("results-rounded-down", "rounds results downwards", _result(_cut(np.floor)), *PROBE, dtypes=GATED),
    _of("results-two-units-up", "adds two units in the last place to results", _result(_units_up), *EXACT),
    _of(
        "weights-sum-to-more",
        "has weights that sum to a little more than 1",
        _result(_sum_of({"float64": 1e-15, "float32": 3e-7, "float16": 2e-4, "bfloat16": 1.2e-3})),
        *PROBE,
        dtypes=GATED,
    ),
    _of(
        "weights-sum-to-less",
        "has weights that sum to a little less than 1, as with a guard added to their sum",
        _result(_sum_of({"float64": -1e-15, "float32": -2e-7, "float16": -2e-4, "bfloat16": -1.2e-3})),
        *PROBE,
        dtypes=GATED,
    ),
    _fault(
        "weights-truncated",
        "rounds weights towards 0, to the significand of 16 bits",
        _short_weights(BITS),
        *PROBE,
        dtypes=("float16", "bfloat16"),
    ),
    _fault("last-key-counts-less", "counts the last key 0.99 times", _weights(_key(-1, 0.99)), *PROBE, dtypes=GATED),
    _fault("first-key-counts-more", "counts the first key 1.01 times", _weights(_key(0, 1.01)), *PROBE, dtypes=GATED),
    _fault(
        "first-key-counts-slightly-more",
        "counts the first key 1.00001 times",
        _weights(_key(0, 1.00001)),
        *PROBE,
        dtypes=("float64", "float32"),
    ),
    _fault(
        "small-weights-dropped",
        "drops keys with weights below 1e-4",
        _weights(lambda weights: np.where(weights < 1e-4, 0.0, weights)),
        "ATT-OUT-041",
        "ATT-OUT-013",
        "ATT-OUT-003",
        dtypes=ALL_DTYPES,
    ),
    _fault(
        "smaller-weights-dropped",
        "drops keys with weights below 1e-5",
        _weights(lambda weights: np.where(weights < 1e-5, 0.0, weights)),
        "ATT-OUT-041",
        "ATT-OUT-003",
        dtypes=ALL_DTYPES,
    ),
    _fault(
        "values-short-of-a-bit",
        "takes V with one bit of significand less than float32 has",
        _short_value(23),
        *PROBE,
        dtypes=("float64", "float32"),
    ),
)

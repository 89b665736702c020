"""Faults of whole layers: one of two arguments forgotten, inputs taken for others, results rounded to one side."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.dtypes import round_to
from conformance.faults.model import Fault, Rewrite
from conformance.faults.rounding import significand
from conformance.faults.small_errors import BITS, GATED
from conformance.faults.steps import multi_head
from conformance.inputs import MultiHeadInputs, Weights

Array = np.ndarray
_TOGETHER, _BESIDE = ("ATT-HEAD-038",), ("ATT-HEAD-039",)
_F32 = ("float32",)


def _wide(inputs: MultiHeadInputs) -> MultiHeadInputs:
    """The same numbers in float64; arrays that are one stay one."""
    made: dict[int, Array] = {}

    def wide(array: Array) -> Array:
        return made.setdefault(id(array), array.astype(np.float64))

    weights = Weights(**{name: wide(array) for name, array in inputs.weights.arrays().items()})
    return inputs.but(query=wide(inputs.query), key=wide(inputs.key), value=wide(inputs.value), weights=weights)


def _rounded(whole: Callable[[Array], Array]) -> Callable[[MultiHeadInputs], Array]:
    """Results rounded to the significand of the dtype by ``whole``."""

    def compute(inputs: MultiHeadInputs) -> Array:
        dtype = inputs.query.dtype.name
        return round_to(significand(BITS[dtype], whole)(multi_head(_wide(inputs))), dtype)

    return compute


def _if(condition: Callable[[MultiHeadInputs], bool], **changes: Any) -> Rewrite:
    return lambda inputs: inputs.but(**changes) if condition(inputs) else inputs


def _as_self(inputs: MultiHeadInputs) -> MultiHeadInputs:
    """Key and value are the query where there are as many tokens of them."""
    alike = inputs.query.shape == inputs.key.shape
    return inputs.but(key=inputs.query, value=inputs.query) if alike else inputs


def _fault(identifier: str, sentence: str, requirements: tuple[str, ...], dtypes: tuple[str, ...], **fields: Any) -> Fault:
    return Fault(
        id=f"multi-head-{identifier}",
        sentence=sentence,
        operation="multi_head_attention",
        requirements=requirements,
        sources=(),
        dtypes=dtypes,
        **fields,
    )


FAULTS: tuple[Fault, ...] = (
    _fault("results-truncated", "rounds results towards 0, in a layer", _TOGETHER, GATED, compute=_rounded(np.trunc)),
    _fault("results-rounded-up", "rounds results upwards, in a layer", _TOGETHER, GATED, compute=_rounded(np.ceil)),
    _fault(
        "equal-lengths-as-self",
        "takes equal lengths of query and memory for self-attention",
        _BESIDE,
        _F32,
        needs=frozenset({"cross-attention"}),
        rewrite=_as_self,
    ),
    _fault(
        "lengths-lost-beside-causal",
        "forgets key lengths where it is causal",
        _BESIDE,
        _F32,
        needs=frozenset({"causal", "key-lengths"}),
        rewrite=_if(lambda inputs: inputs.causal != "none", key_lengths=None),
    ),
    _fault(
        "mask-lost-beside-lengths",
        "forgets the mask where there are key lengths",
        _BESIDE,
        _F32,
        needs=frozenset({"mask", "key-lengths"}),
        rewrite=_if(lambda inputs: inputs.key_lengths is not None, mask=None),
    ),
)

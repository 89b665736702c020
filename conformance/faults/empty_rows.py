"""Rows that see no key given what no library means them to give: which is all that is wrong."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.faults.padding import EMPTY
from conformance.faults.steps import attend, multi_head
from conformance.inputs import AttentionInputs, MultiHeadInputs
from conformance.visibility import tokens_as_heads, visible_pairs

Array = np.ndarray


def _all_hidden(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return np.logical_not(visible_pairs(inputs).any(-1))


def _by_bias(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return _all_hidden(inputs.but(mask=None, causal="none", key_lengths=None))


def _by_lengths(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return _all_hidden(inputs.but(mask=None, causal="none", bias=None))


def _by_causal(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return _all_hidden(inputs.but(mask=None, key_lengths=None, bias=None))


def _first_value(inputs: AttentionInputs) -> Float[Array, "b h 1 dv"]:
    return np.repeat(inputs.value[:, :, :1], inputs.query.shape[1] // inputs.value.shape[1], axis=1)


def _row_before(inputs: AttentionInputs) -> Float[Array, "b h lq dv"]:
    return np.roll(attend(inputs), 1, axis=2)


def _number(number: float) -> Callable[[AttentionInputs], Array]:
    return lambda inputs: np.full((), number)


def _fault(
    name: str,
    sentence: str,
    given: Callable[[AttentionInputs], Array],
    rows: Callable[[AttentionInputs], Bool[Array, "b h lq"]] = _all_hidden,
    needs: frozenset[str] = frozenset(),
) -> Fault:
    """A fault that gives ``given`` in ``rows``."""

    def compute(inputs: AttentionInputs) -> Array:
        output, wrong = attend(inputs), rows(inputs)
        output[wrong] = np.broadcast_to(given(inputs), output.shape)[wrong]
        return output

    return Fault(id=name, sentence=sentence, requirements=masking(43), sources=EMPTY, needs=needs, compute=compute)


def _one(inputs: MultiHeadInputs) -> Array:
    output = multi_head(inputs)
    output[np.logical_not(visible_pairs(tokens_as_heads(inputs)).any((1, 3)))] = 1.0
    return output


FAULTS: tuple[Fault, ...] = (
    _fault("empty-row-gives-first-value", "gives the first V in a row that sees no key", _first_value),
    _fault("empty-row-gives-row-before", "gives in a row that sees no key what the row before gives", _row_before),
    _fault("empty-row-gives-infinity", "gives infinity in a row that sees no key", _number(np.inf)),
    _fault(
        "empty-row-of-bias-gives-one",
        "gives 1 in a row from which a bias of −∞ hides every key",
        _number(1.0),
        _by_bias,
        frozenset({"bias"}),
    ),
    _fault(
        "key-length-zero-gives-first-value",
        "gives the first V where the key length is 0",
        _first_value,
        _by_lengths,
        frozenset({"key-lengths"}),
    ),
    _fault(
        "row-before-first-key-gives-one",
        "gives 1 in a causal row that lies before the first key",
        _number(1.0),
        _by_causal,
        frozenset({"causal"}),
    ),
    Fault(
        id="multi-head-empty-row-gives-one",
        sentence="gives 1 in a row that sees no key, in multi-head attention",
        operation="multi_head_attention",
        requirements=("ATT-HEAD-034",),
        sources=EMPTY,
        compute=_one,
    ),
)

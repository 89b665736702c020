"""Additive biases got wrong: added at the wrong place or in the wrong way, or read along the wrong axis."""

from collections.abc import Callable
from functools import wraps

import numpy as np
from jaxtyping import Float

from conformance.faults.fault import Fault
from conformance.faults.grammar import HALF, MASK, TO_16, WIDE, Way, along_axis, bias, fault, full_size, is_form, where_asked
from conformance.faults.masks import as_keys, is_column, transposed
from conformance.faults.steps import attend
from conformance.numerics.dtypes import round_to
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Bias = Float[Array, "#b #h #lq #lk"]

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
ADDED, FORMS = MASK(7, 19, 20), MASK(7)


def _finite(change: Callable[[Bias], Bias]) -> Way:
    """``change`` done to all of the bias but what is infinite."""
    return bias(lambda b, _: np.where(np.isfinite(b), change(np.where(np.isfinite(b), b, 0.0)), b))


def _after_softmax(inputs: AttentionInputs, bias: Bias) -> Array:
    added = np.where(np.isfinite(bias), bias, 0.0)
    return attend(inputs, bias=lambda scores, inputs: scores, weights=lambda right: right + added)


def _as_binary_mask(inputs: AttentionInputs, bias: Bias) -> Array:
    """(1 − mask) · −1e9 in float32, the mask being additive: what is 0 in it, and shown, gets −1e9."""

    def added(scores: Array, inputs: AttentionInputs) -> Array:
        filled = scores.astype(np.float32) + ((1.0 - bias) * -1e9).astype(np.float32)
        return np.where(np.isfinite(bias), filled, -np.inf).astype(np.float64)

    return attend(inputs, bias=added)


def _aligned_at_the_end(bias: Bias, inputs: AttentionInputs) -> Bias:
    """Columns counted from the last key, as if the bias were that of the last queries."""
    return np.roll(full_size(bias, inputs), inputs.key.shape[2] - inputs.query.shape[2], axis=-1)


def _ignored_in(axes: str) -> Way:
    return bias(lambda b, inputs: np.zeros_like(b) if is_form(b, inputs, axes) else b)


def _rounded(dtype: str) -> Way:
    return bias(lambda b, _: round_to(b, dtype).astype(np.float64))


def _read_as_query(function: Callable[..., Array]) -> Callable[..., Array]:
    """Takes the first half of the memory of a float32 bias for its numbers."""

    @wraps(function)
    def faulty(query: Array, key: Array, value: Array, *, bias: Array | None = None, **named: object) -> Array:
        if bias is not None and bias.dtype.itemsize > query.dtype.itemsize:
            bias = np.ascontiguousarray(bias).view(query.dtype).ravel()[: bias.size].reshape(bias.shape)
        return function(query, key, value, bias=bias, **named)

    return faulty


FAULTS: tuple[Fault, ...] = (
    fault("bias-after-softmax", "adds the bias to the weights after softmax", where_asked("bias", _after_softmax), ADDED),
    fault("bias-multiplied", "multiplies scores by the bias",
          where_asked("bias", lambda x, b: attend(x, bias=lambda scores, x: scores * np.where(np.isfinite(b), b, 1.0))),
          ADDED + MASK(34), MULTIPLIED),
    fault("bias-read-as-binary-mask", "takes an additive mask, 0 or −∞, for one of 1 and 0", where_asked("bias", _as_binary_mask),
          MASK(7, 8), AS_BINARY),
    fault("bias-hides-where-not-zero", "hides keys whose bias is not 0", bias(lambda b, _: np.where(b == 0, 0.0, -np.inf)), FORMS,
          ("R torch (mlverse): https://github.com/mlverse/torch/pull/1208",)),
    fault("bias-subtracted", "subtracts the bias", _finite(np.negative), ADDED),
    fault("bias-added-twice", "adds the bias twice", bias(lambda b, _: 2.0 * b), ADDED),
    fault("bias-absolute", "adds the absolute value of the bias", _finite(np.abs), ADDED),
    fault("bias-minus-infinity-as-zero", "adds 0 where the bias is −∞", bias(lambda b, _: np.where(np.isneginf(b), 0.0, b)),
          MASK(8)),
    fault("bias-minus-infinity-sign-lost", "adds +∞ where the bias is −∞",
          where_asked("bias", lambda x, b: attend(x.but(bias=np.where(np.isneginf(b), np.inf, b)))), MASK(8), MINUS_INFINITY),
    fault("bias-in-bfloat16", "rounds the bias to bfloat16", _rounded("bfloat16"), ADDED, NARROW, dtypes=TO_16),
    fault("bias-in-float16", "rounds the bias to float16", _rounded("float16"), ADDED, NARROW, dtypes=WIDE),
    fault("bias-read-in-dtype-of-query", "reads a bias of another dtype as if it were in that of the inputs",
          Way(behaviour=_read_as_query, needs=frozenset({"bias"})), MASK(51), dtypes=HALF),
    # Axes
    fault("bias-of-first-batch-row", "reads the first batch row's bias for all", bias(lambda b, _: b[:1]), FORMS, WRONG_ROW),
    fault("bias-of-first-head", "reads the first head's bias for all", bias(lambda b, _: b[:, :1]), FORMS, WRONG_HEAD),
    fault("bias-of-first-query", "reads the first query's bias for all", bias(lambda b, _: b[:, :, :1]), ADDED),
    fault("bias-of-next-key", "reads the bias one column to the right", bias(lambda b, _: np.roll(b, -1, -1)), ADDED),
    fault("bias-of-previous-key", "reads the bias one column to the left", bias(lambda b, _: np.roll(b, 1, -1)), ADDED),
    fault("bias-of-next-query", "reads the next row of the bias", bias(lambda b, _: np.roll(b, -1, -2)), ADDED),
    fault("bias-of-previous-query", "reads the row before in the bias", bias(lambda b, _: np.roll(b, 1, -2)), ADDED),
    fault("bias-transposed", "exchanges queries and keys of the bias", bias(transposed), ADDED),
    fault("bias-heads-before-batch", "reads the bias's first two axes as (heads, batch)",
          bias(lambda b, _: b.reshape(b.shape[1], b.shape[0], *b.shape[2:]).swapaxes(0, 1)), FORMS, WRONG_HEAD),
    fault("bias-of-keys-on-queries", "adds a bias of shape (B, 1, 1, Lk) by query instead of by key",  # where it does nothing
          bias(lambda b, _: np.zeros_like(b) if b.shape[2] == 1 else b), FORMS, LENGTHS[:1]),
    fault("bias-of-queries-on-keys", "adds a bias of shape (B, H, Lq, 1) by key instead of by query",
          bias(lambda b, x: as_keys(b, x, 0.0) if is_column(b) else b), MASK(7, 34), LENGTHS[:1]),
    fault("bias-aligned-at-the-end", "moves the bias by Lk − Lq columns where the lengths differ", bias(_aligned_at_the_end),
          FORMS, LENGTHS[1:]),
    fault("bias-ignored-from-key-64", "leaves the bias out from key 64 on",
          bias(lambda b, x: np.where(along_axis(x, "k") >= 64, 0.0, b)), FORMS),
    *(
        fault(f"bias-ignored-in-form-{form}", f"leaves out biases of shape {shape}", _ignored_in(axes), FORMS, BROADCAST)
        for form, axes, shape in (
            ("qk", "qk", "(Lq, Lk)"), ("b11k", "bk", "(B, 1, 1, Lk)"), ("b1qk", "bqk", "(B, 1, Lq, Lk)"),
            ("1hqk", "hqk", "(1, H, Lq, Lk)"), ("bhqk", "bhqk", "(B, H, Lq, Lk)"),
        )
    ),
    fault("bias-ignored-in-form-bhq1", "leaves out biases of shape (B, H, Lq, 1)", _ignored_in("bhq"), (), BROADCAST,
          equivalent="It adds one number to all scores of a row, from which softmax does not change."),
)  # fmt: skip

"""Implementations that return more than the output: right, and each wrong in one way that its docstring names."""

from pathlib import Path

import numpy as np

from conformance.adapter import Support

FILE = Path(__file__)
PROFILE = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}
LOG2_E = 1.4426950408889634


def named(function: str) -> str:
    """How one is given to the command line."""
    return f"{FILE}:{function}"


def parts(query, key, value, mask=None, bias=None, causal=False, scale=None):
    """Output, log-sum-exp and weights, computed in float32 or float64; a fully masked row gives zeros and −∞."""
    dtype = query.dtype
    work = np.promote_types(dtype, np.float32)
    query, key, value = (array.astype(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat(shared, axis=1), value.repeat(shared, axis=1)
    with np.errstate(all="ignore"):
        scores = query @ key.swapaxes(-1, -2) * work.type(query.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            scores = scores + bias.astype(work)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        top = np.where(top == -np.inf, work.type(0), top)
        exponentials = np.exp(scores - top)
        total = exponentials.sum(axis=-1, keepdims=True)
        weights = exponentials / np.where(total == 0, work.type(1), total)
        return (weights @ value).astype(dtype), (top + np.log(total))[..., 0], weights


def declaring(*returns, **fields):
    def decorate(function):
        function.conformance = Support(returns=returns, **{"profile": PROFILE, **fields})
        return function

    return decorate


@declaring("output", "lse", "weights")
def all_three(query, key, value, *, mask=None, bias=None, causal=False, scale=None):
    """Right."""
    return parts(query, key, value, mask, bias, causal, scale)


@declaring("output", "lse", "weights")
def rounded(query, key, value, *, mask=None, causal=False, scale=None):
    """Right, everything in the dtype of the inputs."""
    return tuple(part.astype(query.dtype) for part in parts(query, key, value, mask, None, causal, scale))


@declaring("-", "lse", "output")
def in_another_order(query, key, value, *, mask=None, causal=False):
    """Right, with a number of its own before, which is not judged."""
    output, lse, _ = parts(query, key, value, mask, None, causal)
    return 42, lse, output


@declaring("output", "lse")
def base_2(query, key, value, *, mask=None, causal=False, scale=None):
    """The log-sum-exp to the base 2, as a released kernel gives it, and +∞ for a fully masked row."""
    output, lse, _ = parts(query, key, value, mask, None, causal, scale)
    return output, np.where(lse == -np.inf, np.inf, lse * LOG2_E).astype(lse.dtype)


@declaring("output", "lse", conventions={"CON-LSE-BASE": "natural"})
def base_2_undeclared(query, key, value, *, mask=None, causal=False, scale=None):
    """The same, said to be the natural logarithm."""
    return base_2(query, key, value, mask=mask, causal=causal, scale=scale)


@declaring("output", "lse")
def unscaled_lse(query, key, value, *, mask=None, causal=False, scale=None):
    """The log-sum-exp of the scores without the scale."""
    return parts(query, key, value, mask, None, causal, scale)[0], parts(query, key, value, mask, None, causal, 1.0)[1]


@declaring("output", "lse")
def noisy_lse(query, key, value, *, mask=None, causal=False):
    """Another log-sum-exp in each call; right outputs."""
    output, lse, _ = parts(query, key, value, mask, None, causal)
    noisy_lse.calls = getattr(noisy_lse, "calls", 0) + 1
    return output, lse + lse.dtype.type(1e-3 * (noisy_lse.calls % 2))


@declaring("output", "-", "weights")
def weights_before_masking(query, key, value, *, mask=None, causal=False, scale=None):
    """Weights of all keys, hidden ones too."""
    output, lse, _ = parts(query, key, value, mask, None, causal, scale)
    return output, lse, parts(query, key, value, None, None, False, scale)[2]


@declaring("output", "weights")
def averaged_weights(query, key, value):
    """The mean of the weights of all heads."""
    output, _, weights = parts(query, key, value)
    return output, weights.mean(1)


@declaring("output", "lse")
def with_an_axis_more(query, key, value):
    """The log-sum-exp as (batch, heads, length, 1)."""
    output, lse, _ = parts(query, key, value)
    return output, lse[..., None]


@declaring("output", "lse")
def length_before_heads(query, key, value):
    """The log-sum-exp as (batch, length, heads)."""
    output, lse, _ = parts(query, key, value)
    return output, lse.swapaxes(1, 2)


@declaring("output", "lse", dtypes=("bfloat16",))
def in_float64(query, key, value):
    """The log-sum-exp in float64 beside bfloat16."""
    output, lse, _ = parts(query, key, value)
    return output, lse.astype(np.float64)


@declaring("output", "lse")
def three_for_two(query, key, value):
    return parts(query, key, value)


@declaring("output", "lse")
def alone(query, key, value):
    return parts(query, key, value)[0]


@declaring("output", "weights")
def without_weights(query, key, value):
    return parts(query, key, value)[0], None


def undeclared(query, key, value):
    return parts(query, key, value)[:2]


@declaring("output", "lse", "weights", axes="blhd")
def length_first(query, key, value, *, mask=None, causal=False):
    """Right, its arrays (batch, length, heads, width); log-sum-exp and weights have heads first, as in FlashAttention."""
    output, lse, weights = parts(*(array.swapaxes(1, 2) for array in (query, key, value)), mask, None, causal)
    return [output.swapaxes(1, 2), lse, weights]

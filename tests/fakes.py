"""Small implementations that are wrong, each in one way that its docstring names, and a correct one to compare them with."""

from pathlib import Path

import numpy as np

from conformance.adapter import Support

FILE = Path(__file__)


def named(function: str) -> str:
    """How a fake is given to the command line."""
    return f"{FILE}:{function}"


def correct(query, key, value, *, mask=None, causal=False, scale=None):
    """Right: the formula in float32, or float64 for float64, with grouped heads. A fully masked row gives NaN."""
    dtype = query.dtype
    work = np.promote_types(dtype, np.float32)
    query, key, value = (array.astype(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat(shared, axis=1), value.repeat(shared, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True) @ value).astype(dtype)


def zeros(query, key, value):
    """Always zeros, of the expected shape and dtype."""
    return np.zeros((*query.shape[:3], value.shape[3]), query.dtype)


def unscaled(query, key, value):
    """Does not divide by the square root of the width."""
    return correct(query, key, value, scale=1.0)


def length_first(query, key, value):
    """Takes and returns (batch, length, heads, width), and does not say so."""
    return correct(*(array.swapaxes(1, 2) for array in (query, key, value))).swapaxes(1, 2)


def returns_length_first(query, key, value):
    """Takes (batch, heads, length, width) as it should, and returns (batch, length, heads, width)."""
    return correct(query, key, value).swapaxes(1, 2)


def merges_heads(query, key, value):
    """Returns the heads side by side, (batch, length, heads · width)."""
    output = correct(query, key, value).swapaxes(1, 2)
    return output.reshape(*output.shape[:2], -1)


def doubles(query, key, value):
    """Returns float64 whatever the dtype of its inputs."""
    return correct(query, key, value).astype(np.float64)


def with_weights(query, key, value):
    """Returns a tuple of output and weights."""
    return correct(query, key, value), None


def no_groups(query, key, value, *, mask=None):
    """Raises where query and key heads differ in number, which it does not declare."""
    if query.shape[1] != key.shape[1]:
        raise ValueError("as many key heads as query heads, please")
    return correct(query, key, value, mask=mask)


def no_half(query, key, value):
    """Raises in float16, which it does not declare."""
    if query.dtype == np.float16:
        raise TypeError("no float16 here")
    return correct(query, key, value)


def misspelt(query, key, value):
    """Declares that it lacks a feature that does not exist, and a profile that does not either."""
    return correct(query, key, value)


misspelt.conformance = Support(lacks=frozenset({"gruoped-heads"}), profile={"float32": "exact"})

_BUFFERS: dict[tuple, np.ndarray] = {}


def one_buffer(query, key, value):
    """Returns the same array for every call of the same shapes."""
    output = correct(query, key, value)
    buffer = _BUFFERS.setdefault((output.shape, output.dtype), output.copy())
    buffer[...] = output
    return buffer


def elsewhere(query, key, value):
    """Declares a device that NumPy has not."""
    return correct(query, key, value)


elsewhere.conformance = Support(device="cuda")


def other_names(query, key, value, dropout=None):
    """Has a parameter that means nothing to the suite."""
    return correct(query, key, value)


def boasts(query, key, value, *, mask=None):
    """Declares zeros for a fully masked row, and gives NaN."""
    return correct(query, key, value, mask=mask)


boasts.conformance = Support(conventions={"CON-EMPTY-ROW": "zeros"})


def writes_on_query(query, key, value):
    """Returns the right output, and changes the query."""
    output = correct(query, key, value)
    query *= 2
    return output


def unscaled_on_query(query, key, value):
    """Neither scales nor leaves the query as it was, but for its sign, which it changes."""
    output = unscaled(query, key, value)
    np.negative(query, out=query)
    return output


def zeros_of_heads(query, key, value, weights, *, num_heads):
    """Multi-head attention that gives zeros of the expected shape and dtype."""
    width = weights.value.shape[1] if weights.output is None else weights.output.shape[1]
    return np.zeros((*query.shape[:2], width), query.dtype)


def zeros_when_large(query, key, value):
    """Right for small arrays, and zeros for more than 2¹⁶ numbers."""
    output = correct(query, key, value)
    return np.zeros_like(output) if query.size + key.size > 1 << 16 else output

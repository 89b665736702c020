"""The broadcast forms of masks and biases: which of batch, heads, queries and keys an array has axes for."""

from typing import Any

import numpy as np

MASK_FORMS = ("qk", "b11k", "b1qk", "1hqk", "bhqk", "bhq1")


def form_shape(form: str, problem: Any) -> tuple[int, ...]:
    """The array shape of a form such as ``b1qk`` for the sizes of ``problem``; ``qk`` is two-dimensional."""
    sizes = {"1": 1, "b": problem.batch, "h": problem.heads, "q": problem.query_length, "k": problem.key_length}
    return tuple(sizes[letter] for letter in form)


def four_axes(array: np.ndarray) -> np.ndarray:
    """As (#B, #H, #Lq, #Lk)."""
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def along(array: np.ndarray | None, axis: int, index: np.ndarray) -> np.ndarray | None:
    """A mask or bias indexed along ``axis`` (negative), unless it is absent, broadcasts there or has no such axis."""
    if array is None or array.ndim < -axis or array.shape[axis] == 1:
        return array
    return np.take(array, index, axis=axis)

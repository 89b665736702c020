"""The broadcast forms of masks and biases: which of batch, heads, queries and keys an array has axes for."""

import numpy as np

MASK_FORMS = ("qk", "b11k", "b1qk", "1hqk", "bhqk", "bhq1")


def four_axes(array: np.ndarray) -> np.ndarray:
    """As (#B, #H, #Lq, #Lk)."""
    return array.reshape((1,) * (4 - array.ndim) + array.shape)

"""Memory layouts: the same numbers elsewhere in memory. Gaps are filled with NaN, or the opposite of a mask, so that reading
them shows.

Of query, key and value: transposed, columns, heads-last and batch-last have another axis fastest or another order of axes;
strided has every second element along the width, and one row of slack; expanded has stride 0 over the batch, in memory for all
of it; reversed has a negative stride over the length; mixed and key-columns have the key alone transposed, or in columns; packed
is one buffer (b, l, heads of query, key and value) as a fused projection gives it, of value and key where the lengths differ;
misaligned arrays are contiguous and begin one element behind a multiple of 64 bytes. Of mask and bias, the others contiguous:
mask-strided and mask-transposed; mask-expanded has stride 0 over batch and heads, or over queries where it has no such axes.
"""

import numpy as np

from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
_ALIGNMENT = 64  # bytes: as wide as the vectors of any processor so far
# Axes of (b, h, l, d) in memory, the fastest last.
_ORDERS = {"transposed": (0, 2, 1, 3), "columns": (0, 1, 3, 2), "heads-last": (0, 2, 3, 1), "batch-last": (1, 2, 3, 0)}
_OF_KEY_ALONE = {"mixed": "transposed", "key-columns": "columns"}
_OF_MASKS = ("mask-strided", "mask-transposed", "mask-expanded")


def laid_out(inputs: AttentionInputs, layout: str) -> AttentionInputs:
    """The inputs in the memory layout asked for; one array for query, key and value stays one where they are laid out alike."""
    if layout in _OF_MASKS:
        inputs = inputs.but(mask=_of_mask(inputs.mask, layout), bias=_of_mask(inputs.bias, layout))
        layout = "contiguous"
    one = inputs.query is inputs.key is inputs.value
    if layout == "packed" and not one:
        return _packed(inputs)
    others, key = ("contiguous", _OF_KEY_ALONE[layout]) if layout in _OF_KEY_ALONE else (layout, layout)
    if one and others == key:
        array = lay_out(inputs.query, key)
        return inputs.but(query=array, key=array, value=array)
    return inputs.but(query=lay_out(inputs.query, others), key=lay_out(inputs.key, key), value=lay_out(inputs.value, others))


def lay_out(array: Array, layout: str) -> Array:
    """One array, (b, h, l, d), in the memory layout asked for."""
    if layout in _ORDERS:
        order = _ORDERS[layout]
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    if layout == "strided":
        buffer = np.full((*array.shape[:2], array.shape[2] + 1, 2 * array.shape[3]), np.nan, dtype=array.dtype)
        view = buffer[:, :, : array.shape[2], ::2]
        view[...] = array
        return view
    if layout == "expanded":
        return _expanded(array, (0,))
    if layout == "reversed":
        return np.ascontiguousarray(array[:, :, ::-1])[:, :, ::-1]
    return misaligned(array) if layout == "misaligned" else np.ascontiguousarray(array)


def misaligned(array: Array) -> Array:
    """A contiguous copy that begins one element behind a multiple of 64 bytes."""
    per_line = _ALIGNMENT // array.itemsize
    memory = np.full(array.size + 2 * per_line, np.nan, dtype=array.dtype)
    start = -(address(memory) // array.itemsize) % per_line + 1
    view = memory[start : start + array.size].reshape(array.shape)
    view[...] = array
    return view


def address(array: Array) -> int:
    """Where the array begins in memory."""
    return int(array.__array_interface__["data"][0])


def shared(array: Array | None, layout: str) -> Array | None:
    """A mask or bias that is the same along the axes over which it is to be expanded."""
    if array is None or layout != "mask-expanded":
        return array
    return np.repeat(array[:1], array.shape[0], axis=0) if array.ndim == 2 else np.broadcast_to(array[:1, :1], array.shape).copy()


def _expanded(array: Array, axes: tuple[int, ...]) -> Array:
    """Stride 0 along ``axes``, in memory for all that is along them."""
    memory = _gaps(array, array.shape)
    first = tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(array.ndim))
    memory[first] = array[first]
    strides = tuple(0 if axis in axes else stride for axis, stride in enumerate(memory.strides))
    view = np.ndarray(array.shape, array.dtype, memory, strides=strides)
    view.flags.writeable = False
    return view


def _of_mask(array: Array | None, layout: str) -> Array | None:
    if array is None:
        return None
    if layout == "mask-transposed":
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "mask-expanded":
        return _expanded(array, (0,) if array.ndim == 2 else (0, 1))
    memory = _gaps(array, (*array.shape[:-1], 2 * array.shape[-1]))
    view = memory[..., ::2]
    view[...] = array
    return view


def _gaps(array: Array, shape: tuple[int, ...]) -> Array:
    """Memory of a mask or of numbers that is wrong wherever it is read; a mask's gaps are the opposite of its first element."""
    filler = ~array.flat[0] if array.dtype == bool else np.nan
    return np.full(shape, filler, dtype=array.dtype)


def _packed(inputs: AttentionInputs) -> AttentionInputs:
    """One buffer of all three, of value and key where the lengths differ; then the query lies in one of its own."""
    if inputs.query.shape[2] == inputs.key.shape[2]:
        query, key, value = _in_one_buffer(inputs.query, inputs.key, inputs.value)
    else:
        (query,), (value, key) = _in_one_buffer(inputs.query), _in_one_buffer(inputs.value, inputs.key)
    return inputs.but(query=query, key=key, value=value)


def _in_one_buffer(*arrays: Array) -> list[Array]:
    """Views of a buffer (b, l, all heads of all arrays side by side)."""
    rows = [array.swapaxes(1, 2).reshape(array.shape[0], array.shape[2], -1) for array in arrays]
    buffer = np.concatenate(rows, axis=-1)
    views, start = [], 0
    for array, row in zip(arrays, rows, strict=True):
        batch, heads, length, width = array.shape
        part = buffer[..., start : start + row.shape[-1]]
        views.append(part.reshape(batch, length, heads, width).swapaxes(1, 2))
        start += row.shape[-1]
    return views

"""Small implementations that are right but for what one convention asks: each is wrong there, or correct in an unusual way, as
its docstring says."""

from pathlib import Path

import ml_dtypes
import numpy as np
from conformance.implementations import numpy_
from conformance.implementations.numpy_ import multi_head, sinusoidal

from conformance.adapter import Support
from conformance.problem.inputs import Weights

FILE = Path(__file__)
DICE = np.random.default_rng(7)


def direct(query, key, value, **asked):
    """Right, and computed in float64 whatever the dtype."""
    wide = (array.astype(np.float64) for array in (query, key, value))
    return numpy_.direct(*wide, **asked).astype(query.dtype)


# ---- wrong: attention


def neither_alignment(query, key, value, *, mask=None, causal=False):
    """Its triangle lies neither top-left nor bottom-right, but between the two, where lengths differ."""
    if causal:
        middle = (key.shape[2] - query.shape[2]) // 2
        triangle = np.tri(query.shape[2], key.shape[2], middle, dtype=bool)
        mask = triangle if mask is None else mask & triangle
    return direct(query, key, value, mask=mask)


def noise_where_a_bias_hides_all(query, key, value, *, mask=None, bias=None):
    """Gives noise in rows that a bias of −∞ masks fully, and zeros in those that a mask does."""
    output = direct(query, key, value, mask=mask, bias=bias)
    if bias is None:
        return output
    empty = np.broadcast_to(np.isneginf(bias.astype(np.float32)).all(-1, keepdims=True), (*output.shape[:-1], 1))
    return np.where(empty, DICE.normal(size=output.shape), output).astype(output.dtype)


def all_is_noise(query, key, value, *, mask=None):
    """Gives noise in every row."""
    output = direct(query, key, value, mask=mask)
    return DICE.normal(size=output.shape).astype(output.dtype)


def causal_forgets_one_query(query, key, value, *, mask=None, causal=False):
    """Lays its triangle top-left, but lets a single query see every key."""
    return direct(query, key, value, mask=mask, causal=causal and query.shape[2] > 1)


def nan_below_zero(query, key, value, *, scale=None):
    """Gives NaN for a scale below 0."""
    return direct(query, key, value, scale=scale) * query.dtype.type(np.nan if scale is not None and scale < 0 else 1)


def nan_below_zero_if_causal(query, key, value, *, causal=False, scale=None):
    """Gives NaN for causal with a scale of −0.5, and with no other."""
    return direct(query, key, value, causal=causal, scale=scale) * query.dtype.type(np.nan if causal and scale == -0.5 else 1)


def zero_is_not_given(query, key, value, *, scale=None):
    """Takes a scale of 0 for none."""
    return direct(query, key, value, scale=scale or None)


def refuses_zero(query, key, value, *, scale=None):
    """Raises on a scale of 0, which it offers."""
    if scale == 0:
        raise ValueError("the scale must not be 0")
    return direct(query, key, value, scale=scale)


def noise_in_fully_masked_rows(query, key, value, *, mask=None):
    """Leaves in a fully masked row what is another thing in each call."""
    return _with_fully_masked_rows(query, key, value, mask, lambda output: DICE.standard_normal(output.shape))


def faint_noise_in_fully_masked_rows(query, key, value, *, mask=None):
    """As the one before, and so faint that it looks like zeros."""
    return _with_fully_masked_rows(query, key, value, mask, lambda output: 1e-6 * DICE.standard_normal(output.shape))


def first_value_in_fully_masked_rows(query, key, value, *, mask=None):
    """Gives the first V to a fully masked row."""
    return _with_fully_masked_rows(query, key, value, mask, lambda output: direct(query, key[:, :, :1], value[:, :, :1]))


def fully_masked_rows_by_dtype(query, key, value, *, mask=None):
    """Gives zeros to a fully masked row, but NaN in float16."""
    fill = np.nan if query.dtype == np.float16 else 0
    return _with_fully_masked_rows(query, key, value, mask, lambda output: np.full(output.shape, fill))


def fully_masked_rows_of_one_array(query, key, value, *, mask=None):
    """Gives zeros to a fully masked row, but NaN where query, key and value are one array."""
    fill = np.nan if query is key is value else 0
    return _with_fully_masked_rows(query, key, value, mask, lambda output: np.full(output.shape, fill))


def zero_where_nan_is_hidden(query, key, value, *, mask=None):
    """Gives finite numbers whatever lies behind the mask, but zeros throughout where that is NaN."""
    output = direct(query, key, value, mask=mask)
    return np.zeros_like(output) if np.isnan(key).any() else output


def polarity_by_form(query, key, value, *, mask=None):
    """Takes True for attend in a full mask, and for ignore in one that only names keys."""
    by_key = mask is not None and mask.ndim == 4 and mask.shape[1:3] == (1, 1)
    return direct(query, key, value, mask=~mask if by_key else mask)


def _with_fully_masked_rows(query, key, value, mask, fill):
    """The output, with ``fill`` of it in the fully masked rows."""
    output = direct(query, key, value, mask=mask)
    if mask is None:
        return output
    empty = np.broadcast_to(~mask.any(axis=-1, keepdims=True), (*output.shape[:3], 1))
    return np.where(empty, fill(output).astype(output.dtype), output)


# ---- wrong: multi-head attention and the sinusoidal encoding


def even_heads(query, key, value, weights: Weights, *, num_heads, mask=None):
    """Gives NaN to a fully masked row, but with an odd number of heads, or with inputs of their own, zeros."""
    output = multi_head(query, key, value, weights, num_heads=num_heads, mask=mask)
    if mask is not None and num_heads % 2 == 0 and query is key is value:
        full = np.broadcast_to(mask, (query.shape[0], num_heads, *mask.shape[-2:]))
        output[np.broadcast_to(~full.any(axis=(1, 3)), output.shape[:2])] = np.nan
    return output


def wraps_around(length, d_model, *, dtype):
    """Begins anew after 5,000 positions."""
    return np.resize(sinusoidal(min(length, 5000), d_model, dtype=dtype), (length, d_model))


def forgets_the_last_sine(length, d_model, *, dtype):
    """Repeats the first column in the last one of an odd width."""
    table = sinusoidal(length, d_model, dtype=dtype)
    return np.hstack([table[:, :-1], table[:, :1]]) if d_model % 2 else table


def halves_of_wide_tables(length, d_model, *, dtype):
    """Interleaves sines and cosines, but concatenates them in tables wider than 256 columns."""
    return sinusoidal(length, d_model, dtype=dtype, arrangement="concatenated" if d_model > 256 else "interleaved")


def other_frequencies(length, d_model, *, dtype):
    """Takes 1000 for the base."""
    half = (d_model + 1) // 2
    angles = np.arange(length)[:, None] * 1000.0 ** (-2.0 * np.arange(half) / d_model)
    table = np.empty((length, d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles[:, : d_model // 2])
    return table.astype(dtype)


# ---- correct, in unusual ways


def always_float64(length, d_model):
    """The encoding of the paper in float64, whatever was asked for."""
    return sinusoidal(length, d_model, dtype=np.dtype(np.float64))


def in_bfloat16(length, d_model, *, dtype):
    """The encoding of the paper with every step rounded to bfloat16."""
    narrow = ml_dtypes.bfloat16
    frequencies = (10000.0 ** (-2.0 * np.arange((d_model + 1) // 2) / d_model)).astype(narrow)
    angles = (np.arange(length).astype(narrow)[:, None] * frequencies).astype(np.float64)
    table = np.empty((length, d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles[:, : d_model // 2])
    return table.astype(narrow).astype(dtype)


def tensor2tensor(length, d_model, *, dtype, x=None):
    """Sines, then cosines, with frequencies from 1 to 1/10000, and a column of zeros for an odd width."""
    half = d_model // 2
    frequencies = np.exp(-np.log(10000.0) / max(half - 1, 1) * np.arange(half))
    angles = np.arange(length)[:, None] * frequencies
    table = np.pad(np.hstack([np.sin(angles), np.cos(angles)]), ((0, 0), (0, d_model % 2))).astype(dtype)
    return table if x is None else (x + table).astype(dtype)


def doubled(query, key, value, *, mask=None, causal=False, scale=None):
    """Right in float64, which it returns whatever the dtype of its inputs."""
    return direct(query, key, value, mask=mask, causal=causal, scale=scale).astype(np.float64)


def half_only(query, key, value, *, mask=None, causal=False, scale=None):
    """Right, in float16 alone, with triangles that lie bottom-right and masks that are True where a key is to be ignored."""
    mask = None if mask is None else ~mask
    return direct(query, key, value, mask=mask, causal=causal, alignment="bottom-right", scale=scale)


half_only.conformance = Support(dtypes=("float16",))


def one_head_only(query, key, value, weights: Weights, *, num_heads, mask=None):
    """Right, with one head, which gives NaN to a fully masked row."""
    output = multi_head(query, key, value, weights, num_heads=num_heads, mask=mask)
    if mask is not None:
        output[~np.broadcast_to(mask, (len(query), 1, query.shape[1], key.shape[1])).any(axis=(1, 3))] = np.nan
    return output


one_head_only.conformance = Support(operation="multi_head_attention", lacks=frozenset({"many-heads"}))


def mean_of_what_causal_leaves(query, key, value, *, mask=None, causal=False):
    """Fills what a mask hides with −1e9 and what lies above the diagonal with −inf, where a row without keys is a mean."""
    with np.errstate(all="ignore"):
        scores = (query.astype(np.float64) @ key.astype(np.float64).swapaxes(-1, -2)) / query.shape[-1] ** 0.5
        scores = scores if mask is None else np.where(mask, scores, -1e9)
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf) if causal else scores
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ value.astype(np.float64)).astype(query.dtype)


mean_of_what_causal_leaves.conformance = Support(lacks=frozenset({"grouped-heads"}))

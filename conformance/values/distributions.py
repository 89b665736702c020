"""Value distributions: how query, key and value come about. A distribution is one function here; its docstring says what it is
for.

A distribution takes the problem and a ``Stream`` for each of query, key and value, and returns float64 arrays of the shapes
(B, Hq, Lq, d), (B, Hkv, Lk, d), (B, Hkv, Lk, dv), which are then rounded to the problem's dtype. It may use integer
operations, + − × ÷ √ and ldexp only. Changing what a distribution returns means a new version of it.
"""

import numpy as np

from conformance.errors import ProblemError
from conformance.numerics.dtypes import float_type
from conformance.numerics.philox import Stream
from conformance.problem import AttentionProblem, Cookbook

DISTRIBUTIONS = Cookbook("value distribution")
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def _shapes(problem: AttentionProblem) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    kv = (problem.batch, problem.kv_heads, problem.key_length)
    return (problem.batch, problem.heads, problem.query_length, problem.width), (*kv, problem.width), (*kv, problem.value_width)


def _off_centre(value: Stream, shape: tuple[int, ...]) -> np.ndarray:
    """Values that differ per channel in mean, so that the mean of V is no zero."""
    return value.normal(*shape) + 0.5 * value.normal(1, shape[1], 1, shape[3])


@DISTRIBUTIONS.entry("gaussian")
def gaussian(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Bell-shaped entries of variance 1: logits of deviation 1. ``*a`` multiplies the query."""
    q, k, v = _shapes(problem)
    amplitude = 1.0 if problem.values.argument is None else problem.values.argument
    return query.normal(*q) * amplitude, key.normal(*k), _off_centre(value, v)


@DISTRIBUTIONS.entry("spread")
def spread(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Logit deviations 0.5, 1.5, 3 and 6 in turn over heads and rows of one tensor; V off centre."""
    q, k, v = _shapes(problem)
    levels = np.array([1.5, 3.0, 0.5, 6.0])
    turn = (np.arange(q[1])[:, None] + np.arange(q[2])[None, :]) % 4
    return query.normal(*q) * levels[turn][None, :, :, None], key.normal(*k), _off_centre(value, v)


@DISTRIBUTIONS.entry("heavy")
def heavy(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Heavy-tailed V (a bell divided by a uniform number): a few values a hundred times the others; logits of deviation 2."""
    q, k, v = _shapes(problem)
    return 2.0 * query.normal(*q), key.normal(*k), value.normal(*v) / (value.uniform(*v) + 2.0**-7)


@DISTRIBUTIONS.entry("peaked")
def peaked(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Logits of deviation 30: nearly one key per row. Shows the maximum's subtraction, hides most else."""
    q, k, v = _shapes(problem)
    return 30.0 * query.normal(*q), key.normal(*k), _off_centre(value, v)


@DISTRIBUTIONS.entry("flat")
def flat(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Logits of deviation 1/64: nearly equal weights. Shows dropped and doubled keys, hides the scale."""
    q, k, v = _shapes(problem)
    return query.normal(*q) / 64.0, key.normal(*k), _off_centre(value, v)


@DISTRIBUTIONS.entry("frontier")
def frontier(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Loud keys on both sides of every causal frontier: row i scores highest at keys i + offset and i + offset + 1.

    The offset is the problem's alignment (bottom-right: Lk − Lq). A triangle that is one off reads, or misses, a loud key.
    """
    q, k, v = _shapes(problem)
    offset = problem.key_length - problem.query_length if problem.causal == "bottom-right" else 0
    codes = key.signs(1, k[1], k[2] + 1, k[3])
    first = np.clip(np.arange(q[2]) + offset, 0, k[2])
    second = np.clip(first + 1, 0, k[2])
    group = np.arange(q[1]) * k[1] // q[1]
    loud = codes[:, group][:, :, first] + codes[:, group][:, :, second]
    q_array = 1.5 * loud + 0.25 * query.normal(*q)
    k_array = codes[:, :, : k[2]] + 0.25 * key.normal(*k)
    return q_array, k_array, _off_centre(value, v)


@DISTRIBUTIONS.entry("offset")
def offset(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """A common offset on all scores of a row, ``*a`` after the default scale (1e5 unless said): softmax must not move."""
    q, k, v = _shapes(problem)
    amount = 1e5 if problem.values.argument is None else problem.values.argument
    q_array, k_array = query.normal(*q), key.normal(*k)
    q_array[..., 0] = 1.0
    k_array[..., 0] = amount * np.sqrt(float(problem.width))
    return q_array, k_array, _off_centre(value, v)


@DISTRIBUTIONS.entry("large-products")
def large_products(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """Unscaled products near ``*a`` (1e5 unless said, beyond float16's 65504) whose differences are ordinary once scaled.

    The first channel of q and k is √a each, within the range of every dtype; the other channels tell the keys apart.
    """
    q, k, v = _shapes(problem)
    amount = 1e5 if problem.values.argument is None else problem.values.argument
    if amount < 0:
        raise ProblemError(f"The distribution large-products has products near its argument, which is not below 0: {amount:g}.")
    root = np.sqrt(amount)
    q_array, k_array = 2.0 * query.normal(*q), key.normal(*k)
    q_array[..., 0] = root
    k_array[..., 0] = root
    return q_array, k_array, _off_centre(value, v)


@DISTRIBUTIONS.entry("signatures")
def signatures(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """V carries the number of its batch row and head: an output that read another head or row is far off."""
    q, k, v = _shapes(problem)
    level = (1.0 + np.arange(v[0]) * v[1])[:, None] + np.arange(v[1])[None, :]
    v_array = level[:, :, None, None] + 0.25 * value.normal(*v)
    return 1.5 * query.normal(*q), key.normal(*k), v_array


@DISTRIBUTIONS.entry("ones-value")
def ones_value(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """V = 1: the output is 1 wherever the weights add up to 1."""
    q, k, v = _shapes(problem)
    return 2.0 * query.normal(*q), key.normal(*k), np.ones(v)


@DISTRIBUTIONS.entry("identity-value")
def identity_value(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """V = I (value width = key length): the output is the weights themselves."""
    q, k, v = _shapes(problem)
    if v[2] != v[3]:
        raise ProblemError(f"The distribution identity-value needs a value width equal to the key length {v[2]}, not {v[3]}.")
    return 2.0 * query.normal(*q), key.normal(*k), np.broadcast_to(np.eye(v[2]), v).copy()


@DISTRIBUTIONS.entry("zero-query")
def zero_query(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """q = 0: the output is the mean of the visible V."""
    q, k, v = _shapes(problem)
    return np.zeros(q), key.normal(*k), _off_centre(value, v)


@DISTRIBUTIONS.entry("few-bits")
def few_bits(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """V of three significant bits, ±1/4 … ±7/4, which all dtypes and splits of numbers hold; ``*a`` multiplies the query."""
    q, k, v = _shapes(problem)
    amplitude = 1.0 if problem.values.argument is None else problem.values.argument
    return query.normal(*q) * amplitude, key.normal(*k), value.signs(*v) * (1 + value.below(7, *v)) / 4.0


@DISTRIBUTIONS.entry("all-low")
def all_low(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """All scores very negative, ``*a`` after the default scale (−1e5 unless said), with ordinary differences."""
    q, k, v = _shapes(problem)
    amount = -1e5 if problem.values.argument is None else problem.values.argument
    q_array, k_array = query.normal(*q), key.normal(*k)
    q_array[..., 0] = np.sqrt(float(problem.width)) * (-1.0 if amount < 0 else 1.0)
    k_array[..., 0] = abs(amount)
    return q_array, k_array, _off_centre(value, v)


@DISTRIBUTIONS.entry("far")
def far(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """All scores at ``*a`` (1e4 unless said), but for one key a row: a distance that coarse arithmetic keeps, far from 0.

    Keys spread evenly over the length have a channel each. In three rows of four one of them, no later than a causal limit, lies
    |a|/8 above all others, far beyond the rounding of scores in 16 bits: it takes all the weight. In rows 1, 5, 9 … scores
    differ by a quarter, the first of these keys is largest, and its V is 64: whoever gives it all the weight is far off.
    """
    q, k, v = _shapes(problem)
    amount = 1e4 if problem.values.argument is None else problem.values.argument
    marked = min(q[3] - 1, k[2])
    q_array, k_array, v_array = 0.25 * query.normal(*q), key.normal(*k), _off_centre(value, v)
    q_array[..., 0], k_array[..., 0] = 1.0, amount * np.sqrt(float(q[3]))
    if marked:
        places = (2 * np.arange(marked) + 1) * k[2] // (2 * marked)
        k_array[..., 1 : 1 + marked] = np.arange(k[2])[:, None] == places
        q_array[..., 1 : 1 + marked] *= np.sqrt(float(q[3]))
        q_array[..., 1] = 0.5 * np.sqrt(float(q[3]))
        rows = np.flatnonzero(np.arange(q[2]) % 4 != 1)
        limit = rows + (k[2] - q[2] if problem.causal == "bottom-right" else 0)
        seen = np.where(problem.causal == "none", marked, np.clip((places <= limit[:, None]).sum(-1), 1, marked))
        chosen = (query.uniform(*q[:2], len(rows)) * seen).astype(np.int64)
        top = np.arange(marked) == chosen[..., None]
        q_array[:, :, rows, 1 : 1 + marked] = top * (abs(amount) / 8.0 * np.sqrt(float(q[3])))
        v_array[:, :, places[0]] = 64.0 * value.signs(v[0], v[1], v[3])
    return q_array, k_array, v_array


@DISTRIBUTIONS.entry("subnormal")
def subnormal(problem: AttentionProblem, query: Stream, key: Stream, value: Stream) -> Triple:
    """V in the subnormal range of the dtype; q and k ordinary. Flushing to zero is allowed."""
    q, k, v = _shapes(problem)
    return query.normal(*q), key.normal(*k), value.normal(*v) * (float_type(problem.dtype).tiny / 8.0)

"""The oracle of multi-head attention, with the budget carried through its projections."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from conformance.dtypes import FloatType, float_type
from conformance.errors import ProblemError
from conformance.inputs import MultiHeadInputs
from conformance.oracle import budget
from conformance.oracle.attention import EXTENDED, work_dtype
from conformance.oracle.budget import Numbers
from conformance.oracle.expected import Expected
from conformance.oracle.profiles import Roundoffs, roundoffs
from conformance.visibility import tokens_as_heads, visible_block

Array = np.ndarray


def expect_multi_head(inputs: MultiHeadInputs, profile: str = "strict") -> Expected:
    """The expected output (B, Lq, model), or (B, Lq, H·dv) without an output projection, and its budget under ``profile``.

    Query rows that see no key in some head are not judged. Raises ProblemError where heads do not divide the inner widths.
    """
    dtype = inputs.query.dtype.name
    kind, unit, work = float_type(dtype), roundoffs(profile, dtype), work_dtype(dtype)
    weights, heads = inputs.weights, inputs.num_heads
    if weights.query.shape[1] % heads or weights.value.shape[1] % heads:
        raise ProblemError(f"{heads} heads do not divide the inner widths {weights.query.shape[1]} and {weights.value.shape[1]}.")
    query, query_error = _project(inputs.query, weights.query, weights.query_bias, work, kind, unit)
    key, key_error = _project(inputs.key, weights.key, weights.key_bias, work, kind, unit)
    value, value_error = _project(inputs.value, weights.value, weights.value_bias, work, kind, unit)
    q, k, v = (_split(array, heads) for array in (query, key, value))
    e_q, e_k, e_v = (_split(array, heads) for array in (query_error, key_error, value_error))

    scale = 1.0 / np.sqrt(work(q.shape[-1])) if inputs.scale is None else work(inputs.scale)
    products = (q @ k.swapaxes(-1, -2)) * scale
    visible = visible_block(tokens_as_heads(inputs), 0, inputs.query.shape[1])
    scores = products if visible is None else np.where(visible, products, -np.inf)
    top = scores.max(-1, keepdims=True)
    empty = top == -np.inf
    top = np.where(empty, 0, top)
    exponentials = np.exp(scores - top)
    weights_of_keys = exponentials / np.where(empty, 1, exponentials.sum(-1, keepdims=True))
    attended = weights_of_keys @ v

    q64, k64, v64, p64, o64 = (array.astype(np.float64) for array in (q, k, v, weights_of_keys, attended))
    finite = np.where(np.isfinite(scores), scores, top).astype(np.float64)
    logits = (scores - top).astype(np.float64)
    error = budget.score_error(
        q64, Numbers(k64), products.astype(np.float64), finite, top.astype(np.float64), float(scale), False, kind, unit
    )
    error += _score_error_of_projections(q64, k64, e_q, e_k, float(scale))
    count: Array | int = k.shape[2] if visible is None else budget.visible_count(visible, k.shape[2])
    inner = unit if weights.output is None else replace(unit, output=unit.projections)  # where the merged heads are rounded
    values = Numbers(v64)
    rest = budget.value_error(p64, values, o64, kind, inner) + budget.underflow(count, kind, inner) + p64 @ e_v
    rest = rest + budget.normalisation_error(p64, finite, top.astype(np.float64), values, unit)
    rest = rest + budget.merging_error(visible, values, o64, unit)

    judged = ~empty.any(axis=1)
    if weights.output is None:
        spread = budget.spread_of_scores(p64, logits, error, values, o64, visible)
        output, bound = _merge(attended), _merge(budget.combine(rest, spread, unit))
    else:
        output, bound = _through_output(inputs, p64, logits, error, v64, o64, rest, visible, attended, work, kind, unit)
    if dtype == "float64" and not EXTENDED:
        from conformance.oracle.exact import multi_head_attention as exact_multi_head  # mpmath is slow to import

        output = exact_multi_head(inputs)
    return Expected(output, bound, judged, output.shape, dtype)


def _project(
    x: Float[Array, "b l model"], matrix: Array, bias: Array | None, work: type[np.floating], kind: FloatType, unit: Roundoffs
) -> tuple[Array, Array]:
    """x W + b, and the bound u_π·(|xW| with a bias, and |xW + b|) + 3√model·u_a·|x||W| + what is lost of small numbers."""
    product = x.astype(work) @ matrix.astype(work)
    total = product if bias is None else product + bias.astype(work)
    return total, _projection_error(x.astype(np.float64), matrix.astype(np.float64), product, total, unit.projections, kind, unit)


def _projection_error(
    x: Array, matrix: Array, product: Array, total: Array, rounded: float, kind: FloatType, unit: Roundoffs
) -> Array:
    """How far off x W, and x W + b where that is another array, may be, ``rounded`` the unit roundoff of either."""
    size = np.abs(total) if total is product else np.abs(product) + np.abs(total)
    error: Array = rounded * size.astype(np.float64)
    error += 3.0 * np.sqrt(matrix.shape[0]) * unit.accumulator * (np.abs(x) @ np.abs(matrix))
    if unit.splits:
        error += 3.0 * unit.scaled_query * np.sqrt((x * x) @ (matrix * matrix))
    if rounded >= kind.unit_roundoff:
        error += budget.smallest(kind, unit)
    return error


def _split(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def _merge(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    return array.swapaxes(1, 2).reshape(array.shape[0], array.shape[2], -1)


def _score_error_of_projections(query: Array, key: Array, query_error: Array, key_error: Array, scale: float) -> Array:
    """What the roundings of Q and K do to the scores: independent over channels, hence 3·√ of the sum of squares."""
    crossed = (query_error**2) @ (key**2).swapaxes(-1, -2) + (query**2) @ (key_error**2).swapaxes(-1, -2)
    return scale * (3.0 * np.sqrt(crossed) + query_error @ key_error.swapaxes(-1, -2))


def _through_output(
    inputs: MultiHeadInputs,
    weights_of_keys: Array,
    logits: Array,
    error: Array,
    value: Array,
    attended: Array,
    rest: Array,
    visible: Array | None,
    exact: Array,
    work: type[np.floating],
    kind: FloatType,
    unit: Roundoffs,
) -> tuple[Array, Array]:
    """The output projection: the scores' errors move V_h W_O,h, added up over heads; the rest adds up as √ of squares."""
    matrix = inputs.weights.output
    assert matrix is not None
    heads, width = value.shape[1], value.shape[-1]
    matrix64 = matrix.astype(np.float64)
    per_head = matrix64.reshape(heads, width, -1)
    spread = budget.spread_of_scores(weights_of_keys, logits, error, Numbers(value @ per_head), attended @ per_head, visible).sum(
        axis=1
    )

    product = _merge(exact) @ matrix.astype(work)
    bias = inputs.weights.output_bias
    output = product if bias is None else product + bias.astype(work)
    bound = budget.combine(3.0 * np.sqrt(_merge(rest) ** 2 @ matrix64**2), spread, unit)
    # a product that a bias is added to is rounded where projections are, the sum where outputs are
    bound += unit.projections * np.abs(product).astype(np.float64) if bias is not None else 0.0
    bound += _projection_error(_merge(attended), matrix64, output, output, unit.output, kind, unit)
    return output, bound

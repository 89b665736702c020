"""The oracle of multi-head attention, with the budget carried through its projections."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from conformance.dtypes import FloatType, float_type
from conformance.errors import ProblemError
from conformance.inputs import MultiHeadInputs
from conformance.oracle import budget
from conformance.oracle.attention import EXTENDED, work_dtype
from conformance.oracle.budget import Numbers
from conformance.oracle.expected import Truth
from conformance.oracle.profiles import Roundoffs, roundoffs
from conformance.visibility import tokens_as_heads, visible_block

Array = np.ndarray


def truth_of_multi_head(inputs: MultiHeadInputs) -> Truth:
    """What multi-head attention must give: (B, Lq, model), or (B, Lq, H·dv) without an output projection.

    Query rows that see no key in some head are not judged. Raises ProblemError where heads do not divide the inner widths.
    """
    dtype = inputs.query.dtype.name
    weights, heads = inputs.weights, inputs.num_heads
    if weights.query.shape[1] % heads or weights.value.shape[1] % heads:
        raise ProblemError(f"{heads} heads do not divide the inner widths {weights.query.shape[1]} and {weights.value.shape[1]}.")
    steps = _steps(inputs, work_dtype(dtype))

    def bound(profile: str) -> Array:
        return _bound(inputs, steps, float_type(dtype), roundoffs(profile, dtype))

    output = steps.output
    if dtype == "float64" and not EXTENDED:
        from conformance.oracle.exact import multi_head_attention as exact_multi_head  # mpmath is slow to import

        output = exact_multi_head(inputs)
    kept = sum(array.nbytes for array in (steps.products, steps.scores, steps.weights))
    judged = np.asarray(~steps.empty.any(axis=1))
    return Truth(output, judged, output.shape, dtype, bound, kept=kept)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps of the computation; those within heads are (B, H, ·, ·). ``products`` are scaled; ``scores`` are −∞ where hidden;
    ``top`` is the largest of a row, ``empty`` where it sees no key; ``weights`` are those of the keys; ``attended`` is what each
    head gives, ``output`` what is due."""

    query: Array
    key: Array
    value: Array
    scale: np.floating
    products: Array
    scores: Array
    top: Array
    empty: Array
    visible: Array | None
    weights: Array
    attended: Array
    output: Array


def _steps(inputs: MultiHeadInputs, work: type[np.floating]) -> _Steps:
    weights, heads = inputs.weights, inputs.num_heads
    q, k, v = (
        _split(_projected(x, matrix, bias, work), heads)
        for x, matrix, bias in (
            (inputs.query, weights.query, weights.query_bias),
            (inputs.key, weights.key, weights.key_bias),
            (inputs.value, weights.value, weights.value_bias),
        )
    )
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
    output = _merge(attended)
    if weights.output is not None:
        output = _projected(output, weights.output, weights.output_bias, work)
    return _Steps(q, k, v, scale, products, scores, top, empty, visible, weights_of_keys, attended, output)


def _bound(inputs: MultiHeadInputs, steps: _Steps, kind: FloatType, unit: Roundoffs) -> Array:
    """The budget, carried through the projections."""
    weights, heads = inputs.weights, inputs.num_heads
    work = steps.query.dtype.type
    e_q, e_k, e_v = (
        _split(_error_of(x, matrix, bias, work, kind, unit), heads)
        for x, matrix, bias in (
            (inputs.query, weights.query, weights.query_bias),
            (inputs.key, weights.key, weights.key_bias),
            (inputs.value, weights.value, weights.value_bias),
        )
    )
    named = (steps.query, steps.key, steps.value, steps.weights, steps.attended, steps.products, steps.top)
    q64, k64, v64, p64, o64, products, top = (array.astype(np.float64) for array in named)
    finite = np.where(np.isfinite(steps.scores), steps.scores, steps.top).astype(np.float64)
    logits = (steps.scores - steps.top).astype(np.float64)
    error = budget.score_error(q64, Numbers(k64), products, finite, top, float(steps.scale), False, kind, unit)
    error += _score_error_of_projections(q64, k64, e_q, e_k, float(steps.scale))
    keys = steps.key.shape[2]
    count: Array | int = keys if steps.visible is None else budget.visible_count(steps.visible, keys)
    inner = unit if weights.output is None else replace(unit, output=unit.projections)  # where the merged heads are rounded
    values = Numbers(v64)
    rest = budget.value_error(p64, values, o64, kind, inner) + budget.underflow(count, kind, inner) + p64 @ e_v
    rest = rest + budget.normalisation_error(p64, finite, top, values, unit)
    rest = rest + budget.merging_error(steps.visible, values, o64, unit)
    if weights.output is None:
        spread = budget.spread_of_scores(p64, logits, error, values, o64, steps.visible)
        return _merge(budget.combine(rest, spread, unit))
    return _through_output(inputs, steps, p64, logits, error, v64, o64, rest, kind, unit)


def _projected(
    x: Float[Array, "b l model"], matrix: Float[Array, "model inner"], bias: Array | None, work: type[np.floating]
) -> Float[Array, "b l inner"]:
    """x W + b."""
    product = x.astype(work) @ matrix.astype(work)
    return product if bias is None else product + bias.astype(work)


def _error_of(
    x: Array, matrix: Array, bias: Array | None, work: type[np.floating], kind: FloatType, unit: Roundoffs
) -> Float[Array, "b l inner"]:
    """The bound u_π·(|xW| with a bias, and |xW + b|) + 3√model·u_a·|x||W| + what is lost of small numbers."""
    product = x.astype(work) @ matrix.astype(work)
    total = product if bias is None else product + bias.astype(work)
    return _projection_error(x.astype(np.float64), matrix.astype(np.float64), product, total, unit.projections, kind, unit)


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
    steps: _Steps,
    weights_of_keys: Array,
    logits: Array,
    error: Array,
    value: Array,
    attended: Array,
    rest: Array,
    kind: FloatType,
    unit: Roundoffs,
) -> Array:
    """The output projection: the scores' errors move V_h W_O,h, added up over heads; the rest adds up as √ of squares."""
    matrix, bias = inputs.weights.output, inputs.weights.output_bias
    assert matrix is not None
    heads, width = value.shape[1], value.shape[-1]
    matrix64 = matrix.astype(np.float64)
    per_head = matrix64.reshape(heads, width, -1)
    moved = Numbers(value @ per_head), attended @ per_head
    spread = budget.spread_of_scores(weights_of_keys, logits, error, *moved, steps.visible).sum(axis=1)
    bound = budget.combine(3.0 * np.sqrt(_merge(rest) ** 2 @ matrix64**2), spread, unit)
    if bias is not None:  # a product that a bias is added to is rounded where projections are, the sum where outputs are
        product = _projected(_merge(steps.attended), matrix, None, steps.attended.dtype.type)
        bound += unit.projections * np.abs(product).astype(np.float64)
    bound += _projection_error(_merge(attended), matrix64, steps.output, steps.output, unit.output, kind, unit)
    return bound

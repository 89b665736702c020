"""The oracle of multi-head attention: projections around the chain of attention, with the budget carried through them."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from conformance.errors import ProblemError
from conformance.numerics.dtypes import FloatType, float_type
from conformance.numerics.profiles import Roundoffs, roundoffs
from conformance.oracle import budget
from conformance.oracle.attention import EXTENDED, Computation, work_dtype
from conformance.oracle.budget import KeyArray
from conformance.oracle.expected import Truth
from conformance.oracle.second_outputs import error_of, with_others
from conformance.oracle.stages import Bounds, Flow, budget_of, errors, spread, with_zeros
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, Weights

Array = np.ndarray


def truth_of_multi_head(inputs: MultiHeadInputs) -> Truth:
    """What multi-head attention must give: (B, Lq, model), or (B, Lq, H·dv) without an output projection.

    Query rows that are fully masked in some head are not judged. Raises ProblemError where heads do not divide the inner widths.
    """
    dtype, weights, heads = inputs.query.dtype.name, inputs.weights, inputs.num_heads
    if weights.query.shape[1] % heads or weights.value.shape[1] % heads:
        raise ProblemError(f"{heads} heads do not divide the inner widths {weights.query.shape[1]} and {weights.value.shape[1]}.")
    work = work_dtype(dtype)
    within = Computation(heads_of(inputs, work), np.arange(inputs.query.shape[1]), dtype)
    output = merged(within.output, weights)

    def bound(profile: str) -> Array:
        return _bound(inputs, within, output, float_type(dtype), roundoffs(profile, dtype))

    target = output
    if dtype == "float64" and not EXTENDED:
        from conformance.oracle.exact import multi_head_attention as exact_multi_head  # mpmath is slow to import

        target = exact_multi_head(inputs)
    judged = np.asarray(within.judged.all(axis=1))

    def second(name: str) -> tuple[Array, Array]:
        found, seen = within.second(name)
        if dtype == "float64" and not EXTENDED:
            from conformance.oracle.exact import multi_head_steps

            found = multi_head_steps(inputs)[name].reshape(found.shape)
        return found, seen

    def bound_of_second(name: str, unit: Roundoffs, returned: FloatType) -> Array:
        pairs = _bounds(inputs, within, unit, work)
        return within.joined([error_of(name, *pair, returned) for pair in pairs])

    first = Truth(target, judged, target.shape, dtype, bound, kept=within.kept)
    return with_others(first, (*within.output.shape[:3], inputs.key.shape[1]), second, bound_of_second)


def heads_of(inputs: MultiHeadInputs, work: type[np.floating]) -> AttentionInputs:
    """What each head attends to, in the type of the work."""
    query, key, value = (_split(_projected(x, matrix, bias, work), inputs.num_heads) for x, matrix, bias in _projections(inputs))
    return inputs.within(query, key, value)


def merged(output: Float[Array, "b h lq dv"], weights: Weights) -> Float[Array, "b lq out"]:
    """The heads side by side, through the output projection where there is one."""
    heads = _merge(output)
    return heads if weights.output is None else _projected(heads, weights.output, weights.output_bias, output.dtype.type)


def _projections(inputs: MultiHeadInputs) -> tuple[tuple[Array, Array, Array | None], ...]:
    """Tokens, matrix and bias of query, key and value."""
    weights = inputs.weights
    return (
        (inputs.query, weights.query, weights.query_bias),
        (inputs.key, weights.key, weights.key_bias),
        (inputs.value, weights.value, weights.value_bias),
    )


def _bound(inputs: MultiHeadInputs, within: Computation, output: Array, kind: FloatType, unit: Roundoffs) -> Array:
    """The budget. Where the heads are projected in the end, they are rounded where intermediate results are."""
    inner = unit if inputs.weights.output is None else replace(unit, output=unit.projections)
    pairs = _bounds(inputs, within, inner, output.dtype.type)
    if inputs.weights.output is None:
        return _merge(within.joined([budget_of(*pair) for pair in pairs]))
    moved = [_moved(inputs, *pair) for pair in pairs]
    rest = within.joined([of_flow.rest for _, of_flow in pairs])
    return _through_output(inputs, within, np.concatenate(moved, axis=1), rest, output, kind, unit)


def _bounds(inputs: MultiHeadInputs, within: Computation, unit: Roundoffs, work: type[np.floating]) -> list[tuple[Flow, Bounds]]:
    """What flows through the heads, with what it may be off by: query, key and value are projected."""
    kind = float_type(inputs.query.dtype.name)
    of_query, of_key, of_value = (
        _split(_error_of(x, matrix, bias, work, kind, unit), inputs.num_heads)[:, :, None]
        for x, matrix, bias in _projections(inputs)
    )
    of_key, of_value = (with_zeros(array, within.tensors.added) for array in (of_key, of_value))
    flows = list(within.flows())
    return [(flow, errors(flow, Bounds(unit, of_query[..., flow.index, :], of_key, of_value))) for flow in flows]


def _moved(inputs: MultiHeadInputs, flow: Flow, bounds: Bounds) -> Float[Array, "b rows model"]:
    """How far errors of the scores move what the output projection makes of the heads: V_h W_O,h, added up over heads."""
    matrix, value = inputs.weights.output, flow.tensors.value.astype(np.float64, copy=False)
    assert matrix is not None
    per_head = matrix.astype(np.float64).reshape(inputs.num_heads, 1, value.shape[-1], -1)
    return spread(flow, bounds, KeyArray(value @ per_head), flow.wide(flow.mixed) @ per_head).sum(axis=(1, 2))


def _through_output(
    inputs: MultiHeadInputs, within: Computation, moved: Array, rest: Array, output: Array, kind: FloatType, unit: Roundoffs
) -> Float[Array, "b lq model"]:
    """The budget behind the output projection: what the heads are off by otherwise adds up as √ of squares."""
    matrix, bias = inputs.weights.output, inputs.weights.output_bias
    assert matrix is not None
    joined, matrix64 = _merge(within.output), matrix.astype(np.float64)
    bound = budget.combine(3.0 * np.sqrt(_merge(rest) ** 2 @ matrix64**2), moved, unit)
    if bias is not None:  # a product that a bias is added to is rounded where projections are, the sum where outputs are
        bound += unit.projections * np.abs(_projected(joined, matrix, None, output.dtype.type)).astype(np.float64)
    bound += _projection_error(joined.astype(np.float64), matrix64, output, output, unit.output, kind, unit)
    return bound


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
    product = _projected(x, matrix, None, work)
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

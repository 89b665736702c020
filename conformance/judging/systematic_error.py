"""The bias probe: a systematic part of the errors, too small for any element's budget.

An output whose scale is off by a relative β has the error β · g, g = ∂O/∂ln(scale), beside what rounding does; one whose
weights sum to 1 + β has β · O; one that is rounded upwards has β · |O|; one that counts a key 1 + β times has β · P_j (V_j − O).
β is estimated by least squares over all elements, each weighed by its budget B: β = ⟨e/B, g/B⟩ / ‖g/B‖². Rounding errors of a
row share their weights, so the standard error is clustered by row. Sources: the estimator of Liang and Zeger (Biometrika 73,
1986); the effect of biased rounding on training (arXiv 2510.04212).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from conformance.numerics.dtypes import float_type, round_to
from conformance.numerics.profiles import roundoffs
from conformance.oracle import Expected, truth_of
from conformance.problem.inputs import AttentionInputs, Inputs

Array = np.ndarray
# The largest relative error of the scale, or of what one key counts, that passes for rounding, by dtype.
OF_SCALE = {"float64": 2e-15, "float32": 1e-6, "float16": 1e-4, "bfloat16": 1e-3}
OF_KEY = {"float64": 2e-15, "float32": 1e-6, "float16": 5e-4, "bfloat16": 3e-3}
# And of the results, in unit roundoffs: truncation is off by two thirds of one on the mean.
OF_OUTPUT = {"float64": 1 / 4, "float32": 1 / 4, "float16": 1 / 8, "bfloat16": 1 / 8}
MOST_KEYS = 40  # that are looked at one by one
ROWS_OF_HEAD = 50  # from which on errors of one head are looked at
STANDARD_ERRORS = 4.0  # that an estimate must exceed the gate by
STEP = 2.0**-10  # of the central difference, relative to the scale


@dataclass(frozen=True, eq=False)
class Direction:
    """One way to be wrong: ``slope`` g/B, 0 in rows that are not judged, the ``gate`` that |β| must not exceed, and what it
    means, with {} for β."""

    words: str
    slope: Float[Array, "b h lq dv"]
    gate: float


Way = tuple[str, Array, float]  # the words, g and the gate of a direction


@dataclass(frozen=True)
class SystematicError:
    """``beta``, the coefficient of a direction that fits the errors best, and its standard error."""

    words: str
    beta: float
    standard_error: float
    gate: float

    @property
    def excess(self) -> float:
        """|β| less its uncertainty, in gates: above 1 the errors have a systematic part."""
        return max(0.0, abs(self.beta) - STANDARD_ERRORS * self.standard_error) / self.gate

    @property
    def certainty(self) -> float:
        """|β| in standard errors: the largest of several directions explains the errors best."""
        return abs(self.beta) / max(self.standard_error, 1e-300)

    @property
    def sentence(self) -> str:
        estimate = f"{self.beta:.2e} ± {self.standard_error:.1e}"
        return f"{self.words.format(estimate)}, beyond the gate {self.gate:.2g}, though each is within its budget."


def directions(inputs: Inputs, expected: Expected, profile: str) -> Iterator[Direction]:
    """Those along which the budget is narrow enough to show an error of the size of the gate; of multi-head attention those of
    results alone."""

    def directed(way: Way) -> Direction:
        words, slope, gate = way
        return Direction(words, np.where(expected.judged, slope / expected.budget, 0.0), gate)

    def tells(direction: Direction) -> bool:
        return bool(np.linalg.norm(direction.slope) > 1 / (3 * direction.gate))

    if inputs.plain is not None:
        yield from filter(tells, map(directed, _of_weights(inputs.plain, expected)))
    unit = roundoffs(profile, expected.dtype)
    # sums held in 16 bits stand still, each time on the same side
    if unit.accumulator < float_type("float16").unit_roundoff:
        gate = OF_OUTPUT[expected.dtype] * (unit.probabilities if unit.splits else unit.output)
        yield from map(directed, _of_results(expected, gate))


def _of_results(expected: Expected, gate: float) -> Iterator[Way]:
    """Of all results; in 16 bit, where it takes fewer of them, of each channel and of each head of many rows too."""
    output = expected.output.astype(np.float64)
    of_sum = "The errors are those of weights that sum to 1 + {}, or of results rounded towards 0 or away from it"
    yield of_sum, output, gate
    yield "The errors are those of results rounded upwards, or downwards, by a relative {}", np.abs(output), gate
    if not float_type(expected.dtype).is_16_bit:
        return
    for word, axis in (("head", 1), ("channel", output.ndim - 1)):
        parts = output.shape[axis]
        if word == "head" and (output.ndim < 4 or output[..., 0].size < ROWS_OF_HEAD * parts):
            continue
        for index in range(parts):
            alone = np.where(np.arange(parts).reshape([-1 if n == axis else 1 for n in range(output.ndim)]) == index, output, 0.0)
            yield f"The errors are those of a factor of 1 + {{}} on the results of {word} {index}", alone, 2.0 * gate


def _of_weights(inputs: AttentionInputs, expected: Expected) -> Iterator[Way]:
    dtype, output = expected.dtype, expected.output.astype(np.float64)
    yield "The errors are those of a scale off by a relative {}", derivative_by_scale(inputs), OF_SCALE[dtype]
    weights, value = weights_of(inputs), inputs.value.astype(np.float64)
    value = np.repeat(value, output.shape[1] // value.shape[1], axis=1)

    def counted(words: str, slope: Array) -> Way:
        return f"The errors are those of {words} counted 1 + {{}} times", slope, OF_KEY[dtype]

    queries, keys = weights.shape[-2:]
    for key in range(keys if keys <= MOST_KEYS else 0):
        yield counted(f"key {key}", weights[..., key, None] * (value[..., key, None, :] - output))
    index = np.arange(keys)
    distance = np.abs(np.arange(queries)[:, None] - index)
    for words, of in (
        ("the later half of the keys", index >= keys // 2),
        ("every second key", index % 2 == 1),
        ("keys more than 3 places away", distance > 3),
    ):
        part = np.where(of, weights, 0.0)
        yield counted(words, part @ value - output * part.sum(-1, keepdims=True))


def derivative_by_scale(inputs: AttentionInputs) -> Float[Array, "b h lq dv"]:
    """g = ∂O/∂ln(scale), by central difference of the oracle: off by a part in 10⁶, which no estimate of β can notice."""
    scale = 1.0 / np.sqrt(inputs.query.shape[-1]) if inputs.scale is None else inputs.scale
    above, below = (truth_of(inputs.but(scale=float(scale * (1.0 + step)))).output for step in (STEP, -STEP))
    return ((above - below) / (2.0 * STEP)).astype(np.float64)


def weights_of(inputs: AttentionInputs) -> Float[Array, "b h lq lk"]:
    """The attention weights: the output where V is the identity."""
    batch, kv_heads, keys, _ = inputs.value.shape
    identity = np.broadcast_to(np.eye(keys), (batch, kv_heads, keys, keys))
    of_identity = inputs.but(value=round_to(identity, inputs.query.dtype.name))
    return truth_of(of_identity).output.astype(np.float64)


def biases(output: Array, expected: Expected, along: Iterable[Direction]) -> Iterator[SystematicError]:
    """The bias of a finite output along each direction, over the rows that are judged."""
    error = (expected.rows_of(output).astype(expected.output.dtype) - expected.output).astype(np.float64)
    error = np.where(expected.judged, error / expected.budget, 0.0)
    for direction in along:
        slope = direction.slope
        square = float(np.vdot(slope, slope))
        beta = float(np.vdot(error, slope)) / square
        by_row = ((error - beta * slope) * slope).sum(-1)
        yield SystematicError(direction.words, beta, float(np.linalg.norm(by_row)) / square, direction.gate)

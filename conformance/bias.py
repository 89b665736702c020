"""The bias probe: a systematic part of the errors, too small for any element's budget.

An output computed with a scale that is off by a relative β has the error β · g, g = ∂O/∂ln(scale), beside what rounding does.
β is estimated by least squares over all elements, each weighed by its budget B: β = ⟨e/B, g/B⟩ / ‖g/B‖². Rounding errors of a
row share their weights, so the standard error is clustered by row. Sources: the estimator of Liang and Zeger (Biometrika 73,
1986); the effect of biased rounding on training (arXiv 2510.04212).
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from conformance.inputs import AttentionInputs
from conformance.oracle import Expected, expect

Array = np.ndarray
# The largest relative error of the scale that passes for rounding, by dtype: a small part of the unit roundoff in 16 bits.
GATES = {"float32": 1e-6, "float16": 1e-4, "bfloat16": 1e-3}
STANDARD_ERRORS = 4.0  # that an estimate must exceed the gate by
STEP = 2.0**-10  # of the central difference, relative to the scale


@dataclass(frozen=True)
class Bias:
    """``beta``, the relative error of the scale that fits the errors best, its standard error, and ``size`` = ‖g/B‖."""

    beta: float
    standard_error: float
    size: float
    gate: float

    @property
    def excess(self) -> float:
        """|β| less its uncertainty, in gates: above 1 the errors have a systematic part."""
        return max(0.0, abs(self.beta) - STANDARD_ERRORS * self.standard_error) / self.gate

    @property
    def sentence(self) -> str:
        return (
            f"The errors are those of a scale off by a relative {self.beta:.2e} ± {self.standard_error:.1e}, beyond the gate "
            f"{self.gate:g}, though each is within its budget."
        )

    @property
    def telling(self) -> bool:
        """Whether the problem, under this budget, could show a bias of the size of the gate at all."""
        return self.size > 1.0 / (3.0 * self.gate)


def derivative_by_scale(inputs: AttentionInputs, profile: str) -> Float[Array, "b h lq dv"]:
    """g = ∂O/∂ln(scale), by central difference of the oracle: off by a part in 10⁶, which no estimate of β can notice."""
    scale = 1.0 / np.sqrt(inputs.query.shape[-1]) if inputs.scale is None else inputs.scale
    above, below = (expect(replace(inputs, scale=float(scale * (1.0 + step))), profile).output for step in (STEP, -STEP))
    return ((above - below) / (2.0 * STEP)).astype(np.float64)


def bias(output: Array, expected: Expected, derivative: Float[Array, "b h lq dv"]) -> Bias:
    """The bias of a finite output along ``derivative``, over the rows that are judged."""
    got = expected.rows_of(output)
    error = (got.astype(expected.output.dtype) - expected.output).astype(np.float64)
    error, slope = (np.where(expected.judged, array / expected.budget, 0.0) for array in (error, derivative))
    square = float((slope * slope).sum())
    beta = float((error * slope).sum()) / square
    by_row = ((error - beta * slope) * slope).sum(-1)
    return Bias(beta, float(np.sqrt((by_row**2).sum())) / square, float(np.sqrt(square)), GATES[expected.dtype])

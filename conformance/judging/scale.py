"""The scale of an implementation that holds it in a dtype of its own, less exact than that of the inputs."""

import numpy as np

from conformance.numerics.dtypes import float_type, round_to
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs


def rounded_scale(inputs: Inputs, dtype: str | None) -> float | None:
    """The scale, given or 1/√d, rounded to ``dtype``; None where that is no less exact than what it is multiplied by: scores in
    float32 at least, beside 16-bit inputs too."""
    if dtype is None or isinstance(inputs, SinusoidalInputs):
        return None
    if not float_type(dtype).is_16_bit and float_type(dtype).unit_roundoff <= float_type(inputs.query.dtype.name).unit_roundoff:
        return None
    given = inputs.scale
    return float(round_to(np.asarray(1.0 / np.sqrt(_width(inputs)) if given is None else given, np.float64), dtype))


def with_scale(inputs: Inputs, scale: float) -> Inputs:
    assert not isinstance(inputs, SinusoidalInputs)
    return inputs.but(scale=scale)


def _width(inputs: AttentionInputs | MultiHeadInputs) -> int:
    """Of a head."""
    if isinstance(inputs, AttentionInputs):
        return inputs.query.shape[-1]
    return inputs.weights.query.shape[1] // inputs.num_heads

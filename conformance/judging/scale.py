"""The scale of an implementation that holds it in a dtype of its own, less exact than that of the inputs."""

import numpy as np

from conformance.numerics.dtypes import float_type, round_to
from conformance.problem.inputs import Inputs


def rounded_scale(inputs: Inputs, dtype: str | None) -> float | None:
    """The scale, given or 1/√d, rounded to ``dtype``; None where that is no less exact than what it is multiplied by: scores in
    float32 at least, beside 16-bit inputs too."""
    if dtype is None or not inputs.attends:
        return None
    if not float_type(dtype).is_16_bit and float_type(dtype).unit_roundoff <= float_type(inputs.dtype).unit_roundoff:
        return None
    given = inputs.scale
    return float(round_to(np.asarray(1.0 / np.sqrt(inputs.head_width) if given is None else given, np.float64), dtype))

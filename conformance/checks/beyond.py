"""Which numbers are beyond what the standard algorithms of attention hold, though the formula has an answer for them."""

import numpy as np

from conformance.dtypes import float_type
from conformance.inputs import AttentionInputs
from conformance.limits import largest_score

_SHARES = 2.0**9  # an online sum that rescales lazily holds up to so many times the mean
_LOG2_E = 1.4426950408889634


def is_beyond(inputs: AttentionInputs) -> bool:
    """Whether V is so near the largest number that sums of it overflow; or scores s so large that 2^(s·c − m·c), c = log₂ e, does
    where the product m·c was rounded: |m|·c times the unit roundoff is then more than the largest exponent."""
    dtype = inputs.query.dtype.name
    work = float_type(dtype if dtype == "float64" else "float32")
    if float(np.abs(inputs.value.astype(np.float64)).max(initial=0.0)) > work.largest / _SHARES:
        return True
    scale = 1.0 / np.sqrt(inputs.query.shape[-1]) if inputs.scale is None else abs(inputs.scale)
    return bool(largest_score(inputs) * scale * _LOG2_E * work.unit_roundoff > np.log2(work.largest))

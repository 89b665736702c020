"""What the oracle says of a problem: the output, how far off each element may be, and which elements are judged."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Shaped

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Expected:
    """``output`` and ``budget`` of equal shape (longdouble or float64; float64), ``judged`` False where no value is required.

    ``rows`` lists the positions along the second-to-last axis that ``output`` holds, None if all. ``shape`` is the shape of
    the implementation's whole output, ``dtype`` the name of its due dtype.
    """

    output: Float[Array, "*shape"]
    budget: Float[Array, "*shape"]
    judged: Bool[Array, "*#shape"]
    shape: tuple[int, ...]
    dtype: str
    rows: Array | None = None

    def rows_of(self, whole: Shaped[Array, "*shape"]) -> Shaped[Array, "*rows"]:
        """The rows of a whole output that ``output`` holds."""
        return whole if self.rows is None else whole[..., self.rows, :]

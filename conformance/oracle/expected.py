"""What the oracle says of a problem: the output, how far off each element may be, and which elements are judged."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Shaped

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Truth:
    """``output`` (longdouble or float64), the same whatever an implementation declares, and ``judged``, False where no value is
    required.

    ``rows`` lists the positions along the second-to-last axis that ``output`` holds, None if all. ``shape`` is the shape of
    the implementation's whole output, ``dtype`` the name of its due dtype. ``bound`` gives the budget under a numerics profile;
    what it keeps for that takes ``kept`` bytes.
    """

    output: Float[Array, "*shape"]
    judged: Bool[Array, "*#shape"]
    shape: tuple[int, ...]
    dtype: str
    bound: Callable[[str], Float[Array, "*shape"]]
    rows: Array | None = None
    kept: int = 0

    def expected(self, budget: Float[Array, "*shape"]) -> "Expected":
        """With the budget of some profile."""
        return Expected(self.output, budget, self.judged, self.shape, self.dtype, self.rows)


@dataclass(frozen=True, eq=False)
class Expected:
    """The truth with a ``budget`` of the shape of ``output``, in float64."""

    output: Float[Array, "*shape"]
    budget: Float[Array, "*shape"]
    judged: Bool[Array, "*#shape"]
    shape: tuple[int, ...]
    dtype: str
    rows: Array | None = None

    def rows_of(self, whole: Shaped[Array, "*shape"]) -> Shaped[Array, "*rows"]:
        """The rows of a whole output that ``output`` holds."""
        return whole if self.rows is None else whole[..., self.rows, :]

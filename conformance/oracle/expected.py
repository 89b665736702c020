"""What the oracle says of a problem, output by output: its values, how far off each element may be, and which are judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Shaped

from conformance.problem.returned import OUTPUT

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Truth:
    """``output`` (longdouble or float64), the same whatever an implementation declares, and ``judged``, False where no value is
    required.

    ``rows`` lists the positions along ``axis`` that ``output`` holds, None if all. ``shape`` is the shape of the
    implementation's whole output, ``dtype`` the name of its expected dtype. ``bound`` gives the budget under a numerics profile;
    what it keeps for that takes ``kept`` bytes.

    ``name``: which output it is. ``others``: the truths of those beside it, each made when it is asked for, of the dtype in
    which it was returned. ``dtypes``: all in which it may be, where that is more than ``dtype``.
    """

    output: Float[Array, "*shape"]
    judged: Bool[Array, "*#shape"]
    shape: tuple[int, ...]
    dtype: str
    bound: Callable[[str], Float[Array, "*shape"]]
    rows: Array | None = None
    kept: int = 0
    name: str = OUTPUT
    axis: int = -2
    dtypes: tuple[str, ...] = ()
    others: Mapping[str, "Callable[[str], Truth]"] = field(default_factory=dict)

    def of(self, name: str, dtype: str) -> "Truth":
        """That of the output called ``name``, expected in ``dtype`` if it may be returned so."""
        return self if name == self.name else self.others[name](dtype)

    def expected(self, budget: Float[Array, "*shape"]) -> "Expected":
        """With the budget of some profile."""
        return Expected(self.output, budget, self.judged, self.shape, self.dtype, self.rows, self.name, self.axis, self.dtypes)


@dataclass(frozen=True, eq=False)
class Expected:
    """The truth with a ``budget`` of the shape of ``output``, in float64."""

    output: Float[Array, "*shape"]
    budget: Float[Array, "*shape"]
    judged: Bool[Array, "*#shape"]
    shape: tuple[int, ...]
    dtype: str
    rows: Array | None = None
    name: str = OUTPUT
    axis: int = -2
    dtypes: tuple[str, ...] = ()

    def rows_of(self, whole: Shaped[Array, "*shape"]) -> Shaped[Array, "*rows"]:
        """The rows of a whole output that ``output`` holds."""
        return whole if self.rows is None else np.take(whole, self.rows, axis=self.axis)

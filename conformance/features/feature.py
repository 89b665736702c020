"""What a variant of attention is: its argument, its field of a problem, what it hides."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from conformance.problem.fields import Field

OF_BOTH = ("attention", "multi_head_attention")


class Feature:
    """A variant of attention, one module of this folder. ``name`` is its word where implementations say what they offer;
    ``argument`` how inputs and the suite's calls name it, with ``default`` where it is not asked for."""

    name: ClassVar[str]
    argument: ClassVar[str]
    default: ClassVar[Any] = None
    operations: ClassVar[tuple[str, ...]] = OF_BOTH
    field: ClassVar[Field]

    def given(self, problem: Any) -> Any:
        """The argument that ``problem`` asks for; its field, unless it is made into something else."""
        return getattr(problem, self.argument)

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "#b #hq #rows #lk"] | None:
        """Which keys the query rows ``start`` … ``stop`` − 1 may attend to as far as it is concerned; None for all."""
        return None

"""A bias, added to the scaled scores; −∞ in it hides."""

from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.features.feature import Feature
from conformance.problem.fields import Field, OneRecipe
from conformance.problem.forms import MASK_FORMS


class Bias(Feature):
    name = argument = "bias"
    operations = ("attention",)
    field = Field(
        key="bias", kind=OneRecipe(forms=MASK_FORMS), names=("bias",), defaults=(None,), parameter=False,
        asks={"bias": lambda problem: problem.bias is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Float[np.ndarray, "*form"] | None:
        from conformance.values.masks import made_bias

        return made_bias(problem)


FEATURE = Bias()

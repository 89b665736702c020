"""A bias, added to the scaled scores; −∞ in it hides."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.errors import Unsupported
from conformance.features.feature import Feature
from conformance.problem.fields import Field, OneRecipe
from conformance.problem.forms import MASK_FORMS


class Bias(Feature):
    name = argument = "bias"
    aliases = ("attn_bias", "attention_bias", "score_bias", "logits_bias")
    operations = ("attention",)
    field = Field(
        key="bias", kind=OneRecipe(forms=MASK_FORMS), names=("bias",), defaults=(None,), parameter=False,
        asks={"bias": lambda problem: problem.bias is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Float[np.ndarray, "*form"] | None:
        from conformance.values.masks import made_bias

        return made_bias(problem)

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        return way != "native" or problem.bias.form in implementation.support.mask_forms

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        return Unsupported(f"bias of form {problem.bias.form}", self.name)


FEATURE = Bias()

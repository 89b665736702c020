"""A boolean mask: True where a query may attend."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from conformance.errors import Unsupported
from conformance.features.feature import Feature
from conformance.numerics.philox import Stream
from conformance.problem.fields import Field, OneRecipe
from conformance.problem.forms import MASK_FORMS, along, form_shape, four_axes
from conformance.problem.recipe import Cookbook

MASKS = Cookbook("mask")  # each kind is a function of conformance/values/masks.py


class Mask(Feature):
    name = argument = "mask"
    condition = "with a mask"
    aliases = ("attn_mask", "attention_mask", "atten_mask", "src_mask")
    ways = ("native", "padding", "bias")
    polarity = "CON-POLARITY"
    words = "the mask"
    alone: ClassVar = {
        "attention": tuple(f"ATT-MASK-{number:03}" for number in (1, 2, 3, 4, 5, 26, 27, 28, 29, 37)),
        "multi_head_attention": ("ATT-HEAD-023",),
    }
    field = Field(
        key="mask", kind=OneRecipe(forms=MASK_FORMS), names=("mask",), defaults=(None,), parameter=False,
        asks={"mask": lambda problem: problem.mask is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Bool[np.ndarray, "*form"] | None:
        recipe = problem.mask
        if recipe is None:
            return None
        return MASKS.find(recipe)(form_shape(recipe.form, problem), Stream(recipe.seed, "mask"), recipe.argument)

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "#b #hq #rows #lk"] | None:
        if inputs.mask is None:
            return None
        mask = four_axes(inputs.mask)
        return mask if mask.shape[2] == 1 else mask[:, :, start:stop]

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        visible &= True if inputs.mask is None else np.broadcast_to(inputs.mask, visible.shape)

    def along(self, value: Any, axis: int, index: np.ndarray) -> Any:
        return along(value, axis, index)

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """As padding only where it hides a key from all queries of a batch row or from none."""
        form = problem.mask.form
        return form in implementation.support.mask_forms if way == "native" else way != "padding" or form == "b11k"

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        return Unsupported(f"mask of form {problem.mask.form}", self.name)


FEATURE = Mask()

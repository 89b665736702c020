"""A bias, added to the scaled scores; −∞ in it hides."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from conformance.errors import Unsupported
from conformance.features.feature import Feature, ScoreIndex
from conformance.numerics.dtypes import float_type, round_to
from conformance.numerics.philox import Stream
from conformance.problem.fields import Field, OneRecipe
from conformance.problem.forms import MASK_FORMS, along, form_shape, four_axes
from conformance.problem.recipe import Cookbook

BIASES = Cookbook("bias")  # each kind is a function of conformance/values/masks.py
LOWEST = float(np.finfo(np.float64).min)  # in a bias: the lowest finite number of the problem's dtype


class AddBias:
    """The stage: the bias added to the scores; −∞ in it hides."""

    name = "bias"

    def value(self, flow: Any) -> None:
        if flow.inputs.bias is None:
            return
        bias = four_axes(flow.inputs.bias)
        bias = flow.grouped(bias if bias.shape[2] == 1 else bias[:, :, flow.index]).astype(flow.scores.dtype)
        bias = flow.of_all_keys(bias, 0)
        seen = bias != -np.inf
        if not seen.all():
            flow.hide(seen)
            bias = np.where(seen, bias, 0)
        flow.scores = flow.scores + bias
        lowest = bias == -flow.kind.largest
        if lowest.any():
            flow.unjudge((lowest if flow.visible is None else lowest | ~flow.visible).all(-1))

    def error(self, flow: Any, bounds: Any) -> None:
        if flow.inputs.bias is not None:  # in this order nothing overflows for the lowest number of float64
            bounds.scores += (2.0 * bounds.unit.scores) * np.abs(flow.finite)


class Bias(Feature):
    name = argument = "bias"
    condition = "with a bias"
    aliases = ("attn_bias", "attention_bias", "score_bias", "logits_bias")
    operations = ("attention",)
    of_scores = AddBias()
    words = "the bias"
    alone: ClassVar = {"attention": ("ATT-MASK-007", "ATT-MASK-019", "ATT-MASK-020")}
    beside: ClassVar = {
        "attention": {"mask": ("ATT-MASK-019",), "causal": ("ATT-MASK-020",), "key-lengths": ("ATT-MASK-042",)},
    }
    field = Field(
        key="bias", kind=OneRecipe(forms=MASK_FORMS), names=("bias",), defaults=(None,), parameter=False,
        asks={"bias": lambda problem: problem.bias is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Float[np.ndarray, "*form"] | None:
        recipe = problem.bias
        if recipe is None:
            return None
        made = BIASES.find(recipe)(form_shape(recipe.form, problem), Stream(recipe.seed, "bias"), recipe.argument)
        return round_to(np.where(made == LOWEST, -float_type(problem.dtype).largest, made), problem.dtype)

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        visible &= True if inputs.bias is None else np.broadcast_to(inputs.bias != -np.inf, visible.shape)

    def score_exactly(self, mp: Any, score: Any, inputs: Any, place: ScoreIndex) -> Any:
        if inputs.bias is None:
            return score
        sizes = inputs.bias.shape
        held = tuple(0 if size == 1 else number for size, number in zip(sizes, place[-len(sizes) :], strict=True))
        return score + mp.mpf(float(inputs.bias[held]))

    def along(self, value: Any, axis: int, index: np.ndarray) -> Any:
        return along(value, axis, index)

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        return way != "native" or problem.bias.form in implementation.support.mask_forms

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        return Unsupported(f"bias of form {problem.bias.form}", self.name)


FEATURE = Bias()

"""A scale of the products of queries and keys that is given, in place of 1/√d."""

from typing import Any, ClassVar, cast

from conformance.features.feature import Feature
from conformance.problem.fields import Field, Number
from conformance.problem.recipe import Recipe


class Scale(Feature):
    name = argument = "scale"
    aliases = ("sm_scale", "softmax_scale", "scaling", "attn_scale", "attention_scale", "qk_scale", "scale_factor")
    operations = ("attention",)
    condition = "with a scale given"
    words = "a given scale"
    alone: ClassVar = {"attention": ("ATT-SCALE-005",)}
    field = Field(
        key="scale", kind=Number(), names=("scale",), defaults=(None,), frozen=True,
        asks={"scale": lambda problem: problem.scale is not None},
    )  # fmt: skip

    def stored(self, problem: Any, inputs: Any, stands_for: Recipe) -> float | None:
        return cast("float | None", inputs.scale)

    def compiled_as(self, inputs: Any) -> bool:
        return inputs.scale is not None


FEATURE = Scale()

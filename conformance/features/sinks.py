"""Sinks: for each query head one more logit in the denominator of the softmax, a key with V = 0.

A row whose keys are all hidden gives zeros then. Sources: gpt-oss (OpenAI 2025), Transformer Engine and flash-attention 4
(learnable sink); the "off-by-one" softmax (Miller 2023) is a sink of 0.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from conformance.features.feature import Feature, Wrong
from conformance.numerics.dtypes import round_to
from conformance.numerics.philox import Stream
from conformance.problem.fields import Field, OneRecipe
from conformance.problem.recipe import Cookbook, Recipe

SINKS = Cookbook("sinks")


@SINKS.entry("gaussian")
def gaussian(heads: int, stream: Stream, argument: float | None) -> np.ndarray:
    """Normal numbers, times ``*a``."""
    return stream.normal(heads) * (1.0 if argument is None else argument)


@SINKS.entry("constant")
def constant(heads: int, stream: Stream, argument: float | None) -> np.ndarray:
    """``*a`` (0 unless said) for each head."""
    return np.full(heads, 0.0 if argument is None else argument)


class AddSinks:
    """The stage: the logits of the keys that are added. They are given, and only rounded where scores are."""

    name = "sinks"

    def value(self, flow: Any) -> None:
        if flow.inputs.sinks is not None:
            flow.scores = self._set(flow, flow.scores, flow.inputs.sinks)

    def error(self, flow: Any, bounds: Any) -> None:
        if flow.inputs.sinks is not None:
            sinks = np.abs(flow.inputs.sinks.astype(np.float64))
            bounds.scores = self._set(flow, bounds.scores, bounds.unit.scores * sinks)

    def _set(self, flow: Any, array: Any, of_head: Any) -> Any:
        array = array.copy()
        array[..., flow.keys] = of_head.reshape(1, *array.shape[1:3], 1)
        return array


class Sinks(Feature):
    name = argument = "sinks"
    aliases = ("sink", "attention_sinks", "sink_logits", "s_aux", "learnable_sink", "softmax_sink")
    words = "the sinks"
    condition = "with sinks"
    alone: ClassVar = {"attention": ("ATT-SCALE-021", "ATT-SCALE-022"), "multi_head_attention": ("ATT-HEAD-044",)}
    beside: ClassVar = {
        "attention": dict.fromkeys(("mask", "bias", "causal", "key-lengths", "scale", "softcap", "window"), ("ATT-SCALE-024",)),
        "multi_head_attention": dict.fromkeys(("mask", "causal", "key-lengths"), ("ATT-HEAD-044",)),
    }
    example = Recipe("gaussian", 26)
    of_logits = AddSinks()
    field = Field(
        key="sinks", kind=OneRecipe(may_be_zero=("constant",)), names=("sinks",), defaults=(None,), parameter=False,
        asks={"sinks": lambda problem: problem.sinks is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Float[np.ndarray, " hq"] | None:
        recipe = problem.sinks
        if recipe is None:
            return None
        return round_to(SINKS.find(recipe)(problem.heads, Stream(recipe.seed, "sinks"), recipe.argument), problem.dtype)

    def along(self, value: Any, axis: int, index: np.ndarray) -> Any:
        return value if value is None or axis != -3 else value[index]

    def added_keys(self, inputs: Any) -> int:
        return 0 if inputs.sinks is None else 1

    def added_exactly(self, mp: Any, inputs: Any, head: int) -> list[Any]:
        return [] if inputs.sinks is None else [mp.mpf(float(inputs.sinks[head]))]

    def drawn(self, problem: Any, between: Callable[[int, int], int]) -> Recipe:
        return Recipe("gaussian", between(0, 1 << 30), argument=(None, 3.0)[between(0, 1)])

    def requirements(self) -> Iterable[Any]:
        from conformance.specification.build import ALL, F32, attention, joined, multi_head
        from conformance.specification.draw import Draw, MultiHeadDraw
        from conformance.specification.requirement import Blind, Requirement

        def sinks(text: str) -> Recipe:
            return Recipe.parse(text, "sinks")

        drawn = (("sinks", ("gaussian.1", "gaussian.1*3.0", "constant.1")),)
        return (
            Requirement(
                id="ATT-SCALE-021",
                sentence="A sink is one more logit in the denominator of each row of its query head, and nothing else.",
                rationale="It is counted once for each part of the keys, or as a key that has a value.",
                source="gpt-oss (OpenAI 2025); mlx#3452",
                designed=lambda: joined(
                    attention("wide", ALL, values="spread.1#401", sinks=sinks("gaussian.1#401")),
                    attention("square", F32, values="signatures.1#402", sinks=sinks("constant.1#0")),
                    attention("decode", ALL, values="spread.1#403", sinks=sinks("gaussian.1*2.0#403")),
                    attention("long", F32, values="spread.1#404", sinks=sinks("gaussian.1*2.0#404")),
                    attention("tile", F32, values="spread.1#405", sinks=sinks("constant.1*1.5#0")),
                ),
                few_of=lambda problem: problem.query_length in (1, 7),
                random=Draw(shapes="core", further=drawn),
            ),
            Requirement(
                id="ATT-SCALE-022",
                sentence="With grouped heads each query head has a sink of its own.",
                rationale="It is read by the number of the key head.",
                source="gpt-oss (OpenAI 2025)",
                designed=lambda: joined(
                    attention("grouped", ALL, values="spread.1#406", sinks=sinks("gaussian.1*2.0#406")),
                    attention("grouped-decode", F32, values="spread.1#407", sinks=sinks("gaussian.1*2.0#407")),
                ),
            ),
            Requirement(
                id="ATT-SCALE-023",
                sentence="A fully masked row gives zeros where there is a sink.",
                rationale="All the weight is the sink's, whose value is 0; what fills in for fully masked rows may come first.",
                source="Follows from the formula",
                check="values",
                designed=lambda: joined(
                    attention("wide", ALL, values="spread.1#408", sinks=sinks("gaussian.1#408"), mask="empty-rows.1:b1qk#408"),
                    attention("wide", F32, values="spread.1#409", sinks=sinks("gaussian.1#409"), key_lengths=(0, 7)),
                ),
            ),
            Requirement(
                id="ATT-SCALE-024",
                sentence="A sink is not scaled, capped, biased or hidden.",
                rationale="It stands beside scores that are.",
                source="gpt-oss (OpenAI 2025)",
                designed=lambda: joined(
                    attention("wide", ALL, values="spread.1#410", sinks=sinks("gaussian.1*2.0#410"), scale=0.25),
                    attention("wide", ALL, values="gaussian.1*2.0#411", sinks=sinks("constant.1*3.0#0"), softcap=1.0),
                    attention("wide", ALL, values="spread.1#412", sinks=sinks("gaussian.1*2.0#412"), bias="gaussian.1:qk#412"),
                    attention("square", ALL, values="spread.1#413", sinks=sinks("gaussian.1#413"), causal="top-left"),
                    attention("wide", ALL, values="spread.1#414", sinks=sinks("gaussian.1#414"), mask="random.1:b1qk#414"),
                    attention("wide", ALL, values="spread.1#415", sinks=sinks("gaussian.1#415"), key_lengths=(5, 9)),
                    attention("square", ALL, values="spread.1#416", sinks=sinks("gaussian.1#416"), window=(3, 2)),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                random=Draw(
                    shapes="core", causal=("none", "top-left"), masks=("", "random.1"), forms=("b1qk",),
                    biases=("", "gaussian.1"), further=drawn,
                ),
            ),
            Requirement(
                id="ATT-SCALE-025",
                sentence="A sink far below the scores changes nothing, and one above them leaves little weight.",
                rationale="The largest number of a row is taken with the sink, or without it.",
                source="Follows from the formula",
                designed=lambda: joined(
                    attention("wide", ALL, values="spread.1#417", sinks=sinks("constant.1*-1000.0#0")),
                    attention("wide", ("float64", "float32"), values="spread.1#418", sinks=sinks("constant.1*8.0#0")),
                    attention("wide", F32, values="offset.1*1000.0#419", sinks=sinks("constant.1*-200.0#0")),
                ),
            ),
            Requirement(
                id="ATT-HEAD-044",
                operation="multi_head_attention",
                sentence="Sinks count in multi-head attention as in plain attention, one for each head.",
                rationale="The layer hands them on, or not.",
                source="gpt-oss (OpenAI 2025)",
                designed=lambda: joined(
                    multi_head("square", ALL, values="gaussian.1#420", sinks=sinks("gaussian.1*2.0#420")),
                    multi_head("square", ALL, values="gaussian.1#421", sinks=sinks("gaussian.1#421"), causal="top-left"),
                    multi_head("square", ALL, values="gaussian.1#422", sinks=sinks("gaussian.1#422"), key_lengths=(4, 6)),
                    multi_head("square", ALL, values="gaussian.1#423", sinks=sinks("constant.1"), mask="random.1:b1qk*0.8#423"),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                blind=(Blind("bfloat16", ("low",), ("zeros", "mean", "argmax", "uniform", "heads")),),
                random=MultiHeadDraw(further=drawn),
            ),
        )  # fmt: skip

    def faults(self) -> tuple[Wrong, ...]:
        def wrong(identifier: str, sentence: str, change: Callable[[Any], Any], of: str, sources: tuple[str, ...] = ()) -> Wrong:
            """``change`` gives other sinks for those that there are."""

            def rewrite(inputs: Any) -> Any:
                return inputs if inputs.sinks is None else inputs.but(sinks=change(inputs).astype(inputs.sinks.dtype))

            return Wrong(
                id=f"sinks-{identifier}", sentence=sentence, requirements={"attention": (of,)}, sources=sources, rewrite=rewrite
            )

        def by_key_head(inputs: Any) -> Any:
            return inputs.sinks[np.arange(len(inputs.sinks)) // (len(inputs.sinks) // inputs.key.shape[1])]

        def scaled(inputs: Any) -> Any:
            return inputs.sinks / np.sqrt(inputs.query.shape[-1]) if inputs.scale is None else inputs.sinks * inputs.scale

        return (
            wrong("taken-for-zero", "adds 1 to the denominator whatever the sinks are", lambda inputs: 0 * inputs.sinks,
                  "ATT-SCALE-021"),
            wrong("of-one-head", "has the first head's sink in all heads", lambda inputs: 0 * inputs.sinks + inputs.sinks[0],
                  "ATT-SCALE-021"),
            wrong("of-next-head", "reads the sink of the next head", lambda inputs: np.roll(inputs.sinks, -1), "ATT-SCALE-021"),
            wrong("by-key-head", "reads the sink by the number of the key head", by_key_head, "ATT-SCALE-022"),
            wrong("twice", "counts the sink twice, as if once for each of two parts of the keys",
                  lambda inputs: inputs.sinks + np.log(2.0), "ATT-SCALE-021",
                  ("mlx: https://github.com/ml-explore/mlx/issues/3452",)),
            replace(wrong("clipped", "cuts sinks off at 5", lambda inputs: np.clip(inputs.sinks, -5, 5), "ATT-SCALE-025"),
                    dtypes=("float64", "float32")),  # in which a sink that leaves little weight is asked
            Wrong(id="sinks-not-of-empty-rows", sentence="gives the mean of V where no key is seen, whatever the sink",
                  chain=lambda stages: (*stages, _FilledIn()), requirements={"attention": ("ATT-SCALE-023",)}),
            wrong("scaled", "multiplies the sink by the scale", scaled, "ATT-SCALE-021"),
            wrong("in-base-2", "takes the sink to the base 2", lambda inputs: inputs.sinks * np.log(2.0), "ATT-SCALE-021"),
            wrong("negative", "has the sign of the sink wrong", lambda inputs: -inputs.sinks, "ATT-SCALE-021"),
        )  # fmt: skip


class _FilledIn:
    """A stage behind the last one: the mean of V in rows that are fully masked but for the sink."""

    name = "filled in"

    def value(self, flow: Any) -> None:
        if flow.visible is None or flow.inputs.sinks is None:
            return
        empty = ~flow.visible[..., : flow.keys].any(-1, keepdims=True)
        flow.mixed = np.where(empty, flow.tensors.value[..., : flow.keys, :].mean(-2, keepdims=True), flow.mixed)

    def error(self, flow: Any, bounds: Any) -> None:
        return None


FEATURE = Sinks()

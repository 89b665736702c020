"""A softcap: scaled scores s become cap · tanh(s / cap), before a bias is added and anything is hidden.

Sources: Gemma 2 (Gemma Team 2024, section 2), flash-attention (``softcap``), ONNX Attention; tokamax caps behind the bias.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from conformance.errors import Unsupported
from conformance.features.feature import Feature, ScoreIndex, Wrong
from conformance.problem.fields import Field, Number, demand

_ORDER = "CON-SOFTCAP-BIAS"


class Cap(Number):
    """A finite number above 0."""

    def checks(self, value: Any, name: str) -> None:
        demand(value is None or 0 < value < np.inf, f"{name}={value} must be a finite number above 0.")


class Capped:
    """The stage. An error ε of s is multiplied by the slope 1 − tanh² at the place nearest to 0 that s may have; what is rounded
    is s / cap, the hyperbolic tangent (within a few units of the accumulator's) and its product."""

    name = "softcap"

    def __init__(self, capped: Callable[[Any, Any], Any] = lambda scores, cap: cap * np.tanh(scores / cap)) -> None:
        self._capped = capped

    def value(self, flow: Any) -> None:
        cap = flow.inputs.softcap
        if cap is not None:
            flow.scores = self._capped(flow.scores, flow.scores.dtype.type(cap))

    def error(self, flow: Any, bounds: Any) -> None:
        cap = flow.inputs.softcap
        if cap is None:
            return
        size = np.abs(flow.wide(flow.products))
        off = bounds.scores + bounds.unit.scores * size
        half = np.exp(-2.0 * np.maximum(size - off, 0.0) / cap)
        slope = 4.0 * half / (1.0 + half) ** 2
        rounded = (2.0 * bounds.unit.scores + 4.0 * bounds.unit.accumulator) * cap * np.tanh(size / cap)
        bounds.scores = np.minimum(slope * off, 2.0 * cap) + rounded


class Softcap(Feature):
    name = argument = "softcap"
    aliases = ("soft_cap", "logits_soft_cap", "logit_softcap", "attn_logit_softcapping", "logit_cap")
    words = "the softcap"
    condition = "with a softcap"
    alone: ClassVar = {"attention": ("ATT-SCALE-016",), "multi_head_attention": ("ATT-HEAD-043",)}
    beside: ClassVar = {
        "attention": {
            **dict.fromkeys(("mask", "causal", "key-lengths", "window"), ("ATT-SCALE-017",)),
            "bias": ("ATT-SCALE-018",),
            "scale": ("ATT-SCALE-019",),
        },
        "multi_head_attention": dict.fromkeys(("mask", "causal", "key-lengths"), ("ATT-HEAD-043",)),
    }
    example = 1.0
    meant: ClassVar = {_ORDER: "before"}
    of_scores = Capped()
    precedes = ("bias",)
    field = Field(
        key="softcap", kind=Cap(), names=("softcap",), defaults=(None,),
        asks={"softcap": lambda problem: problem.softcap is not None},
    )  # fmt: skip

    def compiled_as(self, inputs: Any) -> bool:
        return inputs.softcap is not None

    def score_exactly(self, mp: Any, score: Any, inputs: Any, place: ScoreIndex) -> Any:
        return score if inputs.softcap is None else mp.mpf(inputs.softcap) * mp.tanh(score / mp.mpf(inputs.softcap))

    def drawn(self, problem: Any, between: Callable[[int, int], int]) -> float:
        return float((0.5, 1.0, 5.0, 30.0)[between(0, 3)])

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Not beside a bias where that is known to be capped too."""
        return "bias" not in problem.features or conventions.get(_ORDER) != "behind"

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        return Unsupported("softcap and bias together" if self.name in implementation.features else self.name, self.name)

    def decided_by(self, problem: Any, implementation: Any) -> tuple[str, ...]:
        return (_ORDER,) if {"softcap", "bias"} <= problem.features else ()

    def requirements(self) -> Iterable[Any]:
        from conformance.specification.build import ALL, F32, attention, joined, multi_head
        from conformance.specification.draw import Draw, MultiHeadDraw
        from conformance.specification.requirement import Blind, Requirement

        caps = (("softcap", ("2.0", "5.0", "30.0")),)
        return (
            Requirement(
                id="ATT-SCALE-016",
                sentence="With a softcap, each scaled score s counts as cap · tanh(s / cap).",
                rationale="Kernels approximate it, or leave one of the two factors out.",
                source="Gemma 2 (Gemma Team 2024), section 2; flash-attention documentation of softcap",
                designed=lambda: joined(
                    attention("wide", ALL, values="gaussian.1*2.0#301", softcap=2.0),
                    attention("square", F32, values="spread.1#302", softcap=0.5),
                    attention("prime", ALL, values="gaussian.1*3.0#303", softcap=5.0),
                    attention("grouped", F32, values="gaussian.1*2.0#304", softcap=1.0),
                    attention("tile", F32, values="gaussian.1*2.0#305", softcap=3.0),
                ),
                few_of=lambda problem: problem.query_length == 7,
                random=Draw(shapes="core", distributions=("gaussian.1*2.0", "spread.1"), further=caps),
            ),
            Requirement(
                id="ATT-SCALE-017",
                sentence="The softcap acts before keys are hidden: hidden ones have no weight, whatever hides them.",
                rationale="cap · tanh(−∞ / cap) is −cap, which is heard.",
                source="llama.cpp#29034",
                designed=lambda: joined(
                    attention("wide", ALL, values="gaussian.1*2.0#306", softcap=2.0, mask="random.1:b1qk#306"),
                    attention("square", ALL, values="gaussian.1*2.0#307", softcap=2.0, causal="top-left"),
                    attention("wide", ALL, values="gaussian.1*2.0#308", softcap=1.0, key_lengths=(5, 9)),
                    attention("square", ALL, values="gaussian.1*2.0#311", softcap=1.0, window=(3, 2)),
                    attention("wide", ALL, values="gaussian.1*2.0#309", softcap=1.0, mask="random.1:bhqk#309",
                              transformations=("hidden-value.1#0",)),
                    attention("square", ALL, values="gaussian.1*2.0#310", softcap=2.0, causal="top-left",
                              mask="random.1:b1qk*0.8#310"),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                random=Draw(shapes="core", causal=("none", "top-left"), masks=("random.1",), forms=("b1qk",), further=caps),
            ),
            Requirement(
                id="ATT-SCALE-018",
                sentence="The softcap acts before a bias is added, −∞ in which hides.",
                rationale="Where it comes behind, the bias is bounded too.",
                source="flash-attention documentation of softcap; ONNX Attention",
                designed=lambda: joined(
                    attention("wide", ALL, values="gaussian.1#311", softcap=1.0, bias="gaussian.1:qk*4.0#311"),
                    attention("wide", ALL, values="gaussian.1#312", softcap=2.0, bias="holes.1:bhqk#312"),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                random=Draw(shapes="core", biases=("gaussian.1", "distance.1"), further=caps),
            ),
            Requirement(
                id="ATT-SCALE-019",
                sentence="A given scale multiplies the products before the softcap.",
                rationale="Kernels fold the scale into the cap, or into an exponential of base 2 behind it.",
                source="Follows from the formula",
                designed=lambda: joined(
                    attention("wide", ALL, values="gaussian.1#313", softcap=1.0, scale=0.8),
                    attention("wide", F32, values="gaussian.1#314", softcap=2.0, scale=-0.5),
                ),
            ),
            Requirement(
                id="ATT-SCALE-020",
                sentence="Scores of hundreds of caps saturate: each counts as cap or −cap, and nothing is NaN.",
                rationale="A hyperbolic tangent by exponentials overflows beyond 88 in float32.",
                source="Follows from the range of float32",
                designed=lambda: joined(
                    attention("wide", ("float64", "float32", "bfloat16"), values="gaussian.1*40.0#315", softcap=1.0),
                    attention("square", F32, values="gaussian.1*20.0#316", softcap=0.5, causal="top-left"),
                ),
            ),
            Requirement(
                id="ATT-HEAD-043",
                operation="multi_head_attention",
                sentence="A softcap bounds the scores of each head in multi-head attention too, before keys are hidden.",
                rationale="The layer hands it on, or not.",
                source="Gemma 2 (Gemma Team 2024), section 2",
                designed=lambda: joined(
                    multi_head("square", ALL, values="gaussian.1#317", softcap=1.0),
                    multi_head("square", ALL, values="gaussian.1#318", softcap=1.0, causal="top-left"),
                    multi_head("square", ALL, values="gaussian.1#319", softcap=0.5, mask="random.1:b1qk*0.8#319"),
                    multi_head("square", ALL, values="gaussian.1#320", softcap=0.5, key_lengths=(4, 6)),
                ),
                few_of=lambda problem: problem.dtype == "float32",
                blind=(Blind("bfloat16", ("low",), ("mean", "argmax", "uniform")),),
                random=MultiHeadDraw(further=(("softcap", ("1.0", "3.0")),)),
            ),
        )  # fmt: skip

    def conventions(self) -> Iterable[Any]:
        from conformance.specification.asking import IN_DTYPES, OTHER, REFUSED, changed, resembles
        from conformance.specification.build import attention
        from conformance.specification.observing import Question
        from conformance.specification.requirement import Convention

        def ordered(ask: Any, problem: Any) -> str:
            """Of equal scores the weights tell whether the bias was bounded."""
            from conformance.oracle import truth_of
            from conformance.values import materialise

            inputs, output = materialise(problem), ask(problem)
            bounded = (problem.softcap * np.tanh(inputs.bias / problem.softcap)).astype(inputs.bias.dtype)
            meanings = {"before": inputs, "behind": inputs.but(softcap=None, bias=bounded)}
            found = (word for word, meant in meanings.items() if resembles(output, truth_of(meant).output.astype(np.float64)))
            return next(found, "nan" if np.isnan(output).any() else "other")

        return (
            Convention(
                id=_ORDER,
                question="A softcap and a bias: which comes first?",
                source="flash-attention and ONNX (before); tokamax (behind)",
                answers={
                    "before": "the scores are bounded, then the bias is added",
                    "behind": "scores with the bias are bounded",
                    "nan": "the output holds NaN",
                    "refused": REFUSED,
                    "other": OTHER,
                },
                legitimate=frozenset({"before", "behind", "refused"}),
                questions={
                    "attention": Question(
                        problems=lambda: attention("wide", values="zero-query.1#1", softcap=0.5, bias="gaussian.1:qk*4.0#320"),
                        read=ordered,
                        places=(*IN_DTYPES, changed("1 batch row", batch=1)),
                    )
                },
                native=True,
            ),
        )

    def faults(self) -> tuple[Wrong, ...]:
        def wrong(identifier: str, sentence: str, stage: Any, of: str = "ATT-SCALE-016", sources: tuple[str, ...] = ()) -> Wrong:
            """``stage`` in place of its own."""
            return Wrong(
                id=f"softcap-{identifier}", sentence=sentence, requirements={"attention": (of,)}, sources=sources,
                chain=lambda stages: tuple(stage if one is self.of_scores else one for one in stages),
            )  # fmt: skip

        def behind_bias(stages: tuple[Any, ...]) -> tuple[Any, ...]:
            others = [one for one in stages if one is not self.of_scores]
            place = 1 + [one.name for one in others].index("bias")
            return (*others[:place], self.of_scores, *others[place:])

        return (
            wrong("clips", "cuts scores off at the softcap", Capped(lambda scores, cap: np.clip(scores, -cap, cap))),
            wrong("without-factor", "takes tanh(s / cap) without multiplying", Capped(lambda scores, cap: np.tanh(scores / cap))),
            wrong("without-quotient", "takes cap · tanh(s) without dividing", Capped(lambda scores, cap: cap * np.tanh(scores))),
            wrong("of-double", "bounds at twice the softcap", Capped(lambda scores, cap: 2 * cap * np.tanh(scores / (2 * cap)))),
            wrong("softsign", "takes s / (1 + |s| / cap)", Capped(lambda scores, cap: scores / (1 + np.abs(scores) / cap))),
            wrong("overflows", "takes the hyperbolic tangent by exponentials that overflow", Capped(_by_exponentials),
                  "ATT-SCALE-020"),
            wrong("behind-hiding", "hides first and caps then, so that hidden keys have the score −cap", _BehindHiding(),
                  "ATT-SCALE-017", ("llama.cpp: https://github.com/ggml-org/llama.cpp/pull/29034",)),
            Wrong(id="softcap-behind-bias", sentence="bounds the scores with their bias", chain=behind_bias,
                  requirements={"attention": ("ATT-SCALE-018",)}, needs=frozenset({"bias"})),
        )  # fmt: skip


def _by_exponentials(scores: Any, cap: Any) -> Any:
    grown = np.exp((2 * scores / cap).astype(np.float32))
    return cap * ((grown - 1) / (grown + 1))


class _BehindHiding(Capped):
    def value(self, flow: Any) -> None:
        super().value(flow)
        if flow.inputs.softcap is not None and flow.visible is not None:
            flow.scores = np.where(flow.visible, flow.scores, -flow.inputs.softcap)
            flow.visible = None


FEATURE = Softcap()

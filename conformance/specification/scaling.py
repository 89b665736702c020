"""ATT-SCALE: the factor before softmax, and scores far from 0."""

from conformance.problem import AttentionProblem
from conformance.specification.build import ALL, F32, F32_HALF, HALF, IN_16_BITS, NO_F16, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.requirement import Blind, Requirement

_VASWANI = "Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.1, equation 1"


def _at(score: float, seed: int) -> list[list[AttentionProblem]]:
    """All scores at ``score`` but for one key a row, or as far from 0 as the weights keep their order in 16 bits."""
    return [
        attention("wide", ("float64", "float32"), values=f"far.1*{score}#{seed}"),
        attention("wide", ("bfloat16",), values=f"far.1*{0.8 * score}#{seed}"),
        attention("wide", HALF, values=f"far.1*{0.16 * score}#{seed}"),
        attention("square", F32, values=f"far.1*{score}#{seed + 1}", causal="top-left"),
    ]


# Of keys whose scores of 1e4 and more differ by ordinary amounts, rounded scores do not say which is largest.
_ORDER_LOST = (
    Blind("float32", ("bf16x3", "tf32"), ("argmax",)),
    *(Blind(dtype, IN_16_BITS, ("argmax",)) for dtype in HALF),
)

_FACTOR = (
    Requirement(
        id="ATT-SCALE-001",
        sentence="Without a scale the scores are multiplied by 1/√d, d the width of query and key.",
        rationale="1/d, √d, none at all and twice are all in released code.",
        source=f"{_VASWANI}; perceiver-io#9",
        designed=lambda: joined(
            *(attention("wide", ALL, values=distribution) for distribution in ("gaussian.1#1", "spread.1#2")),
            attention((2, 3, 3, 7, 13, 5, 5), F32, values="spread.1#3"),
            attention((2, 1, 1, 7, 13, 40, 40), ALL, values="spread.1#3"),
        ),
        random=Draw(dtypes=ALL, distributions=("spread.1", "gaussian.1")),
    ),
    Requirement(
        id="ATT-SCALE-002",
        sentence="The default scale comes from the key width, also where the value width differs.",
        rationale="A width taken from the wrong tensor is right until the two differ.",
        source="transformers#44554; xformers#1090",
        designed=lambda: joined(
            attention("value-width", ALL, values="spread.1#4"),
            attention((2, 3, 3, 7, 13, 8, 19), F32, values="gaussian.1#5"),
        ),
        random=Draw(dtypes=ALL, shapes="value-width", distributions=("spread.1", "gaussian.1")),
    ),
    Requirement(
        id="ATT-SCALE-003",
        sentence="The default scale does not depend on the number of heads.",
        rationale="1/√(heads · d), the width of the whole model, is the commonest fault of all.",
        source="vit-pytorch#65; dfdx#171",
        designed=lambda: joined(
            *(attention("wide", ALL, values=distribution) for distribution in ("spread.1#6", "gaussian.1#6")),
            *(attention((1, heads, heads, 5, 7, 8, 8), F32, values="spread.1#6") for heads in (1, 8)),
        ),
        random=Draw(shapes="prime", distributions=("spread.1", "gaussian.1")),
    ),
    Requirement(
        id="ATT-SCALE-004",
        sentence="The default scale counts all channels, also those that are 0.",
        rationale="A kernel that pads or packs the width must keep the scale of the width that it was given.",
        source="ipex-llm#12619",
        designed=lambda: joined(
            *(attention(shape, ALL, values="spread.1#7", transformations=("zero-channels.1#0",)) for shape in ("wide", "prime"))
        ),
        random=Draw(distributions=("spread.1", "gaussian.1"), transformations=("zero-channels.1",)),
    ),
    Requirement(
        id="ATT-SCALE-005",
        sentence="A scale that is given replaces the default one.",
        rationale="Ignored, multiplied on top, or lost when a model is saved.",
        source="tt-metal#33304; openvino#31365",
        designed=lambda: joined(
            *(attention("wide", ALL, values="gaussian.1#8", scale=scale) for scale in (0.5, 0.1)),
            attention("wide", ALL, values="signatures.1#9", scale=0.75),
            attention("wide", F32, values="gaussian.1#64", scale=0.1, mask="random.1:b1qk#64"),
            attention("wide", F32, values="gaussian.1#65", scale=0.1, causal="bottom-right"),
            attention("wide", F32, values="gaussian.1#66", scale=0.1, key_lengths=(5, 11)),
            attention("decode", F32, values="gaussian.1#67", scale=0.1),
            attention(
                "square",
                ALL,
                values="gaussian.1#68",
                scale=0.1,
                mask="random.1:b1qk#68",
                bias="gaussian.1:qk#68",
                causal="top-left",
                key_lengths=(9, 13),
            ),
            attention("grouped-decode", ALL, values="gaussian.1#69", scale=0.1),
        ),
        few_of=lambda problem: problem.dtype == "float32" or problem.causal == "none",
        random=Draw(distributions=("gaussian.1", "signatures.1"), scales=(0.5, 0.125, 0.7, 0.1), shapes="core"),
    ),
    Requirement(
        id="ATT-SCALE-006",
        sentence="A scale of 1 leaves the products as they are.",
        rationale='1 is what models that scale the query themselves pass; it must not count as "not given".',
        source="T5 (arXiv 1910.10683) leaves the scale out of attention",
        designed=lambda: joined(attention("wide", ALL, values="gaussian.1*0.5#10", scale=1.0)),
        random=Draw(distributions=("gaussian.1*0.5", "signatures.1"), scales=(1.0,), shapes="core"),
    ),
    Requirement(
        id="ATT-SCALE-007",
        sentence="A tiny scale is honoured.",
        rationale="Rounded to a short fixed-point or 16-bit number, or clipped, it is another scale.",
        source="Follows from the formula",
        designed=lambda: joined(
            *(attention("wide", ALL, values="gaussian.1*2048.0#11", scale=scale) for scale in (2.0**-12, 0.0002)),
        ),
        random=Draw(distributions=("gaussian.1*2048.0",), scales=(2.0**-12, 0.0002, 0.0005), shapes="core"),
    ),
    Requirement(
        id="ATT-SCALE-008",
        sentence="A large scale is honoured.",
        rationale="A scale above 1 must not be clipped, nor make the scores overflow before the maximum is taken off.",
        source="Follows from the formula",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1*0.001#12", scale=700.0),
            attention("wide", ALL, values="gaussian.1#1", scale=30.0),
        ),
        random=Draw(distributions=("gaussian.1*0.001",), scales=(500.0, 700.0), shapes="core"),
    ),
    Requirement(
        id="ATT-SCALE-009",
        sentence="The scale multiplies the products only, not the bias.",
        rationale="Scaling after the bias was added shrinks relative positions and lifts masks.",
        source="PyTorch documentation of scaled_dot_product_attention",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#14", bias="gaussian.1:qk#14"),
            attention("wide", F32, values="gaussian.1#14", bias="gaussian.1:qk#14", scale=0.1),
        ),
        random=Draw(
            distributions=("gaussian.1",),
            biases=("gaussian.1", "gaussian.1*4.0"),
            bias_forms=("qk",),
            scales=(None, 0.1),
            shapes="core",
        ),
    ),
    Requirement(
        id="ATT-SCALE-015",
        sentence="A negative scale is a factor like any other.",
        rationale="Taken without its sign, or for none given, it turns the order of the keys about.",
        source="Follows from the formula",
        designed=lambda: joined(
            *(attention("wide", ALL, values="gaussian.1#28", scale=scale) for scale in (-0.25, -2.0)),
            attention("wide", F32, values="spread.1#29", scale=-0.05, mask="random.1:b1qk#29"),
            attention("wide", F32, values="gaussian.1#30", scale=-0.3, causal="top-left"),
            attention("wide", F32, values="gaussian.1#31", scale=-0.3, causal="bottom-right"),
            attention("wide", F32, values="gaussian.1#32", scale=-0.3, key_lengths=(9, 12)),
            attention("tall", F32, values="gaussian.1#33", scale=-0.3, bias="gaussian.1:qk#33"),
        ),
        few=lambda: joined(
            *(attention("wide", ALL, values="gaussian.1#28", scale=scale) for scale in (-0.25, -2.0)),
            attention("wide", F32, values="gaussian.1#30", scale=-0.3, causal="top-left"),
        ),
        random=Draw(distributions=("gaussian.1", "spread.1"), scales=(-0.1, -0.7, -3.0), shapes="core"),
    ),
)

_FAR = (
    Requirement(
        id="ATT-SCALE-010",
        sentence="Scores beyond the range of exp give the right output.",
        rationale="exp(89) overflows float32, exp(12) float16: the maximum must be taken off first.",
        source="FasterTransformer#43; executorch#18407",
        designed=lambda: joined(
            attention("wide", ("float32", *HALF), values="offset.1*200.0#15"),
            attention("wide", ("float64",), values="offset.1*900.0#15"),
            attention("wide", ("float32", *HALF), values="all-low.1*-200.0#16"),
            attention("wide", ("float64",), values="all-low.1*-900.0#16"),
            attention("wide", ("float16",), values="offset.1*20.0#17"),
            *(attention("wide", F32_HALF, values=f"far.1*{score}#70") for score in (200.0, -200.0)),
            attention("long", F32_HALF, values="far.1*104.0#71"),
        ),
        random=Draw(
            dtypes=ALL,
            distributions=tuple(
                f"{distribution}*{score}"
                for size in (200.0, 900.0)
                for distribution, score in (("offset.1", size), ("all-low.1", -size), ("far.1", size), ("far.1", -size))
            ),
        ),
        blind=(Blind("bfloat16", ("fused_qk", "low"), ("argmax",)),),
    ),
    Requirement(
        id="ATT-SCALE-011",
        sentence="Scores of ±1e4 give the right output.",
        rationale="Such scores occur in trained models; float32 keeps their differences to a thousandth.",
        source="TransformerLens#319",
        designed=lambda: joined(
            attention("wide", NO_F16, values="gaussian.1*10000.0#18"),
            attention("wide", ("float16",), values="gaussian.1*4000.0#18"),
            attention("wide", ALL, values="offset.1*10000.0#19"),
            attention("wide", ALL, values="all-low.1*-10000.0#20"),
            *(attention("wide", ALL, values=f"far.1*{score}#72") for score in (10000.0, -10000.0)),
        ),
        random=Draw(shapes="core", distributions=("offset.1*10000.0", "all-low.1*-10000.0", "far.1*10000.0", "far.1*-10000.0")),
        exempt="Scores that differ by thousands leave one key in a row.",
        cannot_tell=("argmax",),
    ),
    Requirement(
        id="ATT-SCALE-012",
        sentence="An offset of 1e5 common to all scores of a row leaves the output as it is.",
        rationale="Softmax does not change when a number is added to all scores of a row.",
        source="Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021)",
        designed=lambda: joined(
            attention("wide", NO_F16, values="offset.1*100000.0#21"),
            attention("square", F32, values="offset.1*100000.0#22", causal="top-left"),
            *_at(100000.0, 73),
        ),
        random=Draw(shapes="core", distributions=("offset.1*100000.0",), dtypes=("float32", "float64")),
        blind=_ORDER_LOST,
    ),
    Requirement(
        id="ATT-SCALE-013",
        sentence="In float16, products beyond 65504 whose scaled scores are ordinary give the right output.",
        rationale="A product kept in float16 before it is scaled is infinite.",
        source="metal-flash-attention#8; ultralytics#24990",
        designed=lambda: joined(
            attention("wide", ("float16",), values="large-products.1*100000.0#23"),
            attention("square", ("float16",), values="large-products.1*150000.0#24", causal="top-left"),
            attention("wide", ("float16",), values="gaussian.1*16384.0#25", scale=2.0**-15),
        ),
        random=Draw(
            shapes="4-wide",  # 1e5/√4 is within the range
            distributions=("large-products.1*100000.0", "gaussian.1*16384.0"),  # each goes with its scale
            scales=(None, 2.0**-15),
            dtypes=("float16",),
        ),
    ),
    Requirement(
        id="ATT-SCALE-014",
        sentence="Where all scores are near −1e5, the output is that of their differences.",
        rationale="A running maximum that starts from 0 or from −1e4 instead of −∞ makes all weights vanish.",
        source="flash-attention#2082; burn#4697",
        designed=lambda: joined(
            attention("wide", NO_F16, values="all-low.1*-100000.0#26"),
            attention("wide", ("float16",), values="all-low.1*-16000.0#26"),
            attention("square", F32, values="all-low.1*-100000.0#27", causal="top-left"),
            *_at(-100000.0, 75),
        ),
        random=Draw(distributions=("all-low.1*-100000.0",), dtypes=("float32", "float64")),
        blind=_ORDER_LOST,
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_FACTOR, *_FAR)

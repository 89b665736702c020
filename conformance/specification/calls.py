"""ATT-OUT, second part: repeated calls, memory, layouts and sizes."""

from typing import Any

from conformance.problem import Problem
from conformance.specification.build import (
    ALL,
    F32,
    F32_BF16,
    F32_HALF,
    HALF,
    Sizes,
    attention,
    joined,
    multi_head,
    with_and_without,
)
from conformance.specification.combinations import hiding_nothing, of_layout
from conformance.specification.draw import GENERAL_DISTRIBUTIONS, Draw
from conformance.specification.requirement import Blind, Requirement

_ASKED: tuple[dict[str, Any], ...] = (
    {"mask": "random.1:b1qk#26"},
    {"bias": "gaussian.1:qk#26"},
    {"causal": "top-left"},
    {"scale": 0.5},
    {"key_lengths": (5, 11)},
)

_CALLS = (
    Requirement(
        id="ATT-OUT-026",
        sentence="The same call repeated gives the same output.",
        rationale="Races and reads beyond the end show as outputs that wander.",
        source="tt-metal#52284; pytorch#169222",
        check="repeat",
        designed=lambda: joined(attention("wide", ALL), attention("square", causal="top-left"), attention("tile")),
    ),
    Requirement(
        id="ATT-OUT-027",
        sentence="A call gives the output of its own inputs, also after calls with other values in the same shapes.",
        rationale="A result kept by shape or by address is right the first time only.",
        source="KernelBench, on kernels that answer from a cache",
        check="stale",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#26"),
            *(
                attention("wide", (dtype,), **fields)
                for dtype in ALL
                for fields in with_and_without("attention", dict(enumerate(_ASKED, 40)), 45)
            ),
            attention("tall", ALL, values="gaussian.1#60"),  # fewer keys than the calls before
        ),
    ),
    Requirement(
        id="ATT-OUT-028",
        sentence="A call leaves its inputs as they were.",
        rationale="The caller uses query, key, value and masks again.",
        source="Array API standard: functions do not change their arguments",
        check="untouched",
        designed=lambda: joined(
            attention("wide", ALL),
            *(attention("wide", ALL, **asked) for asked in _ASKED),
            attention("square", causal="top-left"),
            attention("square", causal="top-left", mask="random.1:b1qk#27"),
            attention("wide", mask="random.1:b1qk#27", bias="gaussian.1:qk#27"),
            attention("grouped"),
        ),
    ),
    Requirement(
        id="ATT-OUT-029",
        sentence="The output shares no memory with an input.",
        rationale="Otherwise writing to one changes the other.",
        source="Array API standard: functions return new arrays",
        check="unaliased",
        # a single key, where V itself might be handed out
        designed=lambda: joined(
            attention("wide", ALL),
            attention((2, 3, 3, 7, 1, 8, 8), ALL),
            attention((2, 3, 3, 1, 1, 8, 8)),
            attention("square"),
        ),
    ),
)


def _of_layouts(number: int, layouts: tuple[str, ...], sentence: str, rationale: str, source: str) -> Requirement:
    """The layouts asked plainly in all dtypes, then beside all that there is."""
    return Requirement(
        id=f"ATT-OUT-{number:03}",
        sentence=sentence,
        rationale=rationale,
        source=source,
        designed=lambda: joined(
            *(attention("square", ALL, values="spread.1#28", layout=layout) for layout in layouts),
            *(attention("wide", F32_BF16, values="spread.1#28", layout=layout) for layout in layouts),
            *(of_layout(layout, 10 * (number + turn)) for turn, layout in enumerate(layouts)),
        ),
        random=Draw(layouts=layouts, masks=("", "random.1"), forms=("b1qk",), shapes="core"),
    )


def _layout_requirement(number: int, layout: str, sentence: str, source: str) -> Requirement:
    return Requirement(
        id=f"ATT-OUT-{number:03}",
        sentence=sentence,
        rationale="Strides that are ignored or half obeyed read other elements.",
        source=source,
        designed=lambda: joined(
            attention("square", ALL, layout=layout),
            attention("wide", ALL, values="spread.1#28", layout=layout),
            attention("wide", mask="random.1:b1qk#28", layout=layout),
            attention((2, 1, 1, 5, 65, 8, 8), F32_BF16, layout=layout),
            attention("square", ALL, values="spread.1#28", layout="mixed") if layout == "transposed" else (),
            *(of_layout(one, 360 + 10 * number) for one in (layout, *(("mixed",) if layout == "transposed" else ()))),
        ),
        random=Draw(layouts=(layout,), masks=("", "random.1"), forms=("b1qk",), shapes="core"),
    )


_LAYOUTS = (
    _layout_requirement(
        30,
        "transposed",
        "Inputs with length before heads in memory, all three or the key alone, give what contiguous ones give.",
        "pytorch#181133; torch-spyre#4331",
    ),
    _layout_requirement(
        31, "strided", "Inputs with gaps between their elements give what contiguous ones give.", "ROCm/pytorch#3230"
    ),
    _layout_requirement(
        32, "expanded", "Inputs expanded over the batch (stride 0) give what contiguous ones give.", "pytorch#191937"
    ),
    _layout_requirement(
        33,
        "reversed",
        "Inputs with a negative stride give what contiguous ones give.",
        "NumPy documentation: views with negative strides",
    ),
    _of_layouts(
        46,
        ("columns", "key-columns", "heads-last", "batch-last"),
        "Inputs of which another axis than the width is fastest in memory give what contiguous ones give.",
        "Caches keep keys as (b, h, d, l), ready for the product; a kernel that takes the last stride for 1 reads other keys.",
        "ROCm/pytorch#3230; pytorch#181133",
    ),
    _of_layouts(
        47,
        ("packed", "misaligned"),
        "Inputs that share one buffer, or begin at any element of theirs, give what inputs of their own give.",
        "A fused projection gives query, key and value in one buffer; slices begin anywhere, and vectors of 16 bytes or more "
        "must not be expected to.",
        "PyTorch documentation of scaled_dot_product_attention with a packed projection; pytorch#181133",
    ),
)

_SMALL: tuple[tuple[int, int, int, int, int, int, int], ...] = (
    (1, 1, 1, 1, 2, 1, 1),
    (1, 1, 1, 2, 2, 1, 2),
    (1, 2, 2, 1, 3, 2, 2),
    (2, 1, 1, 3, 2, 3, 3),
    (3, 2, 2, 2, 3, 1, 1),
    (2, 3, 3, 3, 3, 2, 2),
)
_TILES: tuple[tuple[int, int], ...] = ((63, 65), (65, 63), (64, 129), (129, 127), (127, 64), (257, 65))


def _of_lengths() -> list[Problem]:
    return joined(
        attention("wide", ALL, values="gaussian.1#32"),
        *(attention(shape, ALL, values="gaussian.1#33") for shape in ("tall", "decode")),
        attention("long", ALL),
        attention((1, 1, 1, 2, 1031, 67, 8), ALL),  # more than 2¹⁶ numbers in the keys of one head
    )


_SIZES = (
    Requirement(
        id="ATT-OUT-034",
        sentence="Lengths, widths and head counts of 1, 2 and 3 are right.",
        rationale="Squeezed axes and broadcasts by accident live at size 1.",
        source="transformers#28215",
        designed=lambda: joined(
            *(attention(sizes, values="signatures.1#29") for sizes in _SMALL),
            attention("small", ALL, values="signatures.1#29"),
            attention((1, 2, 2, 1, 3, 2, 2), ALL, values="signatures.1#103"),
            attention((2, 3, 3, 3, 3, 2, 2), ALL, values="signatures.1#29"),
        ),
        few_of=lambda problem: problem.dtype == "float32" or problem.heads == 3,
        random=Draw(shapes="small"),
    ),
    Requirement(
        id="ATT-OUT-035",
        sentence="Prime lengths and widths are right.",
        rationale="Nothing divides them, so every loop has a remainder.",
        source="vllm#34570",
        designed=lambda: joined(
            attention("prime", ALL),
            attention((1, 7, 7, 11, 13, 5, 5)),
            attention((3, 2, 2, 7, 11, 31, 31), ALL),
        ),
        random=Draw(shapes="prime"),
    ),
    Requirement(
        id="ATT-OUT-036",
        sentence="Lengths at and beyond the edge of a tile (63, 64, 65, 127, 129, 257) are right.",
        rationale="Kernels work in tiles: the last, partial one is where keys get lost and garbage gets in.",
        source="cutlass#2428; Megatron-LM#132; pytorch#169222",
        designed=lambda: joined(
            *(
                attention((1, 1, 1, lq, lk, 8, 8), values=distribution)
                for lq, lk in _TILES
                for distribution in ("flat.1#30", "spread.1#31")
            ),
            *(attention((1, 1, 1, lq, lk, 8, 8), ALL, values="spread.1#31") for lq, lk in ((64, 129), (257, 65))),
        ),
        random=Draw(shapes="tile", distributions=("flat.1", *GENERAL_DISTRIBUTIONS)),
    ),
    Requirement(
        id="ATT-OUT-037",
        sentence="The query length may be smaller or greater than the key length.",
        rationale="Cross-attention and cached decoding; code for self-attention takes one length for both.",
        source="Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.1",
        # also beside a scale, shared key heads and another value width, two at a time
        designed=lambda: joined(_of_lengths(), hiding_nothing()),
        few=lambda: _of_lengths(),
        random=Draw(shapes="unequal"),
    ),
    Requirement(
        id="ATT-OUT-038",
        sentence="Sums over many keys keep their digits.",
        rationale="In bfloat16 a running sum of ones stands still at 256; in float16 small terms vanish beside a large sum.",
        source="executorch#20089",
        designed=lambda: joined(
            attention("long", F32_HALF, values="gaussian.1#35"),
            attention("long", F32_HALF, values="flat.1#36"),
            attention("long", F32_HALF, values="spread.1#37", transformations=("equal-keys.1#0",)),
        ),
        random=Draw(shapes="long", distributions=("flat.1", "gaussian.1")),
        exempt="Nearly equal weights over hundreds of keys: the mean of V is the truth to within 16-bit rounding.",
        cannot_tell=("mean", "uniform"),
        blind=(Blind("float16", ("low",), ("zeros",)), Blind("bfloat16", ("low",), ("zeros", "argmax", "heads"))),
    ),
)

_MANY_ROWS = (2, 5, 5, 29, 31, 21, 21)  # 1/√21 and 1/7 are far from any number of 16 bits
# As many rows on other paths of code.
_PATHS: tuple[tuple[Sizes, dict[str, Any]], ...] = (
    ((2, 6, 2, 29, 31, 21, 21), {}),
    ((8, 40, 40, 1, 31, 21, 21), {}),
    ((2, 5, 5, 29, 131, 21, 21), {}),
    ((2, 5, 5, 29, 31, 64, 64), {}),
    ((2, 5, 5, 31, 31, 21, 21), {"causal": "top-left"}),
    (_MANY_ROWS, {"mask": "random.1:b1qk*0.7#61"}),
    (_MANY_ROWS, {"bias": "gaussian.1:qk#61"}),
    (_MANY_ROWS, {"key_lengths": (29, 17)}),
)

_BIAS = (
    Requirement(
        id="ATT-OUT-039",
        sentence="Taken together, the errors have no direction: they are not those of another scale, of weights that do not sum "
        "to 1, of results rounded to one side, or of one key that counts more or less than the others.",
        rationale="A scale rounded to 16 bits, a short log2(e), truncation in place of rounding or a guard added to the sum "
        "hides in the budget of each element and shows in all of them together; training adds such errors up.",
        source="Is Flash Attention Stable? (arXiv 2405.02803); biased rounding in low-precision training (arXiv 2510.04212)",
        check="unbiased",
        designed=lambda: joined(
            attention(_MANY_ROWS, ALL, values="gaussian.1#61"),
            attention("prime", F32, values="gaussian.1#62"),
            attention(_MANY_ROWS, F32_HALF, values="gaussian.1#63", scale=1.0 / 7.0),
            *(attention(sizes, F32_HALF, values="gaussian.1#61", **asked) for sizes, asked in _PATHS),
        ),
        few=lambda: joined(
            attention(_MANY_ROWS, F32_HALF, values="gaussian.1#61"),
            attention("prime", F32, values="gaussian.1#62"),
            attention(_MANY_ROWS, F32_HALF, values="gaussian.1#63", scale=1.0 / 7.0),
        ),
    ),
)

_EXACT = (
    Requirement(
        id="ATT-OUT-040",
        sentence="Where one key is visible, the output is its V to the last bit.",
        rationale="Its weight is 1, whatever the algorithm. An output off by two units in the last place, weights that sum to a "
        "little more than 1, or values shortened on the way, are within every budget elsewhere.",
        source="Follows from the formula",
        check="exact",
        designed=lambda: joined(
            *(
                attention((2, 3, 3, 7, 1, 8, 8), dtypes, values=f"few-bits.1*{size}#{seed}")
                # the score is 0 where a product of it with log₂ e, rounded twice, would show in float32 and float64
                for dtypes, size, seed in ((ALL, 0.0, 64), (HALF, 1.0, 65))
            ),
            attention("wide", ALL, values="few-bits.1*0.0#66", mask="one-key.1:b1qk#66"),
            attention("wide", HALF, values="gaussian.1#67", mask="one-key.1:b1qk#67"),
            attention("wide", F32, values="few-bits.1*0.0#68", key_lengths=(1, 1)),
            attention("decode", F32, values="few-bits.1*0.0#69", causal="top-left"),
        ),
        exempt="The one visible key takes all the weight of any model.",
        cannot_tell=("mean", "argmax", "uniform"),
    ),
    Requirement(
        id="ATT-OUT-041",
        sentence="Keys of small weight count: a V of 1e4 shows a weight of 1e-5.",
        rationale="Weights below a threshold are dropped to save work, or vanish in 16 bits; together they are not small.",
        source="Sparse and pruned attention in released kernels; executorch#20089",
        designed=lambda: joined(
            *(attention("prime", ALL, values=f"gaussian.1*3.0#{n}", transformations=(f"loud-value.1#{n}",)) for n in (71, 72)),
            attention("long", F32_HALF, values="gaussian.1*2.0#73", transformations=("loud-value.1#73",)),
        ),
        random=Draw(dtypes=ALL, shapes="core", distributions=("gaussian.1*3.0",), transformations=("loud-value.1",)),
    ),
)

_COMPANY = (
    Requirement(
        id="ATT-OUT-043",
        sentence="A call gives the output of its own inputs whatever was asked before: larger and smaller problems, other "
        "numbers of heads and batch rows, other widths, dtypes and arguments; what it gave stays whatever is asked later.",
        rationale="Triangles, scales, masks, workspaces and compiled code are kept from call to call; each is right until "
        "something else is asked.",
        source="KernelBench, on kernels that answer from a cache; tests that call a function once per shape cannot see it",
        check="sequence",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#110"),
            attention("square", values="gaussian.1#130", causal="top-left"),
            attention("wide", values="gaussian.1#150", mask="random.1:b1qk#26"),
            attention("wide", values="gaussian.1#170", key_lengths=(5, 11)),
        ),
        few=lambda: joined(
            attention("wide", F32_BF16, values="gaussian.1#110"),
            attention("square", values="gaussian.1#130", causal="top-left"),
        ),
    ),
    Requirement(
        id="ATT-OUT-044",
        operation="multi_head_attention",
        sentence="A call of multi-head attention gives the output of its own inputs and weights whatever was asked before, and "
        "what it gave stays whatever is asked afterwards.",
        rationale="A module keeps weights, masks and buffers from call to call, and is asked in one shape where it is tested.",
        source="Follows from the formula",
        check="sequence",
        blind=(Blind("bfloat16", ("low",), ("zeros", "mean", "argmax", "uniform", "heads")),),
        designed=lambda: joined(
            multi_head("square", ALL, values="gaussian.1#110"),
            multi_head("square", values="gaussian.1#130", causal="top-left"),
            multi_head("square", values="gaussian.1#150", mask="random.1:b1qk#26"),
        ),
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_CALLS, *_LAYOUTS, *_SIZES, *_BIAS, *_EXACT, *_COMPANY)

"""ATT-HEAD: grouped heads in plain attention, and multi-head attention with given weights."""

from typing import Any

from conformance.cases.draw import Draw, MultiHeadDraw
from conformance.specification.build import ALL, F32, F32_BF16, F32_HALF, attention, joined, multi_head
from conformance.specification.model import Requirement

_VASWANI = "Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.2"
_GQA = "Ainslie et al. 2023 (arXiv 2305.13245)"

_GROUPED = (
    Requirement(
        id="ATT-HEAD-001",
        sentence="Grouped heads: query head h reads the key and value head ⌊h · Hkv / Hq⌋.",
        rationale="h mod Hkv is the classic fault; it is right for one kv head and for as many as query heads.",
        source=f"{_GQA}; onnx#7274; axlearn#842; FreeToken#177",
        designed=lambda: joined(
            attention("grouped", F32_HALF, values="signatures.1#1"),
            attention("grouped", F32, values="spread.1#2"),
            attention("grouped-square", F32, values="signatures.1#3"),
            attention((1, 24, 2, 3, 5, 8, 8), F32, values="signatures.1#4"),
        ),
        random=Draw(shapes="grouped"),
    ),
    Requirement(
        id="ATT-HEAD-002",
        sentence="One key and value head serves all query heads.",
        rationale="Multi-query attention, the extreme case of groups.",
        source="Shazeer 2019 (arXiv 1911.02150)",
        designed=lambda: joined(attention((2, 6, 1, 7, 13, 8, 8), F32, values="spread.1#5")),
    ),
    Requirement(
        id="ATT-HEAD-003",
        sentence="Grouped heads give what repeated key and value heads give, by every route by which they can be asked for.",
        rationale="Native groups and expanded heads are two paths of one library.",
        source="mlx#3383; vllm#17476",
        check="routes",
        designed=lambda: joined(attention("grouped", F32_BF16, values="spread.1#6")),
    ),
    Requirement(
        id="ATT-HEAD-004",
        sentence="With grouped heads a mask keeps a row of its own for each query head.",
        rationale="The mask has query heads, the keys have fewer: folding one must not fold the other.",
        source="pytorch#174861",
        designed=lambda: joined(
            attention("grouped", F32, values="spread.1#7", mask="random.1:bhqk*0.4#7"),
            attention("grouped", F32, values="spread.1#8", mask="random.1:1hqk*0.4#8"),
        ),
        random=Draw(shapes="grouped", masks=("random.1*0.4", "right-padding.1"), forms=("bhqk", "1hqk")),
    ),
    Requirement(
        id="ATT-HEAD-005",
        sentence="Grouped heads and causal together.",
        rationale="Packing the query heads of a group into one tile must not shift their triangle.",
        source="vllm#17476; mlx#3383",
        designed=lambda: joined(
            attention("grouped-square", F32, values="frontier.1#9", causal="top-left"),
            attention("grouped", F32, values="frontier.1#10", causal="bottom-right"),
        ),
        random=Draw(shapes="grouped-square", causal=("top-left",), laws=("spread.1", "frontier.1", "signatures.1")),
    ),
    Requirement(
        id="ATT-HEAD-006",
        sentence="A number of query heads that is not a multiple of the key and value heads is refused.",
        rationale="There is no right answer, so a silent one is wrong.",
        source="pytorch#141218",
        check="refuses",
        designed=lambda: joined(attention((2, 5, 2, 7, 13, 8, 8), F32, values="gaussian.1#11")),
    ),
)


def _multi(
    number: int,
    sentence: str,
    rationale: str,
    source: str,
    *problems: tuple[str, tuple[str, ...], dict[str, Any]],
    check: str = "values",
    random: MultiHeadDraw | None = None,
) -> Requirement:
    """A requirement of multi-head attention; each problem is a palette shape, its dtypes and its other fields."""
    return Requirement(
        id=f"ATT-HEAD-{number:03}",
        operation="multi_head_attention",
        sentence=sentence,
        rationale=rationale,
        source=source,
        check=check,
        designed=lambda: joined(*(multi_head(shape, dtypes, **fields) for shape, dtypes, fields in problems)),
        random=random,
    )


_CROSS: dict[str, Any] = {"source": "cross"}
_BIASES: dict[str, Any] = {"projection_bias": True, "output": "bias"}

_PROJECTIONS = (
    _multi(
        7,
        "Query, key and value are multiplied by their projections, x W, without a bias where none is given.",
        "Weights are (in, out); a transposed square matrix has the right shape and the wrong numbers.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#1"}),
        ("cross", F32, _CROSS),
        random=MultiHeadDraw(projection_bias=(False,), outputs=("plain",)),
    ),
    _multi(
        8,
        "A bias of a projection is added to query, key and value before they are split into heads.",
        "A key bias alone shifts all scores of a row and hides; those of query and value do not.",
        "PyTorch documentation of MultiheadAttention",
        ("square", ALL, {"values": "gaussian.1#2", **_BIASES}),
        ("cross", F32, {"values": "gaussian.1#3", **_CROSS, **_BIASES}),
        random=MultiHeadDraw(projection_bias=(True,), outputs=("bias", "plain")),
    ),
    _multi(
        9,
        "The merged heads are multiplied by the output projection, and its bias is added where one is given.",
        "The projection mixes the heads; left out or transposed, shapes still fit.",
        _VASWANI,
        ("square", F32_HALF, {"values": "gaussian.1#5", "output": "bias", "projection_bias": True}),
        ("square", F32_BF16, {"values": "gaussian.1#5", "output": "plain"}),
        random=MultiHeadDraw(outputs=("plain", "bias")),
    ),
    _multi(
        10,
        "Without an output projection the heads stand side by side.",
        "Some teach multi-head attention so; the output is then H · dv wide.",
        _VASWANI,
        ("square", F32_HALF, {"values": "gaussian.1#6", "output": "none"}),
        ("inner", F32, {"values": "gaussian.1#7", "output": "none"}),
        random=MultiHeadDraw(outputs=("none",)),
    ),
    _multi(
        11,
        "Head h is the h-th contiguous slice of the projected width.",
        "Splitting by a view without the transpose mixes positions with heads.",
        "FuxiCTR#30; Chinese-Text-Classification-Pytorch#53",
        ("square", F32_BF16, {"values": "gaussian.1#8", "output": "none"}),
        ("many", F32, {"values": "gaussian.1#9", "output": "none"}),
        random=MultiHeadDraw(outputs=("none", "plain")),
    ),
    _multi(
        12,
        "The heads are merged in their order, each at its own position.",
        "Merging without the transpose puts another position's numbers there.",
        "Transformer-Various-Positional-Encoding#1",
        ("square", F32_BF16, {"values": "gaussian.1#3"}),
        ("cross", F32, {"values": "gaussian.1#11", **_CROSS}),
        random=MultiHeadDraw(),
    ),
)

_USES = (
    _multi(
        13,
        "Self-attention: query, key and value may be one tensor.",
        "The encoder's use of it.",
        "Vaswani et al. 2017, section 3.2.3",
        ("square", ALL, {"values": "gaussian.1#7", "projection_bias": True, "output": "bias"}),
        random=MultiHeadDraw(),
    ),
    _multi(
        14,
        "Cross-attention: key and value may come from another tensor of another length.",
        "The decoder's use of it; lengths and inputs must not be taken from the query.",
        "Vaswani et al. 2017, section 3.2.3",
        ("cross", ALL, {"values": "gaussian.1#17", **_CROSS, **_BIASES}),
        ("square", F32, {"values": "gaussian.1#14", **_CROSS}),
        random=MultiHeadDraw(shapes="cross", sources=("cross",)),
    ),
    _multi(
        15,
        "One head is attention with projections.",
        "Nothing is split; code for many heads must still work.",
        _VASWANI,
        ("one-head", F32_HALF, {"values": "gaussian.1#15"}),
        ("one-head", F32, {"values": "gaussian.1#16", **_BIASES}),
        ("one-head", ("float64", "float32"), {"values": "gaussian.1#18", "output": "none"}),
        random=MultiHeadDraw(shapes="one-head", outputs=("plain", "bias", "none")),
    ),
    _multi(
        16,
        "Many narrow heads are right.",
        "Two channels a head: a scale or a stride taken from the model width is far off.",
        _VASWANI,
        ("many", F32_HALF, {"values": "gaussian.1#8"}),
        ("many", F32, {"values": "gaussian.1#18", **_BIASES}),
        random=MultiHeadDraw(shapes="many"),
    ),
    _multi(
        17,
        "Heads in another order, with their columns and rows of the weights, leave the output as it is.",
        "Each head must find its own weights, bias and rows of the output projection.",
        "Follows from the formula",
        ("square", F32_BF16, {"values": "gaussian.1#9", "edits": ("permute-heads.1#1",), **_BIASES}),
        ("many", F32, {"values": "gaussian.1#20", "edits": ("permute-heads.1#2",)}),
        random=MultiHeadDraw(edits=("permute-heads.1",)),
    ),
    _multi(
        18,
        "The scale is 1/√(width of a head), not of the model.",
        "The commonest fault in tutorials.",
        "dfdx#171; vit-pytorch#65",
        ("square", F32_HALF, {"values": "gaussian.1*3.0#28"}),
        ("many", F32, {"values": "gaussian.1*3.0#22"}),
        ("inner", F32, {"values": "gaussian.1*3.0#23"}),
    ),
    _multi(
        19,
        "One projection may be shared by all heads.",
        "The weights are then block-diagonal: each head applies the same block to its own slice of the input.",
        "Tutorials that project after the split",
        ("square", F32_HALF, {"values": "gaussian.1#24", "weights": "shared"}),
        ("many", F32, {"values": "gaussian.1#25", "weights": "shared"}),
        random=MultiHeadDraw(weights=("shared",)),
    ),
    _multi(
        20,
        "The inner widths may differ from the model width, and from each other.",
        "d_k and d_v are free in the paper.",
        _VASWANI,
        ("inner", F32_BF16, {"values": "gaussian.1#4"}),
        ("inner", F32, {"values": "gaussian.1#27", **_BIASES}),
        random=MultiHeadDraw(shapes="inner"),
    ),
    Requirement(
        id="ATT-HEAD-032",
        operation="multi_head_attention",
        sentence="Scores beyond the range of exp give the right output through the projections too.",
        rationale="exp(89) overflows float32, exp(710) float64: the maximum must be taken off first.",
        source="FasterTransformer#43; executorch#18407",
        designed=lambda: joined(
            multi_head("square", F32, values="gaussian.1*60.0#46"),
            multi_head("square", ("float64",), values="gaussian.1*400.0#46"),
            multi_head("one-head", F32, values="gaussian.1*60.0#47", output="none"),
            multi_head("one-head", ("float64",), values="gaussian.1*400.0#47", output="none"),
        ),
        exempt="Scores that differ by hundreds leave one key in a row.",
        cannot_tell=("argmax",),
    ),
)

_MASKS = (
    _multi(
        21,
        "Causal attention through the projections.",
        "The decoder's self-attention.",
        "Vaswani et al. 2017, section 3.2.3",
        ("square", F32_HALF, {"values": "gaussian.1#28", "causal": "top-left"}),
        random=MultiHeadDraw(causal=("top-left",)),
    ),
    _multi(
        22,
        "Key lengths hide the padding of each batch row, however loud it is.",
        "A padded token has an embedding like any other.",
        "pytorch#163997; Kyubyong/transformer#69",
        ("square", F32_BF16, {"values": "gaussian.1#2", "key_lengths": (4, 6), "edits": ("loud-hidden.1#0",)}),
        ("cross", F32, {"values": "gaussian.1#30", "key_lengths": (3, 7), **_CROSS}),
        random=MultiHeadDraw(key_lengths=True),
    ),
    _multi(
        23,
        "A boolean mask shows each query of each head the keys where it is True, and no others.",
        "Per head and per batch row.",
        "pytorch#97605; equinox#190",
        *(
            ("square", F32, {"values": "gaussian.1#31", "mask": f"random.1:{form}#{seed}"})
            for seed, form in enumerate(("qk", "b1qk", "1hqk", "bhqk"), 31)
        ),
        ("square", ("bfloat16",), {"values": "gaussian.1#32", "mask": "random.1:b1qk#40"}),
        random=MultiHeadDraw(masks=("random.1",), forms=("b1qk", "qk", "1hqk", "bhqk")),
    ),
    _multi(
        24,
        "A padding mask may hide leading or trailing keys, however loud they are.",
        "Left padding for generation, right padding for training.",
        "DeepSpeed#1466",
        ("square", F32_BF16, {"values": "gaussian.1#15", "mask": "left-padding.1:b11k#48", "edits": ("loud-hidden.1#0",)}),
        ("square", F32, {"values": "gaussian.1#34", "mask": "right-padding.1:b11k#47", "edits": ("loud-hidden.1#0",)}),
        random=MultiHeadDraw(masks=("left-padding.1", "right-padding.1"), forms=("b11k",), edits=("", "loud-hidden.1")),
    ),
)

_CALLS = (
    _multi(
        25,
        "A batch row alone gives what it gives in the batch.",
        "Requests must not depend on the company they are in.",
        "AutoAWQ#228",
        ("square", F32_BF16, {"values": "gaussian.1#23", "edits": ("batch-row.1#0",)}),
        random=MultiHeadDraw(edits=("batch-row.1",)),
    ),
    _multi(
        26,
        "The output has the shape (batch, query length, model width) and the dtype of the inputs.",
        "Whatever the widths and lengths inside.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#36"}),
        ("cross", F32, {"values": "gaussian.1#37", **_CROSS}),
        ("inner", F32, {"values": "gaussian.1#38"}),
    ),
    _multi(
        27,
        "The same call repeated gives the same output.",
        "Dropout left on, or a race, shows.",
        "nanoGPT and others: dropout passed in evaluation",
        ("square", F32_BF16, {"values": "gaussian.1#39"}),
        check="repeat",
    ),
    _multi(
        28,
        "A call gives the output of its own inputs and weights, also after calls with others of the same shapes.",
        "A module that keeps its first weights is right once.",
        "Follows from the formula",
        ("square", F32_BF16, {"values": "gaussian.1#40"}),
        check="stale",
    ),
    _multi(
        29,
        "A call leaves its inputs and weights as they were.",
        "Scaling the query in place changes the weights' product for the next call.",
        "Array API standard: functions do not change their arguments",
        ("square", F32_BF16, {"values": "gaussian.1#41"}),
        ("square", F32, {"values": "gaussian.1#42", **_BIASES}),
        check="untouched",
    ),
    _multi(
        30,
        "The output shares no memory with inputs or weights.",
        "Otherwise writing to one changes the other.",
        "Array API standard: functions return new arrays",
        ("square", F32, {"values": "gaussian.1#43"}),
        ("one-head", F32, {"values": "gaussian.1#44", "output": "none"}),
        check="unaliased",
    ),
    Requirement(
        id="ATT-HEAD-031",
        operation="multi_head_attention",
        sentence="A width that the number of heads does not divide is refused.",
        rationale="There is no right way to split it, so a silent one is wrong.",
        source="PyTorch documentation of MultiheadAttention",
        check="refuses",
        designed=lambda: [problem.but(heads=4) for problem in multi_head("square", F32, values="gaussian.1#45")],
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_GROUPED, *_PROJECTIONS, *_USES, *_MASKS, *_CALLS)

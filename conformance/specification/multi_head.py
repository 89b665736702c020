"""ATT-HEAD, second part: multi-head attention with given weights."""

from typing import Any

from conformance.specification.build import ALL, F32, F32_HALF, NO_F16, joined, multi_head, with_and_without
from conformance.specification.draw import MultiHeadDraw
from conformance.specification.multi_head_blind import blind
from conformance.specification.requirement import Requirement

_VASWANI = "Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.2"


def _multi(
    number: int,
    sentence: str,
    rationale: str,
    source: str,
    *problems: tuple[str, tuple[str, ...], dict[str, Any]],
    check: str = "values",
    random: MultiHeadDraw | None = None,
    exempt: str = "",
    cannot_tell: tuple[str, ...] = (),
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
        exempt=exempt,
        cannot_tell=cannot_tell,
        blind=blind(number),
    )


_CROSS: dict[str, Any] = {"source": "cross"}
_MEMORY: dict[str, Any] = {"source": "memory"}  # key and value are one array, as in the paper's decoder
_BIASES: dict[str, Any] = {"projection_bias": True, "output": "bias"}
_BARE: dict[str, Any] = {"output": "none"}  # neither biases nor an output projection: with one head, what the first lessons teach
_SHARED: dict[str, Any] = {"weights": "shared"}
_LOUD: dict[str, Any] = {"transformations": ("loud-hidden.1#0",)}


def _low(score: float) -> dict[str, Any]:
    """All visible scores near ``score``, and padding behind a mask that is loud."""
    return {"mask": "right-padding.1:b11k#47", "transformations": (f"low-visible.1*{score!r}#0", "loud-hidden.1#0")}


_ASKED: tuple[dict[str, Any], ...] = ({"mask": "random.1:b1qk#26"}, {"causal": "top-left"}, {"key_lengths": (4, 6)})

_PROJECTIONS = (
    _multi(
        7,
        "Query, key and value are multiplied by their projections, x W, without a bias where none is given.",
        "Weights are (in, out); a transposed square matrix has the right shape and the wrong numbers.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#1"}),
        ("cross", F32, _CROSS),
        ("cross", F32, _MEMORY),
        random=MultiHeadDraw(projection_bias=(False,), outputs=("plain",)),
    ),
    _multi(
        8,
        "A bias of a projection is added to query, key and value before they are split into heads.",
        "A key bias alone shifts all scores of a row and hides; those of query and value do not.",
        "PyTorch documentation of MultiheadAttention",
        ("square", ALL, {"values": "gaussian.1#2", **_BIASES}),
        ("cross", F32, {"values": "gaussian.1#3", **_CROSS, **_BIASES}),
        ("cross", F32, {"values": "gaussian.1#3", **_MEMORY, **_BIASES}),
        random=MultiHeadDraw(projection_bias=(True,), outputs=("bias", "plain")),
    ),
    _multi(
        9,
        "The merged heads are multiplied by the output projection, and its bias is added where one is given.",
        "The projection mixes the heads; left out or transposed, shapes still fit.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#5", "output": "bias", "projection_bias": True}),
        ("square", ALL, {"values": "gaussian.1#5", "output": "plain"}),
        random=MultiHeadDraw(outputs=("plain", "bias")),
    ),
    _multi(
        10,
        "Without an output projection the heads stand side by side.",
        "Some teach multi-head attention so; the output is then H · dv wide.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#6", "output": "none"}),
        ("inner", F32, {"values": "gaussian.1#7", "output": "none"}),
        random=MultiHeadDraw(outputs=("none",)),
    ),
    _multi(
        11,
        "Head h is the h-th contiguous slice of the projected width.",
        "Splitting by a view without the transpose mixes positions with heads.",
        "FuxiCTR#30; Chinese-Text-Classification-Pytorch#53",
        ("square", ALL, {"values": "gaussian.1#8", "output": "none"}),
        ("many", F32, {"values": "gaussian.1#9", "output": "none"}),
        ("square", F32, {"values": "gaussian.1#69"}),
        random=MultiHeadDraw(outputs=("none", "plain")),
    ),
    _multi(
        12,
        "The heads are merged in their order, each at its own position.",
        "Merging without the transpose puts another position's numbers there.",
        "Transformer-Various-Positional-Encoding#1",
        ("square", ALL, {"values": "gaussian.1#3"}),
        ("cross", F32, {"values": "gaussian.1#11", **_CROSS}),
        ("cross", F32, {"values": "gaussian.1#11", **_MEMORY}),
        random=MultiHeadDraw(),
    ),
)

_USES = (
    _multi(
        13,
        "Self-attention: query, key and value may be one tensor.",
        "The encoder's use of it.",
        "Vaswani et al. 2017, section 3.2.3",
        ("square", ALL, {"values": "gaussian.1#7", **_BIASES}),
        ("square", F32, {"values": "gaussian.1#48", **_SHARED}),
        ("one-head", ALL, {"values": "gaussian.1#2", **_BARE}),
        random=MultiHeadDraw(),
    ),
    _multi(
        14,
        "Cross-attention: key and value may come from another tensor of another length.",
        "The decoder's use of it; lengths and inputs must not be taken from the query.",
        "Vaswani et al. 2017, section 3.2.3",
        ("cross", ALL, {"values": "gaussian.1#17", **_CROSS, **_BIASES}),
        ("cross", ALL, {"values": "gaussian.1#17", **_MEMORY, **_BIASES}),
        ("square", ALL, {"values": "gaussian.1#12", **_CROSS}),
        ("square", ALL, {"values": "gaussian.1#12", **_MEMORY}),
        ("cross", F32, {"values": "gaussian.1#50", **_CROSS, **_SHARED}),
        ("cross", F32, {"values": "gaussian.1#50", **_MEMORY, **_SHARED}),
        random=MultiHeadDraw(shapes="cross", sources=("cross", "memory")),
    ),
    _multi(
        15,
        "One head is attention with projections.",
        "Nothing is split; code for many heads must still work.",
        _VASWANI,
        ("one-head", ALL, {"values": "gaussian.1#15"}),
        ("one-head", F32, {"values": "gaussian.1#16", **_BIASES}),
        ("one-head", ("float64", "float32"), {"values": "gaussian.1#18", "output": "none"}),
        random=MultiHeadDraw(shapes="one-head", outputs=("plain", "bias", "none")),
    ),
    _multi(
        16,
        "Many narrow heads are right.",
        "Two channels a head: a scale or a stride taken from the model width is far off.",
        _VASWANI,
        ("many", ALL, {"values": "gaussian.1#8"}),
        ("many", F32, {"values": "gaussian.1#18", **_BIASES}),
        random=MultiHeadDraw(shapes="many"),
    ),
    _multi(
        17,
        "Heads in another order, with their columns and rows of the weights, leave the output as it is.",
        "Each head must find its own weights, bias and rows of the output projection.",
        "Follows from the formula",
        ("square", ALL, {"values": "gaussian.1#9", "transformations": ("permute-heads.1#1",), **_BIASES}),
        ("many", F32, {"values": "gaussian.1#20", "transformations": ("permute-heads.1#2",)}),
        random=MultiHeadDraw(transformations=("permute-heads.1",)),
    ),
    _multi(
        18,
        "The scale is 1/√(width of a head), not of the model.",
        "The commonest fault in tutorials.",
        "dfdx#171; vit-pytorch#65",
        ("square", ALL, {"values": "gaussian.1*3.0#28"}),
        ("many", F32, {"values": "gaussian.1*3.0#22"}),
        ("inner", ALL, {"values": "gaussian.1*3.0#12"}),
        ("square", ALL, {"values": "gaussian.1*3.0#82", **_SHARED}),
        ("many", F32, {"values": "gaussian.1*3.0#52", **_SHARED}),
    ),
    _multi(
        19,
        "One projection may be shared by all heads.",
        "The weights are then block-diagonal: each head applies the same block to its own slice of the input.",
        "Tutorials that project after the split",
        ("square", ALL, {"values": "gaussian.1#24", "weights": "shared"}),
        ("many", F32, {"values": "gaussian.1#25", "weights": "shared"}),
        random=MultiHeadDraw(weights=("shared",)),
    ),
    _multi(
        20,
        "The inner widths may differ from the model width, and from each other.",
        "d_k and d_v are free in the paper.",
        _VASWANI,
        ("inner", ALL, {"values": "gaussian.1#7"}),
        ("inner", F32, {"values": "gaussian.1#27", **_BIASES}),
        random=MultiHeadDraw(shapes="inner"),
    ),
    _multi(
        32,
        "Scores beyond the range of exp give the right output through the projections too.",
        "exp(89) overflows float32, exp(710) float64; exp(−750) of every key leaves 0/0. The maximum must be taken off first.",
        "FasterTransformer#43; executorch#18407",
        ("square", F32_HALF, {"values": "gaussian.1*60.0#46"}),
        ("square", ("float64",), {"values": "gaussian.1*400.0#46"}),
        ("one-head", F32_HALF, {"values": "gaussian.1*60.0#47", **_BARE}),
        ("one-head", ("float64",), {"values": "gaussian.1*400.0#47", **_BARE}),
        *(
            (shape, dtypes, {"values": "gaussian.1#53", **output, "transformations": (f"low-visible.1*{score}#0",)})
            for shape, output in (("square", {}), ("one-head", _BARE))
            for dtypes, score in ((F32, -200.0), (("float64",), -900.0))
        ),
        exempt="Scores that differ by hundreds leave one key in a row.",
        cannot_tell=("argmax",),
    ),
)

_MASKS = (
    _multi(
        21,
        "Causal attention through the projections, in both alignments where the lengths differ.",
        "The decoder's self-attention, and what a cache makes of it.",
        "Vaswani et al. 2017, section 3.2.3",
        ("square", ALL, {"values": "gaussian.1#28", "causal": "top-left"}),
        ("cross", F32, {"values": "gaussian.1#54", **_CROSS, "causal": "top-left"}),
        ("cross", F32, {"values": "gaussian.1#54", **_MEMORY, "causal": "top-left"}),
        ("cross", F32, {"values": "gaussian.1#55", **_CROSS, "causal": "bottom-right"}),
        ("cross", F32, {"values": "gaussian.1#55", **_MEMORY, "causal": "bottom-right"}),
        random=MultiHeadDraw(causal=("top-left",)),
    ),
    _multi(
        22,
        "Key lengths hide the padding of each batch row, however loud it is.",
        "A padded token has an embedding like any other.",
        "pytorch#163997; Kyubyong/transformer#69",
        ("square", ALL, {"values": "gaussian.1#2", "key_lengths": (4, 6), **_LOUD}),
        ("cross", F32, {"values": "gaussian.1#30", "key_lengths": (3, 7), **_CROSS}),
        ("cross", F32, {"values": "gaussian.1#30", "key_lengths": (3, 7), **_MEMORY}),
        random=MultiHeadDraw(key_lengths=True),
    ),
    _multi(
        23,
        "A boolean mask shows each query of each head the keys where it is True, and no others.",
        "Per head and per batch row.",
        "pytorch#97605; equinox#190",
        *(
            ("square", ALL, {"values": "gaussian.1#31", "mask": f"random.1:{form}#{seed}"})
            for seed, form in enumerate(("qk", "b1qk", "1hqk", "bhqk"), 31)
        ),
        ("square", ALL, {"values": "gaussian.1#56", "mask": "random.1:b1qk#41", **_SHARED}),
        random=MultiHeadDraw(masks=("random.1",), forms=("b1qk", "qk", "1hqk", "bhqk")),
    ),
    _multi(
        24,
        "A padding mask may hide leading or trailing keys, however loud they are.",
        "Left padding for generation, right padding for training.",
        "DeepSpeed#1466",
        ("square", ALL, {"values": "gaussian.1#15", "mask": "left-padding.1:b11k#48", **_LOUD}),
        ("square", F32, {"values": "gaussian.1#34", "mask": "right-padding.1:b11k#47", **_LOUD}),
        ("square", ALL, {"values": "gaussian.1#57", "mask": "left-padding.1:b11k#48", **_LOUD, **_SHARED}),
        random=MultiHeadDraw(masks=("left-padding.1", "right-padding.1"), forms=("b11k",), transformations=("", "loud-hidden.1")),
    ),
    _multi(
        33,
        "Visible scores, however low, win over hidden keys through the projections too.",
        "A finite fill, such as −1e4, −1e9 or −1e20, lies above lower ones, and the hidden keys take all the weight.",
        "lattice#373; fill values in tutorials",
        ("square", F32, {"values": "gaussian.1#58", **_low(-2e4)}),
        ("square", NO_F16, {"values": "gaussian.1#58", **_low(-1e10)}),
        ("cross", F32, {"values": "gaussian.1#59", **_low(-1e10), **_CROSS, **_BIASES}),
        ("cross", F32, {"values": "gaussian.1#59", **_low(-1e10), **_MEMORY, **_BIASES}),
        *(("square", F32, {"values": "gaussian.1#60", **_low(score), **_SHARED}) for score in (-2e4, -1e10)),
        ("square", NO_F16, {"values": "gaussian.1#60", **_low(-1e22), **_SHARED}),
        exempt="In float32 scores of 1e10 keep no ordinary difference: what surely shows is a weight given to a hidden key.",
        cannot_tell=("mean", "argmax"),
    ),
    _multi(
        35,
        "Causal together with a mask, padding or key lengths: a key is visible where all show it, in cross-attention too.",
        "One of the two is silently dropped in more than one library, or drawn another way.",
        "keras#23040; xformers#103; minimind#497",
        ("square", ALL, {"values": "gaussian.1#75", "causal": "top-left", "mask": "random.1:b1qk*0.8#75"}),
        ("square", ALL, {"values": "gaussian.1#84", "causal": "top-left", "mask": "right-padding.1:b11k#47"}),
        ("square", ALL, {"values": "gaussian.1#78", "causal": "top-left", "key_lengths": (4, 6)}),
        *(
            ("cross", F32, {"values": f"gaussian.1#{seed}", "causal": causal, "source": source, **hidden})
            for seed, hidden in ((78, {"mask": "random.1:b1qk*0.8#78"}), (79, {"key_lengths": (5, 6)}))
            for causal in ("top-left", "bottom-right")
            for source in ("cross", "memory")
        ),
        random=MultiHeadDraw(causal=("top-left",), masks=("random.1*0.8", "right-padding.1"), forms=("b1qk", "b11k")),
    ),
    _multi(
        34,
        "A row that is fully masked in all heads gives what zeros, NaN or a mean of V become through the output projection.",
        "Which of them is a convention, and may depend on what hides the keys. Anything else is noise or another row's data.",
        "pytorch#103963; pytorch#163997",
        ("square", ALL, {"values": "gaussian.1#70", "mask": "empty-rows.1:b1qk#70"}),
        ("square", ALL, {"values": "gaussian.1#71", "mask": "empty-rows.1:b1qk#71", **_SHARED}),
        *(
            ("cross", F32, {"values": "gaussian.1#72", "mask": "empty-rows.1:b1qk#72", **source, **_BIASES})
            for source in (_CROSS, _MEMORY)
        ),
        ("square", ALL, {"values": "gaussian.1#73", "mask": "left-padding.1:b11k#48", "causal": "top-left"}),
        ("square", ALL, {"values": "gaussian.1#74", "key_lengths": (0, 5)}),
        check="empty-rows",
        random=MultiHeadDraw(masks=("empty-rows.1",), forms=("b1qk", "qk"), causal=("none", "top-left")),
    ),
)

_CALLS = (
    _multi(
        25,
        "A batch row alone gives what it gives in the batch.",
        "Requests must not depend on the company they are in.",
        "AutoAWQ#228",
        ("square", ALL, {"values": "gaussian.1#23", "transformations": ("batch-row.1#0",)}),
        random=MultiHeadDraw(transformations=("batch-row.1",)),
    ),
    _multi(
        26,
        "The output has the shape (batch, query length, model width) and the dtype of the inputs.",
        "Whatever the widths and lengths inside.",
        _VASWANI,
        ("square", ALL, {"values": "gaussian.1#36"}),
        ("cross", F32, {"values": "gaussian.1#37", **_CROSS}),
        ("cross", F32, {"values": "gaussian.1#37", **_MEMORY}),
        ("inner", F32, {"values": "gaussian.1#38"}),
        ("one-head", ALL, {"values": "gaussian.1#61", **_BARE}),
        check="form",
    ),
    _multi(
        27,
        "The same call repeated gives the same output.",
        "Dropout left on, or a race, shows.",
        "nanoGPT and others: dropout passed in evaluation",
        ("square", ALL, {"values": "gaussian.1#39"}),
        ("square", F32, {"values": "gaussian.1#62", **_SHARED}),
        ("one-head", ALL, {"values": "gaussian.1#65", **_BARE}),
        check="repeat",
    ),
    _multi(
        28,
        "A call gives the output of its own inputs and weights, also after calls with others of the same shapes.",
        "A module that keeps its first weights is right once.",
        "Follows from the formula",
        ("square", ALL, {"values": "gaussian.1#40"}),
        ("square", F32, {"values": "gaussian.1#63", **_SHARED}),
        ("one-head", ALL, {"values": "gaussian.1#66", **_BARE}),
        ("cross", ALL, {"values": "gaussian.1#45", **_CROSS, **_BIASES}),
        ("cross", F32, {"values": "gaussian.1#45", **_MEMORY, **_BIASES}),
        ("cross", ALL, {"values": "gaussian.1#101", **_CROSS, **_BIASES}),
        *(
            ("square", (dtype,), fields)
            for dtype in ALL
            for fields in with_and_without("multi_head_attention", dict(zip((100, 107, 114), _ASKED, strict=True)), 121)
        ),
        check="stale",
    ),
    _multi(
        29,
        "A call leaves its inputs and weights as they were.",
        "Scaling the query in place changes the weights' product for the next call.",
        "Array API standard: functions do not change their arguments",
        ("square", ALL, {"values": "gaussian.1#41"}),
        ("square", F32, {"values": "gaussian.1#64", **_SHARED}),
        ("one-head", ALL, {"values": "gaussian.1#67", **_BARE}),
        ("square", ALL, {"values": "gaussian.1#42", **_BIASES}),
        *(("square", ALL, {"values": "gaussian.1#11", **asked}) for asked in _ASKED),
        check="untouched",
    ),
    _multi(
        30,
        "The output shares no memory with inputs or weights.",
        "Otherwise writing to one changes the other.",
        "Array API standard: functions return new arrays",
        ("square", F32, {"values": "gaussian.1#43"}),
        ("square", F32, {"values": "gaussian.1#68", **_SHARED}),
        ("one-head", ALL, {"values": "gaussian.1#44", **_BARE}),
        check="unaliased",
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_PROJECTIONS, *_USES, *_MASKS, *_CALLS)

"""ATT-MASK, first part: boolean masks, biases, key lengths, and how they combine."""

from typing import Any

from conformance.problem import Problem
from conformance.specification.build import ALL, F32, F32_HALF, HALF, NO_F16, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.requirement import Blind, Requirement

# More than 2¹⁶ pairs of a query and a key, and rows beyond every tile.
_MANY_PAIRS = (1, 1, 1, 257, 257, 8, 8)


def _form_requirement(number: int, form: str, shape: str, others: tuple[str, ...], rationale: str, source: str) -> Requirement:
    return Requirement(
        id=f"ATT-MASK-{number:03}",
        sentence=f"A boolean mask of shape {shape} shows each query the keys where it is True, and no others.",
        rationale=rationale,
        source=source,
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#1", mask=f"random.1:{form}#{number}"),
            attention("wide", F32, values="signatures.1#2", mask=f"random.1:{form}*0.3#{number + 10}"),
            attention("wide", F32, values="heavy.1#3", mask=f"random.1:{form}*0.8#{number + 20}"),
            *(attention(shape, F32, values="gaussian.1#4", mask=f"random.1:{form}#{number + 30}") for shape in others),
            attention(_MANY_PAIRS, ALL, mask=f"random.1:{form}#{number + 54}") if form == "qk" else (),
        ),
        random=Draw(shapes="core", masks=("random.1", "random.1*0.3", "left-padding.1", "right-padding.1"), forms=(form,)),
    )


_FORMS = (
    _form_requirement(1, "qk", "(Lq, Lk)", ("square",), "One mask for all batch rows and heads.", "keras#23040; DI-engine#333"),
    _form_requirement(
        2,
        "b11k",
        "(B, 1, 1, Lk)",
        (),
        "Padding: the same keys for all queries of a batch row.",
        "jax#28974; hyunwoongko/transformer#40",
    ),
    _form_requirement(
        3,
        "b1qk",
        "(B, 1, Lq, Lk)",
        ("square", "tall"),
        "One mask per batch row: an offset computed from the wrong axes reads row 0 for all.",
        "pytorch#184180",
    ),
    _form_requirement(4, "1hqk", "(1, H, Lq, Lk)", (), "One mask per head, the same in each batch row.", "equinox#190"),
    _form_requirement(5, "bhqk", "(B, H, Lq, Lk)", (), "A mask of its own for each batch row and head.", "pytorch#97605"),
    Requirement(
        id="ATT-MASK-006",
        sentence="A boolean mask of shape (B, H, Lq, 1) leaves the rows where it is True as they are without a mask.",
        rationale="It broadcasts over the keys; taken for a key mask it hides keys instead of queries. "
        "What the other rows give is a convention.",
        source="hyunwoongko/transformer#40; vigg_ribonanza#1",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#1", mask="empty-rows.1:bhq1#6"),
            attention("wide", F32, values="signatures.1#2", mask="empty-rows.1:bhq1#7"),
            attention((3, 1, 1, 1, 9, 8, 8), F32, values="spread.1#3", mask="all.1:bhq1#8"),  # (3, 1, 1, 1): a key mask's axes
        ),
        random=Draw(shapes="core", masks=("empty-rows.1",), forms=("bhq1",)),
    ),
)

_BIASES = (
    Requirement(
        id="ATT-MASK-007",
        sentence="A bias is added to the scaled scores, in each broadcast form.",
        rationale="Relative positions and ALiBi come in this way; one that is multiplied, or read from another head, is wrong.",
        source="PyTorch and JAX documentation; pytorch#90534; xla#11444",
        designed=lambda: joined(
            *(
                attention("wide", ALL, values="spread.1#5", bias=f"gaussian.1:{form}#8")
                for form in ("b11k", "b1qk", "1hqk", "bhq1", "qk", "bhqk")
            ),
            attention(_MANY_PAIRS, ALL, bias="gaussian.1:qk#58"),
            attention("wide", ("float64", "float32"), values="gaussian.1#7", bias="low.1:qk*900.0#11"),  # far above 0
            attention("wide", F32, values="gaussian.1#6", bias="distance.1:1hqk#0"),
            attention("wide", ALL, values="gaussian.1#6", bias="gaussian.1:bhqk*4.0#9"),
        ),
        few_of=lambda problem: problem.dtype == "float32" or problem.bias.form == "qk",
        random=Draw(shapes="core", biases=("gaussian.1", "distance.1", "gaussian.1*6.0"), bias_forms=("qk", "bhqk")),
    ),
    Requirement(
        id="ATT-MASK-008",
        sentence="A bias of −∞ hides its key.",
        rationale="The additive form of a mask; −∞ must not become NaN on the way.",
        source="PyTorch documentation of scaled_dot_product_attention; flashinfer#1178",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#7", bias="holes.1:bhqk#10"),
            attention("wide", ALL, values="spread.1#8", bias="holes.1:qk*0.2#11"),
            attention("decode", ALL, values="spread.1#9", bias="holes.1:bhqk*0.4#12"),
            attention("decode", F32, values="spread.1#10", bias="holes.1:bhqk*0.6#13", mask="random.1:b1qk*0.8#13"),
            attention("decode", F32, values="spread.1#11", bias="holes.1:bhqk*0.4#14", key_lengths=(9, 12)),
            attention("square", F32, values="spread.1#12", bias="holes.1:bhqk*0.7#15", causal="top-left"),
        ),
        few=lambda: joined(
            attention("wide", ALL, values="spread.1#7", bias="holes.1:bhqk#10"),
            attention("wide", ALL, values="spread.1#8", bias="holes.1:qk*0.2#11"),
            attention("decode", F32, values="spread.1#9", bias="holes.1:bhqk*0.4#12"),
        ),
        random=Draw(shapes="core", biases=("holes.1", "holes.1*0.2"), bias_forms=("qk", "bhqk")),
    ),
)

_BESIDE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("wide", {"mask": "random.1:b1qk*0.8#92"}),
    ("wide", {"bias": "gaussian.1:qk#93"}),
    ("wide", {"key_lengths": (9, 12)}),
    ("grouped", {}),
)

_TOGETHER = (
    Requirement(
        id="ATT-MASK-016",
        sentence="Causal and mask together: a key is visible where both show it.",
        rationale="One of the two is silently dropped in more than one library.",
        source="keras#23040; xformers#103; minimind#497",
        designed=lambda: joined(
            attention("square", ALL, values="spread.1#20", causal="top-left", mask="random.1:b1qk#20"),
            attention("square", F32, values="spread.1#21", causal="top-left", mask="right-padding.1:b11k#21"),
            attention("square", F32, values="frontier.1#22", causal="top-left", mask="random.1:b1qk*0.8#22"),
        ),
        random=Draw(
            shapes="core",
            causal=("top-left", "bottom-right"),
            masks=("random.1", "random.1*0.8", "band.1", "all.1"),
            forms=("b1qk",),
        ),
    ),
    Requirement(
        id="ATT-MASK-017",
        sentence="With key lengths, batch row b sees its first n_b keys and no other.",
        rationale="An ignored length is a leak of padding, or of another request's data.",
        source="jax#23349; FasterTransformer#270",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#23", key_lengths=(5, 13)),
            attention("wide", ALL, values="signatures.1#24", key_lengths=(12, 1)),
            attention("wide", ("float64", "float32", "float16"), values="flat.1#25", key_lengths=(6, 3)),
            attention("prime", ALL, values="spread.1#26", key_lengths=(0, 7, 19)),  # one of no keys beside others
            attention("prime", F32, values="spread.1#27", key_lengths=(16, 0, 8)),
            attention("long", ALL, values="spread.1#28", key_lengths=(512,)),  # whole tiles, and fewer than all
            attention("long", HALF, values="gaussian.1#29", key_lengths=(259,)),
        ),
        few=lambda: joined(
            attention("wide", ALL, values="spread.1#23", key_lengths=(5, 13)),
            attention("wide", ALL, values="signatures.1#24", key_lengths=(12, 1)),
            attention("prime", F32, values="spread.1#26", key_lengths=(0, 7, 19)),
        ),
        random=Draw(shapes="core", key_lengths=True),
    ),
    Requirement(
        id="ATT-MASK-018",
        sentence="Key lengths together with a mask or causal: a key is visible where all show it.",
        rationale="Each of them is easily the only one that a code path looks at.",
        source="pytorch#63271",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#26", key_lengths=(6, 11), mask="random.1:b1qk*0.8#26"),
            attention("square", ALL, values="spread.1#27", key_lengths=(5, 9), causal="top-left"),
        ),
        random=Draw(shapes="core", key_lengths=True, causal=("top-left", "bottom-right")),
    ),
    Requirement(
        id="ATT-MASK-019",
        sentence="Mask and bias together: the bias counts where the mask shows the key.",
        rationale="Two arguments of one kind invite dropping one.",
        source="JAX documentation of dot_product_attention; pytorch#63271",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#29", mask="random.1:b1qk#29", bias="gaussian.1:qk#29"),
            attention("wide", F32, values="spread.1#30", mask="right-padding.1:b11k#30", bias="gaussian.1:qk#30"),
        ),
        random=Draw(shapes="core", masks=("random.1",), forms=("b1qk",), biases=("gaussian.1", "distance.1"), bias_forms=("qk",)),
    ),
    Requirement(
        id="ATT-MASK-020",
        sentence="Causal and bias together: the bias counts where the triangle shows the key.",
        rationale="ALiBi and relative positions in a decoder.",
        source="minimind#497",
        designed=lambda: joined(
            attention("square", ALL, values="spread.1#31", causal="top-left", bias="gaussian.1:qk#31"),
            attention("square", F32, values="gaussian.1#32", causal="top-left", bias="distance.1:qk#0"),
        ),
        random=Draw(shapes="core", causal=("top-left", "bottom-right"), biases=("gaussian.1", "distance.1"), bias_forms=("qk",)),
    ),
    Requirement(
        id="ATT-MASK-044",
        sentence="Causal over unequal lengths keeps its alignment beside a mask, a bias, key lengths or shared key heads.",
        rationale="A path of its own for any of them may align its triangle in another way.",
        source="keras#23040; minimind#497; flash-attention 2.1 release notes",
        designed=lambda: joined(
            *(
                attention(shape, F32, values=f"spread.1#{seed}", causal=causal, **beside)
                for causal in ("top-left", "bottom-right")
                for seed, (shape, beside) in enumerate(_BESIDE, 92)
            ),
            attention(
                "grouped",
                ALL,
                values="spread.1#96",
                causal="top-left",
                mask="random.1:b1qk*0.8#96",
                bias="gaussian.1:qk#96",
                key_lengths=(11, 12),
            ),
        ),
        random=Draw(
            shapes="core",
            causal=("top-left", "bottom-right"),
            masks=("", "random.1*0.8"),
            forms=("b1qk",),
            biases=("", "gaussian.1"),
            bias_forms=("qk",),
        ),
    ),
    Requirement(
        id="ATT-MASK-042",
        sentence="Key lengths together with a bias: a key is visible where both show it.",
        rationale="A path that adds the bias may take it for the mask that the lengths would have become.",
        source="Follows from the formula",
        designed=lambda: joined(attention("wide", ALL, values="spread.1#84", key_lengths=(5, 9), bias="gaussian.1:qk#84")),
        random=Draw(shapes="core", key_lengths=True, biases=("gaussian.1", "distance.1", "holes.1"), bias_forms=("qk",)),
    ),
)


def _emptied() -> list[Problem]:
    """Fully masked rows because of one argument."""
    return joined(
        attention("wide", ALL, values="spread.1#85", mask="empty-rows.1:b1qk#85"),
        *(  # of the form b11k, all that it has
            attention("wide", F32, values="spread.1#85", mask=f"empty-rows.1:{form}#86")
            for form in ("qk", "1hqk", "bhqk", "b11k")
        ),
        attention("square", F32, values="spread.1#86", mask="left-padding.1:b11k#46", causal="top-left"),
        attention("tall", ALL, values="spread.1#87", causal="bottom-right"),
        attention("wide", ALL, values="spread.1#88", key_lengths=(0, 7)),
        attention("wide", ALL, values="spread.1#89", bias="empty-rows.1:qk#89"),
        attention("wide", F32, values="spread.1#90", bias="empty-rows.1:qk#90", mask="random.1:b1qk#90"),
        attention("wide", ALL, values="spread.1#91", mask="empty-rows.1:bhq1#91"),
        attention((5, 8, 8, 4, 9, 40, 40), F32, values="spread.1#99", mask="empty-rows.1:b1qk#99"),
        attention("wide", F32, values="spread.1#100", mask="empty-rows.1:b1qk#100", layout="transposed"),
    )


_PATTERNS = (
    Requirement(
        id="ATT-MASK-026",
        sentence="Masks may differ from batch row to batch row.",
        rationale="A mask read from the first row for all rows is right in every test with one row.",
        source="pytorch#184180",
        designed=lambda: joined(
            attention("wide", ALL, values="signatures.1#40", mask="random.1:b1qk*0.4#40"),
            attention("wide", ALL, values="spread.1#41", mask="right-padding.1:b11k#44"),
        ),
        random=Draw(shapes="core", masks=("random.1*0.4", "left-padding.1", "right-padding.1"), forms=("b1qk", "b11k")),
    ),
    Requirement(
        id="ATT-MASK-027",
        sentence="Masks may differ from head to head.",
        rationale="Broadcasting over heads hides this axis from most tests.",
        source="equinox#190; pytorch#160064",
        designed=lambda: joined(
            attention("wide", ALL, values="signatures.1#42", mask="random.1:1hqk*0.4#42"),
            attention("wide", ALL, values="spread.1#43", mask="left-padding.1:bhqk#43"),
        ),
        random=Draw(shapes="core", masks=("random.1*0.4", "left-padding.1", "right-padding.1"), forms=("1hqk", "bhqk")),
    ),
    Requirement(
        id="ATT-MASK-028",
        sentence="Leading keys may be hidden (left padding), another number of them in each batch row.",
        rationale="Generation pads on the left; code that reads a mask as a length keeps the wrong end.",
        source="DeepSpeed#1466; unsloth#4078",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#44", mask="left-padding.1:b11k#48"),
            attention("square", F32, values="spread.1#45", mask="left-padding.1:b1qk#45"),
            attention("square", F32, values="spread.1#46", mask="left-padding.1:b11k#46", causal="top-left"),
        ),
        random=Draw(shapes="core", masks=("left-padding.1",), forms=("b11k", "b1qk")),
    ),
    Requirement(
        id="ATT-MASK-029",
        sentence="Trailing keys may be hidden (right padding), another number of them in each batch row.",
        rationale="The everyday mask of a batch of texts.",
        source="torchTextClassifiers#92; FasterTransformer#270",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#47", mask="right-padding.1:b11k#47"),
            attention("square", F32, values="spread.1#48", mask="right-padding.1:b1qk#48"),
        ),
        random=Draw(shapes="core", masks=("right-padding.1",), forms=("b11k", "b1qk")),
    ),
    Requirement(
        id="ATT-MASK-030",
        sentence="A mask that hides nothing gives what no mask gives.",
        rationale="A mask turns on another code path, which must not have another scale, or the mask's numbers added.",
        source="tinygrad#2425",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#49", mask="all.1:b1qk#0"),
            attention("square", F32, values="spread.1#50", mask="all.1:qk#0"),
        ),
        random=Draw(shapes="core", masks=("all.1",), forms=("b1qk", "qk")),
    ),
    Requirement(
        id="ATT-MASK-031",
        sentence="A row that sees one key gives its V.",
        rationale="Nothing is left to average: a small leak is the whole error.",
        source="Follows from the formula",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#51", mask="one-key.1:b1qk#51"),
            attention("wide", F32, values="signatures.1#52", mask="one-key.1:bhqk#52"),
        ),
        random=Draw(shapes="core", masks=("one-key.1",), forms=("b1qk", "bhqk")),
        exempt="The one visible key takes all the weight of any model.",
        cannot_tell=("mean", "argmax"),
    ),
    Requirement(
        id="ATT-MASK-032",
        sentence="A first tile of keys that is hidden as a whole changes nothing.",
        rationale="The running maximum of a tile without a visible key is −∞; as a 0 it outlives scores that are all negative.",
        source="flash-attention#2082; flashinfer#1178",
        designed=lambda: joined(
            attention("tile", F32, values="spread.1#53", mask="first-tile.1:b1qk*64.0#0"),
            *(
                attention((1, 1, 1, 5, 263, 8, 8), dtypes, values=f"all-low.1*{score}#54", mask=f"first-tile.1:b1qk*{tile}#0")
                for dtypes, score in ((F32_HALF, -200.0), (("float64",), -900.0))
                for tile in (16.0, 32.0, 64.0, 128.0)
            ),
            *(
                attention((1, 1, 1, 5, 263, 8, 8), F32_HALF, values=f"far.1*{score}#101", mask="first-tile.1:b1qk*64.0#0")
                for score in (-200.0, -104.0)
            ),
            # the fewer the keys, the less is lost where they are summed in bfloat16
            attention("wide", ("bfloat16",), values="far.1*-200.0#102", mask="first-tile.1:b1qk*8.0#0"),
        ),
        random=Draw(
            shapes="tile",
            distributions=("spread.1", "all-low.1*-200.0", "far.1*-200.0", "far.1*-104.0"),
            masks=("first-tile.1*64.0", "first-tile.1*32.0", "first-tile.1*16.0"),
            forms=("b1qk",),
        ),
        blind=(Blind("bfloat16", ("fused_qk", "low"), ("argmax",)),),
    ),
    Requirement(
        id="ATT-MASK-033",
        sentence="Fully masked rows leave all the other rows right.",
        rationale="What a fully masked row gives is a convention; its NaN must stay with it.",
        source="pytorch#103963; mlx#2608; transformers#38690",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#57", mask="empty-rows.1:b1qk#57"),
            attention("wide", F32, values="spread.1#58", mask="empty-rows.1:bhqk#58"),
            attention("wide", F32, values="spread.1#59", key_lengths=(0, 7)),
            attention("wide", ALL, values="spread.1#57", mask="random.1:bhqk*0.4#57", key_lengths=(2, 9)),
        ),
        random=Draw(shapes="core", masks=("empty-rows.1",), forms=("b1qk", "bhqk")),
    ),
    Requirement(
        id="ATT-MASK-043",
        sentence="A fully masked row gives zeros, NaN or a mean of V, whatever hides its keys.",
        rationale="Which of them is a convention, and may depend on what hides the keys. Anything else is noise, what an earlier "
        "call left in memory, or another row's data.",
        source="pytorch#103963; mlx#2608; transformers#38690",
        check="empty-rows",
        designed=lambda: joined(
            _emptied(),
            # by two of them together
            attention("tall", F32, values="spread.1#103", causal="bottom-right", mask="random.1:b1qk#103"),
            attention("tall", F32, values="spread.1#104", causal="bottom-right", key_lengths=(2, 6)),
            attention("tall", F32, values="spread.1#105", causal="bottom-right", bias="empty-rows.1:qk#105"),
            attention("wide", F32, values="spread.1#106", causal="top-left", mask="left-padding.1:b11k#48"),
            attention("wide", F32, values="spread.1#107", causal="top-left", key_lengths=(0, 7)),
            # not in float16, whose lowest number leaves the scores beside it: a fill as low gives means of other weights
            attention("wide", NO_F16, values="spread.1#108", bias="lowest-rows.1:qk#108", mask="random.1:b1qk*0.4#108"),
            attention("wide", ALL, values="spread.1#109", bias="lowest-rows.1:bhqk#109"),
        ),
        few=lambda: _emptied(),
        random=Draw(
            masks=("empty-rows.1",),
            causal=("none", "top-left", "bottom-right"),
            biases=("", "empty-rows.1"),
            scales=(None, 0.5),
            layouts=("contiguous", "transposed"),
        ),
    ),
    Requirement(
        id="ATT-MASK-034",
        sentence="A bias constant along a row leaves the output as it is.",
        rationale="Softmax does not change when a number is added to all scores of a row.",
        source="Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021)",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#60", bias="row-constant.1:qk#60"),
            attention("wide", F32, values="spread.1#61", bias="row-constant.1:bhqk*300.0#61"),
        ),
        random=Draw(shapes="core", biases=("row-constant.1", "row-constant.1*100.0"), bias_forms=("qk", "bhqk")),
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_FORMS, *_BIASES, *_TOGETHER, *_PATTERNS)

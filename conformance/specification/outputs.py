"""ATT-OUT, first part: what comes out, in which shape and type, and the relations that it obeys."""

from conformance.specification.build import ALL, F32, F32_HALF, attention, joined
from conformance.specification.draw import GENERAL_DISTRIBUTIONS, Draw
from conformance.specification.requirement import Blind, Requirement

_VASWANI = "Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.1"
_RELATION = "Follows from the formula"
_DISTRIBUTIONS = tuple(f"{distribution}#{seed}" for seed, distribution in enumerate(GENERAL_DISTRIBUTIONS, 2))


def _value_requirement(number: int, dtype: str, shapes: tuple[str, ...], rationale: str, source: str) -> Requirement:
    return Requirement(
        id=f"ATT-OUT-{number:03}",
        sentence=f"In {dtype} every element of the output is within its error budget.",
        rationale=rationale,
        source=source,
        designed=lambda: joined(
            *(attention(shape, (dtype,), values=distribution) for shape in shapes for distribution in _DISTRIBUTIONS),
        ),
        random=Draw(dtypes=(dtype,)),
    )


_FORM = (
    Requirement(
        id="ATT-OUT-001",
        sentence="The output has the shape (batch, query heads, query length, value width), "
        "also where the value width differs from the key width.",
        rationale="Code that takes the output's width from the query is right until the two differ.",
        source="pytorch#176767; xformers#1090",
        check="shape",
        designed=lambda: joined(
            attention("value-width", ALL),
            attention((2, 3, 3, 7, 13, 8, 19)),
            attention("wide"),
            attention("tall"),
        ),
        random=Draw(shapes="value-width"),
    ),
    Requirement(
        id="ATT-OUT-002",
        sentence="The output has the dtype of the inputs.",
        rationale="Float32 inside is welcome; what comes out must fit where the inputs came from.",
        source="PyTorch and JAX documentation of their attention functions",
        check="dtype",
        designed=lambda: joined(attention("wide", ALL, values="gaussian.1#7")),
        random=Draw(dtypes=ALL, distributions=("gaussian.1",)),
    ),
    _value_requirement(
        3, "float64", ("wide", "square"), "Some implementations compute float64 inputs in float32 without saying so.", _VASWANI
    ),
    _value_requirement(
        4,
        "float32",
        ("wide", "square", "tall", "prime"),
        "The formula, at every scale of inputs, judged by rounding analysis of the case.",
        _VASWANI,
    ),
    _value_requirement(
        5,
        "float16",
        ("wide", "square", "prime"),
        "Float16 products must be accumulated in something wider.",
        "Micikevicius et al. 2018 (arXiv 1710.03740)",
    ),
    _value_requirement(
        6,
        "bfloat16",
        ("wide", "square", "tall", "prime"),
        "Eight bits of significand leave little room: one rounding too many shows.",
        _VASWANI,
    ),
    Requirement(
        id="ATT-OUT-007",
        sentence="Finite inputs give a finite output, also where one key takes all the weight.",
        rationale="Without the maximum taken off, exp overflows and inf/inf is NaN.",
        source="FasterTransformer#43; executorch#18407",
        designed=lambda: joined(
            attention("square", ALL, values="peaked.1#8"),
            attention("wide", ALL, values="peaked.1#9"),
            attention("wide", ALL, values="gaussian.1*100.0#9"),
            attention((1, 1, 1, 64, 129, 8, 8), ALL, values="gaussian.1*1000.0#38"),
        ),
        random=Draw(dtypes=ALL, distributions=("peaked.1", "heavy.1")),
        blind=(Blind("bfloat16", ("fused_qk", "low"), ("argmax",)),),
    ),
)

_IDENTITIES = (
    Requirement(
        id="ATT-OUT-008",
        sentence="Where V is 1 everywhere, the output is 1.",
        rationale="The weights of a row add up to 1; a lost or doubled tile, or a missing rescale, shows at once.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, values="ones-value.1#10"),
            attention("square", F32_HALF, values="ones-value.1#11", causal="top-left"),
            attention("tile", F32, values="ones-value.1#12"),
        ),
        random=Draw(distributions=("ones-value.1",)),
        exempt="Every mean of ones is 1.",
        cannot_tell=("mean", "argmax", "uniform", "heads"),
    ),
    Requirement(
        id="ATT-OUT-009",
        sentence="With a single key the output is its V, whatever the query and the scale.",
        rationale="The normaliser cancels; finite sentinels and guards such as sum + 1e-6 do not.",
        source=_RELATION,
        designed=lambda: joined(
            attention((2, 3, 3, 7, 1, 8, 8), ALL, values="spread.1#13"),
            attention((2, 3, 3, 7, 1, 8, 8), ALL, values="all-low.1*-2000.0#13"),
            *(attention((2, 3, 3, 7, 1, 8, 8), values="spread.1#14", scale=scale) for scale in (0.001, 100.0)),
        ),
        exempt="One key takes all the weight of any model.",
        cannot_tell=("mean", "argmax", "uniform"),
    ),
    Requirement(
        id="ATT-OUT-010",
        sentence="Where the query is 0, the output is the mean of the visible V.",
        rationale="Counts the visible keys exactly, whatever the scale.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, values="zero-query.1#15"),
            attention("wide", ALL, values="zero-query.1#16", mask="random.1:b1qk#16"),
            attention("square", F32_HALF, values="zero-query.1#17", causal="top-left"),
        ),
        random=Draw(dtypes=ALL, distributions=("zero-query.1",), masks=("", "random.1"), forms=("b1qk",), shapes="core"),
        exempt="The truth is the mean of the visible V here.",
        cannot_tell=("mean", "uniform"),
    ),
    Requirement(
        id="ATT-OUT-011",
        sentence="Each output element lies between the smallest and the largest visible V of its channel.",
        rationale="A weighted mean cannot leave the values that it is taken of.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, values="heavy.1#18"),
            attention("wide", ALL, values="gaussian.1#18", transformations=("value-between.1*100.0#18",)),
        ),
        random=Draw(distributions=("heavy.1", "spread.1"), transformations=("", "value-between.1")),
    ),
    Requirement(
        id="ATT-OUT-012",
        sentence="The output is linear in V: V times a factor gives the output times that factor.",
        rationale="Quantised values and misplaced rescaling are not linear.",
        source=_RELATION,
        designed=lambda: joined(
            *(
                attention("wide", ALL, values="gaussian.1#19", transformations=(f"scale-value.1*{factor}#0",))
                for factor in (2.0, -1.0, 0.0009765625, 1024.0)
            ),
        ),
        random=Draw(
            dtypes=ALL, transformations=("scale-value.1*2.0", "scale-value.1*-1.0", "scale-value.1*0.0625", "scale-value.1*256.0")
        ),
    ),
    Requirement(
        id="ATT-OUT-013",
        sentence="Where V is the identity, the output is the attention weights: each row sums to 1, and each key has its own.",
        rationale="Lays the weights of a black box open.",
        source=_RELATION,
        designed=lambda: joined(
            *(attention((2, 3, 3, 7, 13, 13, 13), F32_HALF, values=f"identity-value.1#{seed}") for seed in (20, 21)),
        ),
    ),
)

_ORDER = (
    Requirement(
        id="ATT-OUT-014",
        sentence="Batch rows in another order give the output rows in that order.",
        rationale="Row strides and per-row parameters must follow their row.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, transformations=("permute-batch.1#1",)),
            attention("wide", values="signatures.1#22", mask="random.1:b1qk#2", transformations=("permute-batch.1#2",)),
        ),
        random=Draw(shapes="core", masks=("", "random.1"), forms=("b1qk",), transformations=("permute-batch.1",)),
    ),
    Requirement(
        id="ATT-OUT-015",
        sentence="Heads in another order give the output heads in that order.",
        rationale="Head strides and per-head masks must follow their head.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, transformations=("permute-heads.1#3",)),
            attention("wide", values="signatures.1#23", mask="random.1:1hqk#4", transformations=("permute-heads.1#4",)),
        ),
        random=Draw(shapes="core", masks=("", "random.1"), forms=("1hqk",), transformations=("permute-heads.1",)),
    ),
    Requirement(
        id="ATT-OUT-016",
        sentence="Queries in another order give the output rows in that order.",
        rationale="A row must not depend on the tile in which it is computed.",
        source=_RELATION,
        designed=lambda: joined(
            attention("tall", ALL, transformations=("permute-queries.1#5",)),
            attention("wide", mask="random.1:b1qk#6", transformations=("permute-queries.1#6",)),
        ),
        random=Draw(shapes="core", masks=("", "random.1"), forms=("b1qk",), transformations=("permute-queries.1",)),
    ),
    Requirement(
        id="ATT-OUT-017",
        sentence="Keys and values in another common order leave the output as it is.",
        rationale="Running maxima and partial sums must not depend on where the largest score stands.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, values="peaked.1#24", transformations=("permute-keys.1#7",)),
            attention("wide", ALL, transformations=("permute-keys.1#8",)),
            attention("wide", mask="random.1:b1qk#9", transformations=("permute-keys.1#9",)),
        ),
        random=Draw(shapes="core", masks=("", "random.1"), forms=("b1qk",), transformations=("permute-keys.1",)),
    ),
    Requirement(
        id="ATT-OUT-018",
        sentence="Channels of query and key in another common order leave the output as it is; those of V move the output's.",
        rationale="A product of q and k has no order of channels; packing of the width must keep each channel of V apart.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, transformations=("permute-channels.1#10",)),
            attention("value-width", transformations=("permute-channels.1#11",)),
        ),
        random=Draw(transformations=("permute-channels.1",)),
    ),
    Requirement(
        id="ATT-OUT-019",
        sentence="A batch row does not depend on the others.",
        rationale="A mask, a scale or a maximum read from another row moves what should stand still.",
        source="pytorch#184180; AutoAWQ#228",
        designed=lambda: joined(
            attention("wide", ALL, transformations=("perturb-batch.1#12",)),
            attention("wide", transformations=("perturb-batch.1*0.0#13",)),
        ),
        random=Draw(transformations=("perturb-batch.1", "perturb-batch.1*0.0")),
    ),
    Requirement(
        id="ATT-OUT-020",
        sentence="A head does not depend on the keys and values of the others.",
        rationale="Wrong head strides read a neighbour's keys.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, transformations=("perturb-head.1#14",)),
            attention("wide", transformations=("perturb-head.1*0.0#15",)),
        ),
        random=Draw(transformations=("perturb-head.1", "perturb-head.1*0.0")),
    ),
    Requirement(
        id="ATT-OUT-021",
        sentence="A query's row does not depend on the other queries.",
        rationale="Softmax belongs to the keys of one query: over another axis, or with one maximum for many rows, a loud query "
        "silences the rest.",
        source="fastNLP#254; labml annotated papers#146",
        designed=lambda: joined(
            attention("wide", ALL, transformations=("perturb-query.1#16",)),
            attention("square", transformations=("perturb-query.1*0.0#17",)),
            attention("wide", ALL, values="gaussian.1#25"),
        ),
        random=Draw(shapes="core", transformations=("perturb-query.1", "perturb-query.1*0.0")),
    ),
    Requirement(
        id="ATT-OUT-022",
        sentence="A batch row alone gives what it gives in the batch.",
        rationale="Serving batches requests of strangers; an answer must not depend on the company.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", ALL, transformations=("batch-row.1#0",)),
            attention("wide", F32, values="signatures.1#26", transformations=("batch-row.1*0.0#0",)),
        ),
        random=Draw(shapes="core", transformations=("batch-row.1",)),
    ),
    Requirement(
        id="ATT-OUT-023",
        sentence="A query alone gives what it gives among others.",
        rationale="Decoding one token often takes another path than a whole prompt.",
        source="executorch#22426; mlx#3452",
        designed=lambda: joined(
            attention("wide", ALL, transformations=("query-row.1#0",)),
            attention("wide", transformations=("query-row.1*0.0#0",)),
        ),
        random=Draw(shapes="core", transformations=("query-row.1", "query-row.1*0.0")),
    ),
    Requirement(
        id="ATT-OUT-024",
        sentence="Every key given twice leaves the output as it is.",
        rationale="Twice the sum over twice the normaliser: parts of a split over keys must be merged by their weights.",
        source=_RELATION,
        designed=lambda: joined(
            attention("wide", F32, transformations=("duplicate-keys.1#0",)),
            attention("wide", F32, values="peaked.1#26", transformations=("duplicate-keys.1#0",)),
        ),
        random=Draw(shapes="core", transformations=("duplicate-keys.1",)),
    ),
    Requirement(
        id="ATT-OUT-025",
        sentence="Changing the sign of query and key both leaves the output as it is.",
        rationale="A stray absolute value, or a maximum that starts from 0, breaks it.",
        source="flash-attention#2082",
        designed=lambda: joined(attention("wide", ALL, transformations=("negate-query-and-key.1#0",))),
        random=Draw(transformations=("negate-query-and-key.1",)),
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_FORM, *_IDENTITIES, *_ORDER)

"""ATT-NUM: NaN, infinity, signed zero, subnormal and very large numbers."""

from conformance.specification.build import ALL, F32, F32_HALF, attention, joined, multi_head
from conformance.specification.draw import Draw
from conformance.specification.requirement import Blind, Requirement

_IEEE = "IEEE 754-2019"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-NUM-001",
        sentence="A NaN in a query makes the whole output row of that query NaN, and no other row.",
        rationale="Hiding a NaN hides a broken model; spreading it hides where it came from.",
        source=f"{_IEEE}, section 6.2",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#1", transformations=("put-query.1*nan#0",)),
            attention("square", F32, values="gaussian.1#2", causal="top-left", transformations=("put-query.1*nan#0",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-query.1*nan",)),
    ),
    Requirement(
        id="ATT-NUM-002",
        sentence="A NaN in a visible key makes the output rows that see it NaN, and none of another head or batch row.",
        rationale="Its score is NaN, and with it the normaliser of the row.",
        source=f"{_IEEE}, section 6.2",
        designed=lambda: joined(attention("wide", ALL, values="gaussian.1#3", transformations=("put-key.1*nan#0",))),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-key.1*nan",)),
    ),
    Requirement(
        id="ATT-NUM-003",
        sentence="A NaN in a visible value makes its channel of the output NaN for the queries that see it, no other channel.",
        rationale="Each channel of V is averaged by itself.",
        source=f"{_IEEE}, section 6.2",
        designed=lambda: joined(attention("wide", ALL, values="gaussian.1#4", transformations=("put-value.1*nan#0",))),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-value.1*nan",)),
    ),
    Requirement(
        id="ATT-NUM-004",
        sentence="An infinity in a query leaves the rows of all other queries as they are.",
        rationale="Its own row holds ∞ − ∞ and may be NaN; what it gives is left open.",
        source=f"{_IEEE}, section 7.2",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#5", transformations=("put-query.1*inf#0",)),
            attention("wide", F32, values="gaussian.1#6", transformations=("put-query.1*-inf#0",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-query.1*inf", "put-query.1*-inf")),
    ),
    Requirement(
        id="ATT-NUM-005",
        sentence="An infinity in a key leaves the other batch rows as they are.",
        rationale="Scores of +∞ and −∞ in one row are left open; they must stay in their head and batch row.",
        source=f"{_IEEE}, section 7.2",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#7", transformations=("put-key.1*inf#0",)),
            attention("wide", F32, values="gaussian.1#8", transformations=("put-key.1*-inf#0",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-key.1*inf", "put-key.1*-inf")),
    ),
    Requirement(
        id="ATT-NUM-006",
        sentence="An infinity in a visible value makes its channel of the output that infinity for the queries that see it, "
        "and leaves the other channels as they are.",
        rationale="A positive weight times ∞ is ∞. Whether sums that subtract it from itself may give NaN is a convention.",
        source=f"{_IEEE}, section 6.1",
        check="beyond",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#9", transformations=("put-value.1*inf#0",)),
            attention("wide", F32, values="gaussian.1#10", transformations=("put-value.1*-inf#0",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("put-value.1*inf", "put-value.1*-inf")),
    ),
    Requirement(
        id="ATT-NUM-007",
        sentence="−0 in query, key or value acts as +0.",
        rationale='A mask derived from "equal to zero" or from a sign bit may differ; the sign of a zero output is left open.',
        source=f"{_IEEE}, section 6.3; Kyubyong/transformer#69",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#11", transformations=("put-zeros.1#11",)),
            attention("wide", F32, values="gaussian.1#11", transformations=("put-zeros.1*1.0#11",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1", "spread.1"), transformations=("put-zeros.1", "put-zeros.1*1.0")),
    ),
    Requirement(
        id="ATT-NUM-008",
        sentence="Subnormal values are averaged or count as 0, product by product; in float16 they count as 0 only where that is "
        "declared.",
        rationale="Flushing to zero is common and allowed; NaN or garbage is not. In float16 numbers below 6e-5 are ordinary.",
        source=f"{_IEEE}, section 3.4; OpenCL 3.0, section 7.5.3",
        designed=lambda: joined(attention("wide", ("float64", *F32_HALF), values="subnormal.1#12")),
        random=Draw(distributions=("subnormal.1",)),
        exempt="Zero is within the budget where products may flush to it.",
        cannot_tell=("zeros", "mean", "argmax", "uniform", "heads"),
    ),
    Requirement(
        id="ATT-NUM-009",
        sentence="Subnormal entries of a query act as the numbers that they are, or as 0.",
        rationale="They are too small to matter beside ordinary ones; a slow path for them must not be a wrong one.",
        source=f"{_IEEE}, section 3.4",
        designed=lambda: joined(
            attention("wide", ("float64", *F32_HALF), values="spread.1#13", transformations=("shrink-query.1#0",))
        ),
        random=Draw(distributions=("spread.1",), transformations=("shrink-query.1",)),
    ),
    Requirement(
        id="ATT-NUM-010",
        sentence="Very large V whose mean is finite gives a finite output.",
        rationale="A mean never leaves the range of its values; sums of squares, unscaled sums of heads and 16-bit sums do. Near "
        "the largest number of the dtype, whether it may be lost is a convention.",
        source="Follows from the formula",
        check="beyond",
        designed=lambda: joined(
            attention("wide", ("float32", "bfloat16"), values="gaussian.1#14", transformations=("value-between.1*1e37#14",)),
            attention("wide", F32, values="spread.1#86", transformations=("value-between.1*1e37#0",)),
            attention("wide", ("float16",), values="gaussian.1#14", transformations=("value-between.1*30000.0#14",)),
        ),
        random=Draw(
            dtypes=("float32", "bfloat16"),
            shapes="core",
            distributions=("gaussian.1", "spread.1"),
            transformations=("value-between.1*1e37",),
        ),
        blind=(Blind("bfloat16", ("low",), ("mean", "uniform")),),
    ),
    Requirement(
        id="ATT-NUM-011",
        operation="multi_head_attention",
        sentence="An output of multi-head attention beyond the largest number of its dtype is infinite; the others are right.",
        rationale="Neither clipped nor NaN: overflow must show, and only where it is.",
        source=f"{_IEEE}, section 7.4",
        designed=lambda: joined(
            multi_head("one-head", ("float16",), values="gaussian.1#435", transformations=("scale-output.1*32768.0#0",)),
            multi_head("one-head", ("float16",), values="gaussian.1#1192", transformations=("scale-output.1*32768.0#0",)),
        ),
    ),
    Requirement(
        id="ATT-NUM-012",
        sentence="A key that is 0 in all channels counts like any other.",
        rationale="Its score is 0, and exp(0) is a weight. Only masks and lengths say what is padding; zeros, or channels that "
        "add up to 0, do not.",
        source="Kyubyong/transformer#69",
        designed=lambda: joined(
            attention("wide", ALL, values="gaussian.1#15", transformations=("zero-key.1#0",)),
            attention("wide", ALL, values="gaussian.1#16", mask="all.1:b1qk#0", transformations=("zero-key.1#0",)),
        ),
        random=Draw(shapes="core", distributions=("gaussian.1",), transformations=("zero-key.1",)),
    ),
    Requirement(
        id="ATT-NUM-013",
        sentence="NaN or infinity that is hidden in one batch row leaves the other batch rows as they are.",
        rationale="What it does to its own row is a convention; one request must not spoil another.",
        source=f"{_IEEE}, section 6.2; transformers#38690",
        designed=lambda: joined(
            *(
                attention("wide", dtypes, values="gaussian.1#17", transformations=(f"hidden-{tensor}.1*{number}#0",), **hidden)
                for tensor in ("key", "value")
                for number in ("nan", "inf")
                # the second row sees all
                for dtypes, hidden in ((F32, {"key_lengths": (7, 13)}), (ALL, {"mask": "right-padding.1:b11k#18"}))
            )
        ),
    ),
)

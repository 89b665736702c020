"""ATT-MASK, second part: causal alignment, and that what is hidden has no say."""

from conformance.specification.build import ALL, F32, F32_BF16, F32_HALF, HALF, IN_16_BITS, NO_BF16, NO_F16, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.requirement import Blind, Requirement

_MANY_KEYS = (1, 1, 1, 5, 263, 8, 8)  # the shape of ATT-MASK-032
_CAUSAL_DISTRIBUTIONS = ("spread.1", "frontier.1", "gaussian.1", "signatures.1")


def _aligned_requirement(number: int, alignment: str, shape: str, sentence: str, rationale: str, source: str) -> Requirement:
    dtypes = F32_BF16 if shape == "wide" else F32
    return Requirement(
        id=f"ATT-MASK-{number:03}",
        sentence=sentence,
        rationale=rationale,
        source=source,
        designed=lambda: joined(
            attention(shape, ALL, values=f"frontier.1#{number}", causal=alignment),
            attention(shape, dtypes, values=f"spread.1#{number + 20}", causal=alignment),
            attention((2, 3, 3, 9, 7, 8, 8), ALL, values=f"frontier.1#{number + 40}", causal=alignment)
            if shape == "tall"
            else (),
        ),
        random=Draw(shapes=shape, causal=(alignment,), distributions=_CAUSAL_DISTRIBUTIONS),
    )


_CAUSAL = (
    Requirement(
        id="ATT-MASK-009",
        sentence="Causal, with equal lengths: row i sees the keys j ≤ i and no other.",
        rationale="The triangle of a decoder; one off in either direction reads the future or loses the present.",
        source="Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.3; OpenNMT-py#294",
        designed=lambda: joined(
            attention("square", ALL, values="frontier.1#9", causal="top-left"),
            attention("square", F32_HALF, values="spread.1#10", causal="top-left"),
            attention("square", F32, values="signatures.1#11", causal="top-left"),
        ),
        random=Draw(shapes="square", causal=("top-left",), distributions=_CAUSAL_DISTRIBUTIONS),
    ),
    _aligned_requirement(
        10,
        "top-left",
        "wide",
        "Causal from the top left, Lq < Lk: row i sees the keys j ≤ i and no other.",
        "PyTorch, JAX and ONNX without a cache align so.",
        "PyTorch documentation of scaled_dot_product_attention; pytorch#144858",
    ),
    _aligned_requirement(
        11,
        "bottom-right",
        "wide",
        "Causal from the bottom right, Lq < Lk: row i sees the keys j ≤ i + Lk − Lq and no other.",
        "The queries are the last of the sequence, as with a cache.",
        "flash-attention 2.1 release notes; onnxruntime#29020",
    ),
    _aligned_requirement(
        12,
        "top-left",
        "tall",
        "Causal from the top left, Lq > Lk: row i sees the keys j ≤ i, the rows from Lk − 1 on see all.",
        "The triangle ends before the queries do.",
        "PyTorch documentation of scaled_dot_product_attention",
    ),
    _aligned_requirement(
        13,
        "bottom-right",
        "tall",
        "Causal from the bottom right, Lq > Lk: row i sees the keys j ≤ i + Lk − Lq; the first Lq − Lk rows see none.",
        "Rows without a key are a convention; those after them must be right.",
        "flash-attention#1778; tvm#14907",
    ),
    Requirement(
        id="ATT-MASK-014",
        sentence="Causal from the top left, one query: it sees the first key only.",
        rationale="A cached decoder that asks so gets V[0] each time; the convention must be kept all the same.",
        source="pytorch#144858; executorch#22426",
        designed=lambda: joined(
            attention("decode", ALL, values="spread.1#12", causal="top-left"),
            attention("decode", F32, values="signatures.1#13", causal="top-left"),
        ),
        random=Draw(shapes="decode", causal=("top-left",)),
        exempt="The one visible key takes all the weight of any model.",
        cannot_tell=("mean", "argmax"),
    ),
    Requirement(
        id="ATT-MASK-015",
        sentence="Causal from the bottom right, one query: it sees every key.",
        rationale="The newest token sees the whole cache.",
        source="flash-attention 2.1 release notes; executorch#22426",
        designed=lambda: joined(
            attention("decode", ALL, values="spread.1#14", causal="bottom-right"),
            attention("decode", F32, values="signatures.1#15", causal="bottom-right"),
        ),
        random=Draw(shapes="decode", causal=("bottom-right",)),
    ),
)

_HIDDEN = (
    Requirement(
        id="ATT-MASK-021",
        sentence="The V of a hidden key changes nothing, 1e4 included.",
        rationale="A weight of 1e-5 left to a hidden key is invisible until its V is large.",
        source="ONNX backend tests put 1000 there; xformers promises no leak from padding",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#70", mask="right-padding.1:b11k#47", transformations=("hidden-value.1#0",)),
            attention("wide", ALL, values="spread.1#71", mask="random.1:b1qk#71", transformations=("loud-value.1#71",)),
            attention("wide", F32, values="spread.1#72", key_lengths=(5, 9), transformations=("hidden-value.1#0",)),
            attention("square", F32, values="spread.1#73", causal="top-left", transformations=("loud-value.1#73",)),
        ),
        random=Draw(
            shapes="core",
            masks=("random.1*0.3", "right-padding.1", "left-padding.1"),
            forms=("b11k", "b1qk"),
            transformations=("hidden-value.1", "loud-value.1"),
        ),
    ),
    Requirement(
        id="ATT-MASK-022",
        sentence="The score of a hidden key changes nothing, though it be the largest.",
        rationale="Masked after the maximum, or after softmax, it drowns the visible keys.",
        source="memory-compressed-attention#2; TransformerLens#319",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#74", mask="right-padding.1:b11k#47", transformations=("loud-hidden.1#0",)),
            attention(
                "wide",
                NO_F16,
                values="spread.1#75",
                mask="left-padding.1:b11k#48",
                transformations=("loud-hidden.1*100.0#0",),
            ),
            attention("wide", ALL, values="spread.1#76", key_lengths=(5, 9), transformations=("loud-hidden.1*100.0#0",)),
            attention(
                "wide", F32, values="spread.1#76", key_lengths=(5, 9), transformations=("loud-hidden.1#0", "hidden-value.1#0")
            ),
            attention(
                "wide", ALL, values="spread.1#77", causal="top-left", transformations=("loud-hidden.1*30.0#0", "hidden-value.1#0")
            ),
        ),
        random=Draw(
            shapes="core",
            masks=("right-padding.1", "left-padding.1"),
            forms=("b11k",),
            transformations=("loud-hidden.1", "loud-hidden.1*50.0"),
        ),
    ),
    Requirement(
        id="ATT-MASK-023",
        sentence="Visible scores near −2e4 still win over hidden keys.",
        rationale="A hidden score of −1e4 lies above them, and the hidden keys take all the weight.",
        source="lattice#373; TransformerLens#319",
        designed=lambda: joined(
            attention(
                "wide",
                NO_F16,
                values="spread.1#78",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-20000.0#0",),
            ),
            attention(
                "wide",
                ("float16",),
                values="spread.1#78",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-12000.0#0",),
            ),
            attention("wide", F32, values="spread.1#79", key_lengths=(5, 9), transformations=("low-visible.1*-20000.0#0",)),
            # less low ones tell one fill from another
            *(
                attention(
                    "wide",
                    NO_BF16,
                    values="spread.1#78",
                    mask="right-padding.1:b11k#47",
                    transformations=(f"low-visible.1*{low}#0",),
                )
                for low in (-300.0, -3000.0)
            ),
            # one key a row so far above the others that 16 bits say which it is
            attention("wide", HALF, values="far.1*-12000.0#97", mask="right-padding.1:b11k#6"),
            attention(_MANY_KEYS, F32_HALF, values="far.1*-104.0#98", mask="right-padding.1:b1qk#98"),
        ),
        random=Draw(
            shapes="core",
            dtypes=("float32", "float64"),
            masks=("right-padding.1", "left-padding.1"),
            forms=("b11k",),
            transformations=("low-visible.1*-20000.0",),
        ),
        blind=(Blind("bfloat16", ("fused_qk", "low"), ("argmax",)),),
    ),
    Requirement(
        id="ATT-MASK-024",
        sentence="Visible scores near −1e6 still win over hidden keys.",
        rationale="A hidden score of −1e5 lies above them, and the hidden keys take all the weight.",
        source="TransformerLens#319",
        designed=lambda: joined(
            attention(
                "wide",
                NO_F16,
                values="spread.1#80",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-1e6#0", "hidden-value.1#0"),
            ),
            attention(
                "wide",
                F32,
                values="spread.1#81",
                key_lengths=(5, 9),
                transformations=("low-visible.1*-1e6#0", "hidden-value.1#0"),
            ),
            attention(
                "wide",
                F32,
                values="spread.1#80",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-90000.0#0", "hidden-value.1#0"),
            ),
            attention(  # −18000 · √8: nearly the lowest score that float16 can say
                "wide",
                ("float16",),
                values="spread.1#80",
                mask="right-padding.1:b11k#47",
                scale=1.0,
                transformations=("low-visible.1*-18000.0#0", "hidden-value.1#0"),
            ),
            *(
                attention(
                    "wide", dtypes, values=f"far.1*{low}#99", mask="right-padding.1:b11k#6", transformations=("hidden-value.1#0",)
                )
                for dtypes, low in ((F32_BF16, -90000.0), (HALF, -16000.0))
            ),
        ),
        exempt="In float32 scores of 1e6 are rounded to a sixteenth: what surely shows is a weight given to a hidden key.",
        cannot_tell=("argmax",),
    ),
    Requirement(
        id="ATT-MASK-025",
        sentence="A low bias on all visible keys still leaves the hidden ones hidden.",
        rationale="A finite fill is compared with score plus bias, not with the score.",
        source="lattice#373",
        designed=lambda: joined(
            attention(
                "wide", ("float64", "float32"), values="spread.1#82", mask="right-padding.1:b11k#47", bias="low.1:qk*-20000.0#82"
            ),
            attention("wide", F32, values="spread.1#83", mask="random.1:b1qk#83", bias="low.1:qk*-20000.0#83"),
            attention("wide", HALF, values="far.1*-10000.0#100", mask="right-padding.1:b1qk#6", bias="low.1:qk*-2000.0#100"),
        ),
        random=Draw(
            shapes="core",
            dtypes=("float32", "float64"),
            masks=("right-padding.1", "random.1"),
            forms=("b1qk",),
            biases=("low.1*-20000.0",),
            bias_forms=("qk",),
        ),
        blind=tuple(Blind(dtype, IN_16_BITS, ("argmax",)) for dtype in HALF),
    ),
    Requirement(
        id="ATT-MASK-041",
        sentence="Visible scores near −1e10 still win over hidden keys.",
        rationale="A hidden score of −1e9 lies above them, and the hidden keys take all the weight; −∞ never does. Whether such "
        "scores may give NaN, or 0, is a convention.",
        check="beyond",
        source="Fill values in tutorials: −1e9 and −1e20",
        designed=lambda: joined(
            attention(
                "wide",
                NO_F16,
                values="spread.1#84",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-1e10#0", "hidden-value.1#0"),
            ),
            attention(
                "wide",
                F32,
                values="spread.1#84",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-3e8#0", "hidden-value.1#0"),
            ),
            attention(  # nearly the lowest scores that all algorithms hold
                "wide",
                ("float32", "bfloat16"),
                values="spread.1#84",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-1.2e9#0", "hidden-value.1#0"),
            ),
            attention(
                "wide",
                NO_F16,
                values="spread.1#85",
                mask="right-padding.1:b11k#47",
                transformations=("low-visible.1*-1e22#0", "hidden-value.1#0"),
            ),
        ),
        exempt="In float32 scores of 1e10 keep no ordinary difference: what surely shows is a weight given to a hidden key.",
        cannot_tell=("mean", "argmax"),
    ),
)

_FUTURE = (
    Requirement(
        id="ATT-MASK-035",
        sentence="No row sees the future: other keys and values from t on leave the rows before t as they are.",
        rationale="The one property without which a language model's training loss means nothing.",
        source="pytorch#195910; nanoGPT#331",
        designed=lambda: joined(
            *(
                attention(
                    "square", F32_HALF, values="spread.1#86", causal="top-left", transformations=(f"suffix.1*{float(t)}#{t}",)
                )
                for t in (1, 6, 12)
            ),
            attention("wide", F32, values="spread.1#87", causal="bottom-right", transformations=("suffix.1*8.0#3",)),
        ),
        random=Draw(shapes="square", causal=("top-left",), transformations=("suffix.1", "suffix.1*1.0", "suffix.1*2.0")),
    ),
    Requirement(
        id="ATT-MASK-036",
        sentence="Causal rows are exact at every position across tiles.",
        rationale="Kernels decide per tile, or per group of rows, what is hidden; the rows at the edges are where it goes wrong.",
        source="pytorch#195910; sglang#31501",
        designed=lambda: joined(
            attention((1, 1, 1, 63, 63, 8, 8), F32, values="frontier.1#88", causal="top-left"),
            *(attention((1, 1, 1, n, n, 8, 8), ALL, values="frontier.1#88", causal="top-left") for n in (65, 129)),
            attention((1, 1, 1, 65, 65, 8, 8), ("bfloat16",), values="frontier.1#89", causal="top-left"),
            attention((1, 1, 1, 64, 129, 8, 8), F32, values="frontier.1#90", causal="bottom-right"),
            attention((1, 1, 1, 5, 263, 8, 8), ALL, values="frontier.1#91", causal="bottom-right"),
        ),
        few_of=lambda problem: problem.dtype == "float32" or problem.query_length == 65,
        random=Draw(
            shapes="tile",
            causal=("top-left", "bottom-right"),
            distributions=("frontier.1", "spread.1"),
            dtypes=("float32", "bfloat16"),
        ),
    ),
)

_ROUTES = (
    Requirement(
        id="ATT-MASK-037",
        sentence="A boolean mask gives the same result by every route by which it can be asked for.",
        rationale="Fast paths and fallbacks of one library disagree more often than libraries do.",
        source="pytorch#163997; torch-spyre#4526",
        check="routes",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#92", mask="random.1:b1qk#92"),
            attention("wide", F32, values="spread.1#93", mask="random.1:bhqk#93"),
        ),
    ),
    Requirement(
        id="ATT-MASK-038",
        sentence="Causal gives the same result by every route by which it can be asked for.",
        rationale="A flag, a triangle in the mask, −∞ in the bias: three spellings of one thing.",
        source="nanoGPT#331; onnxruntime#29020",
        check="routes",
        designed=lambda: joined(
            attention("square", F32_BF16, values="frontier.1#94", causal="top-left"),
            attention("wide", F32, values="frontier.1#95", causal="top-left"),
            attention("wide", F32, values="frontier.1#96", causal="bottom-right"),
        ),
    ),
    Requirement(
        id="ATT-MASK-039",
        sentence="Key lengths give the same result by every route by which they can be asked for.",
        rationale="Padded, ragged and masked forms of one batch must agree.",
        source="jax#23349; FasterTransformer#270",
        check="routes",
        designed=lambda: joined(attention("wide", ALL, values="spread.1#97", key_lengths=(4, 11))),
    ),
    Requirement(
        id="ATT-MASK-040",
        sentence="Mask and causal together give the same result by every route by which they can be asked for.",
        rationale="Where an interface takes only one of them, the other has to travel inside it.",
        source="minimind#497; keras#23040",
        check="routes",
        designed=lambda: joined(attention("square", F32, values="spread.1#98", causal="top-left", mask="random.1:b1qk#98")),
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_CAUSAL, *_HIDDEN, *_FUTURE, *_ROUTES)

"""ATT-MASK and ATT-OUT, further parts: keys hidden as real code hides them, and numbers of keys at which counts wrap."""

from conformance.problem import AttentionProblem
from conformance.specification.build import ALL, F32, F32_HALF, HALF, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.requirement import Blind, Requirement

_ALL = ("zeros", "mean", "argmax", "uniform", "heads")

_FAR = (256.0, 512.0, 1024.0)
_COUNTS = (256, 512)
_WRAPS = 1 << 16
_MANY = (1, 1, 1, 2, _WRAPS + 7, 1, 1)  # at width 1, which keeps 2¹⁶ keys small


def _far_by(hides: dict[str, str], dtypes: tuple[str, ...], distribution: str, seed: int) -> list[AttentionProblem]:
    """The first visible key behind so many hidden ones; ``*{tile}`` in the recipes stands for the number."""
    return joined(
        *(
            attention(
                "long", dtypes, values=f"{distribution}#{seed}", **{name: text.format(tile=tile) for name, text in hides.items()}
            )
            for tile in _FAR
        )
    )


_FIRST_TILE = {"mask": "first-tile.1:b1qk*{tile}#0"}

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-MASK-047",
        sentence="A bias of the lowest finite number of the dtype on some keys of a row gives them no weight.",
        rationale="Many libraries write padding so. A score added to it may overflow to −∞, twice it always does: neither must "
        "become NaN, nor may it be taken for another fill.",
        source="transformers#38690; follows from the formula: exp underflows to 0",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#110", bias="lowest.1:bhqk#110"),
            attention("wide", ALL, values="spread.1#111", bias="lowest.1:qk*0.3#111"),
            attention("wide", F32, values="spread.1#112", bias="lowest.1:b11k#112"),
            attention("wide", ALL, values="spread.1#113", bias="lowest.1:qk#113", mask="random.1:b1qk*0.8#114"),
            attention("wide", ALL, values="spread.1#114", bias="lowest-rows.1:qk#115"),
            attention("square", F32_HALF, values="spread.1#115", bias="lowest.1:qk#116", causal="top-left"),
            attention("wide", F32, values="spread.1#116", bias="lowest.1:qk#117", key_lengths=(6, 11)),
            attention("wide", F32, values="spread.1#117", bias="lowest.1:bhqk#118", transformations=("loud-value.1#118",)),
        ),
        few=lambda: joined(
            attention("wide", ALL, values="spread.1#110", bias="lowest.1:bhqk#110"),
            attention("wide", F32, values="spread.1#113", bias="lowest.1:qk#113", mask="random.1:b1qk*0.8#114"),
        ),
        random=Draw(shapes="core", biases=("lowest.1", "lowest.1*0.3"), bias_forms=("qk", "bhqk")),
    ),
    Requirement(
        id="ATT-MASK-048",
        sentence="The first visible key of a row may lie behind 256, 512 or 1,024 hidden ones.",
        rationale="A first tile without a visible key leaves −∞ as the maximum, or 0 as the sum, and tiles are of up to 512 "
        "keys; by padding on the left all rows begin so.",
        source="flash-attention#2082; flashinfer#1178",
        blind=(Blind("float16", ("low",), ("zeros", "mean")), Blind("bfloat16", ("low",), _ALL)),
        designed=lambda: joined(
            _far_by(_FIRST_TILE, F32_HALF, "spread.1", 120),
            _far_by(_FIRST_TILE, F32_HALF, "all-low.1*-200.0", 121),
            _far_by(_FIRST_TILE, ("float64",), "all-low.1*-900.0", 122),
            _far_by({"mask": "first-tile.1:b11k*{tile}#0"}, F32, "all-low.1*-200.0", 123),
            _far_by({"bias": "first-tile.1:qk*{tile}#0"}, F32, "spread.1", 124),
        ),
        few=lambda: joined(
            _far_by(_FIRST_TILE, F32, "all-low.1*-200.0", 121),
            _far_by({"bias": "first-tile.1:qk*{tile}#0"}, F32, "spread.1", 124),
        ),
        random=Draw(
            shapes="long",
            distributions=("spread.1", "all-low.1*-200.0"),
            masks=("first-tile.1*512.0", "first-tile.1*1024.0", "first-tile.1*256.0", "first-tile.1*768.0"),
            forms=("b1qk", "b11k"),
        ),
    ),
    Requirement(
        id="ATT-MASK-049",
        sentence="Exactly 256, 512 or 65,536 keys of more may be visible.",
        rationale="A count of visible keys in 8, 9 or 16 bits is 0 there, and the row counts as empty.",
        source="Follows from the formula; pytorch#162588, on indices that wrap",
        blind=(Blind("float16", ("low",), ("zeros", "mean", "uniform", "heads")), Blind("bfloat16", ("low",), _ALL)),
        designed=lambda: joined(
            *(attention("long", ALL, values="spread.1#125", mask=f"count.1:b1qk*{float(n)}#{n}") for n in _COUNTS),
            *(attention("long", F32, values="spread.1#126", key_lengths=(n,)) for n in _COUNTS),
            attention(_MANY, F32, values="gaussian.1*4.0#127", mask=f"count.1:qk*{float(_WRAPS)}#1"),
            attention(_MANY, F32, values="gaussian.1*4.0#128", key_lengths=(_WRAPS,)),
        ),
        few=lambda: attention("long", F32, values="spread.1#125", mask="count.1:b1qk*256.0#256"),
    ),
    Requirement(
        id="ATT-OUT-045",
        sentence="Outputs over 256, 512 or 65,536 keys, all of them visible, are right.",
        rationale="A number of keys in 8, 9 or 16 bits is 0 there.",
        source="Follows from the formula; pytorch#162588, on indices that wrap",
        blind=(Blind("bfloat16", ("low",), _ALL),),
        designed=lambda: joined(
            *(attention((1, 2, 2, 2, n, 8, 8), ALL, values="spread.1#129") for n in _COUNTS),
            attention((1, 1, 1, 2, _WRAPS, 1, 1), F32, values="gaussian.1*4.0#130"),
        ),
        few=lambda: attention((1, 2, 2, 2, 256, 8, 8), F32, values="spread.1#129"),
    ),
    Requirement(
        id="ATT-MASK-051",
        sentence="A bias in float32 beside 16-bit inputs is added, with all its digits or rounded to their dtype, or refused by "
        "an exception.",
        rationale="PyTorch and JAX take it and keep its digits, ONNX casts it to the dtype of the inputs. Read as 16-bit numbers "
        "it is noise.",
        source="PyTorch and JAX documentation of their attention functions; ONNX operator Attention",
        check="bias-dtype",
        designed=lambda: joined(
            attention("wide", HALF, values="spread.1#133", bias="gaussian.1:qk#133"),
            attention("wide", HALF, values="spread.1#134", bias="gaussian.1:bhqk*4.0#134"),
            attention("square", HALF, values="spread.1#135", bias="gaussian.1:b1qk#135", causal="top-left"),
        ),
        few=lambda: attention("wide", HALF, values="spread.1#133", bias="gaussian.1:qk#133"),
    ),
    Requirement(
        id="ATT-MASK-052",
        sentence="Key lengths may come in int32 as in int64, or the one that is not taken is refused by an exception.",
        rationale="Two int32 lengths read as one int64 are none that anybody gave: a row then sees all keys, or none.",
        source="JAX documentation of dot_product_attention, which takes int32; PyTorch, whose integers are int64",
        check="lengths-dtype",
        designed=lambda: joined(
            attention("wide", ALL, values="spread.1#136", key_lengths=(5, 11)),
            attention("square", F32, values="spread.1#137", key_lengths=(4, 9), causal="top-left"),
            attention((3, 2, 2, 4, 9, 8, 8), F32, values="spread.1#138", key_lengths=(2, 6, 3)),
        ),
        few=lambda: attention("wide", F32, values="spread.1#136", key_lengths=(5, 11)),
    ),
)

"""ATT-HEAD, first part: grouped heads in plain attention."""

from conformance.specification.build import ALL, F32, F32_HALF, attention, joined
from conformance.specification.draw import Draw
from conformance.specification.requirement import Requirement

_GQA = "Ainslie et al. 2023 (arXiv 2305.13245)"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-HEAD-001",
        sentence="Grouped heads: query head h reads the key and value head ⌊h · Hkv / Hq⌋.",
        rationale="h mod Hkv is the classic fault; it is right for one kv head and for as many as query heads.",
        source=f"{_GQA}; onnx#7274; axlearn#842; FreeToken#177",
        designed=lambda: joined(
            attention("grouped", ALL, values="signatures.1#1"),
            attention("grouped", ALL, values="spread.1#2"),
            attention("grouped-square", F32, values="signatures.1#3"),
            attention("grouped-decode", ALL, values="signatures.1#12"),
            attention((1, 24, 2, 3, 5, 8, 8), F32_HALF, values="signatures.1#4"),
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
        designed=lambda: joined(attention("grouped", ALL, values="spread.1#6")),
    ),
    Requirement(
        id="ATT-HEAD-004",
        sentence="With grouped heads a mask or a bias keeps a row of its own for each query head.",
        rationale="The mask has query heads, the keys have fewer: folding one must not fold the other.",
        source="pytorch#174861",
        designed=lambda: joined(
            attention("grouped", ALL, values="spread.1#7", mask="random.1:bhqk*0.4#7"),
            attention("grouped", F32, values="spread.1#8", mask="random.1:1hqk*0.4#8"),
            attention("grouped", ALL, values="spread.1#12", bias="gaussian.1:1hqk*4.0#12"),
        ),
        random=Draw(shapes="grouped", masks=("random.1*0.4", "right-padding.1"), forms=("bhqk", "1hqk")),
    ),
    Requirement(
        id="ATT-HEAD-005",
        sentence="Grouped heads and causal together.",
        rationale="Packing the query heads of a group into one tile must not shift their triangle.",
        source="vllm#17476; mlx#3383",
        designed=lambda: joined(
            attention("grouped-square", ALL, values="frontier.1#9", causal="top-left"),
            attention("grouped", F32, values="frontier.1#10", causal="bottom-right"),
        ),
        random=Draw(shapes="grouped-square", causal=("top-left",), distributions=("spread.1", "frontier.1", "signatures.1")),
    ),
)

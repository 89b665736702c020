"""ATT-OUT and ATT-HEAD, further parts: the log-sum-exp and the weights, of implementations that return them.

What is asked of the output is asked of them beside it, wherever it is; here each is judged by itself.
"""

from collections.abc import Callable, Iterable
from typing import Any

from conformance.problem import MultiHeadProblem, Problem
from conformance.problem.returned import LSE, WEIGHTS
from conformance.specification.build import ALL, F32, F32_HALF, attention, joined, multi_head
from conformance.specification.draw import Draw, MultiHeadDraw
from conformance.specification.requirement import Requirement

_BACKWARD = "Backward passes and the merging of parts of the keys rest on it, and the output does not show it."
_SHOWN = "What is plotted, averaged or distilled is not what the output was made of."
_RINGS = "flash-attention#404; flashinfer#2113; sglang#40903; ring attention (arXiv 2310.01889)"
_HIDING: tuple[dict[str, Any], ...] = (
    {"mask": "random.1:b1qk#160"},
    {"mask": "right-padding.1:b11k#47", "transformations": ("loud-hidden.1*100.0#0",)},
    {"causal": "top-left"},
    {"causal": "bottom-right"},
    {"key_lengths": (6, 11)},
    {"bias": "holes.1:bhqk#161"},
    {"mask": "random.1:1hqk#162", "bias": "gaussian.1:qk#162"},
)


def _plain() -> Iterable[Problem]:
    """Every distribution of values, and shapes in which batch, heads and lengths all differ."""
    return joined(
        *(
            attention(shape, ALL, values=f"{distribution}#163")
            for shape in ("wide", "tall")
            for distribution in ("gaussian.1", "spread.1")
        ),
        attention("grouped", ALL, values="spread.1#164"),
        attention("value-width", F32, values="signatures.1#165"),
        attention("prime", F32_HALF, values="heavy.1#166"),
        attention("tile", F32, values="spread.1#167"),
        attention((2, 3, 3, 7, 1, 8, 8), ALL, values="spread.1#168"),
    )


def _large() -> Iterable[Problem]:
    """Scores of which no exponential is a number of the dtype, or whose exponentials all vanish."""
    return joined(
        attention("square", ALL, values="peaked.1#169"),
        attention("wide", ALL, values="all-low.1*-200.0#170"),
        attention("wide", ("float64",), values="all-low.1*-900.0#171"),
        attention("wide", F32, values="gaussian.1*100.0#172"),
        attention("long", F32, values="spread.1#173"),
    )


def _shifted() -> Iterable[Problem]:
    """Scales and biases."""
    return joined(
        *(attention("wide", F32_HALF, values="spread.1#174", scale=scale) for scale in (1.0, 0.05)),
        attention("wide", ALL, values="spread.1#175", bias="gaussian.1:bhqk#175"),
        attention("wide", F32, values="spread.1#176", bias="gaussian.1:1hqk*4.0#176"),
        attention("grouped", F32, values="spread.1#177", bias="gaussian.1:qk#177", scale=0.5),
        attention((2, 3, 3, 7, 3, 2, 8), ALL, values="gaussian.1#187", bias="row-constant.1:qk*300.0#187"),
    )


def _hidden() -> Iterable[Problem]:
    return joined(
        *(attention("wide", F32_HALF, values="spread.1#178", **hiding) for hiding in _HIDING),
        attention("square", ("float64",), values="spread.1#179", mask="random.1:bhqk#179", causal="top-left"),
    )


def _of_heads() -> Iterable[MultiHeadProblem]:
    return joined(
        multi_head("square", ALL, values="gaussian.1#180"),
        multi_head("cross", F32_HALF, values="gaussian.1#181", source="cross", projection_bias=True, output="bias"),
        multi_head("many", F32, values="gaussian.1#182"),
        multi_head("square", ALL, values="gaussian.1#183", mask="random.1:b1qk#183"),
        multi_head("square", F32, values="gaussian.1#184", mask="random.1:bhqk#184"),
        multi_head("square", F32, values="gaussian.1#185", causal="top-left"),
        multi_head("square", F32, values="gaussian.1#186", key_lengths=(4, 6)),
    )


def _requirement(
    number: int, output: str, sentence: str, designed: Callable[[], Iterable[Problem]], random: Draw | None = None
) -> Requirement:
    return Requirement(
        id=f"ATT-OUT-{number:03}",
        sentence=sentence,
        rationale=_BACKWARD if output == LSE else _SHOWN,
        source=_RINGS if output == LSE else "Follows from the formula",
        check=output,
        designed=designed,
        few_of=lambda problem: problem.dtype == "float32",
        random=random,
    )


def _of_layers(number: int, output: str, sentence: str) -> Requirement:
    return Requirement(
        id=f"ATT-HEAD-{number:03}",
        operation="multi_head_attention",
        sentence=sentence,
        rationale=_BACKWARD if output == LSE else f"{_SHOWN} PyTorch averages over the heads unless told otherwise.",
        source="Follows from the formula" if output == LSE else "PyTorch documentation of MultiheadAttention",
        check=output,
        designed=_of_heads,
        few_of=lambda problem: problem.dtype == "float32",
        random=MultiHeadDraw(masks=("", "random.1"), causal=("none", "top-left")),
    )


_MASKED = Draw(shapes="core", masks=("", "random.1"), forms=("b1qk", "bhqk"), causal=("none", "top-left"))

REQUIREMENTS: tuple[Requirement, ...] = (
    _requirement(
        49,
        LSE,
        "The log-sum-exp of a row is the logarithm of the sum of e^score over its keys, (batch, query heads, query length), in "
        "the dtype of the inputs or, beside 16-bit inputs, in float32.",
        _plain,
        random=Draw(shapes="core"),
    ),
    _requirement(50, LSE, "The log-sum-exp is so where the scores are large or all very low.", _large),
    _requirement(51, LSE, "The log-sum-exp is of the scores as they are after scale and bias.", _shifted),
    _requirement(52, LSE, "The log-sum-exp is of the visible keys alone.", _hidden, random=_MASKED),
    _requirement(
        53,
        WEIGHTS,
        "The weights are the softmax of the scores, (batch, query heads, query length, key length), in the dtype of the inputs "
        "or, beside 16-bit inputs, in float32.",
        _plain,
        random=Draw(shapes="core"),
    ),
    _requirement(
        54,
        WEIGHTS,
        "The weights are so where the scores are large or all very low, and after scale and bias.",
        lambda: joined(_large(), _shifted()),
    ),
    _requirement(55, WEIGHTS, "A hidden key has the weight 0, and the others add up to 1.", _hidden, random=_MASKED),
    _of_layers(40, LSE, "The log-sum-exp of multi-head attention is that of each head, (batch, heads, Lq)."),
    _of_layers(41, WEIGHTS, "The weights of multi-head attention are those of each head, (batch, heads, Lq, Lk)."),
)

"""ATT-HEAD, last part: arguments of multi-head attention beside each other, and its errors taken together."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from conformance.problem import Problem
from conformance.specification.build import F32_HALF, joined, multi_head
from conformance.specification.requirement import Blind, Requirement

_BIASES: dict[str, Any] = {"projection_bias": True, "output": "bias"}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "mask": {"mask": "random.1:b1qk*0.8#91"},
    "top-left": {"causal": "top-left"},
    "bottom-right": {"causal": "bottom-right"},
    "lengths": {"key_lengths": (6, 5)},
    "padding": {"mask": "right-padding.1:b11k#47"},
}
# Of the lengths and of what the inputs are: in self-attention, across equal and unequal lengths, with one memory, and one query.
_RELATIONS: tuple[dict[str, Any], ...] = (
    {"source": "self", "query_length": 7, "key_length": 7},
    {"source": "cross", "query_length": 7, "key_length": 7},
    {"source": "memory", "query_length": 21, "key_length": 21},
    {"source": "memory", "query_length": 5, "key_length": 7},
    {"source": "cross", "query_length": 8, "key_length": 6},
    {"source": "memory", "query_length": 1, "key_length": 7},
)


def _beside_each_other() -> Iterator[Problem]:
    """Each relation alone, and beside each argument and each pair of arguments that do not exclude each other."""
    names = tuple(_ARGUMENTS)
    pairs = [(), *((name,) for name in names), *combinations(names, 2)]
    for turn, (relation, asked) in enumerate(product(_RELATIONS, pairs)):
        if {"top-left", "bottom-right"} <= set(asked) or {"mask", "padding"} <= set(asked):
            continue
        fields = {key: field for name in asked for key, field in _ARGUMENTS[name].items()}
        kind = (_BIASES, {}, {"output": "none"})[turn % 3]
        batch = {"batch": 1, "key_lengths": (5,)} if "lengths" in asked and turn % 4 == 0 else {}
        (problem,) = multi_head("cross", values=f"gaussian.1#{91 + turn % 2}", **{"source": "cross", **kind, **fields})
        yield problem.but(**{**relation, **batch})


_MANY = {"batch": 8, "query_length": 29, "key_length": 29}

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="ATT-HEAD-039",
        operation="multi_head_attention",
        sentence="Each argument of multi-head attention keeps its meaning beside each other one, be the inputs one array, two or "
        "three, and the queries as many as keys, fewer, more, or one.",
        rationale="A layer that takes equal lengths for self-attention, or forgets one of two arguments, is right where each is "
        "asked alone.",
        source="keras#23040; pytorch#63271; minimind#497",
        designed=lambda: joined(_beside_each_other()),
        few=lambda: joined(list(_beside_each_other())[::7]),
        exempt="A row that sees one key gives it all the weight, as any model does.",
        cannot_tell=("mean", "argmax"),
    ),
    Requirement(
        id="ATT-HEAD-038",
        operation="multi_head_attention",
        sentence="Taken together, the errors of multi-head attention have no direction: results are rounded to no side, in no "
        "head and no channel, and weights sum to 1.",
        rationale="The projections hide such errors in the budget of each element; training adds them up.",
        source="Is Flash Attention Stable? (arXiv 2405.02803); biased rounding in low-precision training (arXiv 2510.04212)",
        check="unbiased",
        blind=(Blind("bfloat16", ("low",), ("zeros", "mean", "argmax", "uniform", "heads")),),
        designed=lambda: joined(
            [problem.but(**_MANY) for problem in multi_head("square", F32_HALF, values="gaussian.1#81")],
            [problem.but(**_MANY) for problem in multi_head("square", F32_HALF, values="gaussian.1#82", output="none")],
        ),
        few=lambda: joined([problem.but(**_MANY) for problem in multi_head("square", values="gaussian.1#81")]),
    ),
)

"""Conventions on inputs beyond what the standard algorithms of attention can hold, though the formula has an answer for them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.errors import Unsupported
from conformance.problem import AttentionProblem
from conformance.specification.asking import OTHER, is_nothing
from conformance.specification.build import attention
from conformance.specification.observing import Ask, Question
from conformance.specification.requirement import Convention
from conformance.values import materialise

_EXACT = "the formula's answer, as for smaller numbers"
_NOT_FINITE = "NaN or infinity"


def _convention(
    name: str, question: str, source: str, read: Callable[[Ask, Any], str], other_answers: dict[str, str], **problem: Any
) -> Convention:
    """All answers but "other" are legitimate. It is asked in one place: in another dtype other numbers are too large."""
    answers = {"exact": _EXACT, **other_answers}
    return Convention(
        id=f"CON-{name}",
        question=question,
        source=source,
        answers={**answers, "other": OTHER},
        legitimate=frozenset(answers),
        questions={"attention": Question(problems=lambda: attention("wide", **problem), read=read)},
    )


def _scores(ask: Ask, problem: AttentionProblem) -> str:
    """Rows with an answer are told by their values: what is visible is of ordinary size, what is hidden is not."""
    _demand_range(problem)
    output = ask(problem).astype(np.float64)
    if not np.isfinite(output).all():
        return "not-finite"
    if is_nothing(output, materialise(problem)).all():
        return "zeros"
    return "exact" if float(np.abs(output).max()) < 100.0 else "finite"


def _demand_range(problem: AttentionProblem) -> None:
    if problem.dtype == "float16":
        raise Unsupported("numbers beyond 65504")


def _large_values(ask: Ask, problem: AttentionProblem) -> str:
    _demand_range(problem)
    output = ask(problem).astype(np.float64)
    if not np.isfinite(output).all():
        return "not-finite"
    value = materialise(problem).arrays()["value"].astype(np.float64)
    inside = value.min(-2, keepdims=True) <= output, output <= value.max(-2, keepdims=True)
    return "exact" if all(part.all() for part in inside) else "other"


def _infinite_value(ask: Ask, problem: AttentionProblem) -> str:
    output = ask(problem).astype(np.float64)
    plain = ask(problem.but(transformations=())).astype(np.float64)
    value = materialise(problem).arrays()["value"].astype(np.float64)
    expected = np.isinf(value).any(-2, keepdims=True) & np.ones(output.shape, dtype=bool)  # all see all keys
    if np.isfinite(plain[~expected]).all() and not np.isfinite(output[~expected]).all():
        return "other"
    if (output[expected] == np.inf).all():
        return "exact"
    return "nan" if not np.isfinite(output[expected]).any() else "other"


NUMBER_CONVENTIONS: tuple[Convention, ...] = (
    _convention(
        "EXTREME-SCORES",
        "What do visible scores near −1e10 give, beside hidden keys?",
        "2^(s·c − m·c) by fused multiply–add, as in flash-attention's softmax, is off by the rounding of m·c",
        _scores,
        {"not-finite": _NOT_FINITE, "zeros": "zeros", "finite": "other finite numbers, which ATT-MASK-041 judges"},
        values="spread.1#84",
        mask="right-padding.1:b11k#47",
        transformations=("low-visible.1*-1e10#0", "hidden-value.1#0"),
    ),
    _convention(
        "LARGE-VALUES",
        "What does V near 1e37 give, a sixteenth of the largest number?",
        "Online softmax that rescales only where the maximum grew by much, as flash-attention 4 does, sums up to 2⁸ times it",
        _large_values,
        {"not-finite": _NOT_FINITE},
        values="spread.1#86",
        transformations=("value-between.1*1e37#0",),
    ),
    _convention(
        "INFINITE-VALUE",
        "What does an infinity in a visible V give in its channel?",
        "Compensated sums and products of split numbers subtract it from itself",
        _infinite_value,
        {"nan": "NaN, or one of NaN and infinity"},
        values="gaussian.1#9",
        transformations=("put-value.1*inf#0",),
    ),
)

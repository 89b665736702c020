"""Conventions: the points on which released APIs legitimately differ, each with the question that shows which answer is given."""

from collections.abc import Iterator
from dataclasses import replace

from conformance.problem import AttentionProblem, MultiHeadProblem, Recipe
from conformance.specification.asking import (
    IN_DTYPES,
    ONE_ARRAY,
    OTHER,
    REFUSED,
    changed,
    first_alike,
    in_shapes,
    multi_head_problems,
    refused,
    shaped,
)
from conformance.specification.build import attention
from conformance.specification.lse_questions import LSE_CONVENTIONS
from conformance.specification.mask_questions import MASK_CONVENTIONS
from conformance.specification.number_questions import NUMBER_CONVENTIONS
from conformance.specification.observing import Ask, Question
from conformance.specification.position_questions import POSITION_CONVENTIONS
from conformance.specification.requirement import Convention


def _scale(scale: float) -> Convention:
    name, word = ("ZERO", "of 0") if scale == 0 else ("NEGATIVE", "below 0")
    others = () if scale == 0 else (-0.5, -1.0)

    def read(ask: Ask, problem: AttentionProblem) -> str:
        return first_alike(ask(problem), {"ordinary": problem, "default": problem.but(scale=None)})

    return Convention(
        id=f"CON-{name}-SCALE",
        question=f"What does a scale {word} do?",
        source='Array arithmetic gives it a meaning; some libraries take √scale, or read 0 as "not given"',
        answers={
            "ordinary": "a factor like any other",
            "default": "1/√d is used instead",
            "nan": "there is NaN in the output",
            "refused": REFUSED,
            "other": OTHER,
        },
        legitimate=frozenset({"ordinary"}),
        questions={
            "attention": Question(
                problems=lambda: attention("wide", values="spread.1#5", scale=scale),
                read=read,
                places=(
                    *IN_DTYPES,
                    *in_shapes("alone"),
                    *(changed(f"the scale {other}", scale=other) for other in others),
                    *(
                        shaped(f"causal with the scale {other}", "square", causal="top-left", scale=other)
                        for other in (scale, *others)
                    ),
                    shaped("one array for query, key and value", "square", transformations=ONE_ARRAY),
                    shaped("3 batch rows of 5 heads", "prime"),
                    changed("a width of 64", width=64, value_width=64),
                    changed("with a mask", mask=Recipe("random", form="b1qk", seed=1)),
                    changed("with a bias", bias=Recipe("gaussian", form="qk", seed=1)),
                    changed("with key lengths", key_lengths=(9, 5)),
                ),
            )
        },
    )


def _undivided() -> Iterator[MultiHeadProblem]:
    """Problems of a width of 15 with four heads."""
    return (problem.but(heads=4) for problem in multi_head_problems(one_head=False))


CONVENTIONS: tuple[Convention, ...] = (
    *MASK_CONVENTIONS,
    _scale(0.0),
    _scale(-0.25),
    Convention(
        id="CON-GROUPS-REFUSED",
        question="What happens where the query heads are no multiple of the key and value heads?",
        source="pytorch#141218",
        answers={"refused": REFUSED, "accepted": "an output is given"},
        legitimate=frozenset({"refused", "accepted"}),
        questions={
            "attention": Question(
                problems=lambda: attention((2, 5, 2, 7, 13, 8, 8), values="gaussian.1#6"),
                read=refused,
                places=tuple(replace(place, few=False) for place in IN_DTYPES),  # nothing else has such a shape
            )
        },
    ),
    Convention(
        id="CON-WIDTH-REFUSED",
        question="What happens where the number of heads does not divide the width?",
        source="PyTorch documentation of MultiheadAttention",
        answers={"refused": REFUSED, "accepted": "an output is given"},
        legitimate=frozenset({"refused", "accepted"}),
        questions={"multi_head_attention": Question(problems=_undivided, read=refused, places=IN_DTYPES)},
    ),
    *LSE_CONVENTIONS,
    *NUMBER_CONVENTIONS,
    *POSITION_CONVENTIONS,
)

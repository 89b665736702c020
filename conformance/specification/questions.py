"""Conventions: the points on which released APIs legitimately differ, each with the question that shows which answer is given.

Questions are asked in float32. An answer counts as given where the output is within the budget of the eager profile.
"""

from collections.abc import Mapping

import numpy as np

from conformance.inputs import AttentionInputs
from conformance.oracle import expect
from conformance.problem import Problem
from conformance.specification.build import attention, multi_head, sinusoidal
from conformance.specification.model import Ask, Convention, Unsupported
from conformance.values import materialise
from conformance.verdict import Outcome, judge

_REFUSED = "an exception is raised"
_OTHER = "none of these"
_CONTAINED = {"contained": "the output is as if the hidden entry were an ordinary number", "leaks": "the output is not finite"}


def _agrees(output: np.ndarray, meant: Problem) -> bool:
    """Whether ``output`` is within the budget of what ``meant`` asks for."""
    return judge(output, expect(materialise(meant), "eager")).outcome is Outcome.PASS


def _first_that_agrees(ask: Ask, problem: Problem, meanings: Mapping[str, Problem]) -> str:
    """The first answer whose problem gives what the implementation gives for ``problem``; ``refused`` if it raises."""
    try:
        output = ask(problem)
    except Unsupported:
        raise
    except Exception:  # an implementation may raise anything
        return "refused"
    if output.shape == expect(materialise(next(iter(meanings.values()))), "eager").shape and np.isnan(output).all():
        return "nan"
    return next((answer for answer, meant in meanings.items() if _agrees(output, meant)), "other")


def _empty_row(ask: Ask) -> str:
    problem = attention("wide", values="gaussian.1#1", mask="empty-rows.1:b1qk#1")[0]
    inputs = materialise(problem)
    assert isinstance(inputs, AttentionInputs)
    rows = ask(problem)[:, :, ::3].astype(np.float64)
    mean = inputs.value.astype(np.float64).mean(axis=2, keepdims=True)
    if np.isnan(rows).all():
        return "nan"
    if (rows == 0).all():
        return "zeros"
    return "mean" if np.allclose(rows, mean, rtol=1e-4, atol=1e-4) else "other"


def _behind_mask(edit: str) -> Convention:
    tensor, number = {"key*nan": ("K", "NaN"), "value*nan": ("V", "NaN"), "value*inf": ("V", "infinity")}[edit]
    name, argument = edit.split("*")

    def observe(ask: Ask) -> str:
        problem = attention(
            "wide", values="gaussian.1#2", mask="right-padding.1:b11k#47", edits=(f"hidden-{name}.1*{argument}#0",)
        )[0]
        return "contained" if np.isfinite(ask(problem).astype(np.float64)).all() else "leaks"

    return Convention(
        id=f"CON-{'NAN' if argument == 'nan' else 'INF'}-BEHIND-MASK-{tensor}",
        question=f"What does {number} in {tensor} of a key do that a boolean mask hides from every query?",
        source="transformers#38690; xformers documentation of padded operators",
        answers=_CONTAINED,
        observe=observe,
    )


def _alignment(ask: Ask) -> str:
    problem = attention("wide", values="spread.1#3", causal="default")[0]
    return _first_that_agrees(ask, problem, {name: problem.but(causal=name) for name in ("top-left", "bottom-right")})


def _polarity(ask: Ask) -> str:
    # one key is shown to each query, or hidden from it: the two readings have nothing in common
    problem = attention("wide", values="gaussian.1#4", mask="one-key.1:b1qk#4")[0]
    inverted = attention("wide", values="gaussian.1#4", mask="all-but-one.1:b1qk#4")[0]
    answer = _first_that_agrees(ask, problem, {"true-attends": problem, "true-ignores": inverted})
    return answer if answer in ("true-attends", "true-ignores") else "other"


def _scale(scale: float) -> Convention:
    name, word = ("ZERO", "of 0") if scale == 0 else ("NEGATIVE", "below 0")

    def observe(ask: Ask) -> str:
        problem = attention("wide", values="spread.1#5", scale=scale)[0]
        return _first_that_agrees(ask, problem, {"ordinary": problem, "default": problem.but(scale=None)})

    return Convention(
        id=f"CON-{name}-SCALE",
        question=f"What does a scale {word} do?",
        source='Array arithmetic gives it a meaning; some libraries take √scale, or read 0 as "not given"',
        answers={
            "ordinary": "a factor like any other",
            "default": "1/√d is used instead",
            "nan": "the output is NaN",
            "refused": _REFUSED,
            "other": _OTHER,
        },
        observe=observe,
    )


def _refused(ask: Ask, problem: Problem) -> str:
    try:
        ask(problem)
    except Unsupported:
        raise
    except Exception:  # an implementation may raise anything
        return "refused"
    return "accepted"


def _groups(ask: Ask) -> str:
    return _refused(ask, attention((2, 5, 2, 7, 13, 8, 8), values="gaussian.1#6")[0])


def _width(ask: Ask) -> str:
    return _refused(ask, multi_head("square", values="gaussian.1#7")[0].but(heads=4))


def _arrangement(ask: Ask) -> str:
    problem = sinusoidal(11, 6)[0]
    answer = _first_that_agrees(ask, problem, {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")})
    return answer if answer in ("interleaved", "concatenated") else "other"


def _odd_width(ask: Ask) -> str:
    problem = sinusoidal(11, 7)[0]
    meanings = {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")}
    answer = _first_that_agrees(ask, problem, meanings)
    if answer in meanings:
        return "extra-sine"
    if answer != "other":
        return "refused" if answer == "refused" else "other"
    output = ask(problem)
    return "zero-padded" if output.shape == (11, 7) and (output[:, -1] == 0).all() else "other"


def _beyond(ask: Ask) -> str:
    problem = sinusoidal(10_000, 8)[0]
    meanings = {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")}
    answer = _first_that_agrees(ask, problem, meanings)
    if answer in meanings:
        return "extends"
    return "refused" if answer == "refused" else "other"


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="CON-EMPTY-ROW",
        question="What does a query give from which every key is hidden?",
        source="pytorch#103963; pytorch#103749; mlx#2608",
        answers={"zeros": "zeros", "mean": "the mean of all V, hidden ones included", "nan": "NaN", "other": _OTHER},
        observe=_empty_row,
    ),
    _behind_mask("key*nan"),
    _behind_mask("value*nan"),
    _behind_mask("value*inf"),
    Convention(
        id="CON-ALIGNMENT",
        question="Causal, with more keys than queries and nothing said of the alignment: which keys does row i see?",
        source="PyTorch documentation of scaled_dot_product_attention; flash-attention 2.1 release notes; pytorch#108108",
        answers={
            "top-left": "j ≤ i",
            "bottom-right": "j ≤ i + Lk − Lq",
            "nan": "the output is NaN",
            "refused": _REFUSED,
            "other": _OTHER,
        },
        observe=_alignment,
    ),
    Convention(
        id="CON-POLARITY",
        question="What does True mean in a boolean mask, as the implementation takes it?",
        source="PyTorch documentation: scaled_dot_product_attention and MultiheadAttention differ",
        answers={
            "true-attends": "the query may attend to the key",
            "true-ignores": "the key is hidden from the query",
            "other": _OTHER,
        },
        observe=_polarity,
    ),
    _scale(0.0),
    _scale(-0.25),
    Convention(
        id="CON-GROUPS-REFUSED",
        question="What happens where the query heads are no multiple of the key and value heads?",
        source="pytorch#141218",
        answers={"refused": _REFUSED, "accepted": "an output is given"},
        observe=_groups,
    ),
    Convention(
        id="CON-WIDTH-REFUSED",
        question="What happens where the number of heads does not divide the width?",
        source="PyTorch documentation of MultiheadAttention",
        answers={"refused": _REFUSED, "accepted": "an output is given"},
        observe=_width,
        operation="multi_head_attention",
    ),
    Convention(
        id="CON-SINUSOID-ARRANGEMENT",
        question="How are sines and cosines arranged along the width?",
        source="Vaswani et al. 2017, section 3.5, interleaves them; tensor2tensor, fairseq and Whisper concatenate",
        answers={"interleaved": "sine, cosine, sine, cosine …", "concatenated": "all sines, then all cosines", "other": _OTHER},
        observe=_arrangement,
        operation="sinusoidal_encoding",
    ),
    Convention(
        id="CON-ODD-WIDTH",
        question="What stands in the last column of an odd width?",
        source="The paper's widths are even; implementations differ",
        answers={
            "extra-sine": "a sine without its cosine",
            "zero-padded": "zero",
            "refused": _REFUSED,
            "other": _OTHER,
        },
        observe=_odd_width,
        operation="sinusoidal_encoding",
    ),
    Convention(
        id="CON-BEYOND-MAX-LEN",
        question="What happens where 10,000 positions are asked for?",
        source="Tables are often made once, for 5,000 positions",
        answers={"extends": "they are given", "refused": _REFUSED, "other": _OTHER},
        observe=_beyond,
        operation="sinusoidal_encoding",
    ),
)

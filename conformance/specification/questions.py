"""Conventions: the points on which released APIs legitimately differ, each with the question that shows which answer is given."""

from collections.abc import Iterator

from conformance.specification.asking import OTHER, REFUSED, KeyProblem, asked, first_that_agrees, multi_head_problems, refused
from conformance.specification.build import attention, sinusoidal
from conformance.specification.mask_questions import MASK_CONVENTIONS
from conformance.specification.model import Ask, Convention


def _scale(scale: float) -> Convention:
    name, word = ("ZERO", "of 0") if scale == 0 else ("NEGATIVE", "below 0")

    def observe(ask: Ask) -> str:
        problem = attention("wide", values="spread.1#5", scale=scale)[0]
        return first_that_agrees(ask, problem, {"ordinary": problem, "default": problem.but(scale=None)})

    return Convention(
        id=f"CON-{name}-SCALE",
        question=f"What does a scale {word} do?",
        source='Array arithmetic gives it a meaning; some libraries take √scale, or read 0 as "not given"',
        answers={
            "ordinary": "a factor like any other",
            "default": "1/√d is used instead",
            "nan": "the output is NaN",
            "refused": REFUSED,
            "other": OTHER,
        },
        observers={"attention": observe},
    )


def _groups(ask: Ask) -> str:
    return refused(ask, attention((2, 5, 2, 7, 13, 8, 8), values="gaussian.1#6")[0])


def _undivided() -> Iterator[KeyProblem]:
    """Problems of a width of 15 with four heads."""
    return (problem.but(heads=4) for problem in multi_head_problems())


def _arrangement(ask: Ask) -> str:
    problem = sinusoidal(11, 6)[0]
    answer = first_that_agrees(ask, problem, {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")})
    return answer if answer in ("interleaved", "concatenated") else "other"


def _odd_width(ask: Ask) -> str:
    problem = sinusoidal(11, 7)[0]
    meanings = {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")}
    answer = first_that_agrees(ask, problem, meanings)
    if answer in meanings:
        return "extra-sine"
    if answer != "other":
        return "refused" if answer == "refused" else "other"
    output = ask(problem)
    return "zero-padded" if output.shape == (11, 7) and (output[:, -1] == 0).all() else "other"


def _beyond(ask: Ask) -> str:
    problem = sinusoidal(10_000, 8)[0]
    meanings = {name: problem.but(arrangement=name) for name in ("interleaved", "concatenated")}
    answer = first_that_agrees(ask, problem, meanings)
    if answer in meanings:
        return "extends"
    return "refused" if answer == "refused" else "other"


CONVENTIONS: tuple[Convention, ...] = (
    *MASK_CONVENTIONS,
    _scale(0.0),
    _scale(-0.25),
    Convention(
        id="CON-GROUPS-REFUSED",
        question="What happens where the query heads are no multiple of the key and value heads?",
        source="pytorch#141218",
        answers={"refused": REFUSED, "accepted": "an output is given"},
        observers={"attention": _groups},
    ),
    Convention(
        id="CON-WIDTH-REFUSED",
        question="What happens where the number of heads does not divide the width?",
        source="PyTorch documentation of MultiheadAttention",
        answers={"refused": REFUSED, "accepted": "an output is given"},
        observers={"multi_head_attention": asked(refused, _undivided)},
    ),
    Convention(
        id="CON-SINUSOID-ARRANGEMENT",
        question="How are sines and cosines arranged along the width?",
        source="Vaswani et al. 2017, section 3.5, interleaves them; tensor2tensor, fairseq and Whisper concatenate",
        answers={"interleaved": "sine, cosine, sine, cosine …", "concatenated": "all sines, then all cosines", "other": OTHER},
        observers={"sinusoidal_encoding": _arrangement},
    ),
    Convention(
        id="CON-ODD-WIDTH",
        question="What stands in the last column of an odd width?",
        source="The paper's widths are even; implementations differ",
        answers={
            "extra-sine": "a sine without its cosine",
            "zero-padded": "zero",
            "refused": REFUSED,
            "other": OTHER,
        },
        observers={"sinusoidal_encoding": _odd_width},
    ),
    Convention(
        id="CON-BEYOND-MAX-LEN",
        question="What happens where 10,000 positions are asked for?",
        source="Tables are often made once, for 5,000 positions",
        answers={"extends": "they are given", "refused": REFUSED, "other": OTHER},
        observers={"sinusoidal_encoding": _beyond},
    ),
)

"""Conventions on the sinusoidal encoding. Far out, only columns that turn slowly are looked at: accuracy is judged elsewhere."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from conformance.problem import ARRANGEMENTS, FREQUENCIES, SinusoidalProblem
from conformance.specification.asking import IN_DTYPES, OTHER, REFUSED, changed, meant_by, resembles
from conformance.specification.build import sinusoidal
from conformance.specification.observing import Ask, Question
from conformance.specification.requirement import Convention
from conformance.values import materialise

_NEAR = tuple(range(11))  # positions whose angles any arithmetic can tell
_FAR = tuple(range(11, 10_000, 97))
_SLOW = 4.0  # the largest angle, in radians, that bfloat16 can still tell
_PLACES = (
    *IN_DTYPES,
    changed("9 positions of 8 columns", length=9, width=8),
    changed("17 positions of 12 columns", length=17, width=12),
    changed("added to a batch", batch=2),
)
_WIDE = changed("5 positions of 512 columns", length=5, width=512)  # where the known frequencies are all but the same

Tables = Mapping[tuple[str, str], np.ndarray]


def _tables(problem: SinusoidalProblem, rows: tuple[int, ...] | None = None) -> Tables:
    """The encodings that are known, or ``rows`` of them, by arrangement and frequencies."""
    return {
        (arrangement, frequencies): meant_by(problem.but(arrangement=arrangement, frequencies=frequencies, rows=rows))
        for arrangement, frequencies in product(ARRANGEMENTS, FREQUENCIES)
    }


def _known(ask: Ask, problem: SinusoidalProblem) -> tuple[str, str]:
    """Arrangement and frequencies, of what was added to a batch where there is one."""
    added = materialise(problem).arrays().get("x", np.zeros((problem.length, problem.width)))
    output = ask(problem)
    if output.shape != added.shape:
        return "other", "other"
    encoding = output.astype(np.float64) - added.astype(np.float64)
    meant = {names: np.broadcast_to(table, added.shape) for names, table in _tables(problem.but(batch=0)).items()}
    return next((names for names, table in meant.items() if resembles(encoding, table)), ("other", "other"))


def _arrangement(ask: Ask, problem: SinusoidalProblem) -> str:
    return _known(ask, problem)[0]


def _frequencies(ask: Ask, problem: SinusoidalProblem) -> str:
    return _known(ask, problem)[1]


def _parts(output: np.ndarray, problem: SinusoidalProblem) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]] | None:
    """The positions near the beginning, and sampled ones after them with their numbers; None for an output of another shape."""
    if output.shape != (problem.length, problem.width):
        return None
    far = tuple(row for row in _FAR if row < problem.length)
    return output[list(_NEAR)], output[list(far)], far


def _odd_width(ask: Ask, problem: SinusoidalProblem) -> str:
    """All columns are looked at near the beginning, and the sine that has no cosine far out, where it is not 0."""
    parts = _parts(ask(problem), problem)
    if parts is None:
        return "other"
    near, far, rows = parts
    beyond = _tables(problem, rows)
    for names, table in _tables(problem, _NEAR).items():
        alone = problem.width - 1 if names[0] == "interleaved" else problem.width // 2
        if resembles(near, table) and resembles(far[:, alone], beyond[names][:, alone]):
            return "extra-sine"
    is_zero = not far[:, -1].any() and not near[:, -1].any()
    return "zero-padded" if is_zero and any(resembles(near[:, :-1], table) for table in _even_parts(problem)) else "other"


def _even_parts(problem: SinusoidalProblem) -> Iterator[np.ndarray]:
    """What may stand before a column of zeros: a table of one column less, its frequencies made of either width."""
    yield from _tables(problem.but(width=problem.width - 1), _NEAR).values()
    for (arrangement, _), table in _tables(problem, _NEAR).items():
        if arrangement == "interleaved":
            yield table[:, :-1]
            yield np.hstack([table[:, :-1:2], table[:, 1::2]])


def _beyond(ask: Ask, problem: SinusoidalProblem) -> str:
    parts = _parts(ask(problem), problem)
    if parts is None:
        return "other"
    near, far, rows = parts
    beyond = _tables(problem, rows)
    for names, table in _tables(problem, _NEAR).items():
        sines = np.arange(problem.width)[: problem.width // 2] * (2 if names[0] == "interleaved" else 1)
        slow = sines[table[1, sines] * problem.length <= _SLOW]
        if resembles(near, table) and resembles(far[:, slow], beyond[names][:, slow]):
            return "extends"
    return "other"


POSITION_CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        id="CON-SINUSOID-ARRANGEMENT",
        question="How are sines and cosines arranged along the width?",
        source="Vaswani et al. 2017, section 3.5, interleaves them; tensor2tensor, fairseq and Whisper concatenate",
        answers={"interleaved": "sine, cosine, sine, cosine …", "concatenated": "all sines, then all cosines", "other": OTHER},
        legitimate=frozenset(ARRANGEMENTS),
        questions={
            "sinusoidal_encoding": Question(problems=lambda: sinusoidal(11, 6), read=_arrangement, places=(*_PLACES, _WIDE))
        },
        otherwise="It is judged as if they were interleaved, where its answer is none of these.",
    ),
    Convention(
        id="CON-SINUSOID-FREQUENCIES",
        question="By which frequencies do the pairs of columns turn?",
        source="Vaswani et al. 2017, section 3.5, divides by d; tensor2tensor, fairseq and Whisper by d/2 − 1",
        answers={
            "d": "10000^(−2i/d) for pair i, as in the paper",
            "d/2-1": "10000^(−i/(d/2 − 1)) for pair i: from 1 to 1/10000; 1 where there is one pair, ⌈d/2⌉ − 1 where d is odd",
            "other": OTHER,
        },
        legitimate=frozenset(FREQUENCIES),
        questions={"sinusoidal_encoding": Question(problems=lambda: sinusoidal(11, 6), read=_frequencies, places=_PLACES)},
        otherwise="It is judged by those of the paper, where its answer is none of these.",
    ),
    Convention(
        id="CON-ODD-WIDTH",
        question="What stands in the last column of an odd width?",
        source="The paper's widths are even; implementations differ",
        answers={
            "extra-sine": "a sine without its cosine",
            "zero-padded": "zero",
            "refused": f"{REFUSED}: say so by naming odd-width in Support.lacks",
            "other": OTHER,
        },
        legitimate=frozenset({"extra-sine", "zero-padded"}),
        questions={
            "sinusoidal_encoding": Question(
                problems=lambda: sinusoidal(4001, 7),
                read=_odd_width,
                places=(*IN_DTYPES, *(changed(f"a width of {width}", width=width) for width in (5, 11, 33, 129))),
            )
        },
    ),
    Convention(
        id="CON-BEYOND-MAX-LEN",
        question="What happens where 10,000 positions are asked for?",
        source="Tables are often made once, for 5,000 positions",
        answers={"extends": "they are given", "refused": REFUSED, "other": OTHER},
        legitimate=frozenset({"extends", "refused"}),
        questions={"sinusoidal_encoding": Question(problems=lambda: sinusoidal(10_000, 16), read=_beyond, places=IN_DTYPES)},
    ),
)

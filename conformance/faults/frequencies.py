"""Faults of the sinusoidal encoding in its frequencies, its functions and the arrangement of its columns."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.faults.fault import Fault
from conformance.faults.grammar import IDS, POS, SINUSOIDAL, Way, fault
from conformance.faults.sinusoids import FIRST, Frequencies, added, arranged, changed_table, encoded, with_table
from conformance.faults.steps import frequencies_asked, sinusoidal
from conformance.problem.inputs import SinusoidalInputs

Array = np.ndarray
Exponent = Callable[[Array, int], Array]  # of the numbers of pairs, and the width

DENOMINATOR, OF_LENGTH = POS(4, 1), POS(6, 1)
EXPONENT = (
    "Kyubyong/transformer: https://github.com/Kyubyong/transformer/issues/38",
    "PapersReimplementations (DDPM): https://github.com/BrianPulfer/PapersReimplementations/issues/9",
)
STEPPING = ("SamLynnEvans/Transformer: https://github.com/SamLynnEvans/Transformer/issues/25",)
INVERTED = ("annotated-transformer: https://github.com/harvardnlp/annotated-transformer/issues/131",)
TIMING = ("tensor2tensor: its timing signal, right by another definition",)


def pairs(width: int) -> Float[Array, " pairs"]:
    """0, 1, 2 …, one for each pair of columns."""
    return np.arange((width + 1) // 2, dtype=np.float64)


def _powers(base: float, exponent: Exponent) -> Frequencies:
    """base^(−exponent(pair, width))."""
    return lambda width: base ** -exponent(pairs(width), width)


def _exponent(sine: Exponent, cosine: Exponent | None = None, base: float = 1e4) -> Way:
    return with_table(sines=_powers(base, sine), cosines=None if cosine is None else _powers(base, cosine))


def _over(more: int) -> Way:
    """The exponent 2i / (d + ``more``)."""
    return _exponent(lambda i, d: 2 * i / max(d + more, 1))


def _right(i: Array, d: int) -> Array:
    return 2 * i / d


def _by_length(of: Callable[[int], Way]) -> Way:
    """Another way for each length."""

    def compute(inputs: SinusoidalInputs) -> Array:
        way = of(inputs.length).compute
        assert way is not None
        return way(inputs)

    return encoded(compute)


def _angles(inputs: SinusoidalInputs) -> Array:
    return np.arange(inputs.length)[:, None] * frequencies_asked(inputs)


def _cosine_first(inputs: SinusoidalInputs) -> Array:
    """With an odd width the sine has one column more, which stays the last."""
    angles, half = _angles(inputs), inputs.width // 2
    first = np.concatenate([np.cos(angles[:, :half]), np.sin(angles[:, half:])], axis=1)
    return added(inputs, arranged(inputs, first, np.sin(angles[:, :half])))


def _sine_only(inputs: SinusoidalInputs) -> Array:
    sines = np.sin(_angles(inputs))
    return added(inputs, arranged(inputs, sines, sines[:, : inputs.width // 2]))


def _arranged_as(arrangement: str) -> Way:
    return encoded(lambda inputs: sinusoidal(inputs.but(arrangement=arrangement)))


def _mirrored(inputs: SinusoidalInputs) -> Array:
    other = "interleaved" if inputs.arrangement == "concatenated" else "concatenated"
    return sinusoidal(inputs.but(arrangement=other))


def _unwritten(inputs: SinusoidalInputs, encoding: Array) -> Array:
    encoding[:, inputs.width // 4 * 4 :] = 0
    return encoding


def _ignoring(function: Callable[..., Array]) -> Callable[..., Array]:
    """``function``, with a parameter for frequencies that does nothing."""

    def encoding(
        length: int, d_model: int, *, dtype: Any = np.float32, arrangement: str = "interleaved", frequencies: str = "d",
        x: Any = None,
    ) -> Array:  # fmt: skip
        return function(length, d_model, dtype=dtype, arrangement=arrangement, x=x)

    return encoding


ROWS: tuple[tuple[str, str, IDS, IDS, Way], ...] = (
    ("exponent-halved", "takes i/d for the exponent, not 2i/d", FIRST, EXPONENT, _exponent(lambda i, d: i / d)),
    ("exponent-doubled", "takes 4i/d for the exponent: doubles an index that steps by two", FIRST, STEPPING,
     _exponent(lambda i, d: 4 * i / d)),
    ("exponent-of-column", "gives each column c its own frequency, with the exponent c/d", FIRST, EXPONENT,
     _exponent(_right, lambda i, d: (2 * i + 1) / d)),
    ("exponent-of-column-doubled", "gives each column c its own frequency, with the exponent 2c/d", FIRST, EXPONENT + STEPPING,
     _exponent(lambda i, d: 4 * i / d, lambda i, d: (4 * i + 2) / d)),
    ("cosine-of-next-pair", "gives the cosine the frequency of the next pair", FIRST, STEPPING,
     _exponent(_right, lambda i, d: 2 * (i + 1) / d)),
    ("cosine-of-previous-pair", "gives the cosine the frequency of the pair before", FIRST, (),
     _exponent(_right, lambda i, d: 2 * (i - 1) / d)),
    ("pairs-from-one", "begins with the second frequency", POS(3, 1), (), _exponent(lambda i, d: 2 * (i + 1) / d)),
    ("pairs-reversed", "gives the first pair the last frequency", FIRST, (), _exponent(lambda i, d: 2 * (d / 2 - 1 - i) / d)),
    ("denominator-half-less-one", "divides the exponent by d/2 − 1", DENOMINATOR, TIMING,
     _exponent(lambda i, d: i / max(d / 2 - 1, 1))),
    *(
        (f"denominator-{name}", f"divides the exponent by {shown}", DENOMINATOR, (),
         _over(more))
        for name, shown, more in (("less-one", "d − 1", -1), ("plus-one", "d + 1", 1), ("plus-two", "d + 2", 2))
    ),
    ("frequency-inverted", "multiplies by 10000^(2i/d) instead of dividing", FIRST, INVERTED, _exponent(lambda i, d: -2 * i / d)),
    *(
        (f"base-{name}", f"takes the base {name} for 10000", POS(4, 1, 5), (), _exponent(_right, base=float(base)))
        for name, base in (("1000", 1e3), ("100000", 1e5), ("10001", 10001), ("9999", 9999), ("8192", 8192), ("e", np.e))
    ),
    ("length-for-width", "divides the exponent by the length", OF_LENGTH, (),
     _by_length(lambda length: _exponent(lambda i, d: 2 * i / length))),
    ("base-from-length", "takes the length for the base", OF_LENGTH, (),
     _by_length(lambda length: _exponent(_right, base=float(length)))),
    # Functions and columns
    ("sine-and-cosine-exchanged", "puts the cosine before the sine", FIRST, (), encoded(_cosine_first)),
    ("other-arrangement", "concatenates sines and cosines where they should alternate, and the other way round", POS(1, 15, 16),
     TIMING, encoded(_mirrored)),
    ("always-concatenated", "puts all sines first though alternating columns were asked for", POS(15, 1), (),
     _arranged_as("concatenated")),
    ("sine-only", "has a sine in every column", POS(2, 1, 10), (), encoded(_sine_only)),
    ("in-degrees", "takes the angle for degrees", FIRST, (), with_table(angle=np.deg2rad)),
    ("into-degrees", "makes degrees of the angle before sine and cosine", FIRST, (), with_table(angle=np.rad2deg)),
    ("in-turns", "multiplies the angle by 2π", FIRST, (), with_table(angle=lambda angles: 2 * np.pi * angles)),
    ("last-pair-unwritten", "leaves the columns beyond a multiple of 4 at 0", POS(14, 1), (), changed_table(_unwritten)),
    ("transposed-if-square", "exchanges positions and columns where there are as many of each", POS(14), (),
     changed_table(lambda inputs, encoding: encoding.T if inputs.length == inputs.width else encoding)),
    ("frequencies-ignored", "gives the paper's frequencies, whichever are asked for", POS(21), (),
     Way(behaviour=_ignoring, operation=SINUSOIDAL)),
)  # fmt: skip
FAULTS: tuple[Fault, ...] = (
    *(fault(f"sinusoid-{name}", sentence, way, requirements, sources) for name, sentence, requirements, sources, way in ROWS),
    fault("sinusoid-always-interleaved", "lets sine and cosine alternate though halves were asked for",
          _arranged_as("interleaved"), POS(16), (), "concatenated"),
)  # fmt: skip

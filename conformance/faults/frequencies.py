"""Faults of the sinusoidal encoding in its frequencies, its functions and the arrangement of its columns."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from conformance.faults.model import Compute, Fault
from conformance.faults.sinusoids import Frequencies, added, arranged, fault, table, with_table
from conformance.faults.steps import frequencies_asked, sinusoidal
from conformance.inputs import SinusoidalInputs

Array = np.ndarray
_EXPONENT = (
    "Kyubyong/transformer: https://github.com/Kyubyong/transformer/issues/38",
    "PapersReimplementations (DDPM): https://github.com/BrianPulfer/PapersReimplementations/issues/9",
)
_STEPPING = ("SamLynnEvans/Transformer: https://github.com/SamLynnEvans/Transformer/issues/25",)
_INVERTED = ("annotated-transformer: https://github.com/harvardnlp/annotated-transformer/issues/131",)
_TIMING = ("tensor2tensor: its timing signal, right by another definition",)


def pairs(width: int) -> Float[Array, " pairs"]:
    """0, 1, 2 …, one for each pair of columns."""
    return np.arange((width + 1) // 2, dtype=np.float64)


def powers(base: float, exponent: Callable[[Array, int], Array]) -> Frequencies:
    """base^(−exponent(pair, width))."""
    return lambda width: base ** -exponent(pairs(width), width)


def _exponent(
    sine: Callable[[Array, int], Array], cosine: Callable[[Array, int], Array] | None = None, base: float = 1e4
) -> Compute:
    return with_table(sines=powers(base, sine), cosines=None if cosine is None else powers(base, cosine))


def _over(more: int) -> Compute:
    """The exponent 2i / (d + ``more``)."""
    return _exponent(lambda i, d: 2 * i / max(d + more, 1))


_FREQUENCIES = (
    fault("exponent-halved", "takes i/d for the exponent, not 2i/d", _exponent(lambda i, d: i / d), sources=_EXPONENT),
    fault(
        "exponent-doubled",
        "takes 4i/d for the exponent: doubles an index that steps by two",
        _exponent(lambda i, d: 4 * i / d),
        sources=_STEPPING,
    ),
    fault(
        "exponent-of-column",
        "gives each column c its own frequency, with the exponent c/d",
        _exponent(lambda i, d: 2 * i / d, lambda i, d: (2 * i + 1) / d),
        sources=_EXPONENT,
    ),
    fault(
        "exponent-of-column-doubled",
        "gives each column c its own frequency, with the exponent 2c/d",
        _exponent(lambda i, d: 4 * i / d, lambda i, d: (4 * i + 2) / d),
        sources=_EXPONENT + _STEPPING,
    ),
    fault(
        "cosine-of-next-pair",
        "gives the cosine the frequency of the next pair",
        _exponent(lambda i, d: 2 * i / d, lambda i, d: 2 * (i + 1) / d),
        sources=_STEPPING,
    ),
    fault(
        "cosine-of-previous-pair",
        "gives the cosine the frequency of the pair before",
        _exponent(lambda i, d: 2 * i / d, lambda i, d: 2 * (i - 1) / d),
    ),
    fault(
        "pairs-from-one",
        "begins with the second frequency",
        _exponent(lambda i, d: 2 * (i + 1) / d),
        "ATT-POS-003",
        "ATT-POS-001",
    ),
    fault("pairs-reversed", "gives the first pair the last frequency", _exponent(lambda i, d: 2 * (d / 2 - 1 - i) / d)),
    fault(
        "denominator-half-less-one",
        "divides the exponent by d/2 − 1",
        _exponent(lambda i, d: i / max(d / 2 - 1, 1)),
        "ATT-POS-004",
        "ATT-POS-001",
        sources=_TIMING,
    ),
    *(
        fault(
            f"denominator-{name}",
            f"divides the exponent by {shown}",
            _over(number),
            "ATT-POS-004",
            "ATT-POS-001",
        )
        for name, shown, number in (("less-one", "d − 1", -1), ("plus-one", "d + 1", 1), ("plus-two", "d + 2", 2))
    ),
    fault(
        "frequency-inverted",
        "multiplies by 10000^(2i/d) instead of dividing",
        _exponent(lambda i, d: -2 * i / d),
        sources=_INVERTED,
    ),
    *(
        fault(
            f"base-{name}",
            f"takes the base {name} for 10000",
            _exponent(lambda i, d: 2 * i / d, base=float(base)),
            "ATT-POS-004",
            "ATT-POS-001",
            "ATT-POS-005",
        )
        for name, base in (("1000", 1e3), ("100000", 1e5), ("10001", 10001), ("9999", 9999), ("8192", 8192), ("e", np.e))
    ),
    fault(
        "length-for-width",
        "divides the exponent by the length",
        lambda inputs: _exponent(lambda i, d: 2 * i / inputs.length)(inputs),
        "ATT-POS-006",
        "ATT-POS-001",
    ),
    fault(
        "base-from-length",
        "takes the length for the base",
        lambda inputs: _exponent(lambda i, d: 2 * i / d, base=float(inputs.length))(inputs),
        "ATT-POS-006",
        "ATT-POS-001",
    ),
)


def _mirrored(inputs: SinusoidalInputs) -> SinusoidalInputs:
    return inputs.but(arrangement="interleaved" if inputs.arrangement == "concatenated" else "concatenated")


def _unwritten(inputs: SinusoidalInputs) -> Array:
    encoding = table(inputs)
    encoding[:, inputs.width // 4 * 4 :] = 0
    return added(inputs, encoding)


def _cosine_first(inputs: SinusoidalInputs) -> Array:
    """With an odd width the sine has one column more, which stays the last."""
    angles = np.arange(inputs.length)[:, None] * frequencies_asked(inputs)
    half = inputs.width // 2
    first = np.concatenate([np.cos(angles[:, :half]), np.sin(angles[:, half:])], axis=1)
    return added(inputs, arranged(inputs, first, np.sin(angles[:, :half])))


def _sine_only(inputs: SinusoidalInputs) -> Array:
    sines = np.sin(np.arange(inputs.length)[:, None] * frequencies_asked(inputs))
    return added(inputs, arranged(inputs, sines, sines[:, : inputs.width // 2]))


def _transposed_if_square(inputs: SinusoidalInputs) -> Array:
    encoding = table(inputs)
    return added(inputs, encoding.T if inputs.length == inputs.width else encoding)


_FORM = (
    fault("sine-and-cosine-exchanged", "puts the cosine before the sine", _cosine_first),
    fault(
        "other-arrangement",
        "concatenates sines and cosines where they should alternate, and the other way round",
        lambda inputs: sinusoidal(_mirrored(inputs)),
        "ATT-POS-001",
        "ATT-POS-015",
        "ATT-POS-016",
        sources=_TIMING,
    ),
    fault(
        "always-interleaved",
        "lets sine and cosine alternate though halves were asked for",
        lambda inputs: sinusoidal(inputs.but(arrangement="interleaved")),
        "ATT-POS-016",
        needs=frozenset({"concatenated"}),
    ),
    fault(
        "always-concatenated",
        "puts all sines first though alternating columns were asked for",
        lambda inputs: sinusoidal(inputs.but(arrangement="concatenated")),
        "ATT-POS-015",
        "ATT-POS-001",
    ),
    fault(
        "sine-only",
        "has a sine in every column",
        _sine_only,
        "ATT-POS-002",
        "ATT-POS-001",
        "ATT-POS-010",
    ),
    fault("in-degrees", "takes the angle for degrees", with_table(angle=np.deg2rad)),
    fault("into-degrees", "makes degrees of the angle before sine and cosine", with_table(angle=np.rad2deg)),
    fault("in-turns", "multiplies the angle by 2π", with_table(angle=lambda angles: 2 * np.pi * angles)),
    fault("last-pair-unwritten", "leaves the columns beyond a multiple of 4 at 0", _unwritten, "ATT-POS-014", "ATT-POS-001"),
    fault(
        "transposed-if-square",
        "exchanges positions and columns where there are as many of each",
        _transposed_if_square,
        "ATT-POS-014",
    ),
)


FAULTS: tuple[Fault, ...] = (*_FREQUENCIES, *_FORM)

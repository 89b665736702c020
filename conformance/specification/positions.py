"""ATT-POS: the sinusoidal positional encoding."""

from conformance.problem import FREQUENCIES, SinusoidalProblem
from conformance.specification.build import ALL, HALF, joined, sinusoidal
from conformance.specification.draw import SinusoidalDraw
from conformance.specification.requirement import Requirement

_VASWANI = "Vaswani et al. 2017 (arXiv 1706.03762), section 3.5"
_FIRST = tuple(range(10))


def _positional(
    number: int,
    sentence: str,
    rationale: str,
    source: str,
    *problems: list[SinusoidalProblem],
    check: str = "values",
    random: SinusoidalDraw | None = None,
    exempt: str = "",
    cannot_tell: tuple[str, ...] = (),
) -> Requirement:
    return Requirement(
        id=f"ATT-POS-{number:03}",
        operation="sinusoidal_encoding",
        sentence=sentence,
        rationale=rationale,
        source=source,
        check=check,
        designed=lambda: joined(*problems),
        random=random,
        exempt=exempt,
        cannot_tell=cannot_tell,
    )


_TABLE = (
    _positional(
        1,
        "Position p, pair i holds sin(p ω) and cos(p ω) with ω = 10000^(−2i/d), or what CON-SINUSOID-FREQUENCIES has instead.",
        "Both of a pair share one frequency, and the exponent counts pairs, not columns.",
        f"{_VASWANI}; Kyubyong/transformer#38; SamLynnEvans/Transformer#25",
        sinusoidal(10, 6, ALL),
        sinusoidal(50, 16, ALL),
        sinusoidal(50, 512, ALL, rows=_FIRST),
    ),
    _positional(
        2,
        "Position 0 holds sin 0 = 0 and cos 0 = 1.",
        "Counting from 1 shifts every position.",
        _VASWANI,
        sinusoidal(1, 8, ALL),
        sinusoidal(3, 8, ALL, rows=(0,)),
        exempt="Position 0 is the whole table.",
        cannot_tell=("position 0",),
    ),
    _positional(
        3,
        "The first pair turns with frequency 1.",
        "sin p, cos p: a frequency that starts one step later is 10000^(−2/d).",
        _VASWANI,
        sinusoidal(20, 2, ALL),
        sinusoidal(20, 8, ALL),
    ),
    _positional(
        4,
        "The last pair turns with frequency 10000^(−(d − 2)/d), or with 1/10000 where CON-SINUSOID-FREQUENCIES is d/2-1.",
        "A denominator of d/2 − 1 ends at 1/10000, which is another encoding: an implementation has the one or the other.",
        f"{_VASWANI}; tensor2tensor's timing signal",
        sinusoidal(2000, 4, ALL, rows=(1000, 1999)),
        sinusoidal(2000, 64, ALL, rows=(1, 1999)),
    ),
    _positional(
        5,
        "Position 4999 is right.",
        "The last row of the common table of 5,000.",
        _VASWANI,
        sinusoidal(5000, 64, ALL, rows=(4999,)),
        sinusoidal(5000, 512, ALL, rows=(4999,)),
    ),
    _positional(
        6,
        "A shorter table is the beginning of a longer one.",
        "The length must not enter the frequencies.",
        _VASWANI,
        *(sinusoidal(length, 16, ALL) for length in (2, 7, 33, 100)),
    ),
    _positional(
        7,
        "The table has the shape (length, d) and the dtype asked for.",
        "A table kept in float64 changes the dtype of what it is added to.",
        "PyTorch and JAX promotion rules",
        sinusoidal(7, 12, ALL),
        sinusoidal(12, 12, ALL),
        check="form",
    ),
    _positional(
        10,
        "The square norm of a position's encoding is d/2.",
        "sin² + cos² = 1 for each pair.",
        _VASWANI,
        sinusoidal(64, 32, ALL, rows=(0, 1, 17, 63)),
    ),
    _positional(
        11,
        "The encoding of p + k is that of p, each pair turned by k ω.",
        "Relative positions are rotations, whatever p is.",
        f"{_VASWANI}; PapersReimplementations#9",
        sinusoidal(128, 16, ALL, rows=(3, 20, 37, 54, 71, 88, 105, 122)),
    ),
    _positional(
        12,
        "Large positions are as accurate as the angle allows.",
        "An angle made in 16 bit, or by steps that add up, is far off at a thousand.",
        "transformers#29285; sglang-jax#1472",
        sinusoidal(5000, 8, ALL, rows=(1023, 2047, 4095, 4998)),
        sinusoidal(131072, 4, ALL, rows=(32767, 65535, 99991, 131071)),
        sinusoidal(70001, 2, ALL, rows=(5003, 40000, 65537, 70000)),
    ),
    _positional(
        13,
        "A table in 16 bit is an accurate one, rounded.",
        "Frequencies or angles in 16 bit lose the fractional turn.",
        "transformers#29285; sglang-jax#1472",
        sinusoidal(2000, 16, HALF, rows=(0, 1, 255, 256, 257, 999, 1999)),
    ),
    _positional(
        14,
        "Widths of 2, 4, 6, 128, 512 and 768 are right.",
        "The smallest even widths, one that is no power of two, and the paper's.",
        _VASWANI,
        *(sinusoidal(10, width, ALL) for width in (2, 4, 6, 10, 128, 512, 768)),
        sinusoidal(4, 4, ALL),
    ),
    _positional(
        15,
        "Asked for interleaved pairs, sine and cosine alternate along the width.",
        "The arrangement of the paper.",
        _VASWANI,
        sinusoidal(11, 6, ALL, arrangement="interleaved"),
    ),
    _positional(
        16,
        "Asked for concatenated halves, all sines stand before all cosines.",
        "The arrangement of tensor2tensor, fairseq and Whisper.",
        "tensor2tensor's timing signal",
        sinusoidal(11, 6, ALL, arrangement="concatenated"),
        sinusoidal(9, 8, ALL, arrangement="concatenated"),
    ),
)

_ADDITION = (
    _positional(
        8,
        "Added to x, the same encoding goes to every batch row.",
        "x + PE, broadcast over the batch.",
        _VASWANI,
        sinusoidal(7, 12, ALL, batch=3),
        sinusoidal(5, 6, ALL, batch=1),
        random=SinusoidalDraw(),
    ),
    _positional(
        9,
        "Positions count along the length, not along the batch.",
        "Tables made for (length, batch, d) give each row of a batch one position.",
        "influenza_transformer#9; C.Origami#42",
        sinusoidal(5, 8, ALL, batch=5),
        sinusoidal(3, 8, ALL, batch=3),
        sinusoidal(9, 8, ALL, batch=2),
        random=SinusoidalDraw(dtypes=("float32", "float64")),
    ),
    _positional(
        18,
        "x + PE belongs to the x of its own call.",
        "A kept sum is right once.",
        "Follows from the formula",
        sinusoidal(7, 12, ALL, batch=2),
        sinusoidal(9, 8, ALL, batch=2),
        check="stale",
    ),
    _positional(
        19,
        "The addition leaves x as it was.",
        "An addition in place changes the caller's embeddings.",
        "Array API standard: functions do not change their arguments",
        sinusoidal(7, 12, ALL, batch=2),
        check="untouched",
    ),
    _positional(
        20,
        "The sum shares no memory with x.",
        "Otherwise writing to one changes the other.",
        "Array API standard: functions return new arrays",
        sinusoidal(7, 12, ALL, batch=2),
        check="unaliased",
    ),
    _positional(
        17,
        "The same call repeated gives the same table.",
        "A table that is extended or changed in between must not show.",
        "Follows from the formula",
        sinusoidal(50, 16, ALL),
        check="repeat",
    ),
    _positional(
        21,
        "The frequencies that are asked for are given: 10000^(−2i/d), or those that fall from 1 to 1/10000.",
        "A parameter that is read and not obeyed gives one of two encodings.",
        f"{_VASWANI}; tensor2tensor's timing signal",
        *(sinusoidal(11, 12, ALL, frequencies=frequencies) for frequencies in FREQUENCIES),
        *(sinusoidal(9, 8, ALL, frequencies=frequencies) for frequencies in FREQUENCIES),
    ),
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(sorted((*_TABLE, *_ADDITION), key=lambda requirement: requirement.id))

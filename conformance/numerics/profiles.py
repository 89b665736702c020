"""Numerics profiles: where an implementation rounds, as unit roundoffs of scores, probabilities, accumulator and output.

Names and numbers are the project's own. With u the unit roundoff of the output dtype and a = 2⁻²⁴ (float32).
"""

from dataclasses import dataclass, replace

from conformance.errors import UsageError, quoted
from conformance.numerics.dtypes import float_type

_A = 2.0**-24
_TF32 = 2.0**-11
_BF16X3 = 2.0**-16  # of a number given as two of bfloat16


@dataclass(frozen=True)
class Roundoffs:
    """Unit roundoffs: ``scores`` u_s, ``probabilities`` u_p, ``accumulator`` u_a, ``output`` u_o, ``scaled_query`` u_q,
    ``projections`` u_π of the intermediate results of multi-head attention, ``log_sum_exp`` u_l where weights are e^(s − lse),
    ``merges`` u_m where answers of parts of the keys are moved towards each other, o − σ(Δ)(o − o₂).

    ``splits``: products are made of shorter numbers, so that not even a product with 1 is exact. ``flushes``: float16 numbers
    below the smallest normal one count as 0.
    """

    scores: float
    probabilities: float
    accumulator: float
    output: float
    scaled_query: float = 0.0
    projections: float = 0.0
    log_sum_exp: float = 0.0
    merges: float = 0.0
    splits: bool = False
    flushes: bool = False


# A sentence for each.
PROFILES: dict[str, str] = {
    "strict": "everything in the dtype of the inputs, every step correctly rounded",
    "inner32": "16-bit inputs computed in float32, rounded once at the end",
    "fused": "scores and accumulation in float32, probabilities rounded to the input dtype before they meet V",
    "fused_q": "as fused, the query multiplied by the scale and rounded first",
    "fused_qk": "as fused, with √scale rounded into query and key, scores in the input dtype",
    "soft32": "float64 inputs, softmax in float32",
    "bf16x3": "float32 products made of three products of bfloat16 numbers",
    "tf32": "float32 products with 11 significant bits",
    "unfused": "each step rounded to the input dtype, products accumulated in float32",
    "low": "each step and the accumulation in the input dtype",
}

# What may be added to the name of a profile, as in strict+lse.
ADDITIONS: dict[str, str] = {
    "lse": "weights are e^(s − lse), normalised by a rounded log-sum-exp and by nothing else",
    "merges": "as +lse, and answers of parts of the keys are merged as o − σ(lse₂ − lse)(o − o₂)",
}
DECLARABLE: dict[str, str] = PROFILES | {
    f"{name}+{addition}": f"{sentence}; {added}" for addition, added in ADDITIONS.items() for name, sentence in PROFILES.items()
}
FLUSHING = "+flushes"  # what the suite adds where Support.flushes declares it

UNDECLARED = "unfused"  # by which an implementation is judged that declares none

# Which profiles an undeclared implementation is held against, from tightest to loosest, to say which it meets.
_16_BIT = ("inner32", "fused", "fused_q", "fused_qk", "unfused", "low")
TIGHTEST_FIRST: dict[str, tuple[str, ...]] = {
    "float64": ("strict", "unfused", "soft32"),
    "float32": ("strict", "unfused", "bf16x3", "tf32"),
    "float16": _16_BIT,
    "bfloat16": _16_BIT,
}


def roundoffs(profile: str, dtype: str) -> Roundoffs:
    """The unit roundoffs of ``profile`` for outputs of ``dtype``; raises UsageError for an unknown profile.

    Unless the profile says otherwise, products are accumulated in float32, or in float64 for float64.
    """
    declared = profile.removesuffix(FLUSHING)
    name, _, addition = declared.partition("+")
    if name not in PROFILES or (addition and addition not in ADDITIONS):
        known = ", ".join(PROFILES)
        raise UsageError(
            f"Unknown numerics profile {quoted(profile)}: use one of {known}, with +{' or +'.join(ADDITIONS)} or without."
        )
    unit = _of_base(name, dtype)
    if addition:
        unit = replace(unit, log_sum_exp=unit.scores, merges=unit.accumulator if addition == "merges" else 0.0)
    return replace(unit, flushes=declared != profile)


def _of_base(name: str, dtype: str) -> Roundoffs:
    u = float_type(dtype).unit_roundoff
    a = min(_A, u)
    by_name = {
        "strict": Roundoffs(u, u, u, u, projections=u),
        "inner32": Roundoffs(a, a, a, u, projections=a),
        "fused": Roundoffs(a, u, a, u, projections=u),
        "fused_q": Roundoffs(a, u, a, u, u, projections=u),
        "fused_qk": Roundoffs(2 * u, u, a, u, 2 * u, projections=u),
        "unfused": Roundoffs(2 * u, 2 * u, a, u, projections=u),
        "low": Roundoffs(2 * u, 2 * u, u, u, projections=u),
        "soft32": Roundoffs(_A, _A, _A, u, projections=u),
        "bf16x3": Roundoffs(u, 2 * _BF16X3, u, u, 2 * _BF16X3, projections=2 * _BF16X3, splits=True),
        "tf32": Roundoffs(u, 2 * _TF32, u, u, 2 * _TF32, projections=2 * _TF32, splits=True),
    }
    return by_name[name]


def looser(profile: str) -> tuple[str, ...]:
    """The profile with each addition that allows more, from tightest to loosest; none where the last is allowed already."""
    declared = profile.removesuffix(FLUSHING)
    name, _, addition = declared.partition("+")
    rest = tuple(ADDITIONS)[tuple(ADDITIONS).index(addition) + 1 :] if addition else tuple(ADDITIONS)
    return tuple(profile.replace(declared, f"{name}+{more}", 1) for more in rest)

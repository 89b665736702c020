"""Numerics profiles: where an implementation rounds, as unit roundoffs of scores, probabilities, accumulator and output.

Names and numbers are the project's own. With u the unit roundoff of the output dtype and a = 2⁻²⁴ (float32).
"""

from dataclasses import dataclass

from conformance.dtypes import float_type
from conformance.errors import UsageError

_A = 2.0**-24
_TF32 = 2.0**-11


@dataclass(frozen=True)
class Roundoffs:
    """Unit roundoffs: ``scores`` u_s, ``probabilities`` u_p, ``accumulator`` u_a, ``output`` u_o, ``scaled_query`` u_q."""

    scores: float
    probabilities: float
    accumulator: float
    output: float
    scaled_query: float = 0.0


# A sentence for each.
PROFILES: dict[str, str] = {
    "strict": "everything in the dtype of the inputs, every step correctly rounded",
    "inner32": "16-bit inputs computed in float32, rounded once at the end",
    "fused": "scores and accumulation in float32, probabilities rounded to the input dtype before they meet V",
    "fused_q": "as fused, the query multiplied by the scale and rounded first",
    "fused_qk": "as fused, with √scale rounded into query and key, scores in the input dtype",
    "soft32": "float64 inputs, softmax in float32",
    "tf32": "float32 products with 11 significant bits",
    "eager": "each step rounded to the input dtype, products accumulated in float32",
    "low": "each step and the accumulation in the input dtype",
}


UNDECLARED = "eager"  # by which an implementation is judged that declares none

# Which profiles an undeclared implementation is held against, from tightest to loosest, to say which it meets.
_16_BIT = ("inner32", "fused", "fused_q", "fused_qk", "eager", "low")
TIGHTEST_FIRST: dict[str, tuple[str, ...]] = {
    "float64": ("strict", "eager", "soft32"),
    "float32": ("strict", "eager", "tf32"),
    "float16": _16_BIT,
    "bfloat16": _16_BIT,
}


def roundoffs(profile: str, dtype: str) -> Roundoffs:
    """The unit roundoffs of ``profile`` for outputs of ``dtype``; raises UsageError for an unknown profile.

    Unless the profile says otherwise, products are accumulated in float32, or in float64 for float64.
    """
    u = float_type(dtype).unit_roundoff
    a = min(_A, u)
    if profile == "strict":
        return Roundoffs(u, u, u, u)
    if profile == "inner32":
        return Roundoffs(a, a, a, u)
    if profile == "fused":
        return Roundoffs(a, u, a, u)
    if profile == "fused_q":
        return Roundoffs(a, u, a, u, u)
    if profile == "fused_qk":
        return Roundoffs(2 * u, u, a, u, 2 * u)
    if profile == "eager":
        return Roundoffs(2 * u, 2 * u, a, u)
    if profile == "low":
        return Roundoffs(2 * u, 2 * u, u, u)
    if profile == "soft32":
        return Roundoffs(_A, _A, _A, u)
    if profile == "tf32":
        return Roundoffs(u, 2 * _TF32, u, u, 2 * _TF32)
    raise UsageError(f"Unknown numerics profile {profile!r}: use one of {', '.join(PROFILES)}.")

"""What Hypothesis may draw for a requirement: the description of problems, as data."""

from dataclasses import dataclass

ALL_DTYPES = ("float64", "float32", "float16", "bfloat16")
ALL_FORMS = ("qk", "b11k", "b1qk", "1hqk", "bhqk", "bhq1")
GENERAL_LAWS = ("gaussian", "spread", "heavy", "signatures")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Choices for each field of a problem; "" stands for "absent". Shapes come from the palette (conformance/cases/palette.py).

    ``shapes`` restricts the palette: ``any``, ``square`` (Lq = Lk), ``wide`` (Lq < Lk), ``tall`` (Lq > Lk), ``grouped``,
    ``decode`` (Lq = 1), ``value-width`` (dv ≠ d). ``edits`` are texts such as ``permute-keys.1``, one of which is drawn.
    """

    shapes: str = "any"
    dtypes: tuple[str, ...] = ALL_DTYPES
    laws: tuple[str, ...] = GENERAL_LAWS
    masks: tuple[str, ...] = ("",)
    forms: tuple[str, ...] = ALL_FORMS
    biases: tuple[str, ...] = ("",)
    causal: tuple[str, ...] = ("none",)
    key_lengths: bool = False
    scales: tuple[float | None, ...] = (None,)
    layouts: tuple[str, ...] = ("contiguous",)
    edits: tuple[str, ...] = ("",)

"""What Hypothesis may draw for a requirement: the description of problems, as data.

Each field lists the choices for a field of the problem, the simplest first, since failures shrink towards it; "" stands for
"absent". ``shapes`` names a set of the palette (palette.py beside this file). Recipes are texts such as ``random.1*0.3`` or
``permute-keys.1``, without form and seed, which are drawn. ``further``: texts of fields of other features, by their keys.
"""

from dataclasses import dataclass
from typing import ClassVar

ALL_DTYPES = ("float32", "float64", "float16", "bfloat16")
NARROW_DTYPES = ("float32", "float16", "bfloat16")  # float64 is drawn only where it can make a difference
KEY_FORMS = ("b1qk", "qk", "b11k", "1hqk", "bhqk")  # those that can hide one key and show another
GENERAL_DISTRIBUTIONS = ("gaussian.1", "spread.1", "heavy.1", "signatures.1")


@dataclass(frozen=True, kw_only=True)
class AnyDraw:
    """What may be drawn for problems of an operation, which says how (``Operation.examples``)."""

    operation: ClassVar[str]
    dtypes: tuple[str, ...] = NARROW_DTYPES


@dataclass(frozen=True, kw_only=True)
class Draw(AnyDraw):
    """Choices for problems of plain attention. ``forms`` are the broadcast forms of masks, ``bias_forms`` those of biases."""

    operation: ClassVar[str] = "attention"
    shapes: str = "any"
    distributions: tuple[str, ...] = GENERAL_DISTRIBUTIONS
    masks: tuple[str, ...] = ("",)
    forms: tuple[str, ...] = KEY_FORMS
    biases: tuple[str, ...] = ("",)
    bias_forms: tuple[str, ...] = ("qk", "bhqk")
    causal: tuple[str, ...] = ("none",)
    key_lengths: bool = False
    scales: tuple[float | None, ...] = (None,)
    layouts: tuple[str, ...] = ("contiguous",)
    transformations: tuple[str, ...] = ("",)
    further: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class MultiHeadDraw(AnyDraw):
    """Choices for problems of multi-head attention; ``projection_bias`` False comes first where both are listed."""

    operation: ClassVar[str] = "multi_head_attention"
    shapes: str = "self"
    sources: tuple[str, ...] = ("self",)
    weights: tuple[str, ...] = ("full",)
    projection_bias: tuple[bool, ...] = (False, True)
    outputs: tuple[str, ...] = ("plain", "bias")
    masks: tuple[str, ...] = ("",)
    forms: tuple[str, ...] = KEY_FORMS
    causal: tuple[str, ...] = ("none",)
    key_lengths: bool = False
    transformations: tuple[str, ...] = ("",)
    further: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class SinusoidalDraw(AnyDraw):
    """Choices for additions of the sinusoidal encoding to a batch. Tables alone have nothing random: they are designed."""

    operation: ClassVar[str] = "sinusoidal_encoding"
    dtypes: tuple[str, ...] = ALL_DTYPES
    longest: int = 64  # of free sizes
    widest: int = 64

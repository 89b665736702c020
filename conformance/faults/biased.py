"""Faults of bias: constants with too few digits, whose error no single element shows in float32, and all of them together do."""

from collections.abc import Callable

import numpy as np

from conformance.dtypes import round_to
from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.steps import attend, softmax
from conformance.inputs import AttentionInputs

LOG2_E = 1.4426950408889634
WIDE = ("float64", "float32")  # less than half a unit roundoff of the 16-bit types


def _exp2(constant: float) -> Callable[[AttentionInputs], np.ndarray]:
    """2^(constant · s) for e^s."""
    return lambda inputs: attend(inputs, softmax=lambda scores: softmax(scores * (constant / LOG2_E)))


def _rounded(dtype: str) -> float:
    return float(round_to(np.array(LOG2_E), dtype))


def _inverse_root(x: float, steps: int) -> float:
    """1/√x from the bits of float32 (as in Quake III) and Newton steps; it is at most 1.8e-3 off after one, 4.7e-6 after two."""
    bits = np.int32(0x5F3759DF) - (np.float32(x).view(np.int32) >> 1)
    root = float(bits.view(np.float32))
    for _ in range(steps):
        root *= 1.5 - 0.5 * x * root * root
    return root


def _default_by_steps(steps: int) -> Callable[[AttentionInputs], AttentionInputs]:
    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        return inputs if inputs.scale is not None else inputs.but(scale=_inverse_root(float(inputs.query.shape[-1]), steps))

    return rewrite


_PROBE = ("ATT-OUT-039", "ATT-OUT-003")


def _short(name: str, sentence: str, constant: float, dtypes: tuple[str, ...]) -> Fault:
    return Fault(
        id=f"log2e-{name}",
        sentence=f"takes 2^(s·c) for e^s with c = log2(e) {sentence}",
        requirements=_PROBE,
        sources=(),
        compute=_exp2(constant),
        dtypes=dtypes,
    )


FAULTS: tuple[Fault, ...] = (
    _short("rounded-to-four-decimals", "rounded to 1.4427", 1.4427, WIDE),
    _short("cut-after-five-decimals", "cut off at 1.44269", 1.44269, WIDE),
    _short("rounded-to-three-decimals", "rounded to 1.443", 1.443, (*WIDE, "float16")),
    _short("in-float16", "in float16", _rounded("float16"), (*WIDE, "float16")),
    _short("in-bfloat16", "in bfloat16", _rounded("bfloat16"), ALL_DTYPES),
    Fault(
        id="scale-by-one-newton-step",
        sentence="takes the inverse root of the width from a bit trick and one Newton step",
        requirements=_PROBE,
        sources=(),
        rewrite=_default_by_steps(1),
    ),
    Fault(
        id="scale-by-two-newton-steps",
        sentence="takes the inverse root of the width from a bit trick and two Newton steps",
        requirements=_PROBE,
        sources=(),
        rewrite=_default_by_steps(2),
        dtypes=WIDE,
    ),
)

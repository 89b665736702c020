"""Faults of approximation: exp by polynomials and tables, short constants and reciprocals, what is quantised to 8 bits or fewer;
and errors so small that the budget of each element hides them, seen in all of them together."""

from collections.abc import Callable

import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import IN_DTYPE, OUT, TO_16, WIDE, Way, computed, fault, inputs, stages
from conformance.faults.precision import EXACT, GATED, OF_WEIGHTS, PROBE, result, rounded_inputs, shifted, weights_in
from conformance.faults.rounding import BITS, Rounding, levels, rounding_to, significand
from conformance.faults.steps import attend, mix, softmax
from conformance.numerics.dtypes import float_type, round_to
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Step = Callable[[Array], Array]
LINEAR, SHORT = OUT(12) + IN_DTYPE, OUT(39, 3)
LOWEST = -700.0  # no exponential of float64 is normal below
LOG2_E = 1.4426950408889634
MORE = {"float64": 1e-15, "float32": 3e-7, "float16": 2e-4, "bfloat16": 1.2e-3}  # by how much weights sum to more than 1
LESS = {"float64": -1e-15, "float32": -2e-7, "float16": -2e-4, "bfloat16": -1.2e-3}


def _softmax(exponential: Step = np.exp, inverse: Step = np.reciprocal) -> Way:
    """Softmax with functions of one's own in the place of exp, for numbers from −700 to 0, and of the reciprocal."""

    def own(scores: Array) -> Array:
        exponentials = np.where(scores > -np.inf, exponential(np.maximum(shifted(scores), LOWEST)), 0.0)
        total = exponentials.sum(-1, keepdims=True)
        return exponentials * inverse(np.where(total == 0.0, 1.0, total))

    return stages(softmax=own)


def _reciprocal(bits: int) -> Way:
    return _softmax(inverse=lambda total: significand(bits)(1.0 / total))


def _by_powers_of_two(fraction: Step) -> Step:
    """exp(x) = 2ⁿ · 2ᶠ, n whole and 0 ≤ f < 1, the second factor by ``fraction``."""

    def exponential(x: Array) -> Array:
        power = x / np.log(2.0)
        return np.ldexp(fraction(power - np.floor(power)), np.floor(power).astype(int))

    return exponential


def _polynomial(degree: int) -> Step:
    """exp with 2ᶠ by the polynomial through the Chebyshev points."""
    return _by_powers_of_two(np.polynomial.Chebyshev.interpolate(np.exp2, degree, domain=(0.0, 1.0)))


def _exp2(constant: float) -> Way:
    """2^(constant · s) for e^s."""
    return stages(softmax=lambda scores: softmax(scores * (constant / LOG2_E)))


def _in(dtype: str) -> float:
    return float(round_to(np.array(LOG2_E), dtype))


def _default_by_newton(steps: int) -> Way:
    """1/√d from the bits of float32 (as in Quake III) and Newton steps; it is at most 1.8e-3 off after one, 4.7e-6 after two."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.scale is not None:
            return inputs
        width = float(inputs.query.shape[-1])
        bits = np.int32(0x5F3759DF) - (np.float32(width).view(np.int32) >> 1)
        root = float(bits.view(np.float32))
        for _ in range(steps):
            root *= 1.5 - 0.5 * width * root * root
        return inputs.but(scale=root)

    return inputs(rewrite)


def _units_up(right: Array, dtype: str) -> Array:
    nearest, kind = round_to(right, dtype).astype(np.float64), float_type(dtype)
    return nearest + 4.0 * kind.unit_roundoff * np.exp2(np.floor(np.log2(np.abs(nearest) + kind.tiny)))


def _times(by: dict[str, float]) -> Way:
    return result(lambda right, dtype: right * (1.0 + by[dtype]))


def _key_counts(index: int, factor: float) -> Way:
    def change(weights: Array) -> Array:
        changed = weights.copy()
        changed[..., index] *= factor
        return changed

    return stages(weights=change)


def _cut_weights(inputs: AttentionInputs) -> Array:
    """Weights cut off at the significand of the dtype, and divided by no sum of theirs."""
    return attend(inputs, weights=significand(BITS[inputs.query.dtype.name], np.trunc))


def _dropped_below(least: float) -> Rounding:
    return lambda weights: np.where(weights < least, 0.0, weights)


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"exp-{name}", sentence, _softmax(exponential), OF_WEIGHTS, dtypes=dtypes)
        for name, sentence, dtypes, exponential in (
            ("linear", "takes 1 + f for 2ᶠ in exp, as a cast of bits does", ALL_DTYPES, _by_powers_of_two(lambda f: 1.0 + f)),
            ("quadratic", "takes a polynomial of degree 2 for exp", ALL_DTYPES, _polynomial(2)),
            ("cubic", "takes a polynomial of degree 3 for exp", ALL_DTYPES, _polynomial(3)),
            ("quintic", "takes a polynomial of degree 5 for exp", ("float64",), _polynomial(5)),
            ("as-limit", "takes (1 + x/256)²⁵⁶ for exp", ALL_DTYPES, lambda x: np.maximum(1.0 + x / 256.0, 0.0) ** 256),
            ("from-table", "takes exp from a table in steps of 1/64", ALL_DTYPES, lambda x: np.exp(np.rint(x * 64.0) / 64.0)),
        )
    ),
    *(
        fault(f"log2e-{name}", f"takes 2^(s·c) for e^s with c = log2(e) {words}", _exp2(constant), SHORT, dtypes=dtypes)
        for name, words, constant, dtypes in (
            ("rounded-to-four-decimals", "rounded to 1.4427", 1.4427, WIDE),
            ("cut-after-five-decimals", "cut off at 1.44269", 1.44269, WIDE),
            ("rounded-to-three-decimals", "rounded to 1.443", 1.443, TO_16),
            ("in-float16", "in float16", _in("float16"), TO_16),
            ("in-bfloat16", "in bfloat16", _in("bfloat16"), ALL_DTYPES),
        )
    ),
    fault("scale-by-one-newton-step", "takes the inverse root of the width from a bit trick and one Newton step",
          _default_by_newton(1), SHORT),
    fault("scale-by-two-newton-steps", "takes the inverse root of the width from a bit trick and two Newton steps",
          _default_by_newton(2), SHORT, dtypes=WIDE),
    *(
        fault(f"reciprocal-of-{bits}-bits", f"multiplies by a reciprocal of {bits} bits instead of dividing",
              _reciprocal(bits), OUT(8) + IN_DTYPE, dtypes=dtypes)
        for bits, dtypes in ((8, ALL_DTYPES), (12, TO_16), (16, WIDE))
    ),
    # Few levels
    fault("weights-in-8-bits", "quantises the weights to 256 levels", weights_in(lambda w: np.rint(w * 255.0) / 255.0),
          OF_WEIGHTS),
    fault("weights-in-float8", "keeps the weights in float8", weights_in(rounding_to("float8")), OF_WEIGHTS),
    fault("weights-dropped-below-1e-3", "drops weights below a thousandth", weights_in(_dropped_below(1e-3)), OF_WEIGHTS),
    *(
        fault(f"{name}-in-{kind}", sentence, rounded_inputs(rounding, name), requirements)
        for name, kind, sentence, requirements, rounding in (
            ("key", "8-bits", "quantises K to 8 bits a head", IN_DTYPE, levels(127)),
            ("key", "float8", "keeps K in float8", IN_DTYPE, rounding_to("float8")),
            ("value", "8-bits", "quantises V to 8 bits a head", LINEAR, levels(127)),
            ("value", "4-bits", "quantises V to 4 bits a head", LINEAR, levels(7)),
            ("value", "float8", "keeps V in float8", LINEAR, rounding_to("float8")),
        )
    ),
    # Small errors
    fault("results-two-units-up", "adds two units in the last place to results", result(_units_up), EXACT),
    fault("weights-sum-to-more", "has weights that sum to a little more than 1", _times(MORE), PROBE, dtypes=GATED),
    fault("weights-sum-to-less", "has weights that sum to a little less than 1, as with a guard added to their sum", _times(LESS),
          PROBE, dtypes=GATED),
    fault("weights-truncated", "rounds weights towards 0, to the significand of 16 bits", computed(_cut_weights), PROBE,
          dtypes=("float16", "bfloat16")),
    fault("last-key-counts-less", "counts the last key 0.99 times", _key_counts(-1, 0.99), PROBE, dtypes=GATED),
    fault("first-key-counts-more", "counts the first key 1.01 times", _key_counts(0, 1.01), PROBE, dtypes=GATED),
    fault("first-key-counts-slightly-more", "counts the first key 1.00001 times", _key_counts(0, 1.00001), PROBE, dtypes=WIDE),
    fault("small-weights-dropped", "drops keys with weights below 1e-4", stages(weights=_dropped_below(1e-4)), OUT(41, 13, 3)),
    fault("smaller-weights-dropped", "drops keys with weights below 1e-5", stages(weights=_dropped_below(1e-5)), OUT(41, 3)),
    fault("values-short-of-a-bit", "takes V with one bit of significand less than float32 has",
          stages(mix=lambda weights, value: mix(weights, significand(23, np.trunc)(value))), PROBE, dtypes=WIDE),
)  # fmt: skip

"""Faults of approximation: exp by polynomials and tables, short reciprocals, and what is quantised to 8 bits or fewer."""

from collections.abc import Callable
from functools import partial

import numpy as np

from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.precision import IN_DTYPE, OF_WEIGHTS, rounded_inputs, shifted, stepwise, weights_in
from conformance.faults.rounding import Rounding, levels, rounding_to, significand

Array = np.ndarray
Step = Callable[[Array], Array]
_LINEAR = ("ATT-OUT-012", *IN_DTYPE)
_LOWEST = -700.0  # no exponential of float64 is normal below


def _softmax(exponential: Step, inverse: Step, scores: Array) -> Array:
    """Softmax with functions of one's own in the place of exp, for numbers from −700 to 0, and of the reciprocal."""
    exponentials = np.where(scores > -np.inf, exponential(np.maximum(shifted(scores), _LOWEST)), 0.0)
    total = exponentials.sum(-1, keepdims=True)
    return exponentials * inverse(np.where(total == 0.0, 1.0, total))


def _exp(name: str, sentence: str, exponential: Step, dtypes: tuple[str, ...] = ALL_DTYPES) -> Fault:
    softmax = partial(_softmax, exponential, np.reciprocal)
    return stepwise(f"exp-{name}", sentence, OF_WEIGHTS, {"softmax": softmax}, dtypes=dtypes)


def _reciprocal(bits: int, dtypes: tuple[str, ...]) -> Fault:
    rounding = significand(bits)
    softmax = partial(_softmax, np.exp, lambda total: rounding(1.0 / total))
    sentence = f"multiplies by a reciprocal of {bits} bits instead of dividing"
    return stepwise(f"reciprocal-of-{bits}-bits", sentence, ("ATT-OUT-008", *IN_DTYPE), {"softmax": softmax}, dtypes=dtypes)


def _weights(name: str, sentence: str, rounding: Rounding) -> Fault:
    return stepwise(f"weights-{name}", sentence, OF_WEIGHTS, {"mix": partial(weights_in, rounding)})


def _by_powers_of_two(fraction: Step) -> Step:
    """exp(x) = 2ⁿ · 2ᶠ, n whole and 0 ≤ f < 1, the second factor by ``fraction``."""

    def exponential(x: Array) -> Array:
        power = x / np.log(2.0)
        return np.ldexp(fraction(power - np.floor(power)), np.floor(power).astype(int))

    return exponential


def _polynomial(degree: int) -> Step:
    """exp with 2ᶠ by the polynomial through the Chebyshev points."""
    return _by_powers_of_two(np.polynomial.Chebyshev.interpolate(np.exp2, degree, domain=(0.0, 1.0)))


FAULTS: tuple[Fault, ...] = (
    _exp("linear", "takes 1 + f for 2ᶠ in exp, as a cast of bits does", _by_powers_of_two(lambda f: 1.0 + f)),
    _exp("quadratic", "takes a polynomial of degree 2 for exp", _polynomial(2)),
    _exp("cubic", "takes a polynomial of degree 3 for exp", _polynomial(3)),
    _exp("quintic", "takes a polynomial of degree 5 for exp", _polynomial(5), ("float64",)),
    _exp("as-limit", "takes (1 + x/256)²⁵⁶ for exp", lambda x: np.maximum(1.0 + x / 256.0, 0.0) ** 256),
    _exp("from-table", "takes exp from a table in steps of 1/64", lambda x: np.exp(np.rint(x * 64.0) / 64.0)),
    _reciprocal(8, ALL_DTYPES),
    _reciprocal(12, ("float64", "float32", "float16")),
    _reciprocal(16, ("float64", "float32")),
    _weights("in-8-bits", "quantises the weights to 256 levels", lambda weights: np.rint(weights * 255.0) / 255.0),
    _weights("in-float8", "keeps the weights in float8", rounding_to("float8")),
    _weights("dropped-below-1e-3", "drops weights below a thousandth", lambda weights: np.where(weights < 1e-3, 0.0, weights)),
    rounded_inputs("key-in-8-bits", "quantises K to 8 bits a head", IN_DTYPE, levels(127), "key"),
    rounded_inputs("key-in-float8", "keeps K in float8", IN_DTYPE, rounding_to("float8"), "key"),
    rounded_inputs("value-in-8-bits", "quantises V to 8 bits a head", _LINEAR, levels(127), "value"),
    rounded_inputs("value-in-4-bits", "quantises V to 4 bits a head", _LINEAR, levels(7), "value"),
    rounded_inputs("value-in-float8", "keeps V in float8", _LINEAR, rounding_to("float8"), "value"),
)

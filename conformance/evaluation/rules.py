"""The rules by which other suites accept an output, beside the error budget of this one.

They were collected from the sources of ONNX's backend tests, KernelBench and BackendBench, PyTorch, flash-attention and a
specification of fp8 attention. Each compares with the truth, here rounded to the dtype of the output as it is where an expected
value is stored, and where a rule wants it, with a reference that rounds each step to that dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conformance.faults import steps
from conformance.judging.verdict import Outcome, judge
from conformance.numerics.dtypes import float_type, round_to
from conformance.operations import operation_of
from conformance.oracle import Expected
from conformance.problem.inputs import AttentionInputs, Inputs

Array = np.ndarray
# rtol and atol, the defaults of torch.testing.assert_close.
_ASSERT_CLOSE = {"float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5)}


@dataclass(frozen=True, eq=False)
class Reference:
    """What rules compare with, in float64 and where the case is judged: the truth rounded to the output's dtype, the exact truth,
    and the output of a reference in low precision (None where the operation or the dtype has none)."""

    expected: Expected
    rounded: Array
    exact: Array
    unfused: Array | None

    def of(self, output: Array) -> Array:
        """The judged elements of an implementation's output."""
        return judged(output, self.expected)


def reference(inputs: Inputs, expected: Expected) -> Reference:
    """What to compare outputs for ``inputs`` with. A reference in low precision that overflows is none."""
    low = unfused(inputs) if float_type(expected.dtype).is_16_bit else None
    exact = expected.output[np.broadcast_to(expected.judged, expected.output.shape)].astype(np.float64)
    rounded = round_to(exact, expected.dtype).astype(np.float64)
    near = None if low is None else judged(low, expected)
    return Reference(expected, rounded, exact, near if near is not None and np.isfinite(near).all() else None)


def judged(output: Array, expected: Expected) -> Array:
    got = expected.rows_of(output)
    return got[np.broadcast_to(expected.judged, got.shape)].astype(np.float64)


def unfused(inputs: Inputs) -> Array | None:
    """Each step rounded to the dtype of the inputs, products accumulated in more; None for operations without steps."""
    if not inputs.attends:
        return None

    def rounded(array: Array) -> Array:
        return round_to(array, inputs.dtype).astype(np.float64)

    def attend(plain: AttentionInputs) -> Array:
        return rounded(
            steps.attend(
                plain,
                products=lambda query, key, scale: rounded(rounded(steps.products(query, key, 1.0)) * scale),
                bias=lambda scores, given: rounded(steps.add_bias(scores, given)),
                softmax=lambda scores: rounded(steps.softmax(scores)),
            )
        )

    def project(x: Array, matrix: Array, bias: Array | None) -> Array:
        return rounded(steps.project(x, matrix, bias))

    return round_to(operation_of(inputs).compute(inputs, attention=attend, project=project), inputs.dtype)


def _close(rtol: float, atol: float) -> Callable[[Array, Reference], bool]:
    def rule(output: Array, truth: Reference) -> bool:
        got = truth.of(output)
        return bool((np.abs(got - truth.rounded) <= atol + rtol * np.abs(truth.rounded))[~_same(got, truth)].all())

    return rule


def _same(got: Array, truth: Reference) -> Array:
    """Where both are the same infinity, or both NaN."""
    return (got == truth.rounded) | (np.isnan(got) & np.isnan(truth.rounded))


def _assert_close(output: Array, truth: Reference) -> bool:
    return _close(*_ASSERT_CLOSE[truth.expected.dtype])(output, truth)


def _twice_the_largest(output: Array, truth: Reference) -> bool:
    assert truth.unfused is not None
    return bool(_errors(truth.of(output), truth).max(initial=0.0) <= 2.0 * _errors(truth.unfused, truth).max(initial=0.0))


def _mean(output: Array, truth: Reference) -> bool:
    assert truth.unfused is not None
    return bool(_errors(truth.of(output), truth).mean() <= 1.1 * _errors(truth.unfused, truth).mean())


def _errors(got: Array, truth: Reference) -> Array:
    return np.where(_same(got, truth), 0.0, np.abs(got - truth.exact))


def _root_mean_square(output: Array, truth: Reference) -> bool:
    spread = np.ptp(truth.exact) if truth.exact.size else 0.0
    return bool(np.sqrt((_errors(truth.of(output), truth) ** 2).mean()) <= 0.15 * spread)


def _budget(output: Array, truth: Reference) -> bool:
    return judge(output, truth.expected).outcome is Outcome.PASS


# Each says whether it accepts an output.
RULES: dict[str, Callable[[Array, Reference], bool]] = {
    "rtol 1e-3, atol 1e-7 (ONNX)": _close(1e-3, 1e-7),
    "rtol 1e-2, atol 1e-2 (KernelBench, BackendBench)": _close(1e-2, 1e-2),
    "torch.testing.assert_close": _assert_close,
    "largest error ≤ 2 × low precision's (flash-attention)": _twice_the_largest,
    "mean error ≤ 1.1 × low precision's (flex attention)": _mean,
    "RMSE ≤ 0.15 × range (an fp8 rule)": _root_mean_square,
    "error budget (this suite)": _budget,
}
_RELATIVE = (_twice_the_largest, _mean)  # to the errors of a reference in low precision


def applicable(truth: Reference) -> tuple[str, ...]:
    """The rules that can be applied where there is this reference."""
    return tuple(name for name, rule in RULES.items() if truth.unfused is not None or rule not in _RELATIVE)


def accepts(name: str, output: Array, truth: Reference) -> bool:
    """Whether a rule accepts ``output``; whoever compares at all compares shape and dtype too."""
    if output.shape != truth.expected.shape or output.dtype != float_type(truth.expected.dtype).numpy:
        return False
    with np.errstate(all="ignore"):
        return RULES[name](output, truth)

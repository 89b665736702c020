"""Whether a problem can tell a right implementation from one that does hardly anything: the null models of the specification.

A fixed tolerance may accept an output of zeros. Here each problem must put the null models far outside of its budget, under
the reference profile of its dtype, or it does not count as a test of values. Under coarser profiles, by which outputs are judged
that declare them or declare nothing, a requirement needs one problem for each null model.
"""

from collections.abc import Iterable

import numpy as np

from conformance.dtypes import float_type, round_to
from conformance.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs, Weights
from conformance.oracle import Expected, expect, truth_of
from conformance.oracle.profiles import TIGHTEST_FIRST
from conformance.problem import Problem
from conformance.values import materialise
from conformance.verdict import judge
from conformance.visibility import visible_pairs

LEAST_RATIO = 10.0  # error / budget that a null model must reach
LEAST_RATIO_BFLOAT16 = 3.0  # for values drawn at random in bfloat16
LEAST_RATIO_COARSE = 3.0  # where sums are held in 16 bits, or bfloat16 rounds scores or queries too


def reference_profile(dtype: str) -> str:
    """The profile under which problems must be admissible."""
    return "fused" if float_type(dtype).is_16_bit else "strict"


def least_ratio(dtype: str, profile: str) -> float:
    """The error in budgets of ``profile`` that a null model must reach on some problem of a requirement."""
    coarse = profile == "low" or (dtype == "bfloat16" and profile not in ("inner32", "fused"))
    return LEAST_RATIO_COARSE if coarse else LEAST_RATIO


def indistinguishable(problem: Problem, least: float = LEAST_RATIO, profile: str = "") -> tuple[str, ...]:
    """The names of the null models whose error is less than ``least`` budgets on ``problem``, under the reference profile or
    another."""
    inputs = materialise(problem)
    return _within(least, _rounded(inputs, problem), expect(inputs, profile or reference_profile(problem.dtype)))


def told_by_none(problems: Iterable[Problem]) -> dict[tuple[str, str], frozenset[str]]:
    """By dtype and by profile of that dtype, the null models that not one of ``problems`` tells from the truth."""
    met: dict[tuple[str, str], set[str]] = {}
    told: dict[tuple[str, str], set[str]] = {}
    for problem in problems:
        inputs = materialise(problem)
        outputs = _rounded(inputs, problem)
        for profile in TIGHTEST_FIRST[problem.dtype]:
            judged = problem.dtype, profile
            met.setdefault(judged, set()).update(outputs)
            known = told.setdefault(judged, set())
            if not known >= outputs.keys():
                known |= outputs.keys() - set(_within(least_ratio(*judged), outputs, expect(inputs, profile)))
    return {judged: frozenset(met[judged] - told[judged]) for judged in met}


def _rounded(inputs: Inputs, problem: Problem) -> dict[str, np.ndarray]:
    return {name: round_to(output, problem.dtype) for name, output in null_outputs(inputs).items()}


def _within(least: float, outputs: dict[str, np.ndarray], expected: Expected) -> tuple[str, ...]:
    """The names of the ``outputs`` whose error is less than ``least`` budgets everywhere."""
    ratios = {name: judge(output, expected).r for name, output in outputs.items()}
    return tuple(name for name, r in ratios.items() if r is not None and r < least)


def null_outputs(inputs: Inputs) -> dict[str, np.ndarray]:
    """What the null models give, in float64; those that are no models of the operation, or of its shapes, are absent."""
    if isinstance(inputs, SinusoidalInputs):
        return _sinusoidal_nulls(inputs)
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(inputs, AttentionInputs):
            return _attention_nulls(inputs)
        return _multi_head_nulls(inputs)


def _attention_nulls(inputs: AttentionInputs) -> dict[str, np.ndarray]:
    group = inputs.query.shape[1] // inputs.key.shape[1]
    query = inputs.query.astype(np.float64)
    key, value = (np.repeat(array.astype(np.float64), group, axis=1) for array in (inputs.key, inputs.value))
    scale = 1.0 / np.sqrt(query.shape[-1]) if inputs.scale is None else inputs.scale
    scores = query @ key.swapaxes(-1, -2) * scale
    visible = visible_pairs(inputs)
    if inputs.bias is not None:
        scores = scores + np.where(np.isfinite(inputs.bias), inputs.bias, 0).astype(np.float64)
    weights = _null_weights(np.where(visible, scores, -np.inf), visible)
    return {name: weight @ value if name != "heads" else np.roll(weight @ value, 1, axis=1) for name, weight in weights.items()}


def _null_weights(scores: np.ndarray, visible: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of the null models, (B, H, Lq, Lk); those of ``heads`` are the true ones, whose output is to be moved."""
    keys = scores.shape[-1]
    top = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0))
    weights = {
        "zeros": np.zeros_like(scores),
        "mean": visible / np.maximum(visible.sum(axis=-1, keepdims=True), 1),
        "argmax": (np.arange(keys) == scores.argmax(axis=-1)[..., None]).astype(np.float64),
        "uniform": np.full_like(scores, 1.0 / keys),
    }
    if scores.shape[1] > 1:
        weights["heads"] = exponentials / np.maximum(exponentials.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    return weights


def _multi_head_nulls(inputs: MultiHeadInputs) -> dict[str, np.ndarray]:
    weights, heads = inputs.weights, inputs.num_heads

    def split(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        projected = x.astype(np.float64) @ matrix.astype(np.float64) + (0 if bias is None else bias.astype(np.float64))
        return projected.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

    plain = AttentionInputs(
        query=split(inputs.query, weights.query, weights.query_bias),
        key=split(inputs.key, weights.key, weights.key_bias),
        value=split(inputs.value, weights.value, weights.value_bias),
        mask=inputs.mask,
        causal=inputs.causal,
        key_lengths=inputs.key_lengths,
    )
    return {name: _merge(attended, weights) for name, attended in _attention_nulls(plain).items()}


def _merge(attended: np.ndarray, weights: Weights) -> np.ndarray:
    """(B, H, L, d) as (B, L, H·d), through the output projection where there is one."""
    merged = attended.swapaxes(1, 2).reshape(attended.shape[0], attended.shape[2], -1)
    if weights.output is None:
        return merged
    bias = 0 if weights.output_bias is None else weights.output_bias.astype(np.float64)
    return merged @ weights.output.astype(np.float64) + bias


def _sinusoidal_nulls(inputs: SinusoidalInputs) -> dict[str, np.ndarray]:
    added = 0.0 if inputs.x is None else inputs.x.astype(np.float64)
    longer = truth_of(inputs.but(length=inputs.length + 1, rows=None, x=None)).output.astype(np.float64)
    table = longer[:-1]
    half = inputs.width // 2
    pairs = table[:, : 2 * half].reshape(-1, half, 2)[..., ::-1].reshape(-1, 2 * half)
    swapped = np.roll(table, half, axis=1) if inputs.arrangement == "concatenated" else np.hstack([pairs, table[:, 2 * half :]])
    tables = {"zeros": 0 * table, "position 0": table[:1] + 0 * table, "shifted": longer[1:], "swapped": swapped}
    return {name: values + added for name, values in tables.items()}

"""What fully masked rows may give: zeros, NaN, or a mean of V.

Which of them is a convention (CON-EMPTY-ROW), and may depend on what hides the keys: a mask, −∞ in a bias, key lengths, causal.
A bias of the lowest finite number hides keys too, beside others; where all are so low, they may also count, by their scores,
alike, or part by part (CON-LOWEST-BIAS). Anything else is in no library's documentation, and may be noise or another row's data.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from conformance.features import features
from conformance.judging.verdict import Outcome, Verdict
from conformance.numerics.dtypes import float_type
from conformance.oracle import expect
from conformance.problem.inputs import AttentionInputs, Inputs
from conformance.problem.visibility import visible_pairs
from conformance.specification.asking import COARSE, is_nothing

Array = np.ndarray


def _none(inputs: Inputs) -> dict[str, Any]:
    """What hides keys, and what stands there where it does not."""
    hiding = (feature for feature in features(inputs.operation) if feature.hides or feature.name == "bias")
    return {feature.argument: feature.default for feature in hiding}


def judge_fully_masked_rows(output: Float[Array, "b *h lq c"], inputs: Inputs, by_lse: bool = False) -> Verdict:
    """Whether each fully masked row, in multi-head attention in all heads, gives one of the known answers.

    A mean is of all keys where they are hidden by a finite fill. Where a mask fills so, and a bias of −∞, lengths or causal cut
    off, it is of the keys that the mask hides, or that another of them leaves. It is compared coarsely, since more than one
    answer is right. ``by_lse``: weights are e^(s − lse) and nothing divides by their sum; a log-sum-exp as low as the lowest
    number has lost how many keys there are, so that rows which see some are not looked at.
    """
    plain = inputs.plain
    unknown = _empty(inputs)
    if by_lse and plain is not None:
        unknown &= ~visible_pairs(plain).any(-1)
    if not unknown.any():
        return Verdict(Outcome.PASS, "Each row sees a key.")
    got = output.astype(np.float64)
    unknown = unknown & ~np.isnan(got).all(-1) & ~is_nothing(got, inputs)
    if unknown.any() and plain is not None and plain.bias is not None:
        unknown &= ~_between_visible(got, plain)
    for mean, known in _means(inputs):
        if not unknown.any():
            break
        near = np.abs(got - mean) <= COARSE * np.abs(mean).max(initial=0.0)
        unknown &= ~(known & near.all(-1))
    if not unknown.any():
        return Verdict(Outcome.PASS)
    row = tuple(int(i) for i in np.unravel_index(int(unknown.argmax()), unknown.shape))
    finite = bool(np.isfinite(got[row]).all())
    first = ", ".join(f"{float(number):.6g}" for number in got[row][:3])
    return Verdict(
        Outcome.WRONG_VALUE if finite else Outcome.NONFINITE,
        f"The row {row} is fully masked and begins with {first}: neither zeros nor NaN nor a mean of V.",
        index=(*row, 0),
        got=float(got[(*row, 0)]),
    )


def _between_visible(got: Float[Array, "b h lq c"], inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    """Rows that see keys, all of the lowest bias, and give numbers between their V: some mean of them. Where parts of the keys
    are merged by log-sum-exps as low as that, their weights are those of the parts."""
    visible = visible_pairs(inputs)
    value = np.repeat(inputs.value.astype(np.float64), got.shape[1] // inputs.value.shape[1], axis=1)[:, :, None]
    low = np.where(visible[..., None], value, np.inf).min(-2)
    high = np.where(visible[..., None], value, -np.inf).max(-2)
    slack = COARSE * np.abs(value).max(initial=0.0)
    return np.asarray(visible.any(-1) & ((low - slack <= got) & (got <= high + slack)).all(-1))


def _counting(inputs: Inputs) -> Bool[Array, "b h lq lk"]:
    """The visible pairs whose bias is not the lowest finite number, by which many libraries write that a key is hidden."""
    pairs = visible_pairs(inputs)
    if inputs.bias is None:
        return pairs
    return np.asarray(pairs & (inputs.bias != -float_type(inputs.bias.dtype.name).largest))


def _empty(inputs: Inputs) -> Bool[Array, "b *h lq"]:
    return np.logical_not(_counting(inputs).any(-1 if inputs.plain is not None else (1, 3)))


def _means(inputs: Inputs) -> Iterator[tuple[Array, Bool[Array, "b *h lq"]]]:
    """Means of keys, and the rows that have such keys: of all keys, then of those that some of what hides keys hides and some
    does not, in every combination."""
    attention = inputs.as_heads()
    nothing = _none(attention)
    there = [name for name, none in nothing.items() if getattr(attention, name) is not none]
    without = attention.but(**nothing)
    hidden = [~_counting(without.but(**{name: getattr(attention, name)})) for name in there]
    hidden_by = sum(np.left_shift(pairs, bit, dtype=int) for bit, pairs in enumerate(hidden))
    kinds = [int(kind) for kind in np.unique(hidden_by) if kind]
    equal = _of_equal_weights(inputs)
    for count in range(len(kinds), 0, -1):
        for chosen in combinations(kinds, count):
            mean = expect(equal.but(mask=np.isin(hidden_by, chosen)), "strict")
            yield mean.output.astype(np.float64), mean.judged[..., 0]


def _of_equal_weights(inputs: Inputs) -> Inputs:
    """Inputs that give all keys equal weights: all scores are 0, and nothing is hidden."""
    if inputs.plain is not None:
        return inputs.but(query=np.zeros_like(inputs.query), **_none(inputs))
    weights = replace(inputs.weights, query=np.zeros_like(inputs.weights.query), query_bias=None)
    return inputs.but(weights=weights, **_none(inputs))

"""Faults of the softmax: over another axis, badly normalised, in another base, or another function in its place."""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.faults.model import Fault
from conformance.faults.steps import attend, default_scale, multi_head, softmax
from conformance.inputs import AttentionInputs

Array = np.ndarray
Weights = Callable[[Array], Array]  # weights of the keys from scores, which are −inf where a pair is hidden
_IN_DTYPE = ("ATT-OUT-003", "ATT-OUT-004", "ATT-OUT-005", "ATT-OUT-006")
_SUM = ("ATT-OUT-008",)  # the weights of a row add up to 1
_WEIGHTS = ("ATT-OUT-013", *_IN_DTYPE)  # each key has its own weight
_AXIS = (
    "labml annotated papers: https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146",
    "fastNLP: https://github.com/FudanNLP/fastNLP/issues/254",
)


def _fault(identifier: str, sentence: str, weights: Weights, *requirements: str, **fields: Any) -> Fault:
    """Other weights of the keys in plain attention."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements,
        compute=lambda inputs: attend(inputs, softmax=weights),
        **{"sources": (), **fields},
    )


def _in_heads(identifier: str, sentence: str, weights: Weights, *requirements: str, **fields: Any) -> Fault:
    """Other weights of the keys in multi-head attention."""
    return Fault(
        id=identifier,
        sentence=sentence,
        operation="multi_head_attention",
        requirements=requirements,
        compute=lambda inputs: multi_head(inputs, attention=lambda inner: attend(inner, softmax=weights)),
        **{"sources": (), **fields},
    )


def _visible(scores: Array) -> Array:
    return scores > -np.inf


def _exponentials(scores: Array, axes: int | tuple[int, ...] = -1) -> Array:
    """exp of the scores less their maximum over ``axes``; 0 where nothing is visible."""
    top = scores.max(axes, keepdims=True)
    return np.exp(scores - np.where(np.isfinite(top), top, 0.0))


def _over(axes: int | tuple[int, ...]) -> Weights:
    """Softmax over other axes than that of the keys."""

    def weights(scores: Array) -> Array:
        exponentials = _exponentials(scores, axes)
        total = exponentials.sum(axes, keepdims=True)
        return exponentials / np.where(total == 0.0, 1.0, total)

    return weights


def _divided(by: Callable[[Array], Array]) -> Weights:
    """Another normaliser, computed from the exponentials."""

    def weights(scores: Array) -> Array:
        exponentials = _exponentials(scores)
        return exponentials / by(exponentials)

    return weights


def _sum(exponentials: Array) -> Array:
    return exponentials.sum(-1, keepdims=True)


def _of_visible(function: Callable[[Array], Array], hidden: float = 0.0) -> Weights:
    """A function of the visible scores, ``hidden`` for the others."""
    return lambda scores: np.where(_visible(scores), function(np.where(_visible(scores), scores, 0.0)), hidden)


def _twice(scores: Array) -> Array:
    return softmax(np.where(_visible(scores), softmax(scores), -np.inf))


def _log(scores: Array) -> Array:
    weights = softmax(scores)
    return np.where(_visible(scores), np.log(np.maximum(weights, 1e-300)), 0.0)


def _hardmax(scores: Array) -> Array:
    return (np.arange(scores.shape[-1]) == scores.argmax(-1)[..., None]) * 1.0


def _off_by_one(scores: Array) -> Array:
    top = np.maximum(scores.max(-1, keepdims=True), 0.0)
    exponentials = np.exp(scores - top)
    return exponentials / (np.exp(-top) + _sum(exponentials))


def _linear(scores: Array) -> Array:
    seen = np.where(_visible(scores), scores, 0.0)
    return seen / _sum(seen)


def _epsilon(amount: str, dtypes: tuple[str, ...]) -> Fault:
    """A guard against division by 0, which the sum of a row that sees a key does not need; seen where it is above rounding."""
    return _fault(
        f"softmax-epsilon-{amount}",
        f"adds {amount} to the sum of the exponentials",
        _divided(lambda exponentials: _sum(exponentials) + float(amount)),
        *_SUM,
        "ATT-OUT-009",
        dtypes=dtypes,
    )


_AXES = (
    _fault("softmax-over-queries", "takes softmax over the queries", _over(-2), "ATT-OUT-021", *_SUM, sources=_AXIS),
    _fault("softmax-over-heads", "takes softmax over the heads", _over(1), "ATT-OUT-020", *_SUM, sources=_AXIS),
    _fault("softmax-over-batch", "takes softmax over the batch", _over(0), "ATT-OUT-019", *_SUM),
    _fault("softmax-over-queries-and-keys", "takes one softmax for all queries of a head", _over((2, 3)), "ATT-OUT-021", *_SUM),
    _fault("softmax-over-all", "takes one softmax over all scores of a call", _over((0, 1, 2, 3)), "ATT-OUT-019", *_SUM),
    _in_heads("multi-head-softmax-over-queries", "takes softmax over the queries", _over(-2), "ATT-HEAD-013", sources=_AXIS),
    _in_heads("multi-head-softmax-over-heads", "takes softmax over the heads", _over(1), "ATT-HEAD-013", sources=_AXIS),
)

_FUNCTIONS = (
    _fault("softmax-missing", "weighs V with the scores themselves", _of_visible(lambda s: s), *_SUM),
    _fault("softmax-without-exp", "divides the scores by their sum, without exp", _linear, *_WEIGHTS),
    _fault("softmax-twice", "takes softmax twice", _twice, *_WEIGHTS),
    _fault("softmax-log", "weighs V with the logarithms of the weights", _log, *_SUM),
    _fault("softmax-sigmoid", "takes the sigmoid of each score", _of_visible(lambda s: 1.0 / (1.0 + np.exp(-s))), *_SUM),
    _fault("softmax-relu", "takes the positive part of the scores for weights", _of_visible(lambda s: np.maximum(s, 0.0)), *_SUM),
    _fault("softmax-hard", "gives the key with the largest score all the weight", _hardmax, *_WEIGHTS),
    _fault(
        "softmax-of-magnitudes", "drops the sign of the scores", lambda s: softmax(_of_visible(np.abs, -np.inf)(s)), *_WEIGHTS
    ),
    _fault(
        "softmax-negated", "changes the sign of the scores", lambda s: softmax(_of_visible(np.negative, -np.inf)(s)), *_WEIGHTS
    ),
)

_NORMALISERS = (
    _fault("softmax-not-normalised", "does not divide the exponentials by their sum", _divided(np.ones_like), *_SUM),
    _fault("softmax-off-by-one", "adds 1 to the sum of the exponentials", _off_by_one, *_SUM),
    _fault("softmax-by-key-count", "divides the exponentials by the number of keys", _divided(lambda e: e.shape[-1]), *_SUM),
    _fault("softmax-by-norm", "divides by the Euclidean norm of the exponentials", _divided(lambda e: _sum(e * e) ** 0.5), *_SUM),
    _fault("softmax-by-root-of-sum", "divides by the root of the sum", _divided(lambda e: _sum(e) ** 0.5), *_SUM),
    _fault("softmax-by-next-row", "divides by the sum of the next query", _divided(lambda e: np.roll(_sum(e), -1, -2)), *_SUM),
    _fault("softmax-by-next-head", "divides by the sum of the next head", _divided(lambda e: np.roll(_sum(e), -1, 1)), *_SUM),
    _fault("softmax-without-last-key", "leaves the last key out of the sum", _divided(lambda e: _sum(e) - e[..., -1:]), *_SUM),
    _fault("softmax-without-first-key", "leaves the first key out of the sum", _divided(lambda e: _sum(e) - e[..., :1]), *_SUM),
    _fault(
        "softmax-with-last-key-twice", "counts the last key twice in the sum", _divided(lambda e: _sum(e) + e[..., -1:]), *_SUM
    ),
    _epsilon("1e-3", ("float64", "float32", "float16")),
    _epsilon("1e-6", ("float64", "float32")),
    _epsilon("1e-9", ("float64",)),
    _epsilon("1e-12", ("float64",)),
    _fault(
        "softmax-floor-of-sum",
        "lifts the sum to 1e-6 at least",
        _divided(lambda e: np.maximum(_sum(e), 1e-6)),
        equivalent="The largest exponential of a row that sees a key is exp(0) = 1, so its sum is never below 1.",
    ),
)


def _in_base(identifier: str, sentence: str, of_products: float, of_bias: float, *requirements: str, **fields: Any) -> Fault:
    """Products and bias multiplied by a constant each, which is what another base of the exponential does."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        bias = None if inputs.bias is None else inputs.bias.astype(np.float64) * of_bias
        return inputs.but(scale=default_scale(inputs) * of_products, bias=bias)

    return Fault(id=identifier, sentence=sentence, requirements=requirements, sources=(), rewrite=rewrite, **fields)


_LN2 = float(np.log(2.0))
_ON_BIAS = {"needs": frozenset({"bias"})}
_BASES = (
    _in_base("softmax-base-two", "takes powers of 2 instead of e", _LN2, _LN2, "ATT-SCALE-001", "ATT-MASK-007"),
    _in_base("softmax-base-folded-twice", "multiplies by log₂ e and takes powers of e", 1 / _LN2, 1 / _LN2, "ATT-SCALE-001"),
    _in_base(
        "softmax-base-two-of-bias", "adds the bias to scores in base 2", 1.0, _LN2, "ATT-SCALE-009", "ATT-MASK-007", **_ON_BIAS
    ),
    _in_base(
        "softmax-base-e-of-bias",
        "multiplies the bias by log₂ e twice",
        1.0,
        1 / _LN2,
        "ATT-SCALE-009",
        "ATT-MASK-007",
        **_ON_BIAS,
    ),
)

FAULTS: tuple[Fault, ...] = (*_AXES, *_FUNCTIONS, *_NORMALISERS, *_BASES)

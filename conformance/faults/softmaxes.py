"""Faults of the softmax: over another axis, badly normalised, in another base, or another function in its place."""

from collections.abc import Callable

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, OUT, SCALE, TO_16, WIDE, Way, fault, inputs, stages
from conformance.faults.steps import default_scale, divide, finite_top, softmax
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Weights = Callable[[Array], Array]  # weights of the keys from scores, which are −inf where a pair is hidden
SUM = OUT(8)  # the weights of a row add up to 1
WEIGHTS = OUT(13, 3, 4, 5, 6)  # each key has its own weight
AXIS = (
    "labml annotated papers: https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146",
    "fastNLP: https://github.com/FudanNLP/fastNLP/issues/254",
)
LN2 = float(np.log(2.0))


def _visible(scores: Array) -> Array:
    return scores > -np.inf


def _over(*axes: int) -> Weights:
    """Softmax over other axes than that of the keys."""

    def weights(scores: Array) -> Array:
        top = scores.max(axes, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        return divide(exponentials, exponentials.sum(axes, keepdims=True))

    return weights


def _divided(by: Callable[[Array], Array]) -> Weights:
    """Another normaliser, computed from the exponentials."""

    def weights(scores: Array) -> Array:
        exponentials = np.exp(scores - finite_top(scores))
        return exponentials / by(exponentials)

    return weights


def _sum(exponentials: Array) -> Array:
    return exponentials.sum(-1, keepdims=True)


def _of_visible(function: Callable[[Array], Array], hidden: float = 0.0) -> Weights:
    """A function of the visible scores, ``hidden`` for the others."""
    return lambda scores: np.where(_visible(scores), function(np.where(_visible(scores), scores, 0.0)), hidden)


def _of_changed(function: Callable[[Array], Array]) -> Weights:
    """Softmax of other visible scores."""
    return lambda scores: softmax(_of_visible(function, -np.inf)(scores))


def _log(scores: Array) -> Array:
    return np.where(_visible(scores), np.log(np.maximum(softmax(scores), 1e-300)), 0.0)


def _off_by_one(scores: Array) -> Array:
    top = np.maximum(scores.max(-1, keepdims=True), 0.0)
    exponentials = np.exp(scores - top)
    return exponentials / (np.exp(-top) + _sum(exponentials))


def _linear(scores: Array) -> Array:
    seen = np.where(_visible(scores), scores, 0.0)
    return seen / _sum(seen)


def _epsilon(amount: float) -> Way:
    """A guard against division by 0, which the sum of a row that sees a key does not need; seen where it is above rounding."""
    return stages(softmax=_divided(lambda exponentials: _sum(exponentials) + amount))


def _in_base(of_products: float, of_bias: float) -> Way:
    """Products and bias multiplied by a constant each, which is what another base of the exponential does."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        bias = None if inputs.bias is None else inputs.bias.astype(np.float64) * of_bias
        return inputs.but(scale=default_scale(inputs) * of_products, bias=bias)

    return inputs(rewrite)


def mixed(change: Callable[[Array], Array]) -> Way:
    """Weights (b, h, lq, lk) exchanged for others of them."""
    return stages(weights=lambda right: np.broadcast_to(change(right), right.shape))


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"softmax-{name}", sentence, stages(softmax=weights), requirements, sources, layer=layer)
        for name, sentence, requirements, sources, layer, weights in (
            ("over-queries", "takes softmax over the queries", OUT(21, 8), AXIS, HEAD(13), _over(-2)),
            ("over-heads", "takes softmax over the heads", OUT(20, 8), AXIS, HEAD(13), _over(1)),
            ("over-batch", "takes softmax over the batch", OUT(19, 8), (), (), _over(0)),
            ("over-queries-and-keys", "takes one softmax for all queries of a head", OUT(21, 8), (), (), _over(2, 3)),
            ("over-all", "takes one softmax over all scores of a call", OUT(19, 8), (), (), _over(0, 1, 2, 3)),
        )
    ),
    # Functions
    *(
        fault(f"softmax-{name}", sentence, stages(softmax=weights), requirements)
        for name, sentence, requirements, weights in (
            ("missing", "weighs V with the scores themselves", SUM, _of_visible(lambda s: s)),
            ("without-exp", "divides the scores by their sum, without exp", WEIGHTS, _linear),
            ("twice", "takes softmax twice", WEIGHTS, lambda s: softmax(np.where(_visible(s), softmax(s), -np.inf))),
            ("log", "weighs V with the logarithms of the weights", SUM, _log),
            ("sigmoid", "takes the sigmoid of each score", SUM, _of_visible(lambda s: 1.0 / (1.0 + np.exp(-s)))),
            ("relu", "takes the positive part of the scores for weights", SUM, _of_visible(lambda s: np.maximum(s, 0.0))),
            ("hard", "gives the key with the largest score all the weight", WEIGHTS,
             lambda s: (np.arange(s.shape[-1]) == s.argmax(-1)[..., None]) * 1.0),
            ("of-magnitudes", "drops the sign of the scores", WEIGHTS, _of_changed(np.abs)),
            ("negated", "changes the sign of the scores", WEIGHTS, _of_changed(np.negative)),
            ("off-by-one", "adds 1 to the sum of the exponentials", SUM, _off_by_one),
        )
    ),
    # Normalisers
    *(
        fault(f"softmax-{name}", sentence, stages(softmax=_divided(by)), SUM)
        for name, sentence, by in (
            ("not-normalised", "does not divide the exponentials by their sum", np.ones_like),
            ("by-key-count", "divides the exponentials by the number of keys", lambda e: e.shape[-1]),
            ("by-norm", "divides by the Euclidean norm of the exponentials", lambda e: _sum(e * e) ** 0.5),
            ("by-root-of-sum", "divides by the root of the sum", lambda e: _sum(e) ** 0.5),
            ("by-next-row", "divides by the sum of the next query", lambda e: np.roll(_sum(e), -1, -2)),
            ("by-next-head", "divides by the sum of the next head", lambda e: np.roll(_sum(e), -1, 1)),
            ("without-last-key", "leaves the last key out of the sum", lambda e: _sum(e) - e[..., -1:]),
            ("without-first-key", "leaves the first key out of the sum", lambda e: _sum(e) - e[..., :1]),
            ("with-last-key-twice", "counts the last key twice in the sum", lambda e: _sum(e) + e[..., -1:]),
        )
    ),
    *(
        fault(f"softmax-epsilon-{amount}", f"adds {amount} to the sum of the exponentials", _epsilon(float(amount)), OUT(8, 9),
              dtypes=dtypes)
        for amount, dtypes in (("1e-3", TO_16), ("1e-6", WIDE), ("1e-9", ("float64",)), ("1e-12", ("float64",)))
    ),
    fault("softmax-floor-of-sum", "lifts the sum to 1e-6 at least", stages(softmax=_divided(lambda e: np.maximum(_sum(e), 1e-6))),
          (), equivalent="The largest exponential of a row that sees a key is exp(0) = 1, so its sum is never below 1."),
    # Bases
    fault("softmax-base-two", "takes powers of 2 instead of e", _in_base(LN2, LN2), SCALE(1) + MASK(7)),
    fault("softmax-base-folded-twice", "multiplies by log₂ e and takes powers of e", _in_base(1 / LN2, 1 / LN2), SCALE(1)),
    fault("softmax-base-two-of-bias", "adds the bias to scores in base 2", _in_base(1.0, LN2), SCALE(9) + MASK(7), (), "bias"),
    fault("softmax-base-e-of-bias", "multiplies the bias by log₂ e twice", _in_base(1.0, 1 / LN2), SCALE(9) + MASK(7), (),
          "bias"),
    # Weights of others
    *(
        fault(name, sentence, mixed(change), spoken)
        for name, sentence, spoken, change in (
            ("weights-of-first-head", "uses the weights of the first head for all", HEAD(1) + OUT(20, 3), lambda w: w[:, :1]),
            ("weights-averaged-over-heads", "averages the weights over heads", HEAD(1) + OUT(20, 3),
             lambda w: w.mean(1, keepdims=True)),
            ("weights-of-first-batch-row", "uses the weights of the first batch row for all", OUT(19, 3), lambda w: w[:1]),
            ("weights-averaged-over-batch", "averages the weights over the batch", OUT(19, 3),
             lambda w: w.mean(0, keepdims=True)),
        )
    ),
)  # fmt: skip

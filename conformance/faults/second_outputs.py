"""Faults of what is returned beside a right output: the log-sum-exp and the weights, wrong each in one way."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.steps import compute
from conformance.numerics.dtypes import round_to
from conformance.operations import operation_of
from conformance.oracle import truth_of
from conformance.problem.returned import LSE, OUTPUT, WEIGHTS

Array = np.ndarray
HALF = ("float16", "bfloat16")
LAYERS = "multi_head_attention"


def _right(inputs: Any, name: str) -> Array:
    """In float64."""
    return truth_of(inputs).of(name, "float64").output.astype(np.float64)


def _lse(inputs: Any) -> Array:
    return _right(inputs, LSE)


def _weights(inputs: Any) -> Array:
    return _right(inputs, WEIGHTS)


def _showing_all(inputs: Any) -> Any:
    return inputs.but(mask=None, causal="none", key_lengths=None)


def _less_maximum(inputs: Any) -> Array:
    """Σ e^(score − maximum) is one over the largest weight."""
    return -np.log(_weights(inputs).max(-1))


def _overflowing(inputs: Any) -> Array:
    work = np.promote_types(inputs.query.dtype, np.float32)
    return np.log(np.exp(_lse(inputs).astype(work)))


def _of_first_of_group(inputs: Any) -> Array:
    lse, group = _lse(inputs), inputs.query.shape[1] // inputs.key.shape[1]
    return lse[:, np.arange(lse.shape[1]) // group * group]


def _over_queries(inputs: Any) -> Array:
    scores = np.log(_weights(inputs)) + _lse(inputs)[..., None]
    exponentials = np.exp(scores - scores.max(-2, keepdims=True))
    return exponentials / exponentials.sum(-2, keepdims=True)


def _averaged(inputs: Any) -> Array:
    weights = _weights(inputs)
    return np.broadcast_to(weights.mean(1, keepdims=True), weights.shape)


def _fault(
    identifier: str,
    sentence: str,
    wrong: Callable[[Any], Array],
    requirement: str,
    *needs: str,
    dtypes: tuple[str, ...] = ALL_DTYPES,
    operation: str = "attention",
    sources: tuple[str, ...] = (),
) -> Fault:
    """What is ``wrong`` is returned beside the right output, in float32 or float64; ``identifier`` begins with its name."""
    name = LSE if LSE in identifier else WEIGHTS

    def both(inputs: Any) -> Any:
        with np.errstate(all="ignore"):
            return compute(inputs), wrong(inputs).astype(np.promote_types(inputs.query.dtype, np.float32))

    return Fault(
        id=identifier, sentence=sentence, requirements=(requirement,), sources=sources, operation=operation,
        needs=frozenset(needs), dtypes=dtypes, returns=(OUTPUT, name),
        behaviour=lambda function: operation_of(operation).function(both),
    )  # fmt: skip


def _of_attention() -> Iterator[Fault]:
    beside = "gives, beside a right output, the"
    yield _fault("lse-less-maximum", f"{beside} log-sum-exp less the largest score", _less_maximum, "ATT-OUT-049")
    yield _fault(
        "lse-overflows", f"{beside} logarithm of a sum that overflows: the maximum is not taken off", _overflowing, "ATT-OUT-050"
    )
    yield _fault("lse-without-scale", f"{beside} log-sum-exp of unscaled scores", lambda i: _lse(i.but(scale=1.0)), "ATT-OUT-049")
    yield _fault(
        "lse-without-bias", f"{beside} log-sum-exp without the bias", lambda i: _lse(i.but(bias=None)), "ATT-OUT-051", "bias"
    )
    yield _fault(
        "lse-before-masking", f"{beside} log-sum-exp over hidden keys too", lambda i: _lse(_showing_all(i)), "ATT-OUT-052"
    )
    yield _fault(
        "lse-without-causal", f"{beside} log-sum-exp over later keys too", lambda i: _lse(i.but(causal="none")), "ATT-OUT-052",
        "causal",
    )  # fmt: skip
    yield _fault(
        "lse-in-two-bases",
        f"{beside} largest score plus the logarithm to the base 2 of the rest",
        lambda i: _lse(i) + _less_maximum(i) * (np.log2(np.e) - 1.0),
        "ATT-OUT-049",
    )
    yield _fault(
        "lse-to-base-2",
        f"{beside} log-sum-exp to the base 2, which is not said",
        lambda i: _lse(i) * np.log2(np.e),
        "ATT-OUT-049",
        sources=(
            "vllm: https://github.com/vllm-project/vllm/pull/47079",
            "sglang: https://github.com/sgl-project/sglang/issues/40903",
        ),
    )
    yield _fault("lse-of-next-row", f"{beside} log-sum-exp of the next row", lambda i: np.roll(_lse(i), 1, 2), "ATT-OUT-049")
    yield _fault("lse-of-next-head", f"{beside} log-sum-exp of the next head", lambda i: np.roll(_lse(i), 1, 1), "ATT-OUT-049")
    yield _fault(
        "lse-of-first-head-of-group", f"{beside} log-sum-exp of the first query head of a group", _of_first_of_group,
        "ATT-OUT-049", "grouped-heads",
    )  # fmt: skip
    yield _fault(
        "lse-through-16-bits",
        f"{beside} log-sum-exp in float32, rounded to 16 bits before",
        lambda i: round_to(_lse(i), i.query.dtype.name),
        "ATT-OUT-049",
        dtypes=HALF,
    )
    yield _fault("returned-weights-over-queries", f"{beside} softmax over queries as weights", _over_queries, "ATT-OUT-053")
    yield _fault("returned-weights-averaged", f"{beside} mean of the weights of all heads for each", _averaged, "ATT-OUT-053")
    yield _fault(
        "returned-weights-not-normalised", f"{beside} exponentials as weights, which add up to more than 1",
        lambda i: _weights(i) / _weights(i).max(-1, keepdims=True), "ATT-OUT-053",
    )  # fmt: skip
    yield _fault(
        "returned-weights-without-bias",
        f"{beside} weights without the bias",
        lambda i: _weights(i.but(bias=None)),
        "ATT-OUT-054",
        "bias",
    )
    yield _fault(
        "returned-weights-before-masking",
        f"{beside} weights before masking",
        lambda i: _weights(_showing_all(i)),
        "ATT-OUT-055",
    )
    yield _fault(
        "returned-weights-masked-after-softmax",
        f"{beside} weights before masking, with 0 where a key is hidden",
        lambda i: _weights(_showing_all(i)) * (_weights(i) > 0.0),
        "ATT-OUT-055",
    )


def _of_layers() -> Iterator[Fault]:
    beside = "gives, beside a right output, the"
    yield _fault(
        "multi-head-lse-of-next-head", f"{beside} log-sum-exp of the next head", lambda i: np.roll(_lse(i), 1, 1),
        "ATT-HEAD-040", operation=LAYERS,
    )  # fmt: skip
    yield _fault(
        "multi-head-lse-before-masking", f"{beside} log-sum-exp over hidden keys too", lambda i: _lse(_showing_all(i)),
        "ATT-HEAD-040", operation=LAYERS,
    )  # fmt: skip
    yield _fault(
        "multi-head-returned-weights-averaged", f"{beside} mean of the weights of all heads for each", _averaged, "ATT-HEAD-041",
        sources=("pytorch: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",), operation=LAYERS,
    )  # fmt: skip
    yield _fault(
        "multi-head-returned-weights-before-masking", f"{beside} weights before masking", lambda i: _weights(_showing_all(i)),
        "ATT-HEAD-041", operation=LAYERS,
    )  # fmt: skip


FAULTS: tuple[Fault, ...] = (*_of_attention(), *_of_layers())

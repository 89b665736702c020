"""Faults in merging parts: keys are split, each part is attended to by itself, and the outputs are put together."""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float

from conformance.faults.model import Fault
from conformance.faults.online import fault, finite, scored
from conformance.inputs import AttentionInputs

Array = np.ndarray
_MERGED = ("ATT-OUT-024", "ATT-OUT-017", "ATT-OUT-003")
_SLICE = ("flashinfer: https://github.com/flashinfer-ai/flashinfer/pull/1178",)
_LOGS = ("ring-flash-attention: https://github.com/zhuzilin/ring-flash-attention/issues/20",)
_BASE = ("tokenspeed: https://github.com/lightseekorg/tokenspeed/pull/571",)


def merged(inputs: AttentionInputs, weigh: Callable[[Array, Array, Array], Array], parts: int = 2) -> Float[Array, "b h lq dv"]:
    """Attention over ``parts`` runs of keys, added up with the weights ``weigh`` (log-sum-exp, maximum, sum of each)."""
    with np.errstate(all="ignore"):
        scores, value = scored(inputs, np.float64)
        outputs, tops, totals = [], [], []
        for index in np.array_split(np.arange(scores.shape[3]), min(parts, scores.shape[3])):
            top = scores[..., index].max(-1, keepdims=True)
            weights = np.exp(scores[..., index] - finite(top))
            total = weights.sum(-1, keepdims=True)
            outputs.append(weights / np.where(total == 0, 1, total) @ value[:, :, index])
            tops.append(top)
            totals.append(total)
        top, total = np.stack(tops), np.stack(totals)
        return (weigh(top + np.log(total), top, total) * np.stack(outputs)).sum(0).astype(inputs.query.dtype)


def _normalised(parts: Array) -> Array:
    total = parts.sum(0, keepdims=True)
    return parts / np.where(total == 0, 1, total)


def proportions(lse: Array, top: Array, total: Array) -> Array:
    """The right weights of the parts: e^(L_p − L)."""
    return _normalised(np.exp(lse - finite(lse.max(0, keepdims=True))))


def _spoiled(lse: Array, top: Array, total: Array) -> Array:
    return np.where((lse == -np.inf).any(0), np.nan, proportions(lse, top, total))


def _last_left_out(lse: Array, top: Array, total: Array) -> Array:
    return np.concatenate([proportions(lse[:-1], top, total), np.zeros_like(lse[-1:])]) if len(lse) > 1 else np.ones_like(lse)


_MERGING = tuple(
    fault(
        f"merge-{identifier}",
        f"computes keys in parts and {sentence}",
        partial(merged, weigh=weigh),
        *requirements,
        sources=sources,
    )
    for identifier, sentence, weigh, requirements, sources in (
        ("by-mean", "takes the plain mean of them", lambda lse, top, total: np.full_like(lse, 1 / len(lse)), _MERGED, ()),
        ("by-sum", "adds them up without weights", lambda lse, top, total: np.ones_like(lse), _MERGED, ()),
        (
            "by-sum-of-logs",
            "takes log a + log b for log (a + b)",
            lambda lse, top, total: np.exp(lse - lse.sum(0)),
            _MERGED,
            _LOGS,
        ),
        (
            "by-maximum",
            "weighs them by e^maximum, without their sums",
            lambda lse, top, total: _normalised(np.exp(top - top.max(0))),
            _MERGED,
            (),
        ),
        ("by-total", "weighs them by their sums, whose maxima differ", lambda lse, top, total: _normalised(total), _MERGED, ()),
        (
            "in-base-2",
            "weighs them by 2^L, L a natural logarithm",
            lambda lse, top, total: _normalised(np.exp2(lse - finite(lse.max(0)))),
            _MERGED,
            _BASE,
        ),
        (
            "by-lse",
            "weighs them by L, not by e^L",
            lambda lse, top, total: _normalised(np.where(np.isfinite(lse), lse, 0)),
            _MERGED,
            (),
        ),
        ("exchanged", "exchanges their weights", lambda lse, top, total: proportions(lse, top, total)[::-1], _MERGED, ()),
        ("last-left-out", "leaves out the last", _last_left_out, _MERGED, ()),
        (
            "spoiled-by-empty",
            "lets an empty one make NaN of the rest",
            _spoiled,
            ("ATT-MASK-017", "ATT-MASK-032", "ATT-MASK-029"),
            _SLICE,
        ),
    )
)

FAULTS: tuple[Fault, ...] = _MERGING

"""Faults of the online softmax, keys tile by tile with a running maximum, and in merging parts that were attended to apart.

As kernels do, the online form computes in float32 (float64 inputs: float64), since what underflows there shows only so.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.faults.fault import Fault
from conformance.faults.grammar import MASK, NOT_FLOAT16, OUT, SCALE, Way, computed, fault
from conformance.faults.steps import divide, scored
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Running = Callable[[Array, Array], Array]

TILED, LOW, EMPTY = OUT(36, 37, 24), SCALE(14, 10) + MASK(23, 41), MASK(32)
MERGED = OUT(24, 17, 3)
FIRST_EMPTY = ("flash-attention (CuTe sm90): https://github.com/Dao-AILab/flash-attention/issues/2082",)
FLOORED = ("burn: https://github.com/tracel-ai/burn/pull/4697",)
SLICE = ("flashinfer: https://github.com/flashinfer-ai/flashinfer/pull/1178",)
BASE = ("tokenspeed: https://github.com/lightseekorg/tokenspeed/pull/571",)
LOGS = ("ring-flash-attention: https://github.com/zhuzilin/ring-flash-attention/issues/20",)
LOWEST = "No finite score lies lower, and e^(−∞ − m) is 0 for every finite m."


def finite(top: Array) -> Array:
    """−inf, the maximum of nothing, as 0: −inf − (−inf) would be NaN."""
    return np.where(top == -np.inf, top.dtype.type(0), top)


def shrunk(old: Array, new: Array) -> Array:
    """What the sums so far are multiplied by when the maximum goes from ``old`` to ``new``."""
    return np.exp(old - new)


def online(
    inputs: AttentionInputs,
    size: int = 16,
    *,
    start: float = -np.inf,
    update: Callable[[Array, Array, int], Array] = lambda old, tile, number: np.maximum(old, tile),
    origin: Callable[[Array], Array] = finite,
    of_output: Running = shrunk,
    of_total: Running = shrunk,
    keep: Running = lambda top, base: top,
) -> Float[Array, "b h lq dv"]:
    """Attention over tiles of ``size`` keys, right unless a step is replaced.

    The running maximum begins at ``start``; ``update`` (old, the tile's, number of the tile) gives the new one, ``origin`` what
    is subtracted, ``keep`` (new, subtracted) what is carried on. ``of_output`` and ``of_total`` rescale the sums so far.
    """
    work = np.float64 if inputs.query.dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        scores, value = scored(inputs, work)
        rows = (*scores.shape[:3], 1)
        top, total = np.full(rows, start, work), np.zeros(rows, work)
        output = np.zeros((*scores.shape[:3], value.shape[3]), work)
        for number, begin in enumerate(range(0, scores.shape[3], size)):
            tile = scores[..., begin : begin + size]
            new = update(top, tile.max(-1, keepdims=True), number)
            base = origin(new)
            weights = np.exp(tile - base)
            total = total * of_total(top, base) + weights.sum(-1, keepdims=True)
            output = output * of_output(top, base) + weights @ value[:, :, begin : begin + size]
            top = keep(new, base)
        return divide(output, total).astype(inputs.query.dtype)


def _online(size: int = 16, **steps: Any) -> Way:
    return computed(lambda inputs: online(inputs, size, **steps))


def _nothing(old: Array, new: Array) -> Array:
    """Sums are left as they are once there are some."""
    return np.ones_like(old)


def _enlarged(old: Array, new: Array) -> Array:
    return np.where(old == -np.inf, 0, np.exp(new - old)).astype(old.dtype)


def _in_base_2(old: Array, new: Array) -> Array:
    return np.exp2(old - new)


def _per_slice(size: int) -> Way:
    """Each tile takes its own maximum off, also where that is −inf, and the sums are brought to a common one afterwards."""

    def compute(inputs: AttentionInputs) -> Array:
        work = np.float64 if inputs.query.dtype == np.float64 else np.float32
        with np.errstate(all="ignore"):
            scores, value = scored(inputs, work)
            tiles = [slice(begin, begin + size) for begin in range(0, scores.shape[3], size)]
            tops = [scores[..., tile].max(-1, keepdims=True) for tile in tiles]
            base = finite(np.maximum.reduce(tops))
            weights = [np.exp(scores[..., tile] - top) * np.exp(top - base) for tile, top in zip(tiles, tops, strict=True)]
            total = sum(part.sum(-1, keepdims=True) for part in weights)
            output = sum(part @ value[:, :, tile] for part, tile in zip(weights, tiles, strict=True))
            return np.asarray(output / np.where(total == 0, 1, total)).astype(inputs.query.dtype)

    return computed(compute)


def merged(inputs: AttentionInputs, weigh: Callable[[Array, Array, Array], Array], parts: int = 2) -> Float[Array, "b h lq dv"]:
    """Attention over ``parts`` runs of keys, added up with the weights ``weigh`` (log-sum-exp, maximum, sum of each)."""
    with np.errstate(all="ignore"):
        scores, value = scored(inputs, np.float64)
        outputs, tops, totals = [], [], []
        for index in np.array_split(np.arange(scores.shape[3]), min(parts, scores.shape[3])):
            top = scores[..., index].max(-1, keepdims=True)
            weights = np.exp(scores[..., index] - finite(top))
            tops.append(top)
            totals.append(weights.sum(-1, keepdims=True))
            outputs.append(divide(weights, totals[-1]) @ value[:, :, index])
        top, total = np.stack(tops), np.stack(totals)
        return (weigh(top + np.log(total), top, total) * np.stack(outputs)).sum(0).astype(inputs.query.dtype)


def _merge(weigh: Callable[[Array, Array, Array], Array]) -> Way:
    return computed(lambda inputs: merged(inputs, weigh))


def _normalised(parts: Array) -> Array:
    return divide(parts, parts.sum(0, keepdims=True))


def proportions(lse: Array, top: Array, total: Array) -> Array:
    """The right weights of the parts: e^(L_p − L)."""
    return _normalised(np.exp(lse - finite(lse.max(0, keepdims=True))))


def _spoiled(lse: Array, top: Array, total: Array) -> Array:
    return np.where((lse == -np.inf).any(0), np.nan, proportions(lse, top, total))


def _last_left_out(lse: Array, top: Array, total: Array) -> Array:
    return np.concatenate([proportions(lse[:-1], top, total), np.zeros_like(lse[-1:])]) if len(lse) > 1 else np.ones_like(lse)


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"online-{name}", sentence, _online(**steps), TILED, sources)
        for name, sentence, sources, steps in (
            ("output-not-rescaled", "does not rescale the output when the maximum rises", (), {"of_output": _nothing}),
            ("total-not-rescaled", "does not rescale the normaliser when the maximum rises", (), {"of_total": _nothing}),
            ("nothing-rescaled", "rescales neither output nor normaliser when the maximum rises", (),
             {"of_output": _nothing, "of_total": _nothing}),
            ("rescale-inverted", "rescales by e^(new − old) instead of e^(old − new)", (),
             {"of_output": _enlarged, "of_total": _enlarged}),
            ("output-rescaled-twice", "rescales the output twice", (), {"of_output": lambda old, new: shrunk(old, new) ** 2}),
            ("rescale-in-base-2", "rescales by 2^(old − new)", BASE, {"of_output": _in_base_2, "of_total": _in_base_2}),
        )
    ),
    fault("online-maximum-of-first-tile", "takes off the maximum of the first tile only",
          _online(update=lambda old, tile, number: tile if number == 0 else old), OUT(7) + EMPTY),
    fault("online-maximum-of-last-tile", "takes the maximum of each tile for that of all so far",
          _online(update=lambda old, tile, number: tile), OUT(7) + EMPTY),
    fault("online-maximum-from-minus-1e4", "begins the running maximum at −1e4", _online(start=-1e4), LOW, FLOORED),
    fault("online-maximum-from-minus-65504", "begins the running maximum at −65504", _online(start=-65504.0), LOW,
          dtypes=NOT_FLOAT16),
    fault("online-maximum-from-minus-1e9", "begins the running maximum at −1e9", _online(start=-1e9), MASK(41),
          dtypes=NOT_FLOAT16),
    fault("online-maximum-from-lowest", "begins the running maximum at the lowest finite number", _online(start=-3.4028234e38),
          (), equivalent=LOWEST, dtypes=("float32", "float16", "bfloat16")),
    *(
        fault(f"online-empty-{name.format(size)}", f"{sentence} of {size} keys", make(size), EMPTY, sources)
        for name, sentence, sources, make, of in (
            ("tile-of-{}-kept-as-zero", "goes on with 0 for the maximum of an empty tile", FIRST_EMPTY,
             lambda size: _online(size, keep=lambda top, base: base), (16, 64, 128)),
            ("tile-of-{}-nan", "takes −∞ from −∞ in an empty first tile", SLICE,
             lambda size: _online(size, origin=lambda top: top), (16, 64, 128)),
            ("slice-of-{}-nan", "takes −∞ from −∞ in any empty slice", SLICE, _per_slice, (16, 64)),
        )
        for size in of
    ),
    *(
        fault(f"merge-{name}", f"computes keys in parts and {sentence}",
              _merge(weigh), requirements, sources)
        for name, sentence, requirements, sources, weigh in (
            ("by-mean", "takes the plain mean of them", MERGED, (), lambda lse, top, total: np.full_like(lse, 1 / len(lse))),
            ("by-sum", "adds them up without weights", MERGED, (), lambda lse, top, total: np.ones_like(lse)),
            ("by-sum-of-logs", "takes log a + log b for log (a + b)", MERGED, LOGS,
             lambda lse, top, total: np.exp(lse - lse.sum(0))),
            ("by-maximum", "weighs them by e^maximum, without their sums", MERGED, (),
             lambda lse, top, total: _normalised(np.exp(top - top.max(0)))),
            ("by-total", "weighs them by their sums, whose maxima differ", MERGED, (), lambda lse, top,
             total: _normalised(total)),
            ("in-base-2", "weighs them by 2^L, L a natural logarithm", MERGED, BASE,
             lambda lse, top, total: _normalised(np.exp2(lse - finite(lse.max(0))))),
            ("by-lse", "weighs them by L, not by e^L", MERGED, (),
             lambda lse, top, total: _normalised(np.where(np.isfinite(lse), lse, 0))),
            ("exchanged", "exchanges their weights", MERGED, (), lambda lse, top, total: proportions(lse, top, total)[::-1]),
            ("last-left-out", "leaves out the last", MERGED, (), _last_left_out),
            ("spoiled-by-empty", "lets an empty one make NaN of the rest", MASK(17, 32, 29), SLICE, _spoiled),
        )
    ),
)  # fmt: skip

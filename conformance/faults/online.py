"""Faults of the online softmax: keys tile by tile, with a running maximum.

As kernels do, the online form computes in float32 (float64 inputs: float64), since what underflows there shows only so.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from conformance.faults.model import Compute, Fault
from conformance.faults.steps import add_bias, default_scale, kv_heads
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_pairs

Array = np.ndarray
Running = Callable[[Array, Array], Array]

_TILED = ("ATT-OUT-036", "ATT-OUT-037", "ATT-OUT-024")
_LOW = ("ATT-SCALE-014", "ATT-SCALE-010", "ATT-MASK-023", "ATT-MASK-041")
_EMPTY = ("ATT-MASK-032",)
_FIRST_EMPTY = ("flash-attention (CuTe sm90): https://github.com/Dao-AILab/flash-attention/issues/2082",)
_FLOORED = ("burn: https://github.com/tracel-ai/burn/pull/4697",)
_SLICE = ("flashinfer: https://github.com/flashinfer-ai/flashinfer/pull/1178",)
_BASE = ("tokenspeed: https://github.com/lightseekorg/tokenspeed/pull/571",)


def finite(top: Array) -> Array:
    """−inf, the maximum of nothing, as 0: −inf − (−inf) would be NaN."""
    return np.where(top == -np.inf, top.dtype.type(0), top)


def shrunk(old: Array, new: Array) -> Array:
    """What the sums so far are multiplied by when the maximum goes from ``old`` to ``new``."""
    return np.exp(old - new)


def scored(inputs: AttentionInputs, work: type[np.floating]) -> tuple[Float[Array, "b h lq lk"], Float[Array, "b h lk dv"]]:
    """The scores, −inf where hidden, and V for each query head."""
    chosen = kv_heads(inputs.query.shape[1], inputs.key.shape[1])
    query, key, value = inputs.query.astype(work), inputs.key.astype(work)[:, chosen], inputs.value.astype(work)[:, chosen]
    scores = add_bias((query * work(default_scale(inputs))) @ key.swapaxes(-1, -2), inputs).astype(work)
    return np.where(visible_pairs(inputs), scores, work(-np.inf)), value


def online(
    inputs: AttentionInputs,
    size: int = 16,
    *,
    start: float = -np.inf,
    update: Callable[[Array, Array, int], Array] = lambda old, tile, number: np.maximum(old, tile),
    origin: Callable[[Array], Array] = finite,
    of_output: Running = shrunk,
    of_total: Running = shrunk,
    keep: Callable[[Array, Array], Array] = lambda top, base: top,
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
        return (output / np.where(total == 0, work(1), total)).astype(inputs.query.dtype)


def _nothing(old: Array, new: Array) -> Array:
    """Sums are left as they are once there are some."""
    return np.ones_like(old)


def _enlarged(old: Array, new: Array) -> Array:
    return np.where(old == -np.inf, 0, np.exp(new - old)).astype(old.dtype)


def _per_slice(inputs: AttentionInputs, size: int) -> Array:
    """Each tile takes its own maximum off, also where that is −inf, and the sums are brought to a common one afterwards."""
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


def fault(identifier: str, sentence: str, compute: Compute, *requirements: str, **fields: Any) -> Fault:
    return Fault(id=identifier, sentence=sentence, requirements=requirements, compute=compute, **{"sources": (), **fields})


def _online(identifier: str, sentence: str, *requirements: str, size: int = 16, steps: dict[str, Any], **fields: Any) -> Fault:
    return fault(identifier, sentence, partial(online, size=size, **steps), *requirements, **fields)


_RESCALING = (
    _online(
        "online-output-not-rescaled", "does not rescale the output when the maximum rises", *_TILED, steps={"of_output": _nothing}
    ),
    _online(
        "online-total-not-rescaled",
        "does not rescale the normaliser when the maximum rises",
        *_TILED,
        steps={"of_total": _nothing},
    ),
    _online(
        "online-nothing-rescaled",
        "rescales neither output nor normaliser when the maximum rises",
        *_TILED,
        steps={"of_output": _nothing, "of_total": _nothing},
    ),
    _online(
        "online-rescale-inverted",
        "rescales by e^(new − old) instead of e^(old − new)",
        *_TILED,
        steps={"of_output": _enlarged, "of_total": _enlarged},
    ),
    _online(
        "online-output-rescaled-twice",
        "rescales the output twice",
        *_TILED,
        steps={"of_output": lambda old, new: shrunk(old, new) ** 2},
    ),
    _online(
        "online-rescale-in-base-2",
        "rescales by 2^(old − new)",
        *_TILED,
        sources=_BASE,
        steps={"of_output": lambda old, new: np.exp2(old - new), "of_total": lambda old, new: np.exp2(old - new)},
    ),
)

_MAXIMUM = (
    _online(
        "online-maximum-of-first-tile",
        "takes off the maximum of the first tile only",
        "ATT-OUT-007",
        *_EMPTY,
        steps={"update": lambda old, tile, number: tile if number == 0 else old},
    ),
    _online(
        "online-maximum-of-last-tile",
        "takes the maximum of each tile for that of all so far",
        "ATT-OUT-007",
        *_EMPTY,
        steps={"update": lambda old, tile, number: tile},
    ),
    *(
        _online(
            f"online-maximum-from-{name}",
            f"begins the running maximum at {shown}",
            *requirements,
            steps={"start": start},
            **fields,
        )
        for name, shown, start, requirements, fields in (
            ("minus-1e4", "−1e4", -1e4, _LOW, {"sources": _FLOORED}),
            ("minus-65504", "−65504", -65504.0, _LOW, {"dtypes": ("float64", "float32", "bfloat16")}),
            ("minus-1e9", "−1e9", -1e9, ("ATT-MASK-041",), {"dtypes": ("float64", "float32", "bfloat16")}),
            (
                "lowest",
                "the lowest finite number",
                -3.4028234e38,
                (),
                {
                    "equivalent": "No finite score lies lower, and e^(−∞ − m) is 0 for every finite m.",
                    "dtypes": ("float32", "float16", "bfloat16"),
                },
            ),
        )
    ),
    *(
        _online(
            f"online-empty-tile-of-{size}-kept-as-zero",
            f"goes on with 0 for the maximum of an empty tile of {size} keys",
            *_EMPTY,
            size=size,
            sources=_FIRST_EMPTY,
            steps={"keep": lambda top, base: base},
        )
        for size in (16, 64, 128)
    ),
    *(
        _online(
            f"online-empty-tile-of-{size}-nan",
            f"takes −∞ from −∞ in an empty first tile of {size} keys",
            *_EMPTY,
            size=size,
            sources=_SLICE,
            steps={"origin": lambda top: top},
        )
        for size in (16, 64, 128)
    ),
    *(
        fault(
            f"online-empty-slice-of-{size}-nan",
            f"takes −∞ from −∞ in any empty slice of {size} keys",
            partial(_per_slice, size=size),
            *_EMPTY,
            sources=_SLICE,
        )
        for size in (16, 64)
    ),
)

FAULTS: tuple[Fault, ...] = (*_RESCALING, *_MAXIMUM)

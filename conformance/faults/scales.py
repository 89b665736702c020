"""Faults of the default scale: taken from anything but 1/√d, in plain and in multi-head attention."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.faults.model import Fault
from conformance.inputs import AttentionInputs, MultiHeadInputs

Scale = Callable[[AttentionInputs], float]


def _root(number: float) -> float:
    """1/√number."""
    return float(1.0 / np.sqrt(number))


def _default(identifier: str, sentence: str, scale: Scale, *requirements: str, **fields: Any) -> Fault:
    """Another scale than 1/√d where none is given."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        return inputs if inputs.scale is not None else inputs.but(scale=float(scale(inputs)))

    fields = {"sources": (), **fields}
    return Fault(id=identifier, sentence=sentence, requirements=requirements or ("ATT-SCALE-001",), rewrite=rewrite, **fields)


def _heads(name: str, sentence: str, scale: Callable[[MultiHeadInputs], float], **fields: Any) -> Fault:
    """Another scale in multi-head attention, put into the projection of the query, in float64 so that nothing is rounded."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        weights = inputs.weights
        factor = scale(inputs) * np.sqrt(_head_width(inputs))
        bias = None if weights.query_bias is None else weights.query_bias.astype(np.float64) * factor
        scaled = replace(weights, query=weights.query.astype(np.float64) * factor, query_bias=bias)
        return inputs.but(weights=scaled)

    return Fault(
        id=f"multi-head-scale-{name}",
        sentence=sentence,
        operation="multi_head_attention",
        requirements=("ATT-HEAD-018", "ATT-HEAD-016", "ATT-HEAD-013"),
        rewrite=rewrite,
        **{"sources": (), **fields},
    )


def _width(i: AttentionInputs) -> int:
    """d, the width of query and key."""
    return int(i.key.shape[-1])


def _head_width(i: MultiHeadInputs) -> int:
    return i.weights.query.shape[1] // i.num_heads


def _padded(i: AttentionInputs, multiple: int) -> int:
    return -(-_width(i) // multiple) * multiple


def _live_channels(i: AttentionInputs) -> int:
    """The channels in which query or key is not 0 throughout."""
    live = (i.query != 0).any((0, 1, 2)) | (i.key != 0).any((0, 1, 2))
    return max(1, int(live.sum()))


_BY_HEADS = ("ATT-SCALE-003", "ATT-SCALE-001")
_BY_PADDING = ("ATT-SCALE-001", "ATT-SCALE-004", "ATT-OUT-035")
_GROUPED = frozenset({"grouped-heads"})
_VALUE_WIDTH = frozenset({"value-width"})
_PADDING = ("ipex-llm: https://github.com/intel/ipex-llm/pull/12619",)
_INVERTED = ("perceiver-io (esceptico): https://github.com/esceptico/perceiver-io/issues/9",)
_MODEL = (
    "vit-pytorch: https://github.com/lucidrains/vit-pytorch/issues/65",
    "dfdx: https://github.com/chelsea0x3b/dfdx/issues/171",
    "tutorials: einsum attention that divides by √embed_size",
)

_FROM_WIDTH = (
    _default("scale-missing", "does not scale the scores where no scale is given", lambda i: 1.0),
    _default("scale-by-width", "divides the scores by d instead of √d", lambda i: 1.0 / _width(i)),
    _default("scale-by-width-squared", "divides the scores by d² instead of √d", lambda i: _width(i) ** -2.0),
    _default("scale-by-fourth-root", "divides the scores by ⁴√d instead of √d", lambda i: _width(i) ** -0.25),
    _default("scale-inverted", "multiplies the scores by √d instead of 1/√d", lambda i: _width(i) ** 0.5, sources=_INVERTED),
    _default("scale-by-width-plus-one", "divides the scores by √(d + 1) instead of √d", lambda i: _root(_width(i) + 1)),
    _default("scale-by-width-minus-one", "divides the scores by √(d − 1) instead of √d", lambda i: _root(max(_width(i) - 1, 1))),
    _default("scale-by-half-width", "divides the scores by √(d/2) instead of √d", lambda i: _root(_width(i) / 2)),
    _default(
        "scale-constant",
        "divides the scores by 8, as for a width of 64, whatever the width",
        lambda i: 0.125,
        alike=("scale-by-width-padded-to-64",),
    ),
    _default(
        "scale-by-width-padded-to-8",
        "takes the default scale from the width padded to a multiple of 8",
        lambda i: _root(_padded(i, 8)),
        *_BY_PADDING,
        sources=_PADDING,
    ),
    _default(
        "scale-by-width-padded-to-16",
        "takes the default scale from the width padded to a multiple of 16",
        lambda i: _root(_padded(i, 16)),
        *_BY_PADDING,
        sources=_PADDING,
    ),
    _default(
        "scale-by-width-padded-to-64",
        "takes the default scale from the width padded to a multiple of 64",
        lambda i: _root(_padded(i, 64)),
        *_BY_PADDING,
        sources=_PADDING,
        alike=("scale-constant",),
    ),
    _default(
        "scale-by-power-of-two",
        "takes the default scale from the width padded to a power of two",
        lambda i: _root(1 << (_width(i) - 1).bit_length()),
        *_BY_PADDING,
        sources=_PADDING,
    ),
    _default(
        "scale-by-live-channels",
        "leaves channels that are 0 throughout out of the width",
        lambda i: _root(_live_channels(i)),
        "ATT-SCALE-004",
    ),
)

_FROM_ELSEWHERE = (
    _default(
        "scale-by-value-width",
        "takes the default scale from the width of V",
        lambda i: _root(i.value.shape[-1]),
        "ATT-SCALE-002",
        needs=_VALUE_WIDTH,
    ),
    _default(
        "scale-by-model-width",
        "divides the scores by √d_model, heads times width, instead of √d",
        lambda i: _root(i.query.shape[1] * _width(i)),
        *_BY_HEADS,
        sources=_MODEL,
    ),
    _default(
        "scale-by-key-model-width",
        "divides the scores by √(key heads times width) instead of √d",
        lambda i: _root(i.key.shape[1] * _width(i)),
        *_BY_HEADS,
    ),
    _default(
        "scale-by-group-width",
        "takes the width of the model over the key heads for the width of a head",
        lambda i: _root(i.query.shape[1] * _width(i) / i.key.shape[1]),
        "ATT-HEAD-001",
        "ATT-HEAD-002",
        needs=_GROUPED,
    ),
    _default("scale-by-heads", "divides the scores by √heads instead of √d", lambda i: _root(i.query.shape[1]), *_BY_HEADS),
    _default("scale-by-batch", "divides the scores by √batch instead of √d", lambda i: _root(i.query.shape[0])),
    _default("scale-by-query-length", "divides the scores by √Lq instead of √d", lambda i: _root(i.query.shape[2])),
    _default("scale-by-key-length", "divides the scores by √Lk instead of √d", lambda i: _root(i.key.shape[2])),
)

# The scale of multi-head attention from other widths and from the number of heads is in projections.py beside this file.
_MULTI_HEAD = (
    _heads("by-fourth-root", "divides the scores of the heads by ⁴√d instead of √d", lambda i: _head_width(i) ** -0.25),
    _heads("by-width-plus-one", "divides the scores of the heads by √(d + 1) instead of √d", lambda i: _root(_head_width(i) + 1)),
    _heads("by-key-length", "divides the scores of the heads by √Lk instead of √d", lambda i: _root(i.key.shape[1])),
    _heads("by-batch", "divides the scores of the heads by √batch instead of √d", lambda i: _root(i.key.shape[0])),
    _heads(
        "in-float32",
        "takes √d of the heads in float32",
        lambda i: 1.0 / float(np.float32(np.sqrt(_head_width(i)))),
        dtypes=("float64",),
    ),
)

FAULTS: tuple[Fault, ...] = (*_FROM_WIDTH, *_FROM_ELSEWHERE, *_MULTI_HEAD)

"""Faults of a scale on its way: ignored, doubled, inverted, rounded, lost on one path, or put where it does not belong."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from conformance.faults.model import Fault
from conformance.faults.steps import default_scale
from conformance.inputs import AttentionInputs

Change = Callable[[float, float], float]  # of the due scale and of 1/√d
Present = Callable[[AttentionInputs], bool]
_GIVEN = frozenset({"scale"})


def _due(inputs: AttentionInputs) -> float:
    """The scale that is due, as a NumPy number: dividing by 0 is no exception then."""
    return np.float64(default_scale(inputs))


def _changed(applies: Present, change: Change) -> Callable[[AttentionInputs], AttentionInputs]:
    """A rewrite of the scale where ``applies``."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if not applies(inputs):
            return inputs
        with np.errstate(all="ignore"):
            return inputs.but(scale=float(change(_due(inputs), _due(inputs.but(scale=None)))))

    return rewrite


def _given(identifier: str, sentence: str, change: Change, *requirements: str, sources: tuple[str, ...] = ()) -> Fault:
    """Another scale than the one that is given; the default one is right."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements or ("ATT-SCALE-005",),
        sources=sources,
        needs=_GIVEN,
        rewrite=_changed(lambda i: i.scale is not None, change),
    )


def _any(identifier: str, sentence: str, change: Callable[[float], float], *requirements: str, **fields: Any) -> Fault:
    """Another scale than the due one, given or not."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements or ("ATT-SCALE-001", "ATT-SCALE-005"),
        rewrite=_changed(lambda i: True, lambda due, default: change(due)),
        **{"sources": (), **fields},
    )


def _lost(place: str, where: str, present: Present, feature: str | None, *requirements: str) -> tuple[Fault, Fault]:
    """A path on which the default scale is missing, and one on which a given scale is replaced by the default one."""
    needs = frozenset({feature}) if feature else frozenset()
    unscaled = _changed(lambda i: present(i) and i.scale is None, lambda due, default: 1.0)
    ignoring = _changed(lambda i: present(i) and i.scale is not None, lambda due, default: default)
    return (
        Fault(
            id=f"scale-missing-{place}",
            sentence=f"does not scale the scores {where}, unless a scale is given",
            requirements=requirements,
            sources=(),
            needs=needs,
            rewrite=unscaled,
        ),
        Fault(
            id=f"scale-ignored-{place}",
            sentence=f"ignores a given scale {where}",
            requirements=("ATT-SCALE-005", *requirements),
            sources=(),
            needs=needs | _GIVEN,
            rewrite=ignoring,
        ),
    )


_IGNORED = (
    "tt-metal (TTNN): https://github.com/tenstorrent/tt-metal/issues/33304",
    "openvino: https://github.com/openvinotoolkit/openvino/pull/31365",
)
_TINY, _LARGE = ("ATT-SCALE-007",), ("ATT-SCALE-008",)

_VALUES = (
    _given("scale-ignored", "ignores a given scale and uses 1/√d", lambda due, default: default, sources=_IGNORED),
    _given("scale-on-top-of-default", "multiplies by a given scale and by 1/√d too", lambda due, default: due * default),
    _given("scale-given-inverted", "divides the scores by a given scale", lambda due, default: 1.0 / due),
    _given("scale-truncated", "truncates a given scale to an integer", lambda due, default: np.trunc(due)),
    _given("scale-one-as-none", "takes a given scale of 1 for none", lambda s, d: d if s == 1 else s, "ATT-SCALE-006"),
    _given("scale-clipped-to-one", "clips a given scale to at most 1", lambda due, default: min(due, 1.0), *_LARGE),
    _given("scale-clipped-to-default", "clips a given scale to at most 1/√d", min, *_LARGE, "ATT-SCALE-005", "ATT-SCALE-006"),
    _given("scale-clipped-below", "clips a given scale to at least 2⁻¹⁰", lambda due, default: max(due, 2.0**-10), *_TINY),
    _given("scale-fixed-point", "rounds a given scale to 8 binary places", lambda s, d: np.round(s * 256) / 256, *_TINY),
    _any("scale-twice", "applies the scale twice, to the query and to the scores", lambda due: due * due),
    _any("scale-thrice", "applies the scale to query, key and scores", lambda due: due**3),
    _any("scale-root", "multiplies only one of query and key by √scale", lambda due: float(np.sqrt(due))),
    _any(
        "scale-two-decimals",
        "rounds the scale to two decimals",
        lambda due: float(np.round(due, 2)),
        "ATT-SCALE-001",
        "ATT-SCALE-007",
    ),
    _any(
        "scale-power-of-two", "rounds the scale to a power of two, as a shift", lambda due: float(2.0 ** np.round(np.log2(due)))
    ),
    _any("scale-in-float16", "rounds the scale to float16", lambda due: float(np.float16(due))),
    _any("scale-in-bfloat16", "rounds the scale to bfloat16", lambda due: float(ml_dtypes.bfloat16(due))),
    _any("scale-in-float32", "rounds the scale to float32", lambda due: float(np.float32(due)), dtypes=("float64",)),
    _any("scale-temperature", "divides the scores by a further temperature of 1.1", lambda due: due / 1.1),
)

_PATHS = (
    *_lost("with-mask", "where a mask is given", lambda i: i.mask is not None, "mask", "ATT-MASK-030", "ATT-MASK-003"),
    *_lost("with-bias", "where a bias is given", lambda i: i.bias is not None, "bias", "ATT-MASK-007", "ATT-SCALE-009"),
    *_lost("when-causal", "of causal attention", lambda i: i.causal != "none", "causal", "ATT-MASK-009"),
    *_lost("unless-causal", "unless the attention is causal", lambda i: i.causal == "none", None, "ATT-SCALE-001"),
    *_lost("with-lengths", "where key lengths are given", lambda i: i.key_lengths is not None, "key-lengths", "ATT-MASK-017"),
    _lost("for-one-batch-row", "of a single batch row", lambda i: i.query.shape[0] == 1, None, "ATT-OUT-022")[0],
    *_lost("for-one-query", "of a single query, as in decoding", lambda i: i.query.shape[2] == 1, None, "ATT-OUT-023"),
    *_lost(
        "with-groups",
        "where heads are grouped",
        lambda i: i.query.shape[1] != i.key.shape[1],
        "grouped-heads",
        "ATT-HEAD-001",
        "ATT-HEAD-002",
    ),
)


def _on_bias(inputs: AttentionInputs) -> AttentionInputs:
    return inputs if inputs.bias is None else inputs.but(bias=inputs.bias.astype(np.float64) * _due(inputs))


def _bias_divided(inputs: AttentionInputs) -> AttentionInputs:
    return inputs if inputs.bias is None else inputs.but(bias=inputs.bias.astype(np.float64) / _due(inputs))


def _on_values(inputs: AttentionInputs) -> AttentionInputs:
    return inputs.but(value=inputs.value.astype(np.float64) * _due(inputs))


def _misplaced(
    identifier: str, sentence: str, rewrite: Callable[[AttentionInputs], AttentionInputs], *requirements: str
) -> Fault:
    bias = frozenset({"bias"}) if "bias" in identifier else frozenset()
    return Fault(id=identifier, sentence=sentence, requirements=requirements, sources=(), needs=bias, rewrite=rewrite)


_PLACES = (
    _misplaced("scale-on-bias-too", "multiplies products and bias by the scale", _on_bias, "ATT-SCALE-009"),
    _misplaced("scale-divides-bias", "divides the bias by the scale, as if it were undone later", _bias_divided, "ATT-SCALE-009"),
    _misplaced(
        "scale-on-values-too", "multiplies the scores and the output by the scale", _on_values, "ATT-SCALE-001", "ATT-OUT-008"
    ),
    _misplaced(
        "scale-after-softmax",
        "multiplies the weights by the scale instead of the scores",
        lambda inputs: _on_values(inputs).but(scale=1.0),
        "ATT-SCALE-001",
        "ATT-OUT-008",
    ),
)

_BELOW_0 = (
    _given("scale-without-sign", "leaves out the sign of a scale", lambda due, default: abs(due), "ATT-SCALE-015"),
    _given(
        "scale-below-0-not-given",
        "takes a scale below 0 for one that was not given",
        lambda due, default: default if due < 0 else due,
        "ATT-SCALE-015",
    ),
    _given(
        "scale-cut-off-below-minus-1",
        "takes a scale below −1 for −1",
        lambda due, default: max(due, -1.0),
        "ATT-SCALE-015",
    ),
)

FAULTS: tuple[Fault, ...] = (*_VALUES, *_PATHS, *_PLACES, *_BELOW_0)

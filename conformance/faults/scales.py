"""Scales got wrong: the default one from anything but 1/√d, and a scale on its way: doubled, inverted, rounded, lost on one path,
or put where it does not belong."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import HEAD, MASK, OUT, SCALE, Way, bias, fault, inputs
from conformance.faults.steps import default_scale
from conformance.problem.inputs import AttentionInputs

GIVEN = frozenset({"scale"})
PADDING = ("ipex-llm: https://github.com/intel/ipex-llm/pull/12619",)
INVERTED = ("perceiver-io (esceptico): https://github.com/esceptico/perceiver-io/issues/9",)
MODEL = (
    "vit-pytorch: https://github.com/lucidrains/vit-pytorch/issues/65",
    "dfdx: https://github.com/chelsea0x3b/dfdx/issues/171",
    "tutorials: einsum attention that divides by √embed_size",
)
DEFAULT, BY_HEADS, BY_PADDING = SCALE(1), SCALE(3, 1), SCALE(1, 4) + OUT(35)
ANY, TINY, LARGE, BELOW_0 = SCALE(1, 5), SCALE(7), SCALE(8), SCALE(15)


def root(number: float) -> float:
    """1/√number."""
    return float(1.0 / np.sqrt(number))


def _default(scale: Callable[[AttentionInputs], float]) -> Way:
    """Another scale than 1/√d where none is given."""
    return inputs(lambda x: x if x.scale is not None else x.but(scale=float(scale(x))))


def _expected_scale(inputs: AttentionInputs) -> float:
    """The scale that is expected, as a NumPy number: dividing by 0 is no exception then."""
    return np.float64(default_scale(inputs))


def _changed(change: Callable[[float, float], float], applies: Callable[[AttentionInputs], bool] = lambda x: True) -> Way:
    """Another scale where it ``applies``: ``change`` of the expected one and of 1/√d."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if not applies(inputs):
            return inputs
        with np.errstate(all="ignore"):
            return inputs.but(scale=float(change(_expected_scale(inputs), _expected_scale(inputs.but(scale=None)))))

    return Way(rewrite=rewrite)


def _given(change: Callable[[float, float], float]) -> Way:
    """Another scale than the one that is given; the default one is right."""
    way = _changed(change, lambda x: x.scale is not None)
    return Way(rewrite=way.rewrite, needs=GIVEN)


def _any(change: Callable[[Any], Any]) -> Way:
    return _changed(lambda scale, default: float(change(scale)))


def _lost(place: str, where: str, present: Callable[[AttentionInputs], bool], needs: str, requirements: tuple[str, ...],
          *, also_given: bool = True) -> tuple[Fault, ...]:  # fmt: skip
    """A path on which the default scale is missing, and one on which a given scale is replaced by the default one."""
    unscaled = _changed(lambda scale, default: 1.0, lambda x: present(x) and x.scale is None)
    ignoring = _changed(lambda scale, default: default, lambda x: present(x) and x.scale is not None)
    both = (
        fault(f"scale-missing-{place}", f"does not scale the scores {where}, unless a scale is given", unscaled, requirements,
              needs=needs),
        fault(f"scale-ignored-{place}", f"ignores a given scale {where}", ignoring, SCALE(5) + requirements,
              needs=f"scale {needs}"),
    )  # fmt: skip
    return both if also_given else both[:1]


def _width(x: AttentionInputs) -> int:
    """d, the width of query and key."""
    return int(x.key.shape[-1])


def _live_channels(x: AttentionInputs) -> int:
    """The channels in which query or key is not 0 throughout."""
    live = (x.query != 0).any((0, 1, 2)) | (x.key != 0).any((0, 1, 2))
    return max(1, int(live.sum()))


def _on_values(x: AttentionInputs) -> AttentionInputs:
    return x.but(value=x.value.astype(np.float64) * _expected_scale(x))


FAULTS: tuple[Fault, ...] = (
    # The default
    *(
        fault(f"scale-{name}", sentence, _default(scale), requirements, sources, needs)
        for name, sentence, requirements, sources, needs, scale in (
            ("missing", "does not scale the scores where no scale is given", DEFAULT, (), "", lambda x: 1.0),
            ("by-width", "divides the scores by d instead of √d", DEFAULT, (), "", lambda x: 1.0 / _width(x)),
            ("by-width-squared", "divides the scores by d² instead of √d", DEFAULT, (), "", lambda x: _width(x) ** -2.0),
            ("by-fourth-root", "divides the scores by ⁴√d instead of √d", DEFAULT, (), "", lambda x: _width(x) ** -0.25),
            ("inverted", "multiplies the scores by √d instead of 1/√d", DEFAULT, INVERTED, "", lambda x: _width(x) ** 0.5),
            ("by-width-plus-one", "divides the scores by √(d + 1) instead of √d", DEFAULT, (), "", lambda x: root(_width(x) + 1)),
            ("by-width-minus-one", "divides the scores by √(d − 1) instead of √d", DEFAULT, (), "",
             lambda x: root(max(_width(x) - 1, 1))),
            ("by-half-width", "divides the scores by √(d/2) instead of √d", DEFAULT, (), "", lambda x: root(_width(x) / 2)),
            ("constant", "divides the scores by 8, as for a width of 64, whatever the width", DEFAULT, (), "", lambda x: 0.125),
            *(
                (f"by-width-padded-to-{n}", f"takes the default scale from the width padded to a multiple of {n}", BY_PADDING,
                 PADDING, "", lambda x, n=n: root(-(-_width(x) // n) * n))
                for n in (8, 16, 64)
            ),
            ("by-power-of-two", "takes the default scale from the width padded to a power of two", BY_PADDING, PADDING, "",
             lambda x: root(1 << (_width(x) - 1).bit_length())),
            ("by-live-channels", "leaves channels that are 0 throughout out of the width", SCALE(4), (), "",
             lambda x: root(_live_channels(x))),
            ("by-value-width", "takes the default scale from the width of V", SCALE(2), (), "value-width",
             lambda x: root(x.value.shape[-1])),
            ("by-model-width", "divides the scores by √d_model, heads times width, instead of √d", BY_HEADS, MODEL, "",
             lambda x: root(x.query.shape[1] * _width(x))),
            ("by-key-model-width", "divides the scores by √(key heads times width) instead of √d", BY_HEADS, (), "",
             lambda x: root(x.key.shape[1] * _width(x))),
            ("by-group-width", "takes the width of the model over the key heads for the width of a head", HEAD(1, 2), (),
             "grouped-heads", lambda x: root(x.query.shape[1] * _width(x) / x.key.shape[1])),
            ("by-heads", "divides the scores by √heads instead of √d", BY_HEADS, (), "", lambda x: root(x.query.shape[1])),
            ("by-batch", "divides the scores by √batch instead of √d", DEFAULT, (), "", lambda x: root(x.query.shape[0])),
            ("by-query-length", "divides the scores by √Lq instead of √d", DEFAULT, (), "", lambda x: root(x.query.shape[2])),
            ("by-key-length", "divides the scores by √Lk instead of √d", DEFAULT, (), "", lambda x: root(x.key.shape[2])),
        )
    ),
    # A given scale
    *(
        fault(f"scale-{name}", sentence, _given(change), requirements)
        for name, sentence, requirements, change in (
            ("on-top-of-default", "multiplies by a given scale and by 1/√d too", SCALE(5),
             lambda scale, default: scale * default),
            ("given-inverted", "divides the scores by a given scale", SCALE(5), lambda scale, default: 1.0 / scale),
            ("truncated", "truncates a given scale to an integer", SCALE(5), lambda scale, default: np.trunc(scale)),
            ("one-as-none", "takes a given scale of 1 for none", SCALE(6),
             lambda scale, default: default if scale == 1 else scale),
            ("clipped-to-one", "clips a given scale to at most 1", LARGE, lambda scale, default: min(scale, 1.0)),
            ("clipped-to-default", "clips a given scale to at most 1/√d", SCALE(8, 5, 6), min),
            ("clipped-below", "clips a given scale to at least 2⁻¹⁰", TINY, lambda scale, default: max(scale, 2.0**-10)),
            ("fixed-point", "rounds a given scale to 8 binary places", TINY, lambda scale, default: np.round(scale * 256) / 256),
            ("without-sign", "leaves out the sign of a scale", BELOW_0, lambda scale, default: abs(scale)),
            ("below-0-not-given", "takes a scale below 0 for one that was not given", BELOW_0,
             lambda scale, default: default if scale < 0 else scale),
            ("cut-off-below-minus-1", "takes a scale below −1 for −1", BELOW_0, lambda scale, default: max(scale, -1.0)),
        )
    ),
    # Any scale
    *(
        fault(f"scale-{name}", sentence, _any(change), requirements, dtypes=dtypes)
        for name, sentence, requirements, dtypes, change in (
            ("twice", "applies the scale twice, to the query and to the scores", ANY, ALL_DTYPES, lambda scale: scale * scale),
            ("thrice", "applies the scale to query, key and scores", ANY, ALL_DTYPES, lambda scale: scale**3),
            ("root", "multiplies only one of query and key by √scale", ANY, ALL_DTYPES, np.sqrt),
            ("two-decimals", "rounds the scale to two decimals", SCALE(1, 7), ALL_DTYPES, lambda scale: np.round(scale, 2)),
            ("power-of-two", "rounds the scale to a power of two, as a shift", ANY, ALL_DTYPES,
             lambda scale: 2.0 ** np.round(np.log2(scale))),
            ("in-float16", "rounds the scale to float16", ANY, ALL_DTYPES, np.float16),
            ("in-bfloat16", "rounds the scale to bfloat16", ANY, ALL_DTYPES, ml_dtypes.bfloat16),
            ("in-float32", "rounds the scale to float32", ANY, ("float64",), np.float32),
            ("temperature", "divides the scores by a further temperature of 1.1", ANY, ALL_DTYPES, lambda scale: scale / 1.1),
        )
    ),
    *_lost("with-mask", "where a mask is given", lambda x: x.mask is not None, "mask", MASK(30, 3)),
    *_lost("with-bias", "where a bias is given", lambda x: x.bias is not None, "bias", MASK(7) + SCALE(9)),
    *_lost("when-causal", "of causal attention", lambda x: x.causal != "none", "causal", MASK(9)),
    *_lost("unless-causal", "unless the attention is causal", lambda x: x.causal == "none", "", SCALE(1)),
    *_lost("with-lengths", "where key lengths are given", lambda x: x.key_lengths is not None, "key-lengths", MASK(17)),
    *_lost("for-one-batch-row", "of a single batch row", lambda x: x.query.shape[0] == 1, "", OUT(22), also_given=False),
    *_lost("for-one-query", "of a single query, as in decoding", lambda x: x.query.shape[2] == 1, "", OUT(23)),
    *_lost("with-groups", "where heads are grouped", lambda x: x.query.shape[1] != x.key.shape[1], "grouped-heads", HEAD(1, 2)),
    # Places
    fault("scale-on-bias-too", "multiplies products and bias by the scale", bias(lambda b, x: b * _expected_scale(x)), SCALE(9)),
    fault("scale-divides-bias", "divides the bias by the scale, as if it were undone later",
          bias(lambda b, x: b / _expected_scale(x)), SCALE(9)),
    fault("scale-on-values-too", "multiplies the scores and the output by the scale", inputs(_on_values), SCALE(1) + OUT(8)),
    fault("scale-after-softmax", "multiplies the weights by the scale instead of the scores",
          inputs(lambda x: _on_values(x).but(scale=1.0)), SCALE(1) + OUT(8)),
)  # fmt: skip

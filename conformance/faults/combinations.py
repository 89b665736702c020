"""Mask, causal limit, key lengths and bias where two of them meet: one is dropped, the two are united, or one needs the other."""

from itertools import combinations, permutations
from typing import Any

from conformance.faults.masks import masking
from conformance.faults.model import Fault, Rewrite
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_pairs

# Feature: its field, what that holds where the feature is absent, and its name in a sentence.
FIELDS: dict[str, tuple[str, Any, str]] = {
    "mask": ("mask", None, "the mask"),
    "causal": ("causal", "none", "the causal limit"),
    "key-lengths": ("key_lengths", None, "key lengths"),
    "bias": ("bias", None, "the bias"),
}
HIDING = ("mask", "causal", "key-lengths")
# The requirements that speak of two features together, and public reports.
TOGETHER: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"mask", "causal"}): masking(16, 40),
    frozenset({"mask", "key-lengths"}): masking(18),
    frozenset({"causal", "key-lengths"}): masking(18),
    frozenset({"mask", "bias"}): masking(19),
    frozenset({"causal", "bias"}): masking(20),
    frozenset({"key-lengths", "bias"}): masking(42),
}
SOURCES: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"mask", "causal"}): (
        "keras: https://github.com/keras-team/keras/pull/23040",
        "minimind: https://github.com/jingyaogong/minimind/pull/497",
    ),
    frozenset({"mask", "key-lengths"}): ("pytorch: https://github.com/pytorch/pytorch/issues/97605",),
}
NESTED = ("xformers: https://github.com/facebookresearch/xformers/issues/103",)
ALONE = {"causal": masking(9, 10, 11, 12, 13), "key-lengths": masking(17), "bias": masking(7)}


def has(inputs: AttentionInputs, feature: str) -> bool:
    """Whether the inputs ask for ``feature``."""
    name, absent, _ = FIELDS[feature]
    value = getattr(inputs, name)
    return value is not None if absent is None else value != absent


def without(inputs: AttentionInputs, feature: str) -> AttentionInputs:
    """The inputs without ``feature``."""
    name, absent, _ = FIELDS[feature]
    return inputs.but(**{name: absent})


def _dropped_with(dropped: str, other: str) -> Rewrite:
    return lambda inputs: without(inputs, dropped) if has(inputs, other) else inputs


def _only_with_mask(feature: str) -> Rewrite:
    return lambda inputs: inputs if has(inputs, "mask") else without(inputs, feature)


def _dropped_for_unequal_lengths(dropped: str, other: str) -> Rewrite:
    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        unequal = inputs.query.shape[2] != inputs.key.shape[2]
        return without(inputs, dropped) if unequal and has(inputs, other) else inputs

    return rewrite


def _united(first: str, second: str) -> Rewrite:
    """What either of the two shows is visible, within what all others show."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if not (has(inputs, first) and has(inputs, second)):
            return inputs
        visible = visible_pairs(without(inputs, first)) | visible_pairs(without(inputs, second))
        return inputs.but(mask=visible, causal="none", key_lengths=None)

    return rewrite


_DROPPED = tuple(
    Fault(
        id=f"{dropped}-dropped-with-{other}",
        sentence=f"leaves {FIELDS[dropped][2]} out beside {FIELDS[other][2]}",
        requirements=TOGETHER[frozenset({dropped, other})],
        sources=SOURCES.get(frozenset({dropped, other}), ()),
        needs=frozenset({dropped, other}),
        rewrite=_dropped_with(dropped, other),
    )
    for dropped, other in permutations(FIELDS, 2)
)

_UNEQUAL = tuple(
    Fault(
        id=f"{dropped}-dropped-with-{other}-for-unequal-lengths",
        sentence=f"leaves {FIELDS[dropped][2]} out beside {FIELDS[other][2]} where the lengths differ",
        requirements=masking(45),
        sources=SOURCES.get(frozenset({dropped, other}), ()),
        needs=frozenset({dropped, other, "cross-length"}),
        rewrite=_dropped_for_unequal_lengths(dropped, other),
    )
    for dropped, other in permutations(FIELDS, 2)
    if "causal" in (dropped, other)
)

_UNITED = tuple(
    Fault(
        id=f"{first}-or-{second}",
        sentence=f"shows what {FIELDS[first][2]} or {FIELDS[second][2]} show, instead of what both do",
        requirements=TOGETHER[frozenset({first, second})],
        sources=SOURCES.get(frozenset({first, second}), ()),
        needs=frozenset({first, second}),
        rewrite=_united(first, second),
    )
    for first, second in combinations(HIDING, 2)
)

_NESTED = tuple(
    Fault(
        id=f"{feature}-only-with-mask",
        sentence=f"leaves {FIELDS[feature][2]} out where no mask is given",
        requirements=requirements,
        sources=NESTED,
        needs=frozenset({feature}),
        rewrite=_only_with_mask(feature),
    )
    for feature, requirements in ALONE.items()
)

_MULTI_HEAD = tuple(
    Fault(
        id=f"multi-head-causal-dropped-with-{feature}",
        sentence=f"leaves the causal limit out where {words}, in multi-head attention",
        operation="multi_head_attention",
        requirements=("ATT-HEAD-035",),
        sources=SOURCES[frozenset({"mask", "causal"})],
        needs=frozenset({"causal", feature}),
        rewrite=_dropped_with("causal", feature),
    )
    for feature, words in (("mask", "a mask is given"), ("key-lengths", "key lengths are given"))
)

FAULTS: tuple[Fault, ...] = (*_DROPPED, *_UNEQUAL, *_UNITED, *_NESTED, *_MULTI_HEAD)

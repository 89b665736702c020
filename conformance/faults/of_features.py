"""What can be wrong with any feature: it is left out, left out beside another, goes on working in later calls; two features that
hide are united.

These are made for every feature of conformance/features, from the words and the requirements that it brings, with what it brings
of its own: where one of these requirements has a designed problem on which the fault can show, in the dtypes of such problems.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, permutations
from typing import Any

from conformance.faults.calls import OPERATIONS, Act, Call, Memory, called
from conformance.faults.fault import ALL_DTYPES, Fault, Rewrite
from conformance.faults.grammar import ATTENTION, MASK, MULTI_HEAD, Way, computed, fault, sibling, unhidden
from conformance.faults.steps import attend
from conformance.features import features
from conformance.features.feature import Feature, Wrong
from conformance.operations import Operation, operations
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_pairs
from conformance.specification import requirements

# Ids and sentences that are older than their making, and where a fault was seen.
OLD_IDS = {
    "multi-head-key-lengths-dropped-with-causal": "multi-head-lengths-lost-beside-causal",
    "multi-head-mask-dropped-with-key-lengths": "multi-head-mask-lost-beside-lengths",
}
SAID = {"scale-ignored": "ignores a given scale and uses 1/√d"}
TWO = (
    "keras: https://github.com/keras-team/keras/pull/23040",
    "minimind: https://github.com/jingyaogong/minimind/pull/497",
)
SOURCES: dict[str, tuple[str, ...]] = {
    "mask-ignored": (
        "DI-engine: https://github.com/opendilab/DI-engine/issues/333",
        "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4526",
        "AutoAWQ: https://github.com/casper-hansen/AutoAWQ/issues/228",
    ),
    "bias-ignored": (
        "torch-spyre: https://github.com/torch-spyre/torch-spyre/issues/4526",
        "ggml: https://github.com/ggml-org/ggml/pull/143",
    ),
    "causal-only-with-mask": ("xformers: https://github.com/facebookresearch/xformers/issues/103",),
    "causal-ignored": (
        "nanoGPT: https://github.com/karpathy/nanoGPT/issues/331",
        "transformers: https://github.com/huggingface/transformers/issues/28215",
    ),
    "key-lengths-ignored": (
        "jax: https://github.com/jax-ml/jax/issues/23349",
        "FasterTransformer: https://github.com/NVIDIA/FasterTransformer/issues/270",
    ),
    "scale-ignored": (
        "tt-metal (TTNN): https://github.com/tenstorrent/tt-metal/issues/33304",
        "openvino: https://github.com/openvinotoolkit/openvino/pull/31365",
    ),
}
PAIRS: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"mask", "causal"}): TWO,
    frozenset({"mask", "key-lengths"}): ("pytorch: https://github.com/pytorch/pytorch/issues/97605",),
}


@cache
def _asked(identifier: str) -> frozenset[tuple[str, frozenset[str]]]:
    """The dtypes of a requirement's designed problems, each with what such a problem asks for."""
    return frozenset((problem.dtype, problem.features) for problem in requirements()[identifier].designed())


def _dtypes(spoken: tuple[str, ...], needs: Iterable[str]) -> tuple[str, ...]:
    """Those in which a requirement asks for all that is needed."""
    asked = {dtype for identifier in spoken for dtype, features in _asked(identifier) if features.issuperset(needs)}
    return tuple(dtype for dtype in ALL_DTYPES if dtype in asked)


def _fault(operation: str, name: str, sentence: str, way: Rewrite, spoken: tuple[str, ...], *needs: str) -> Iterator[Fault]:
    layers, dtypes = operation == MULTI_HEAD, _dtypes(spoken, needs)
    identifier = f"multi-head-{name}" if layers else name
    seen = SOURCES.get(name, PAIRS.get(frozenset(needs[:2]), ()))
    if dtypes:
        yield fault(
            OLD_IDS.get(identifier, identifier),
            SAID.get(name, sentence) + ", in multi-head attention" * layers,
            Way(rewrite=way, operation=operation, hiding=all(one.hides for one in features(ATTENTION) if one.name in needs)),
            spoken,
            seen,
            " ".join(needs),
            dtypes=dtypes,
        )


def _without(feature: Feature, inputs: Any) -> Any:
    return inputs.but(**{feature.argument: feature.default}) if feature.is_asked(inputs) else inputs


def _together(operation: str, one: Feature, other: Feature) -> tuple[str, ...]:
    """The requirements that speak of both."""
    return one.beside.get(operation, {}).get(other.name, ()) or other.beside.get(operation, {}).get(one.name, ())


def _dropped(feature: Feature, where: Callable[[Any], bool]) -> Rewrite:
    return lambda inputs: _without(feature, inputs) if where(inputs) else inputs


def _unequal(other: Feature) -> Callable[[Any], bool]:
    return lambda inputs: inputs.query.shape[-2] != inputs.key.shape[-2] and other.is_asked(inputs)


def _united(first: Feature, second: Feature) -> Rewrite:
    """What either of the two shows is visible, within what all others show."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if not (first.is_asked(inputs) and second.is_asked(inputs)):
            return inputs
        visible = visible_pairs(_without(first, inputs)) | visible_pairs(_without(second, inputs))
        return unhidden(inputs).but(mask=visible)

    return rewrite


def _sticking(feature: Feature) -> Act:
    """Parameters that are not given are what they were in the last call of the same shapes that gave them."""

    def act(call: Call, memory: Memory) -> Any:
        form = tuple(array.shape for array in call.arguments[:3])
        given = {name: call.named[name] for name in feature.plain() if name in call.named}
        if feature.parameter in given:
            memory[form] = given
        return call.function(*call.arguments, **(memory.get(form, {}) | call.named))

    return act


def _of_one(of: Operation, feature: Feature) -> Iterator[Fault]:
    """What is wrong with a feature by itself."""
    name, alone = feature.name, feature.alone.get(of.name, ())
    if alone:
        yield from _fault(
            of.name, f"{name}-ignored", f"leaves {feature.words} out", _dropped(feature, lambda x: True), alone, name
        )
    if _dtypes((of.stale,), [name]):
        sentence = f"goes on using {feature.words} of an earlier call"
        yield called(of, f"{name}-sticks", sentence, _sticking(feature), (of.stale,))


def _of_two(operation: str, one: Feature, other: Feature) -> Iterator[Fault]:
    """``one`` left out beside ``other``, or where there is no mask beside."""
    both, names = _together(operation, one, other), (one.name, other.name)
    if not both:
        return
    name, words = f"{one.name}-dropped-with-{other.name}", f"leaves {one.words} out beside {other.words}"
    yield from _fault(operation, name, words, _dropped(one, other.is_asked), both, *names)
    if operation != ATTENTION:
        return
    if "causal" in names:
        name, words = f"{name}-for-unequal-lengths", f"{words} where the lengths differ"
        yield from _fault(operation, name, words, _dropped(one, _unequal(other)), MASK(45), *names, "cross-length")
    if other.name == "mask":
        name, words = f"{one.name}-only-with-mask", f"leaves {one.words} out where no mask is given"
        nested = _dropped(one, lambda inputs: not other.is_asked(inputs))
        yield from _fault(operation, name, words, nested, one.alone[operation], one.name)


def _of_two_that_hide(first: Feature, second: Feature) -> Iterator[Fault]:
    both, words = _together(ATTENTION, first, second), f"shows what {first.words} or {second.words} show, instead of what both do"
    if both:
        united = _united(first, second)
        yield from _fault(ATTENTION, f"{first.name}-or-{second.name}", words, united, both, first.name, second.name)


def _own(feature: Feature, wrong: Wrong) -> Iterator[Fault]:
    """What a feature brings, for each operation of which requirements speak."""
    chain = wrong.chain
    way = Way(rewrite=wrong.rewrite, hiding=feature.hides)
    if chain is not None:
        way = computed(lambda inputs: attend(inputs, chain=chain))
    needs = {feature.name, *wrong.needs}
    for operation, spoken in wrong.requirements.items():
        dtypes = wrong.dtypes or _dtypes(spoken, needs) or ALL_DTYPES
        plain = fault(wrong.id, wrong.sentence, way, spoken, wrong.sources, " ".join(needs), dtypes=dtypes)
        yield plain if operation == ATTENTION else sibling(plain, spoken)


def made() -> Iterator[Fault]:
    """All of them, by operation, and what operations bring themselves."""
    for operation in OPERATIONS:
        asked = [feature for feature in features(operation.name) if feature.field is not None]
        for feature in asked:
            yield from _of_one(operation, feature)
        for pair in permutations(asked, 2):
            yield from _of_two(operation.name, *pair)
    for first, second in combinations([feature for feature in features(ATTENTION) if feature.field and feature.hides], 2):
        yield from _of_two_that_hide(first, second)
    for feature in features(ATTENTION):
        for wrong in feature.faults():
            yield from _own(feature, wrong)
    for one in operations().values():
        yield from one.faults()


FAULTS: tuple[Fault, ...] = tuple(made())

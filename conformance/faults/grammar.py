"""The grammar of the catalogue: a fault is one entry, ``fault(id, sentence, way, requirements, sources)``, and its way is made by
one of a few verbs: an argument changed, inputs rewritten, stages replaced, the output changed, calls that remember.

What a way needs, and of which operation it is, follow from what it touches. A row may ask for its sibling in multi-head attention
(``layer``), which is made of the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.faults.fault import Behaviour, Compute, Fault, Rewrite
from conformance.faults.steps import attend, multi_head
from conformance.features import features
from conformance.problem.forms import four_axes
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
IDS = tuple[str, ...]
ATTENTION, MULTI_HEAD, SINUSOIDAL = "attention", "multi_head_attention", "sinusoidal_encoding"
WIDE, HALF, TO_16 = ("float64", "float32"), ("float16", "bfloat16"), ("float64", "float32", "float16")
NOT_FLOAT16 = ("float64", "float32", "bfloat16")


def ids(area: str, *numbers: int) -> IDS:
    """Ids of requirements of an area."""
    return tuple(f"ATT-{area}-{number:03}" for number in numbers)


OUT, MASK, SCALE = partial(ids, "OUT"), partial(ids, "MASK"), partial(ids, "SCALE")
HEAD, NUM, POS = partial(ids, "HEAD"), partial(ids, "NUM"), partial(ids, "POS")
IN_DTYPE = OUT(4, 5, 6, 3)  # the plain problems, of each dtype


@dataclass(frozen=True, kw_only=True)
class Way:
    """How it is wrong; exactly one of ``rewrite``, ``compute`` and ``behaviour`` (see Fault). ``hiding``: what is rewritten is
    which keys a query sees, and nothing else."""

    rewrite: Rewrite | None = None
    compute: Compute | None = None
    behaviour: Behaviour | None = None
    operation: str = ATTENTION
    needs: frozenset[str] = frozenset()
    hiding: bool = False


def fault(id: str, sentence: str, way: Way, requirements: IDS, sources: IDS = (), needs: str = "", **fields: Any) -> Fault:
    """One entry of the catalogue; ``needs``, words apart, beside what the way needs."""
    return Fault(
        id=id,
        sentence=sentence,
        requirements=requirements,
        sources=sources,
        operation=way.operation,
        needs=way.needs | frozenset(needs.split()),
        rewrite=way.rewrite,
        compute=way.compute,
        behaviour=way.behaviour,
        hiding=way.hiding,
        **fields,
    )


def sibling(fault: Fault, requirements: IDS, **fields: Any) -> Fault:
    """The same done to the heads of multi-head attention, where ``requirements`` speak of it."""
    way = within_layer(fault)
    return replace(
        fault,
        id=f"multi-head-{fault.id}",
        sentence=f"{fault.sentence}, in multi-head attention",
        operation=MULTI_HEAD,
        requirements=requirements,
        rewrite=way.rewrite,
        compute=way.compute,
        layer=(),
        **fields,
    )


def within_layer(of: Fault) -> Way:
    """What is wrong with attention done to the heads of a layer; a rewriting where it rewrites what is seen."""
    if of.hiding and of.rewrite is not None:
        return Way(rewrite=_seen_by_heads(of.rewrite), operation=MULTI_HEAD, needs=of.needs, hiding=True)
    return layer(attention=of.output)


def _seen_by_heads(rewrite: Rewrite) -> Rewrite:
    def rewritten(inputs: MultiHeadInputs) -> MultiHeadInputs:
        seen = rewrite(inputs.as_heads())
        return inputs.but(**{one.argument: getattr(seen, one.argument) for one in features(MULTI_HEAD) if one.hides})

    return rewritten


def inputs(change: Rewrite, **fields: Any) -> Way:
    """The right computation of other inputs."""
    return Way(rewrite=change, **fields)


def argument(name: str, change: Callable[[Any, AttentionInputs], Any]) -> Way:
    """Another ``name`` where it is asked for: masks and biases change as arrays of four axes, a bias in float64."""
    of = next((feature for feature in features(ATTENTION) if feature.argument == name), None)

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        given = getattr(inputs, name)
        if of is not None and not of.is_asked(inputs):
            return inputs
        given = four_axes(given) if name in ("mask", "bias") else given
        return inputs.but(**{name: change(given.astype(np.float64) if name == "bias" else given, inputs)})

    return Way(rewrite=rewrite, needs=frozenset({of.name} if of else ()), hiding=of is not None and of.hides)


mask, bias, key_lengths = partial(argument, "mask"), partial(argument, "bias"), partial(argument, "key_lengths")


def stages(**own: Any) -> Way:
    """Attention with other stages (see ``steps.attend``)."""
    return Way(compute=lambda inputs: attend(inputs, **own))


def computed(compute: Compute, **fields: Any) -> Way:
    """Another computation altogether, of the inputs."""
    return Way(compute=compute, **fields)


def output(change: Callable[[Any, Array], Array]) -> Way:
    """Another output, made of the inputs and the right one."""
    return Way(compute=lambda inputs: change(inputs, attend(inputs)))


def where_asked(name: str, compute: Callable[[AttentionInputs, Any], Array]) -> Way:
    """Another computation where ``name`` is asked for: of the inputs, and of what it is (a mask as four axes, a bias in float64,
    causal as its triangle)."""
    of = next(feature for feature in features(ATTENTION) if feature.argument == name)

    def own(inputs: AttentionInputs) -> Array:
        if not of.is_asked(inputs):
            return attend(inputs)
        given = getattr(inputs, name)
        if name == "causal":
            given = of.visible(inputs, 0, inputs.query.shape[2])
        elif name in ("mask", "bias"):
            given = four_axes(given).astype(np.float64 if name == "bias" else bool)
        return compute(inputs, given)

    return Way(compute=own, needs=frozenset({of.name}))


def layer_output(change: Callable[[MultiHeadInputs, Array], Array]) -> Way:
    """Another output of multi-head attention, made of the inputs and the right one."""
    return Way(compute=lambda inputs: change(inputs, multi_head(inputs)), operation=MULTI_HEAD)


def layer(**own: Any) -> Way:
    """Multi-head attention with other steps (see ``steps.multi_head``)."""
    return Way(compute=lambda inputs: multi_head(inputs, **own), operation=MULTI_HEAD)


def full_size(array: Array, inputs: AttentionInputs) -> Array:
    """A mask or bias at its full size (B, Hq, Lq, Lk), to be written to."""
    return np.broadcast_to(array, inputs.pairs).copy()


def sizes(inputs: AttentionInputs) -> dict[str, int]:
    """The sizes of full masks by the letters of the axes."""
    return dict(zip("bhqk", inputs.pairs, strict=True))


def has_axes(array: Array, inputs: AttentionInputs, axes: str) -> bool:
    """Whether a mask or bias of four axes has all those of ``axes`` ("bhqk") in full and broadcasts over none of them."""
    return all(array.shape["bhqk".index(axis)] == sizes(inputs)[axis] for axis in axes)


def is_form(array: Array, inputs: AttentionInputs, axes: str) -> bool:
    """Whether it has the axes and broadcasts over all others."""
    return array.shape == tuple(size if axis in axes else 1 for axis, size in sizes(inputs).items())


def unhidden(inputs: Any) -> Any:
    """The inputs without all that hides a key, but for −∞ in a bias."""
    return inputs.but(**{one.argument: one.default for one in features(inputs.operation) if one.hides})


def folded(inputs: AttentionInputs, visible: Bool[Array, "#b #h lq lk"] | bool = True) -> AttentionInputs:
    """All that hides as one full mask, narrowed to ``visible`` pairs."""
    return unhidden(inputs).but(mask=visible_pairs(inputs) & visible)


def narrowed(inputs: AttentionInputs, visible: Bool[Array, "#b #h #lq #lk"]) -> AttentionInputs:
    """The inputs with a mask that hides, beside what it hid before, the pairs where ``visible`` is False."""
    return inputs.but(mask=visible if inputs.mask is None else four_axes(inputs.mask) & visible)


def along_axis(inputs: AttentionInputs, axis: str) -> Array:
    """The numbers of batch rows, heads, queries or keys, to be broadcast over (B, Hq, Lq, Lk)."""
    shape = [-1 if letter == axis else 1 for letter in "bhqk"]
    return np.arange(sizes(inputs)[axis]).reshape(shape)

"""The right computation on the stages of conformance/oracle/stages.py, each of which a fault may replace by its own.

Everything is computed in float64 and rounded once at the end, so that what a fault changes is all that is wrong:
``attend(inputs, scale=lambda inputs: 1.0)`` is attention without its scale, and nothing else. What a feature hides, and the stage
that it brings, take part in every fault.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.numerics.dtypes import float_type
from conformance.operations import operation_of
from conformance.oracle.stages import Flow, Stage, Tensors, added_keys, stages, with_zeros
from conformance.problem.inputs import AttentionInputs, Inputs, MultiHeadInputs, SinusoidalInputs
from conformance.problem.visibility import visible_pairs

Array = np.ndarray
Chain = Callable[[tuple[Stage, ...]], tuple[Stage, ...]]  # stages → others


def default_scale(inputs: AttentionInputs) -> float:
    """The scale that is given, else 1/√d of the key width."""
    return 1.0 / np.sqrt(inputs.key.shape[-1]) if inputs.scale is None else inputs.scale


def kv_heads(heads: int, kv: int) -> Int[Array, " h"]:
    """The kv head that each query head reads: ⌊h · Hkv / Hq⌋."""
    return np.arange(heads) * kv // heads


def products(query: Float[Array, "b h lq d"], key: Float[Array, "b h lk d"], scale: float) -> Float[Array, "b h lq lk"]:
    """scale · Q Kᵀ."""
    return (query @ key.swapaxes(-1, -2)) * scale


def add_bias(scores: Float[Array, "b h lq lk"], inputs: AttentionInputs) -> Float[Array, "b h lq lk"]:
    """The scores with the bias, where there is one."""
    return scores if inputs.bias is None else scores + inputs.bias.astype(np.float64)


def hide(scores: Float[Array, "b h lq lk"], visible: Bool[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
    """−inf where a pair is hidden."""
    return np.where(visible, scores, scores.dtype.type(-np.inf))


def softmax(scores: Float[Array, "b h lq lk"]) -> Float[Array, "b h lq lk"]:
    """Weights of the keys; 0 in a row that sees none."""
    exponentials = np.exp(scores - finite_top(scores))
    return divide(exponentials, exponentials.sum(-1, keepdims=True))


def finite_top(scores: Float[Array, "b h lq lk"]) -> Float[Array, "b h lq 1"]:
    """The largest score of each row; 0 where that is not finite."""
    top = scores.max(-1, keepdims=True)
    return np.where(np.isfinite(top), top, top.dtype.type(0))


def divide(output: Array, total: Array) -> Array:
    """A sum over its normaliser, which may be 0."""
    return output / np.where(total == 0, total.dtype.type(1), total)


def mix(weights: Float[Array, "b h lq lk"], value: Float[Array, "b h lk dv"]) -> Float[Array, "b h lq dv"]:
    """The weighted sum of V."""
    return weights @ value


def flow_of(
    inputs: AttentionInputs,
    work: type[np.floating] = np.float64,
    heads: Callable[[int, int], Array] = kv_heads,
    scale: Callable[[AttentionInputs], float] = default_scale,
) -> Flow:
    """The inputs in ``work``, as many key heads as query heads, before the first stage."""
    query, key, value = (array.astype(work) for array in (inputs.query, inputs.key, inputs.value))
    chosen = heads(query.shape[1], key.shape[1])
    added = added_keys(inputs)
    query = query[:, :, None]
    key, value = (with_zeros(array[:, chosen, None], added) for array in (key, value))
    tensors = Tensors(query, key, value, work(scale(inputs)), None, None, None, value, added)
    return Flow(inputs, tensors, np.arange(query.shape[3]), float_type(inputs.query.dtype.name), query)


OWN = {"products", "bias", "visible", "hide", "softmax", "weights", "mix"}


def unchanged(chain: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages as they are."""
    return chain


def run(flow: Flow, chain: Chain = unchanged, until: str = "", **own: Any) -> Flow:
    """``flow`` through the stages, or through those before ``until``; where ``own`` has a function for one, that is done instead.

    Arrays are (b, h, lq, ·) for these functions: ``products`` (query, key, scale), ``bias`` (scores, inputs), ``visible``
    (inputs), ``hide`` (scores, visible), ``softmax`` (scores), ``weights`` (the right ones), ``mix`` (weights, value).
    """
    assert own.keys() <= OWN, f"no stage is called so: {own.keys() - OWN}"
    for stage in chain(stages()):
        if stage.name == until:
            break
        if stage.name == "hide":
            flow.hide(flow.of_all_keys(own.get("visible", visible_pairs)(flow.inputs)[:, :, None], True))
        elif stage.name == "softmax":
            _weigh(flow, stage, own)
        elif stage.name not in own:
            stage.value(flow)
        elif stage.name == "products":
            scores = own["products"](flow.query[:, :, 0], flow.tensors.key[:, :, 0], flow.tensors.scale)
            flow.products = flow.scores = scores[:, :, None]
        elif stage.name == "bias":
            biased = own["bias"](flow.scores[:, :, 0, :, : flow.keys], flow.inputs)[:, :, None]
            flow.scores = np.concatenate([biased, flow.scores[..., flow.keys :]], axis=-1) if flow.tensors.added else biased
        else:
            flow.mixed = own["mix"](flow.weights[:, :, 0], flow.tensors.value[:, :, 0])[:, :, None]
    return flow


def _weigh(flow: Flow, stage: Stage, own: dict[str, Callable[..., Array]]) -> None:
    if "softmax" in own:
        flow.weights = own["softmax"](hidden(flow, own.get("hide", hide)))[:, :, None]
        return
    if "hide" in own:
        flow.scores, flow.visible = hidden(flow, own["hide"])[:, :, None], None
    stage.value(flow)
    if "weights" in own:
        flow.weights = own["weights"](flow.weights[:, :, 0])[:, :, None]


def hidden(flow: Flow, way: Callable[[Array, Array], Array] = hide) -> Float[Array, "b h lq lk"]:
    """The scores as they go into softmax."""
    scores = flow.scores[:, :, 0]
    visible = np.ones(1, bool) if flow.visible is None else flow.visible[:, :, 0]
    return way(scores, np.broadcast_to(visible, scores.shape))


def attend(
    inputs: AttentionInputs,
    heads: Callable[[int, int], Array] = kv_heads,
    scale: Callable[[AttentionInputs], float] = default_scale,
    chain: Chain = unchanged,
    **own: Callable[..., Array],
) -> Float[Array, "b hq lq dv"]:
    """Attention with some stages changed (see ``run``), in the dtype of the query."""
    with np.errstate(all="ignore"):
        return run(flow_of(inputs, np.float64, heads, scale), chain, "", **own).mixed[:, :, 0].astype(inputs.query.dtype)


def scored(
    inputs: AttentionInputs, work: type[np.floating], own: Callable[[Array, Array, float], Array] | None = None
) -> tuple[Float[Array, "b h lq lk"], Float[Array, "b h lk dv"]]:
    """The scores in ``work``, −inf where hidden, and V for each query head, added keys included; ``own``: other products than
    (scale · Q) Kᵀ."""

    def scaled(query: Array, key: Array, scale: float) -> Array:
        return (query * work(scale)) @ key.swapaxes(-1, -2)

    flow = run(flow_of(inputs, work), until="softmax", products=own or scaled)
    return hidden(flow), flow.tensors.value[:, :, 0]


def project(x: Float[Array, "b l model"], matrix: Array, bias: Array | None) -> Float[Array, "b l inner"]:
    """x W + b."""
    product = x.astype(np.float64) @ matrix.astype(np.float64)
    return product if bias is None else product + bias.astype(np.float64)


def split(array: Float[Array, "b l inner"], heads: int) -> Float[Array, "b h l d"]:
    """The heads: contiguous slices of the last axis."""
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def merge(array: Float[Array, "b h l d"]) -> Float[Array, "b l inner"]:
    """The heads side by side, in their order."""
    return array.swapaxes(1, 2).reshape(array.shape[0], array.shape[2], -1)


def multi_head(
    inputs: MultiHeadInputs,
    project: Callable[[Array, Array, Array | None], Array] = project,
    split: Callable[[Array, int], Array] = split,
    attention: Callable[[AttentionInputs], Array] = attend,
    merge: Callable[[Array], Array] = merge,
) -> Float[Array, "b lq out"]:
    """Multi-head attention with some steps changed, in the dtype of the query; ``attention`` takes AttentionInputs in float64."""
    weights, given = inputs.weights, inputs.named()
    with np.errstate(all="ignore"):
        within = {
            name: split(project(given[name], getattr(weights, name), getattr(weights, f"{name}_bias")), inputs.num_heads)
            for name in ("query", "key", "value")
        }
        asked = {name: value for name, value in given.items() if name in AttentionInputs.defaults()}
        output = merge(attention(AttentionInputs(**asked | within)))
        if weights.output is not None:
            output = project(output, weights.output, weights.output_bias)
        return output.astype(inputs.query.dtype)


def frequencies(width: int) -> Float[Array, " pairs"]:
    """ω_i = 10000^(−2i/width), one for each pair of columns."""
    return 10000.0 ** (-2.0 * np.arange((width + 1) // 2) / width)


def frequencies_asked(inputs: SinusoidalInputs) -> Float[Array, " pairs"]:
    """Those of ``frequencies``, or where d/2-1 is asked for as many that fall from 1 to 1/10000 by equal factors."""
    pairs = (inputs.width + 1) // 2
    if inputs.frequencies == "d/2-1":
        return 10000.0 ** (-np.arange(pairs) / max(pairs - 1, 1))
    return frequencies(inputs.width)


def sinusoidal(
    inputs: SinusoidalInputs,
    frequencies: Callable[[int], Array] | None = None,
    positions: Callable[[int], Array] = lambda length: np.arange(length, dtype=np.float64),
) -> Float[Array, "..."]:
    """The table, or x with the table added, in the problem's dtype."""
    rates = frequencies_asked(inputs) if frequencies is None else frequencies(inputs.width)
    angles = positions(inputs.length)[:, None] * rates[None, :]
    table = np.empty((inputs.length, inputs.width))
    sines, cosines = np.sin(angles), np.cos(angles)[:, : inputs.width // 2]
    if inputs.arrangement == "concatenated":
        table[:, : sines.shape[1]], table[:, sines.shape[1] :] = sines, cosines
    else:
        table[:, 0::2], table[:, 1::2] = sines, cosines
    total = table if inputs.x is None else inputs.x.astype(np.float64) + table
    return total.astype(float_type(inputs.dtype).numpy)


def compute(inputs: Inputs) -> Array:
    """The right output of any operation, in the inputs' dtype."""
    return operation_of(inputs).compute(inputs)

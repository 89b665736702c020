"""Attention as a chain of stages: each has a value, and says how errors pass through it under a numerics profile.

A block of query rows flows through the chain as arrays (B, Hkv, G, rows, ·), G query heads sharing a key head: values in the
type of the work, what they may be off by in float64.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float

from conformance.features import features, in_order
from conformance.numerics.dtypes import FloatType
from conformance.numerics.profiles import Roundoffs
from conformance.oracle import budget
from conformance.oracle.budget import KeyArray, product
from conformance.problem.inputs import AttentionInputs
from conformance.problem.visibility import visible_block

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tensors:
    """Query as (B, Hkv, G, Lq, d) in its own dtype, key and value as (B, Hkv, 1, Lk, ·) in that of the work, finite: what is not
    finite is kept apart. The last keys, ``added`` by features, are 0 as their V is."""

    query: Array
    key: Array
    value: Array
    scale: np.floating
    bad_query: Bool[Array, "b hkv g lq"] | None
    bad_key: Bool[Array, "b hkv 1 lk"] | None
    bad_value: Bool[Array, "b hkv 1 lk dv"] | None
    raw_value: Array
    added: int = 0

    @cached_property
    def keys(self) -> KeyArray:
        return KeyArray(self.key.astype(np.float64, copy=False))

    @cached_property
    def unit_of_value(self) -> float:
        """1, or the largest |V| where its square could leave the range of float64."""
        largest = float(np.abs(self.value).max(initial=0.0))
        return 1.0 if largest == 0.0 or 1e-100 < largest < 1e100 else largest

    @cached_property
    def values(self) -> KeyArray:
        """In units of ``unit_of_value``."""
        value = self.value.astype(np.float64, copy=False)
        return KeyArray(value if self.unit_of_value == 1.0 else value / self.unit_of_value)


@dataclass(eq=False)
class Flow:
    """The query rows ``index`` on their way. ``scores`` are what the stages have made of the scaled ``products``; ``top`` is the
    largest of a row, 0 where it is fully masked; ``mixed`` the output that finite values give."""

    inputs: AttentionInputs
    tensors: Tensors
    index: Array
    kind: FloatType
    query: Array
    scores: Array = field(init=False)
    products: Array = field(init=False)
    visible: Bool[Array, "#b #h #g rows #lk"] | None = None
    top: Array = field(init=False)
    weights: Array = field(init=False)
    mixed: Array = field(init=False)
    judged: Bool[Array, "b h g rows"] = field(init=False)

    def __post_init__(self) -> None:
        self.judged = np.ones(self.query.shape[:-1], dtype=bool)

    def unjudge(self, rows: Bool[Array, "b h g rows"]) -> None:
        """What is expected there is a convention."""
        self.judged = self.judged & ~rows

    def hide(self, seen: Bool[Array, "#b #h #g rows #lk"]) -> None:
        """Only what is ``seen`` stays visible."""
        self.visible = seen if self.visible is None else self.visible & seen

    def grouped(self, array: Array) -> Array:
        """(#B, #Hq, rows, Lk) as (#B, #Hkv, #G, rows, Lk)."""
        groups = self.tensors.query.shape[1:3]
        return array[:, :, None] if array.shape[1] == 1 else array.reshape(array.shape[0], *groups, *array.shape[2:])

    def of_all_keys(self, array: Array, fill: Any) -> Array:
        """(…, #Lk) with ``fill`` for the keys that are added."""
        if not self.tensors.added:
            return array
        filled = np.full((*array.shape[:-1], self.tensors.added), fill, array.dtype)
        return np.concatenate([self.of_each_key(array), filled], axis=-1)

    def of_each_key(self, array: Array) -> Array:
        """(…, #Lk) as (…, Lk)."""
        return np.broadcast_to(array, (*array.shape[:-1], self.keys))

    @property
    def keys(self) -> int:
        """Lk, without keys that are added."""
        return self.tensors.key.shape[-2] - self.tensors.added

    def wide(self, array: Array) -> Array:
        """In float64."""
        return array.astype(np.float64) if array.dtype != np.float64 else array

    @cached_property
    def finite(self) -> Array:
        """The scores as they are in the end, in float64, hidden ones as the largest of their row: for errors alone."""
        if self.scores is self.products:
            return self.wide(self.products)
        return np.where(np.isfinite(self.scores), self.scores, self.top).astype(np.float64)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in (self.products, self.scores, self.weights))


@dataclass(eq=False)
class Bounds:
    """How far off what flows may be where it is rounded as ``unit`` says: ``query``, ``key`` and ``value``, where they are
    computed themselves; ``scores`` so far (ε); ``rest``, what the output is off by beside what errors of the scores do to it."""

    unit: Roundoffs
    query: Array | None = None
    key: Array | None = None
    value: Array | None = None
    scores: Array = field(init=False)
    rest: Array = field(init=False)


class Stage(Protocol):
    """One step of the computation."""

    name: str

    def value(self, flow: Flow) -> None:
        """What it computes, noted in ``flow``."""

    def error(self, flow: Flow, bounds: Bounds) -> None:
        """What that may be off by, noted in ``bounds``."""


class Products:
    """scale · Q Kᵀ."""

    name = "products"

    def value(self, flow: Flow) -> None:
        flow.products = flow.scores = product(flow.query, flow.tensors.key.swapaxes(-1, -2)) * flow.tensors.scale

    def error(self, flow: Flow, bounds: Bounds) -> None:
        query, keys, scale = flow.wide(flow.query), flow.tensors.keys, float(flow.tensors.scale)
        bounds.scores = budget.score_error(query, keys, flow.wide(flow.products), scale, flow.kind, bounds.unit)
        if bounds.query is not None and bounds.key is not None:
            bounds.scores += budget.error_by_factors(query, keys.array, bounds.query, bounds.key, scale)


class Hide:
    """−∞ where a pair is hidden by mask, causal limit or key lengths. It comes first, and takes effect once scores are whole."""

    name = "hide"

    def value(self, flow: Flow) -> None:
        visible = visible_to(flow.index, flow.inputs)
        if visible is not None:
            flow.hide(flow.of_all_keys(flow.grouped(visible), True))

    def error(self, flow: Flow, bounds: Bounds) -> None:
        return None


class Softmax:
    """The weights of the keys; 0 in a row that sees none, which is not judged."""

    name = "softmax"

    def value(self, flow: Flow) -> None:
        if flow.visible is not None:
            flow.scores = np.where(flow.visible, flow.scores, -np.inf)
        flow.top = flow.scores.max(-1, keepdims=True)
        empty = flow.top == -np.inf
        if empty.any():
            flow.unjudge(empty[..., 0])
            flow.top = np.where(empty, 0.0, flow.top)
        exponentials = np.exp(flow.scores - flow.top)
        total = exponentials.sum(-1, keepdims=True)
        if empty.any():
            total = np.where(empty, 1.0, total)
        flow.weights = exponentials / total

    def error(self, flow: Flow, bounds: Bounds) -> None:
        bounds.scores += bounds.unit.scores * np.abs(flow.finite - flow.wide(flow.top))
        bounds.scores += 4.0 * bounds.unit.accumulator


class Mix:
    """The weighted sum of V."""

    name = "mix"

    def value(self, flow: Flow) -> None:
        flow.mixed = product(flow.weights, flow.tensors.value)

    def error(self, flow: Flow, bounds: Bounds) -> None:
        unit, kind, size = bounds.unit, flow.kind, flow.tensors.unit_of_value
        weights, values, output = flow.wide(flow.weights), flow.tensors.values, self.output(flow)
        rest = budget.value_error(weights, values, output, kind, unit)
        rest = rest + budget.normalisation_error(weights, flow.finite, flow.wide(flow.top), values, unit)
        rest = (rest + budget.merging_error(flow.visible, values, output, unit)) * size
        if bounds.value is not None:
            rest = rest + weights @ bounds.value
        keys = flow.scores.shape[-1]
        count: Array | int = keys if flow.visible is None else budget.visible_count(flow.visible, keys)
        bounds.rest = rest + budget.underflow(count, kind, unit)

    def output(self, flow: Flow) -> Array:
        """In units of ``unit_of_value``, in float64."""
        size, output = flow.tensors.unit_of_value, flow.wide(flow.mixed)
        return output if size == 1.0 else output / size


MIX = Mix()


@cache
def stages() -> tuple[Stage, ...]:
    """The stages of attention in their order, those of features included."""
    of_features = (stage for one in in_order(AttentionInputs.operation) for stage in (one.of_scores, one.of_logits) if stage)
    return (Hide(), Products(), *of_features, Softmax(), MIX)


def added_keys(inputs: AttentionInputs) -> int:
    """How many keys with V = 0 features add behind those of the inputs."""
    return sum(feature.added_keys(inputs) for feature in features(AttentionInputs.operation))


def with_zeros(array: Float[Array, "*h lk d"], added: int) -> Float[Array, "*h lk_and_added d"]:
    """With so many further keys, all 0."""
    if not added:
        return array
    return np.concatenate([array, np.zeros((*array.shape[:-2], added, array.shape[-1]), array.dtype)], axis=-2)


def values(flow: Flow) -> Flow:
    """The same, through all stages."""
    for stage in stages():
        stage.value(flow)
    return flow


def errors(flow: Flow, bounds: Bounds) -> Bounds:
    """The same, for what has flowed through all stages."""
    with np.errstate(over="ignore", invalid="ignore"):
        for stage in stages():
            stage.error(flow, bounds)
    return bounds


def spread(flow: Flow, bounds: Bounds, value: KeyArray, output: Array) -> Array:
    """How far errors of the scores move ``output``, the mean of ``value``."""
    logits = (flow.scores - flow.top).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return budget.spread_of_scores(flow.wide(flow.weights), logits, bounds.scores, value, output, flow.visible)


def budget_of(flow: Flow, bounds: Bounds) -> Array:
    """What each element of the output may be off by in all."""
    of_scores = spread(flow, bounds, flow.tensors.values, MIX.output(flow)) * flow.tensors.unit_of_value
    with np.errstate(over="ignore", invalid="ignore"):
        return budget.combine(bounds.rest, of_scores, bounds.unit)


def visible_to(index: Array, inputs: AttentionInputs) -> Bool[Array, "#b #hq #rows lk"] | None:
    """The visible pairs of the query rows ``index``; None where all are visible."""
    if index[-1] - index[0] + 1 == len(index):
        return visible_block(inputs, int(index[0]), int(index[-1]) + 1)
    rows = [visible for i in index if (visible := visible_block(inputs, int(i), int(i) + 1)) is not None]
    return np.concatenate(rows, axis=2) if rows else None

"""Faults of precision: sums, scores, weights, inputs or results kept in too few digits, and rounding that leans to one side."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import (
    HALF,
    HEAD,
    IDS,
    IN_DTYPE,
    NUM,
    OUT,
    SCALE,
    TO_16,
    WIDE,
    Way,
    computed,
    fault,
    inputs,
    stages,
)
from conformance.faults.grammar import layer as in_layer
from conformance.faults.rounding import BITS, Rounding, rounding_to, running_product, running_sum, significand
from conformance.faults.steps import attend, divide, finite_top, mix, multi_head, products, project
from conformance.numerics.dtypes import float_type, round_to
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs, Weights

Array = np.ndarray
OF_WEIGHTS = OUT(13) + IN_DTYPE  # with V = I the output is the weights
LONG_SUM, LARGE = OUT(38) + IN_DTYPE, NUM(10) + IN_DTYPE
FAR = LARGE + SCALE(12)
PROBE, EXACT = OUT(39, 40, 3), OUT(40, 39, 3)
GATED = ("float32", "float16", "bfloat16")
F64 = ("float64",)
OVERFLOW = (
    "metal-flash-attention: https://github.com/philipturner/metal-flash-attention/issues/8",
    "ultralytics: https://github.com/ultralytics/ultralytics/pull/24990",
)
SATURATED = ("executorch (portable): https://github.com/pytorch/executorch/pull/20089",)
SOFTMAX = ("transformers (OPT): https://github.com/huggingface/transformers/pull/17437",)


def rounded_inputs(rounding: Rounding, *names: str) -> Way:
    """The inputs called ``names`` rounded before use; the query keeps its dtype, which is that of the output."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        with np.errstate(all="ignore"):
            changed: dict[str, Any] = {name: rounding(inputs.arrays()[name].astype(np.float64)) for name in names}
        if "query" in changed:
            changed["query"] = changed["query"].astype(inputs.query.dtype)
        return inputs.but(**changed)

    return inputs(rewrite)


def shifted(scores: Array) -> Array:
    """The scores less their maximum, −inf where a pair is hidden."""
    return scores - finite_top(scores)


def weights_in(rounding: Rounding) -> Way:
    """The weights rounded before they meet V."""
    return stages(mix=lambda weights, value: mix(rounding(weights), value))


def _by_running_sum(rounding: Rounding, exponentials: Array, of_weights: Rounding = np.asarray) -> Array:
    return of_weights(divide(exponentials, running_sum(exponentials, rounding)))


def _softmax_in(rounding: Rounding, scores: Array) -> Array:
    """Softmax with each of its steps rounded."""
    return _by_running_sum(rounding, rounding(np.exp(rounding(shifted(rounding(scores))))), rounding)


def _products_in(rounding: Rounding, query: Array, key: Array, scale: float) -> Array:
    return running_product(query, key.swapaxes(-1, -2), rounding) * scale


def _mixed_in(rounding: Rounding, weights: Array, value: Array) -> Array:
    return running_product(weights, value, rounding)


def _output_in(rounding: Rounding) -> Way:
    return stages(mix=lambda weights, value: rounding(mix(weights, value)))


def _kept_in(name: str) -> Iterator[Fault]:
    """One step after the other kept in a type of 16 bits; float16 shows in bfloat16 where its range or its errors add up."""
    half = rounding_to(name)
    others = tuple(dtype for dtype in ALL_DTYPES if dtype != name)
    of_weights, seen = (TO_16, OVERFLOW) if name == "float16" else (ALL_DTYPES, ())
    rows: tuple[tuple[str, str, IDS, IDS, tuple[str, ...], Way], ...] = (
        ("products-accumulated", "adds up the products of query and key in {}", IN_DTYPE, (), ALL_DTYPES,
         stages(products=partial(_products_in, half))),
        ("scores", "keeps the products of query and key in {} before they are scaled", SCALE(13) + IN_DTYPE, seen, ALL_DTYPES,
         stages(products=lambda query, key, scale: half(products(query, key, 1.0)) * scale)),
        ("sum", "adds up the exponentials in {}, where a large sum stands still", LONG_SUM, SATURATED, ALL_DTYPES,
         stages(softmax=lambda scores: _by_running_sum(half, np.exp(shifted(scores))))),
        ("softmax", "computes softmax in {}", OF_WEIGHTS, SOFTMAX, ALL_DTYPES, stages(softmax=partial(_softmax_in, half))),
        ("weights", "keeps the weights in {}", OF_WEIGHTS, (), of_weights, weights_in(half)),
        ("values-accumulated", "adds up weighted V in {}", LONG_SUM, (), ALL_DTYPES, stages(mix=partial(_mixed_in, half))),
        ("output", "rounds the output through {}", LARGE, (), others, _output_in(half)),
        ("inputs", "rounds query, key and V to {}", FAR, (), others, rounded_inputs(half, "query", "key", "value")),
    )  # fmt: skip
    for what, sentence, requirements, sources, dtypes, way in rows:
        yield fault(f"{what}-in-{name}", sentence.format(name), way, requirements, sources, dtypes=dtypes)


def _in_float32(inputs: AttentionInputs) -> Array:
    """Attention of float64 inputs in float32 from beginning to end."""
    single = rounding_to("float32")
    return attend(
        inputs.but(query=single(inputs.query), key=single(inputs.key), value=single(inputs.value)),
        products=partial(_products_in, single),
        softmax=partial(_softmax_in, single),
        mix=partial(_mixed_in, single),
    )


def _projections_in(name: str) -> Way:
    """The projections of query, key, value and output rounded."""
    return in_layer(project=lambda *factors: rounding_to(name)(project(*factors)))


def _directed(target: float) -> Way:
    """The output rounded to the side of ``target``: one step toward it where the nearest number lies on the other side."""

    def compute(inputs: AttentionInputs) -> Array:
        exact = attend(inputs.but(query=inputs.query.astype(np.float64)))
        with np.errstate(all="ignore"):
            nearest = exact.astype(float_type(inputs.query.dtype.name).numpy)
            beyond = (nearest.astype(np.float64) - exact) * np.sign(target - exact) < 0
            return np.where(beyond, np.nextafter(nearest, np.full_like(nearest, target)), nearest)

    return computed(compute)


def result(change: Callable[[Array, str], Array]) -> Way:
    """The result before it is rounded, changed, then rounded to nearest."""

    def compute(inputs: AttentionInputs) -> Array:
        wide: dict[str, Any] = {name: array.astype(np.float64) for name, array in inputs.arrays().items()}
        with np.errstate(all="ignore"):
            return round_to(change(attend(inputs.but(**wide)), inputs.query.dtype.name), inputs.query.dtype.name)

    return computed(compute)


def _cut(whole: Callable[[Array], Array]) -> Callable[[Array, str], Array]:
    """Rounded to the significand of the dtype in another direction."""
    return lambda right, dtype: significand(BITS[dtype], whole)(right)


def _layer_cut(whole: Callable[[Array], Array]) -> Way:
    def compute(inputs: MultiHeadInputs) -> Array:
        made: dict[int, Array] = {}  # arrays that are one stay one

        def wide(array: Array) -> Array:
            return made.setdefault(id(array), array.astype(np.float64))

        weights = Weights(**{name: wide(array) for name, array in inputs.weights.arrays().items()})
        given = inputs.but(query=wide(inputs.query), key=wide(inputs.key), value=wide(inputs.value), weights=weights)
        return round_to(_cut(whole)(multi_head(given), inputs.query.dtype.name), inputs.query.dtype.name)

    return computed(compute, operation="multi_head_attention")


FAULTS: tuple[Fault, ...] = (
    *_kept_in("float16"),
    *_kept_in("bfloat16"),
    fault("computed-in-float32", "computes float64 inputs in float32", computed(_in_float32), OUT(3), dtypes=F64),
    fault("inputs-in-float32", "rounds query, key and V to float32",
          rounded_inputs(rounding_to("float32"), "query", "key", "value"), OUT(3), dtypes=F64),
    fault("output-in-float32", "rounds the output through float32", _output_in(rounding_to("float32")), OUT(3), dtypes=F64),
    *(
        fault(f"inputs-{name}", sentence, rounded_inputs(rounding, "query", "key", "value"), IN_DTYPE, dtypes=dtypes)
        for name, sentence, rounding, dtypes in (
            ("truncated-to-bfloat16", "keeps the upper 16 bits of query, key and V", significand(8, np.trunc), TO_16),
            ("in-tf32", "rounds query, key and V to 11 bits of significand", significand(11), WIDE),
            ("truncated-to-tf32", "cuts query, key and V off after 11 bits", significand(11, np.trunc), WIDE),
        )
    ),
    *(
        fault(f"output-rounded-{name}", f"rounds the output {words} instead of to nearest", _directed(target), IN_DTYPE,
              dtypes=HALF)
        for name, words, target in (("toward-zero", "toward 0", 0.0), ("down", "down", -np.inf), ("up", "up", np.inf))
    ),
    *(
        fault(f"multi-head-projections-in-{name}", f"keeps what the projections give in {name}", _projections_in(name),
              HEAD(7, 8, 13), dtypes=dtypes)
        for name, dtypes in (("float32", F64), ("float16", WIDE), ("bfloat16", WIDE))
    ),
    # To one side
    *(
        fault(f"results-{name}", sentence, result(_cut(whole)), PROBE, dtypes=GATED)
        for name, sentence, whole in (
            ("truncated", "rounds results towards 0", np.trunc), ("rounded-up", "rounds results upwards", np.ceil),
            ("rounded-down", "rounds results downwards", np.floor),
        )
    ),
    *(
        fault(f"multi-head-results-{name}", sentence, _layer_cut(whole), HEAD(38), dtypes=GATED)
        for name, sentence, whole in (
            ("truncated", "rounds results towards 0, in a layer", np.trunc),
            ("rounded-up", "rounds results upwards, in a layer", np.ceil),
        )
    ),
)  # fmt: skip

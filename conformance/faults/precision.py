"""Faults of precision: sums, scores, weights, inputs or results kept in too few digits, and rounding that leans to one side."""

from functools import partial
from typing import Any

import numpy as np

from conformance.dtypes import float_type
from conformance.faults.model import ALL_DTYPES, Fault
from conformance.faults.rounding import Rounding, rounding_to, running_product, running_sum, significand
from conformance.faults.steps import attend, mix, multi_head, products, project
from conformance.inputs import AttentionInputs

Array = np.ndarray
IN_DTYPE = ("ATT-OUT-004", "ATT-OUT-005", "ATT-OUT-006", "ATT-OUT-003")
OF_WEIGHTS = ("ATT-OUT-013", *IN_DTYPE)  # with V = I the output is the weights
_LONG_SUM = ("ATT-OUT-038", *IN_DTYPE)
_LARGE = ("ATT-NUM-010", *IN_DTYPE)
_FAR = (*_LARGE, "ATT-SCALE-012")
_64, _WIDE, _TO_16 = ("float64",), ("float64", "float32"), ("float64", "float32", "float16")

_OVERFLOW = (
    "metal-flash-attention: https://github.com/philipturner/metal-flash-attention/issues/8",
    "ultralytics: https://github.com/ultralytics/ultralytics/pull/24990",
)
_SATURATED = ("executorch (portable): https://github.com/pytorch/executorch/pull/20089",)
_SOFTMAX = ("transformers (OPT): https://github.com/huggingface/transformers/pull/17437",)


def stepwise(identifier: str, sentence: str, requirements: tuple[str, ...], steps: dict[str, Any], **fields: Any) -> Fault:
    """Attention with ``steps`` changed."""
    return Fault(
        id=identifier,
        sentence=sentence,
        requirements=requirements,
        compute=lambda inputs: attend(inputs, **steps),
        **{"sources": (), **fields},
    )


def rounded_inputs(
    identifier: str,
    sentence: str,
    requirements: tuple[str, ...],
    rounding: Rounding,
    names: str = "query key value",
    **fields: Any,
) -> Fault:
    """The inputs called ``names`` rounded before use; the query keeps its dtype, which is that of the output."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        changed: dict[str, Any] = {}
        for name in names.split():
            with np.errstate(all="ignore"):
                changed[name] = rounding(inputs.arrays()[name].astype(np.float64))
        if "query" in changed:
            changed["query"] = changed["query"].astype(inputs.query.dtype)
        return inputs.but(**changed)

    return Fault(id=identifier, sentence=sentence, requirements=requirements, rewrite=rewrite, **{"sources": (), **fields})


def shifted(scores: Array) -> Array:
    """The scores less their maximum, −inf where a pair is hidden."""
    top = scores.max(-1, keepdims=True)
    return scores - np.where(np.isfinite(top), top, 0.0)


def _softmax_in(rounding: Rounding, scores: Array) -> Array:
    """Softmax with each of its steps rounded."""
    return _by_running_sum(rounding, rounding(np.exp(rounding(shifted(rounding(scores))))), rounding)


def _by_running_sum(rounding: Rounding, exponentials: Array, of_weights: Rounding = np.asarray) -> Array:
    total = running_sum(exponentials, rounding)
    return of_weights(exponentials / np.where(total == 0.0, 1.0, total))


def _products_in(rounding: Rounding, query: Array, key: Array, scale: float) -> Array:
    return running_product(query, key.swapaxes(-1, -2), rounding) * scale


def _unscaled_in(rounding: Rounding, query: Array, key: Array, scale: float) -> Array:
    return rounding(products(query, key, 1.0)) * scale


def _mixed_in(rounding: Rounding, weights: Array, value: Array) -> Array:
    return running_product(weights, value, rounding)


def weights_in(rounding: Rounding, weights: Array, value: Array) -> Array:
    """The weights rounded before they meet V."""
    return mix(rounding(weights), value)


def _output_in(rounding: Rounding, weights: Array, value: Array) -> Array:
    return rounding(mix(weights, value))


def _kept_in(name: str) -> tuple[Fault, ...]:
    """One step after the other kept in a type of 16 bits; float16 shows in bfloat16 where its range or its errors add up."""
    half = rounding_to(name)
    others = tuple(dtype for dtype in ALL_DTYPES if dtype != name)
    summed = partial(_by_running_sum, half)
    return (
        stepwise(f"products-accumulated-in-{name}", f"adds up the products of query and key in {name}",
                 IN_DTYPE, {"products": partial(_products_in, half)}),
        stepwise(f"scores-in-{name}", f"keeps the products of query and key in {name} before they are scaled",
                 ("ATT-SCALE-013", *IN_DTYPE), {"products": partial(_unscaled_in, half)},
                 sources=_OVERFLOW if name == "float16" else ()),
        stepwise(f"sum-in-{name}", f"adds up the exponentials in {name}, where a large sum stands still",
                 _LONG_SUM, {"softmax": lambda scores: summed(np.exp(shifted(scores)))}, sources=_SATURATED),
        stepwise(f"softmax-in-{name}", f"computes softmax in {name}", OF_WEIGHTS, {"softmax": partial(_softmax_in, half)},
                 sources=_SOFTMAX),
        stepwise(f"weights-in-{name}", f"keeps the weights in {name}", OF_WEIGHTS, {"mix": partial(weights_in, half)},
                 dtypes=_TO_16 if name == "float16" else ALL_DTYPES),
        stepwise(f"values-accumulated-in-{name}", f"adds up weighted V in {name}", _LONG_SUM, {"mix": partial(_mixed_in, half)}),
        stepwise(f"output-in-{name}", f"rounds the output through {name}", _LARGE, {"mix": partial(_output_in, half)},
                 dtypes=others),
        rounded_inputs(f"inputs-in-{name}", f"rounds query, key and V to {name}", _FAR, half, dtypes=others),
    )  # fmt: skip


def _in_float32(inputs: AttentionInputs) -> Array:
    """Attention of float64 inputs in float32 from beginning to end."""
    single = rounding_to("float32")
    return attend(
        inputs.but(query=single(inputs.query), key=single(inputs.key), value=single(inputs.value)),
        products=partial(_products_in, single),
        softmax=partial(_softmax_in, single),
        mix=partial(_mixed_in, single),
    )


def _multi_head_in(name: str, dtypes: tuple[str, ...]) -> Fault:
    """The projections of query, key, value and output rounded."""
    rounding = rounding_to(name)
    return Fault(
        id=f"multi-head-projections-in-{name}",
        sentence=f"keeps what the projections give in {name}",
        operation="multi_head_attention",
        requirements=("ATT-HEAD-007", "ATT-HEAD-008", "ATT-HEAD-013"),
        sources=(),
        dtypes=dtypes,
        compute=lambda inputs: multi_head(inputs, project=lambda *factors: rounding(project(*factors))),
    )


def _directed(name: str, words: str, target: float) -> Fault:
    """The output rounded to the side of ``target``: one step toward it where the nearest number lies on the other side."""

    def compute(inputs: AttentionInputs) -> Array:
        exact = attend(inputs.but(query=inputs.query.astype(np.float64)))
        with np.errstate(all="ignore"):
            nearest = exact.astype(float_type(inputs.query.dtype.name).numpy)
            beyond = (nearest.astype(np.float64) - exact) * np.sign(target - exact) < 0
            return np.where(beyond, np.nextafter(nearest, np.full_like(nearest, target)), nearest)

    return Fault(
        id=f"output-rounded-{name}",
        sentence=f"rounds the output {words} instead of to nearest",
        requirements=IN_DTYPE,
        sources=(),
        dtypes=("float16", "bfloat16"),
        compute=compute,
    )


_WHOLE = (
    Fault(
        id="computed-in-float32",
        sentence="computes float64 inputs in float32",
        requirements=("ATT-OUT-003",),
        sources=(),
        dtypes=_64,
        compute=_in_float32,
    ),
    rounded_inputs(
        "inputs-in-float32", "rounds query, key and V to float32", ("ATT-OUT-003",), rounding_to("float32"), dtypes=_64
    ),
    stepwise(
        "output-in-float32",
        "rounds the output through float32",
        ("ATT-OUT-003",),
        {"mix": partial(_output_in, rounding_to("float32"))},
        dtypes=_64,
    ),
    rounded_inputs(
        "inputs-truncated-to-bfloat16",
        "keeps the upper 16 bits of query, key and V",
        IN_DTYPE,
        significand(8, np.trunc),
        dtypes=_TO_16,
    ),
    rounded_inputs(
        "inputs-in-tf32", "rounds query, key and V to 11 bits of significand", IN_DTYPE, significand(11), dtypes=_WIDE
    ),
    rounded_inputs(
        "inputs-truncated-to-tf32", "cuts query, key and V off after 11 bits", IN_DTYPE, significand(11, np.trunc), dtypes=_WIDE
    ),
    _directed("toward-zero", "toward 0", 0.0),
    _directed("down", "down", -np.inf),
    _directed("up", "up", np.inf),
    _multi_head_in("float32", _64),
    _multi_head_in("float16", _WIDE),
    _multi_head_in("bfloat16", _WIDE),
)

FAULTS: tuple[Fault, ...] = (*_kept_in("float16"), *_kept_in("bfloat16"), *_WHOLE)

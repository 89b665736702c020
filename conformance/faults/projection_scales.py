"""Faults of scale and biases in multi-head attention: what divides the scores, and what is added to projections."""

from collections.abc import Callable

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.faults.projections import all_of, fault, if_it_fits, repeated, times, with_weights
from conformance.inputs import MultiHeadInputs

Array = np.ndarray
_BIASES = frozenset({"projection-bias"})
_OUTPUT_BIAS = frozenset({"output-bias"})
_SCALE = ("ATT-HEAD-018", "ATT-HEAD-016", "ATT-HEAD-013")
_MATRICES = ("query", "key", "value")
_MODEL = (
    "vit-pytorch: https://github.com/lucidrains/vit-pytorch/issues/65",
    "dfdx: https://github.com/chelsea0x3b/dfdx/issues/171",
    "tutorials: einsum attention that divides by √embed_size",
)
_INVERTED = ("perceiver-io (esceptico): https://github.com/esceptico/perceiver-io/issues/9",)


def _head_width(inputs: MultiHeadInputs) -> float:
    return inputs.weights.query.shape[1] / inputs.num_heads


def _scaled(factor: Callable[[MultiHeadInputs], float]) -> Rewrite:
    """``factor`` times the right scale."""
    return with_weights(
        lambda inputs: {
            "query": times(inputs.weights.query, factor(inputs)),
            "query_bias": times(inputs.weights.query_bias, factor(inputs)),
        }
    )


def _scaled_by(number: Callable[[MultiHeadInputs], float]) -> Rewrite:
    """The scores over the root of ``number``, not of the width of a head."""
    return _scaled(lambda inputs: float(np.sqrt(_head_width(inputs) / number(inputs))))


_SCALES = (
    fault(
        "scale-by-model-width",
        "divides the scores by √d_model, not by the root of a head's width",
        _scaled_by(lambda i: i.query.shape[-1]),
        *_SCALE,
        sources=_MODEL,
    ),
    fault(
        "scale-by-inner-width",
        "divides the scores by the root of all heads' widths together",
        _scaled_by(lambda i: i.weights.query.shape[1]),
        *_SCALE,
        sources=_MODEL,
    ),
    fault("scale-by-heads", "divides the scores by √heads", _scaled_by(lambda i: i.num_heads), *_SCALE),
    fault(
        "scale-by-value-width",
        "divides the scores by the root of the width of V in a head",
        _scaled_by(lambda i: i.weights.value.shape[1] / i.num_heads),
        "ATT-HEAD-018",
        "ATT-HEAD-020",
        needs=frozenset({"value-width"}),
    ),
    fault(
        "scale-by-width-in-full",
        "divides the scores by the width of a head, not by its root",
        _scaled_by(lambda i: _head_width(i) ** 2),
        *_SCALE,
    ),
    fault("scale-missing", "does not scale the scores", _scaled_by(lambda i: 1.0), *_SCALE),
    fault("scale-inverted", "multiplies by the root of a head's width", _scaled(_head_width), *_SCALE, sources=_INVERTED),
    fault(
        "scale-before-bias",
        "scales the projected query before its bias is added",
        with_weights(lambda i: {"query_bias": times(i.weights.query_bias, float(np.sqrt(_head_width(i))))}),
        "ATT-HEAD-008",
        needs=_BIASES,
    ),
)


def _without(*names: str) -> Rewrite:
    return with_weights(lambda inputs: dict.fromkeys(names))


def _first_bias_only(inputs: MultiHeadInputs) -> dict[str, Array | None]:
    return {f"{name}_bias": repeated(getattr(inputs.weights, f"{name}_bias"), inputs.num_heads) for name in _MATRICES}


def _bias_times(name: str, factor: float) -> Rewrite:
    return with_weights(lambda inputs: {name: times(getattr(inputs.weights, name), factor)})


_ADDED = ("ATT-HEAD-008", "ATT-HEAD-013")
_BIAS = (
    fault(
        "biases-dropped",
        "leaves out the biases of query, key and value",
        _without("query_bias", "key_bias", "value_bias"),
        *_ADDED,
        needs=_BIASES,
    ),
    fault("query-bias-dropped", "leaves out the bias of the query", _without("query_bias"), *_ADDED, needs=_BIASES),
    fault("value-bias-dropped", "leaves out the bias of the value", _without("value_bias"), *_ADDED, needs=_BIASES),
    fault(
        "key-bias-dropped",
        "leaves out the bias of the key",
        _without("key_bias"),
        needs=_BIASES,
        equivalent="q · b_k is added to all scores of a row alike, which softmax does not notice.",
    ),
    *(
        fault(
            f"{name}-bias-{word}",
            f"{verb} the bias of the {name}",
            _bias_times(f"{name}_bias", factor),
            *_ADDED,
            needs=_BIASES,
        )
        for word, verb, factor in (("doubled", "adds twice", 2.0), ("subtracted", "subtracts", -1.0))
        for name in ("query", "value")
    ),
    fault(
        "query-bias-for-all",
        "adds the bias of the query to key and value too",
        all_of(if_it_fits(name, lambda i: i.weights.query_bias) for name in ("key_bias", "value_bias")),
        *_ADDED,
        needs=_BIASES,
    ),
    fault(
        "biases-of-first-head",
        "adds the bias of the first head to all heads",
        with_weights(_first_bias_only),
        *_ADDED,
        needs=_BIASES,
    ),
    fault(
        "output-bias-dropped",
        "leaves out the bias of the output",
        _without("output_bias"),
        "ATT-HEAD-009",
        "ATT-HEAD-013",
        needs=_OUTPUT_BIAS,
    ),
    fault(
        "output-bias-doubled",
        "adds the bias of the output twice",
        with_weights(lambda i: {"output_bias": times(i.weights.output_bias, 2.0)}),
        "ATT-HEAD-009",
        "ATT-HEAD-013",
        needs=_OUTPUT_BIAS,
    ),
    fault(
        "output-bias-per-head",
        "adds the bias of the output once for each head",
        with_weights(lambda i: {"output_bias": times(i.weights.output_bias, i.num_heads)}),
        "ATT-HEAD-009",
        "ATT-HEAD-013",
        needs=_OUTPUT_BIAS,
    ),
    fault("output-projection-dropped", "leaves out the output projection", _without("output", "output_bias"), "ATT-HEAD-009"),
)

FAULTS: tuple[Fault, ...] = (*_SCALES, *_BIAS)

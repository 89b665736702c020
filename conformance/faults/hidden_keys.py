"""Hidden keys that have a say after all, rows without a key that spoil others or give what no library means them to give, and
numbers of visible keys that wrap."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from conformance.faults.fault import ALL_DTYPES, Fault
from conformance.faults.grammar import HEAD, MASK, OUT, Way, computed, fault, layer_output, output, unhidden
from conformance.faults.steps import add_bias, attend, divide, finite_top, softmax
from conformance.numerics.dtypes import float_type
from conformance.problem.inputs import AttentionInputs, MultiHeadInputs
from conformance.problem.visibility import visible_block, visible_pairs

Array = np.ndarray
Scores = Float[Array, "b h lq lk"]
Rows = Callable[[AttentionInputs], Bool[Array, "#b #h #lq"]]

DROPPED_SCORES = ("vigg_ribonanza: https://github.com/autosome-ru/vigg_ribonanza/issues/1",)
EMPTY = (
    "transformers: https://github.com/huggingface/transformers/issues/38690",
    "mlx: https://github.com/ml-explore/mlx/pull/2608",
    "pytorch: https://github.com/pytorch/pytorch/issues/103963",
)
INDICES = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)
FIRST_TILE = (
    "flash-attention: https://github.com/Dao-AILab/flash-attention/issues/2082",
    "flashinfer: https://github.com/flashinfer-ai/flashinfer/issues/1178",
)


def _weighed(weigh: Callable[[Scores, Scores], Scores]) -> Way:
    """Other weights: ``weigh`` of all scores and of those without the hidden ones."""

    def compute(inputs: AttentionInputs) -> Array:
        visible = visible_pairs(inputs)
        return attend(
            inputs,
            bias=add_bias,
            hide=lambda scores, _: scores,
            softmax=lambda scores: weigh(scores, np.where(visible, scores, -np.inf)),
        )

    return computed(compute)


def _averaged(scores: Scores, seen: Scores) -> Scores:
    hidden = np.isneginf(seen)
    return softmax(seen) + hidden / np.maximum(hidden.sum(-1, keepdims=True), 1) * 2.0**-6


def _in_numerator(scores: Scores, seen: Scores) -> Scores:
    top = finite_top(seen)
    return divide(np.exp(scores - top), np.exp(seen - top).sum(-1, keepdims=True))


def _empty(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return np.logical_not(visible_pairs(inputs).any(-1))


def _by_bias(inputs: AttentionInputs) -> Bool[Array, "b h lq"]:
    return _empty(unhidden(inputs))


def _by(name: str) -> Rows:
    """Rows that the feature alone leaves without a key."""
    return lambda inputs: _empty(unhidden(inputs).but(bias=None, **{name: getattr(inputs, name)}))


def _giving(given: Callable[[AttentionInputs], Array] | float, rows: Rows = _empty) -> Way:
    """``given`` throughout ``rows``."""

    def change(inputs: AttentionInputs, right: Array) -> Array:
        wrong = np.broadcast_to(rows(inputs), right.shape[:3])
        right[wrong] = np.broadcast_to(given(inputs) if callable(given) else given, right.shape)[wrong]
        return right

    return output(change)


def _spread(spoiled: Callable[[Bool[Array, "b h lq"]], Bool[Array, "#b #h #lq"]]) -> Rows:
    """Rows that are spoiled by fully masked ones."""
    return lambda inputs: spoiled(_empty(inputs))


def _over(*axes: int) -> Rows:
    return _spread(lambda empty: np.asarray(empty.any(axes, keepdims=True)))


def _after(empty: Bool[Array, "b h lq"]) -> Bool[Array, "b h lq"]:
    following = np.zeros_like(empty)
    following[:, :, 1:] = empty[:, :, :-1]
    return following


def _fours(empty: Bool[Array, "b h lq"]) -> Bool[Array, "b h lq"]:
    return np.logical_or.reduceat(empty, np.arange(0, empty.shape[2], 4), axis=2)[:, :, np.arange(empty.shape[2]) // 4]


def _first_value(inputs: AttentionInputs) -> Float[Array, "b h 1 dv"]:
    return np.repeat(inputs.value[:, :, :1], inputs.query.shape[1] // inputs.value.shape[1], axis=1)


def _one_in_layer(inputs: MultiHeadInputs, right: Array) -> Array:
    empty = np.logical_not(visible_pairs(inputs).any((1, 3), keepdims=True))
    return np.where(empty[:, 0], right.dtype.type(1), right)


def _count_wraps(bits: int) -> Rows:
    def rows(inputs: AttentionInputs) -> Array:
        count = visible_pairs(inputs).sum(-1)
        return np.asarray((count > 0) & (count % 2**bits == 0))

    return rows


def _first_hidden(tile: int) -> Rows:
    """Rows that see keys, but none of the first ``tile``."""

    def rows(inputs: AttentionInputs) -> Array:
        visible = visible_pairs(inputs)
        return np.asarray(visible.any(-1) & ~visible[..., :tile].any(-1))

    return rows


def _doubly_low(inputs: AttentionInputs) -> Array:
    """Rows with a key that the mask hides and whose bias is the lowest finite number."""
    visible = visible_block(inputs, 0, inputs.query.shape[2])
    if inputs.bias is None or visible is None:
        return np.zeros((1, 1, 1), bool)
    lowest = inputs.bias == -float_type(inputs.bias.dtype.name).largest
    return np.asarray((lowest & ~visible).any(-1))


_OF_16 = ("float32",)
FAULTS: tuple[Fault, ...] = (
    fault("hidden-keys-keep-a-little-weight", "leaves hidden keys a weight of 1e-5",
          _weighed(lambda scores, seen: softmax(seen) + 1e-5 * np.isneginf(seen)), MASK(21)),
    fault("hidden-values-averaged-in", "adds a 64th of the mean of the hidden V", _weighed(_averaged), MASK(21, 1, 9, 17)),
    fault("hidden-keys-in-the-sum", "leaves hidden keys out of the normaliser only", _weighed(_in_numerator),
          MASK(1, 9, 17, 21, 22), DROPPED_SCORES),
    # Fully masked rows spoil others
    *(
        fault(f"empty-row-{name}", sentence, _giving(number, rows), MASK(33), EMPTY)
        for name, sentence, number, rows in (
            ("spoils-head", "gives a head NaN where one of its rows is fully masked", np.nan, _over(2)),
            ("spoils-other-heads", "gives a query NaN in all heads where its row is fully masked in one", np.nan, _over(1)),
            ("spoils-batch-row", "gives a batch row NaN where one of its rows is fully masked", np.nan, _over(1, 2)),
            ("spoils-tensor", "gives everything NaN where one row is fully masked", np.nan, _over(0, 1, 2)),
            ("silences-the-next", "gives 0 for the row after a fully masked one", 0.0, _spread(_after)),
            ("silences-four", "gives 0 for four rows of which one is fully masked", 0.0, _spread(_fours)),
        )
    ),
    # Fully masked rows are given what nobody means them to give
    *(
        fault(name, sentence, _giving(given, rows), MASK(43), EMPTY, needs)
        for name, sentence, given, rows, needs in (
            ("empty-row-gives-first-value", "gives the first V in a fully masked row", _first_value, _empty, ""),
            ("empty-row-gives-row-before", "gives in a fully masked row what the row before gives",
             lambda inputs: np.roll(attend(inputs), 1, axis=2), _empty, ""),
            ("empty-row-gives-infinity", "gives infinity in a fully masked row", np.inf, _empty, ""),
            ("empty-row-of-bias-gives-one", "gives 1 in a row that a bias of −∞ masks fully", 1.0, _by_bias, "bias"),
            ("key-length-zero-gives-first-value", "gives the first V where the key length is 0", _first_value,
             _by("key_lengths"), "key-lengths"),
            ("row-before-first-key-gives-one", "gives 1 in a causal row that lies before the first key", 1.0, _by("causal"),
             "causal"),
        )
    ),
    fault("multi-head-empty-row-gives-one", "gives 1 in a fully masked row, in multi-head attention",
          layer_output(_one_in_layer), HEAD(34), EMPTY),
    # Counts of visible keys
    *(
        fault(f"visible-count-in-{bits}-bits",
              f"counts the visible keys of a row in {bits} bits, and gives zeros where the count is 0",
              _giving(0.0, _count_wraps(bits)), MASK(49) + OUT(45), INDICES, dtypes=_OF_16 if bits == 16 else ALL_DTYPES)
        for bits in (8, 9, 16)
    ),
    fault("key-count-in-16-bits", "counts the keys in 16 bits, and gives zeros where the count is 0",
          _giving(0.0, lambda x: np.full((1, 1, 1), x.key.shape[2] % 2**16 == 0)), OUT(45), INDICES, dtypes=_OF_16),
    *(
        fault(f"first-tile-of-{tile}-hidden-gives-nan", f"gives NaN in a row that sees none of the first {tile} keys",
              _giving(np.nan, _first_hidden(tile)), MASK(48), FIRST_TILE)
        for tile in (256, 512, 1024)
    ),
    fault("lowest-bias-beside-mask-gives-nan",
          "hides by adding the lowest finite number, which gives −∞ beside a bias as low, and NaN in that row",
          _giving(np.nan, _doubly_low), MASK(47), EMPTY[:1], "mask bias"),
)  # fmt: skip

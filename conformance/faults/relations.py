"""Faults that break a relation of the formula: order of queries and channels, common signs, range of V, one head alone."""

from collections.abc import Callable

import numpy as np

from conformance.faults.model import Fault
from conformance.faults.steps import attend, default_scale, merge, multi_head, products, project, sinusoidal
from conformance.inputs import AttentionInputs, MultiHeadInputs, SinusoidalInputs

Array = np.ndarray


def _overshooting(inputs: AttentionInputs) -> Array:
    """Twice the output less the mean of V: a step beyond it."""
    mean = attend(inputs.but(query=np.zeros_like(inputs.query))).astype(np.float64)
    return (2.0 * attend(inputs).astype(np.float64) - mean).astype(inputs.query.dtype)


def _length_scaled(inputs: AttentionInputs) -> Array:
    """Scores grow with the logarithm of the row's number, as some models want for long texts."""
    growth = 1.0 + np.log1p(np.arange(inputs.query.shape[2]))[:, None]
    return attend(inputs, products=lambda query, key, scale: products(query, key, scale) * growth)


def _halves(array: Array) -> Array:
    """Channels 0, 2, 4 … first, then 1, 3, 5 …"""
    return np.concatenate([array[..., 0::2], array[..., 1::2]], axis=-1)


def _absolute(inputs: AttentionInputs) -> Array:
    return attend(inputs, products=lambda query, key, scale: products(np.abs(query), key, scale))


def _causal_by_mask_only(inputs: AttentionInputs) -> AttentionInputs:
    return inputs.but(causal="none") if inputs.mask is None and inputs.key_lengths is None else inputs


def _group_mean(inputs: AttentionInputs) -> AttentionInputs:
    """Keys and values shared by groups of queries are averaged over all of them first."""
    if inputs.key.shape[1] == inputs.query.shape[1]:
        return inputs

    def mean(array: Array) -> Array:
        averaged = array.astype(np.float64).mean(axis=1, keepdims=True)
        return np.broadcast_to(averaged, array.shape).astype(array.dtype)

    return inputs.but(key=mean(inputs.key), value=mean(inputs.value))


def _interleaved_without_output(inputs: MultiHeadInputs) -> Array:
    """Without an output projection, channel by channel of all heads instead of head by head."""
    if inputs.weights.output is not None:
        return multi_head(inputs)
    return multi_head(inputs, merge=lambda array: array.transpose(0, 2, 3, 1).reshape(array.shape[0], array.shape[2], -1))


def _unscaled_single_head(inputs: MultiHeadInputs) -> Array:
    return multi_head(
        inputs,
        attention=lambda plain: attend(plain, scale=lambda one: 1.0 if inputs.num_heads == 1 else default_scale(one)),
    )


def _blocks_exchanged(inputs: MultiHeadInputs) -> Array:
    """Each head is given the input's slice of its neighbour."""
    width = inputs.query.shape[-1] // inputs.num_heads
    return multi_head(inputs, project=lambda x, matrix, bias: project(_rolled(x, width, inputs), matrix, bias))


def _rolled(x: Array, width: int, inputs: MultiHeadInputs) -> Array:
    return np.roll(x, width, axis=-1) if any(x is given for given in (inputs.query, inputs.key, inputs.value)) else x


def _normalised_over_batch(inputs: MultiHeadInputs) -> Array:
    """The mean over the batch is taken off the heads' outputs where there is a batch, as batch normalisation does."""

    def without_mean(array: Array) -> Array:
        return merge(array - array.mean(axis=0, keepdims=True) if array.shape[0] > 1 else array * 0.5)

    return multi_head(inputs, merge=without_mean)


def _accelerating(inputs: SinusoidalInputs) -> Array:
    """Positions grow faster than they are counted."""
    return sinusoidal(inputs, positions=lambda length: np.arange(length) * (1.0 + np.arange(length) / 4096.0))


def _fault(
    name: str, sentence: str, requirements: tuple[str, ...], *, operation: str = "attention",
    compute: Callable[..., Array] | None = None, rewrite: Callable[..., AttentionInputs] | None = None, needs: str = "",
) -> Fault:  # fmt: skip
    return Fault(
        id=name, sentence=sentence, requirements=requirements, sources=(), operation=operation, compute=compute, rewrite=rewrite,
        needs=frozenset({needs} if needs else ()),
    )  # fmt: skip


_VALUES = ("ATT-OUT-003", "ATT-OUT-005")  # in dtypes for which the relation has no case
_MULTI_HEAD = "multi_head_attention"
FAULTS: tuple[Fault, ...] = (
    _fault("output-beyond-the-mean", "goes twice as far from the mean of V as is due", ("ATT-OUT-011", *_VALUES),
           compute=_overshooting),
    _fault("scale-by-row-number", "multiplies the scores by the logarithm of the row's number", ("ATT-OUT-016", *_VALUES),
           compute=_length_scaled),
    _fault("query-channels-in-halves", "has the even channels of the query before the odd ones, and not those of the key",
           ("ATT-OUT-018", *_VALUES), rewrite=lambda inputs: inputs.but(query=_halves(inputs.query))),
    _fault("query-without-signs", "takes the sizes of the query's entries", ("ATT-OUT-025", *_VALUES), compute=_absolute),
    _fault("causal-without-mask-ignored", "heeds causal only beside a mask or key lengths", ("ATT-MASK-038", "ATT-MASK-009"),
           rewrite=_causal_by_mask_only, needs="causal"),
    _fault("heads-averaged-in-groups", "averages keys and values over all shared heads", ("ATT-HEAD-003", "ATT-HEAD-001"),
           rewrite=_group_mean, needs="grouped-heads"),
    _fault("multi-head-interleaved-without-output", "lays heads out channel by channel where no output projection follows",
           ("ATT-HEAD-010", "ATT-HEAD-012", "ATT-HEAD-011"), operation=_MULTI_HEAD, compute=_interleaved_without_output),
    _fault("multi-head-single-head-unscaled", "leaves the scale out for a single head", ("ATT-HEAD-015",), operation=_MULTI_HEAD,
           compute=_unscaled_single_head),
    _fault("multi-head-blocks-exchanged", "gives each head its neighbour's slice of the input", ("ATT-HEAD-019", "ATT-HEAD-007"),
           operation=_MULTI_HEAD, compute=_blocks_exchanged),
    _fault("multi-head-normalised-over-batch", "takes the mean over the batch off", ("ATT-HEAD-025", "ATT-HEAD-007"),
           operation=_MULTI_HEAD, compute=_normalised_over_batch),
    _fault("sinusoid-positions-accelerate", "counts positions that grow ever faster", ("ATT-POS-011", "ATT-POS-005"),
           operation="sinusoidal_encoding", compute=_accelerating),
)  # fmt: skip

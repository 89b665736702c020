"""Key lengths got wrong, hidden keys that have a say after all, and rows without a key that spoil others."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from conformance.faults.hiding import multi_head_sibling, narrowed
from conformance.faults.masks import masking
from conformance.faults.model import Fault
from conformance.faults.steps import attend, softmax
from conformance.inputs import AttentionInputs
from conformance.visibility import visible_pairs

Array = np.ndarray
Lengths = Int[Array, " b"]
Scores = Float[Array, "b h lq lk"]

IGNORED_LENGTHS = (
    "jax: https://github.com/jax-ml/jax/issues/23349",
    "FasterTransformer: https://github.com/NVIDIA/FasterTransformer/issues/270",
)
OFF_BY_ONE = ("pytorch: https://github.com/pytorch/pytorch/pull/169222",)
QUERIES = ("hyunwoongko/transformer: https://github.com/hyunwoongko/transformer/pull/40",)
QUERIES_TOO = ("pytorch: https://github.com/pytorch/pytorch/issues/63271",)
WRONG_ROW = ("pytorch: https://github.com/pytorch/pytorch/pull/184180",)
TILE = ("cutlass: https://github.com/NVIDIA/cutlass/issues/2428",)
DROPPED_SCORES = ("vigg_ribonanza: https://github.com/autosome-ru/vigg_ribonanza/issues/1",)
EMPTY = (
    "transformers: https://github.com/huggingface/transformers/issues/38690",
    "mlx: https://github.com/ml-explore/mlx/pull/2608",
    "pytorch: https://github.com/pytorch/pytorch/issues/103963",
)

LENGTHS = masking(17, 18, 39)
NEEDS = frozenset({"key-lengths"})


def _fault(id: str, sentence: str, sources: tuple[str, ...], change: Callable[[Lengths, int], Array | int]) -> Fault:
    """A fault that takes other key lengths: ``change`` of the lengths and Lk, cut off at 0 and Lk."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.key_lengths is None:
            return inputs
        lengths = np.broadcast_to(change(inputs.key_lengths, inputs.key.shape[2]), inputs.key_lengths.shape)
        return inputs.but(key_lengths=np.clip(lengths, 0, inputs.key.shape[2]))

    return Fault(id=id, sentence=sentence, requirements=LENGTHS, sources=sources, needs=NEEDS, rewrite=rewrite)


def _seen(
    id: str, sentence: str, sources: tuple[str, ...], seen: Callable[[Array, AttentionInputs], Bool[Array, "#b #h #lq #lk"]]
) -> Fault:
    """A fault that reads key lengths as another mask: ``seen`` of the lengths (B, 1, 1, 1) and the inputs."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.key_lengths is None:
            return inputs
        return narrowed(inputs.but(key_lengths=None), seen(inputs.key_lengths.reshape(-1, 1, 1, 1), inputs))

    return Fault(id=id, sentence=sentence, requirements=LENGTHS, sources=sources, needs=NEEDS, rewrite=rewrite)


def _keys(inputs: AttentionInputs) -> Array:
    return np.arange(inputs.key.shape[2]).reshape(1, 1, 1, -1)


def _queries(inputs: AttentionInputs) -> Array:
    return np.arange(inputs.query.shape[2]).reshape(1, 1, -1, 1)


def _by_head(lengths: Array, inputs: AttentionInputs) -> Array:
    heads = np.arange(inputs.query.shape[1]) % len(lengths)
    return _keys(inputs) < lengths.reshape(-1)[heads].reshape(1, -1, 1, 1)


def _zeroed(inputs: AttentionInputs) -> AttentionInputs:
    """Keys and values beyond the length as zeros, which take part."""
    if inputs.key_lengths is None:
        return inputs
    present = np.arange(inputs.key.shape[2]) < inputs.key_lengths[:, None]
    key, value = (np.where(present[:, None, :, None], array, np.zeros_like(array)) for array in (inputs.key, inputs.value))
    return inputs.but(key=key, value=value, key_lengths=None)


IGNORED = _fault("key-lengths-ignored", "leaves key lengths out", IGNORED_LENGTHS, lambda n, keys: keys)
ONE_MORE = _fault("key-lengths-one-more", "shows one key beyond each length", OFF_BY_ONE, lambda n, keys: n + 1)
ONE_LESS = _fault("key-lengths-one-less", "hides the last key of each length", OFF_BY_ONE, lambda n, keys: n - 1)
FROM_END = _seen(
    "key-lengths-from-the-end",
    "shows the last keys, as many as the length says, instead of the first",
    (),
    lambda n, x: _keys(x) >= x.key.shape[2] - n,
)

_LENGTHS = (
    IGNORED,
    ONE_MORE,
    ONE_LESS,
    FROM_END,
    _fault("key-lengths-of-first-row", "takes the first batch row's length for all", WRONG_ROW, lambda n, _: n[:1]),
    _fault("key-lengths-of-last-row", "takes the last batch row's length for all", WRONG_ROW, lambda n, _: n[-1:]),
    _fault(
        "key-lengths-longest-for-all", "takes the longest length for all batch rows", IGNORED_LENGTHS[1:], lambda n, _: n.max()
    ),
    _fault("key-lengths-shortest-for-all", "takes the shortest length for all batch rows", (), lambda n, _: n.min()),
    _fault("key-lengths-sorted", "sorts the lengths, longest first, and not the batch rows", (), lambda n, _: np.sort(n)[::-1]),
    _fault(
        "key-lengths-sorted-ascending", "sorts the lengths, shortest first, and not the batch rows", (), lambda n, _: np.sort(n)
    ),
    _fault(
        "key-lengths-of-next-row", "takes each length for the batch row before its own", WRONG_ROW, lambda n, _: np.roll(n, -1)
    ),
    _fault(
        "key-lengths-accumulated", "takes the sum of the lengths up to a batch row for its length", (), lambda n, _: np.cumsum(n)
    ),
    _fault("key-lengths-of-hidden", "takes the number of hidden keys for the length", (), lambda n, keys: keys - n),
    _fault("key-lengths-rounded-up-to-4", "rounds lengths up to a multiple of 4", TILE, lambda n, _: -(-n // 4) * 4),
    _fault("key-lengths-rounded-down-to-4", "rounds lengths down to a multiple of 4", TILE, lambda n, _: n // 4 * 4),
    _seen(
        "key-lengths-hide-the-first", "hides the keys that the length counts and shows the others", (), lambda n, x: _keys(x) >= n
    ),
    _seen("key-lengths-on-queries", "hides queries beyond the length instead of keys", QUERIES, lambda n, x: _queries(x) < n),
    _seen(
        "key-lengths-on-queries-too",
        "hides queries beyond the length as well as keys",
        QUERIES_TOO,
        lambda n, x: (_queries(x) < n) & (_keys(x) < n),
    ),
    _seen(
        "key-lengths-of-query-length",
        "shows no more keys than there are queries",
        (),
        lambda n, x: _keys(x) < np.minimum(n, x.query.shape[2]),
    ),
    _seen("key-lengths-by-head", "gives head h the length of batch row h", WRONG_ROW, _by_head),
    Fault(
        id="padded-keys-zeroed",
        sentence="sets keys and values beyond the length to 0 and lets them take part",
        requirements=LENGTHS,
        sources=TILE,
        needs=NEEDS,
        rewrite=_zeroed,
    ),
)


def _hidden(scores: Scores) -> Bool[Array, "b h lq lk"]:
    return np.isneginf(scores)


def _weighted(id: str, sentence: str, requirements: tuple[str, ...], sources: tuple[str, ...], weigh: Callable) -> Fault:
    """A fault in what becomes of hidden scores: ``weigh`` of all scores, of those without the hidden ones, and of the dtype."""

    def compute(inputs: AttentionInputs) -> Array:
        visible = visible_pairs(inputs)
        return attend(
            inputs,
            hide=lambda scores, _: scores,
            softmax=lambda scores: weigh(scores, np.where(visible, scores, -np.inf), inputs.query.dtype),
        )

    return Fault(id=id, sentence=sentence, requirements=requirements, sources=sources, compute=compute)


def _little(scores: Scores, seen: Scores, dtype: np.dtype) -> Scores:
    return softmax(seen) + 1e-5 * _hidden(seen)


def _averaged(scores: Scores, seen: Scores, dtype: np.dtype) -> Scores:
    hidden = _hidden(seen)
    return softmax(seen) + hidden / np.maximum(hidden.sum(-1, keepdims=True), 1) * 2.0**-6


def _in_numerator(scores: Scores, seen: Scores, dtype: np.dtype) -> Scores:
    top = _top(seen)
    total = np.exp(seen - top).sum(-1, keepdims=True)
    return np.exp(scores - top) / np.where(total == 0.0, 1.0, total)


def _top(scores: Scores) -> Float[Array, "b h lq 1"]:
    top = scores.max(-1, keepdims=True)
    return np.where(np.isfinite(top), top, 0.0)


_LEAKS = (
    _weighted("hidden-keys-keep-a-little-weight", "leaves hidden keys a weight of 1e-5", masking(21), (), _little),
    _weighted("hidden-values-averaged-in", "adds a 64th of the mean of the hidden V", masking(21, 1, 9, 17), (), _averaged),
    _weighted(
        "hidden-keys-in-the-sum",
        "leaves hidden keys out of the normaliser only",
        masking(1, 9, 17, 21, 22),
        DROPPED_SCORES,
        _in_numerator,
    ),
)


def _empty(id: str, sentence: str, filled: float, spoiled: Callable[[Bool[Array, "b h lq"]], Bool[Array, "b h lq"]]) -> Fault:
    """A fault that fills rows with ``filled``: which, follows from the rows that see no key."""

    def compute(inputs: AttentionInputs) -> Array:
        output = attend(inputs)
        output[spoiled(np.logical_not(visible_pairs(inputs).any(-1)))] = filled
        return output

    return Fault(id=id, sentence=sentence, requirements=masking(33), sources=EMPTY, compute=compute)


def _over(*axes: int) -> Callable[[Array], Array]:
    return lambda empty: np.broadcast_to(empty.any(axes, keepdims=True), empty.shape)


def _after(empty: Bool[Array, "b h lq"]) -> Bool[Array, "b h lq"]:
    following = np.zeros_like(empty)
    following[:, :, 1:] = empty[:, :, :-1]
    return following


def _fours(empty: Bool[Array, "b h lq"]) -> Bool[Array, "b h lq"]:
    return np.logical_or.reduceat(empty, np.arange(0, empty.shape[2], 4), axis=2)[:, :, np.arange(empty.shape[2]) // 4]


_EMPTY_ROWS = (
    _empty("empty-row-spoils-head", "gives a head NaN where one of its queries sees no key", np.nan, _over(2)),
    _empty("empty-row-spoils-other-heads", "gives a query NaN in all heads where it sees no key in one", np.nan, _over(1)),
    _empty("empty-row-spoils-batch-row", "gives a batch row NaN where one of its queries sees no key", np.nan, _over(1, 2)),
    _empty("empty-row-spoils-tensor", "gives everything NaN where one query sees no key", np.nan, _over(0, 1, 2)),
    _empty("empty-row-silences-the-next", "gives 0 for the query after one that sees no key", 0.0, _after),
    _empty("empty-row-silences-four", "gives 0 for four queries of which one sees no key", 0.0, _fours),
)

FAULTS: tuple[Fault, ...] = (
    *_LENGTHS,
    *_LEAKS,
    *_EMPTY_ROWS,
    *(multi_head_sibling(fault, "ATT-HEAD-022") for fault in (IGNORED, ONE_MORE, ONE_LESS, FROM_END)),
)

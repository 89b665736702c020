"""Key lengths got wrong: other lengths, other rows' lengths, hidden queries, and padded keys that take part after all."""

from collections.abc import Callable
from functools import wraps

import numpy as np
from jaxtyping import Bool, Int

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, Way, along_axis, fault, key_lengths, narrowed
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Lengths = Int[Array, " b"]

IGNORED = ("FasterTransformer: https://github.com/NVIDIA/FasterTransformer/issues/270",)
OFF_BY_ONE = ("pytorch: https://github.com/pytorch/pytorch/pull/169222",)
QUERIES = ("hyunwoongko/transformer: https://github.com/hyunwoongko/transformer/pull/40",)
QUERIES_TOO = ("pytorch: https://github.com/pytorch/pytorch/issues/63271",)
WRONG_ROW = ("pytorch: https://github.com/pytorch/pytorch/pull/184180",)
TILE = ("cutlass: https://github.com/NVIDIA/cutlass/issues/2428",)
LENGTHS = MASK(17, 18, 39)
NEEDS = frozenset({"key-lengths"})


def _lengths(change: Callable[[Lengths, int], Array | int]) -> Way:
    """Other lengths: ``change`` of the lengths and Lk, cut off at 0 and Lk."""
    return key_lengths(lambda given, x: np.clip(np.broadcast_to(change(given, x.key.shape[2]), given.shape), 0, x.key.shape[2]))


def _seen(seen: Callable[[Array, AttentionInputs], Bool[Array, "#b #h #lq #lk"]]) -> Way:
    """Lengths read as another mask: ``seen`` of the lengths (B, 1, 1, 1) and the inputs."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.key_lengths is None:
            return inputs
        return narrowed(inputs.but(key_lengths=None), seen(inputs.key_lengths.reshape(-1, 1, 1, 1), inputs))

    return Way(rewrite=rewrite, needs=NEEDS, hiding=True)


def _keys(inputs: AttentionInputs) -> Array:
    return along_axis(inputs, "k")


def _queries(inputs: AttentionInputs) -> Array:
    return along_axis(inputs, "q")


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


def _as_int64(function: Callable[..., Array]) -> Callable[..., Array]:
    """Takes two int32 lengths for one int64, and nothing for what lies beyond them."""

    @wraps(function)
    def faulty(query: Array, key: Array, value: Array, *, key_lengths: Array | None = None, **named: object) -> Array:
        if key_lengths is not None and key_lengths.dtype == np.int32:
            key_lengths = np.append(key_lengths, np.zeros_like(key_lengths)).view(np.int64)[: key_lengths.size]
        return function(query, key, value, key_lengths=key_lengths, **named)

    return faulty


FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"key-lengths-{name}", sentence, _lengths(change), LENGTHS, sources)
        for name, sentence, sources, change in (
            ("of-first-row", "takes the first batch row's length for all", WRONG_ROW, lambda n, keys: n[:1]),
            ("of-last-row", "takes the last batch row's length for all", WRONG_ROW, lambda n, keys: n[-1:]),
            ("longest-for-all", "takes the longest length for all batch rows", IGNORED, lambda n, keys: n.max()),
            ("shortest-for-all", "takes the shortest length for all batch rows", (), lambda n, keys: n.min()),
            ("sorted", "sorts the lengths, longest first, and not the batch rows", (), lambda n, keys: np.sort(n)[::-1]),
            ("sorted-ascending", "sorts the lengths, shortest first, and not the batch rows", (), lambda n, keys: np.sort(n)),
            ("of-next-row", "takes each length for the batch row before its own", WRONG_ROW, lambda n, keys: np.roll(n, -1)),
            ("accumulated", "takes the sum of the lengths up to a batch row for its length", (), lambda n, keys: np.cumsum(n)),
            ("of-hidden", "takes the number of hidden keys for the length", (), lambda n, keys: keys - n),
            ("rounded-up-to-4", "rounds lengths up to a multiple of 4", TILE, lambda n, keys: -(-n // 4) * 4),
            ("rounded-down-to-4", "rounds lengths down to a multiple of 4", TILE, lambda n, keys: n // 4 * 4),
        )
    ),
    fault("key-lengths-one-more", "shows one key beyond each length", _lengths(lambda n, keys: n + 1), LENGTHS, OFF_BY_ONE,
          layer=HEAD(22)),
    fault("key-lengths-one-less", "hides the last key of each length", _lengths(lambda n, keys: n - 1), LENGTHS, OFF_BY_ONE,
          layer=HEAD(22)),
    fault("key-lengths-from-the-end", "shows the last keys, as many as the length says, instead of the first",
          _seen(lambda n, x: _keys(x) >= x.key.shape[2] - n), LENGTHS, layer=HEAD(22)),
    fault("key-lengths-hide-the-first", "hides the keys that the length counts and shows the others",
          _seen(lambda n, x: _keys(x) >= n), LENGTHS),
    fault("key-lengths-on-queries", "hides queries beyond the length instead of keys", _seen(lambda n, x: _queries(x) < n),
          LENGTHS, QUERIES),
    fault("key-lengths-on-queries-too", "hides queries beyond the length as well as keys",
          _seen(lambda n, x: (_queries(x) < n) & (_keys(x) < n)), LENGTHS, QUERIES_TOO),
    fault("key-lengths-of-query-length", "shows no more keys than there are queries",
          _seen(lambda n, x: _keys(x) < np.minimum(n, x.query.shape[2])), LENGTHS),
    fault("key-lengths-by-head", "gives head h the length of batch row h", _seen(_by_head), LENGTHS, WRONG_ROW),
    fault("padded-keys-zeroed", "sets keys and values beyond the length to 0 and lets them take part",
          Way(rewrite=_zeroed, needs=NEEDS), LENGTHS, TILE),
    fault("int32-lengths-read-as-int64", "reads key lengths in int32 as if they were int64",
          Way(behaviour=_as_int64, needs=NEEDS), MASK(52)),
)  # fmt: skip

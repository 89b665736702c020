"""Boolean masks that are misread: their polarity, columns and rows that are shifted, lost or taken for something else, axes that
are exchanged or broadcast; and masks that act as factors or numbers, on scores or on weights after softmax.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MASK, Way, along_axis, fault, has_axes, inputs, is_form, mask, stages, where_asked
from conformance.faults.steps import add_bias, attend
from conformance.problem.forms import four_axes
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
Mask = Bool[Array, "#b #h #lq #lk"]

POLARITY = (
    "torchTextClassifiers: https://github.com/InseeFrLab/torchTextClassifiers/pull/92",
    "DeepSpeed: https://github.com/deepspeedai/DeepSpeed/issues/1466",
    "tinytorch: https://github.com/harvard-edge/cs249r_book/pull/1785",
)
SHIFTED = ("SimpleTuner: https://github.com/bghira/SimpleTuner/issues/904",)
AS_LENGTH = ("DeepSpeed: https://github.com/deepspeedai/DeepSpeed/issues/1466",)
WRAPS = (
    "pytorch: https://github.com/pytorch/pytorch/issues/162588",
    "TensorRT-LLM: https://github.com/NVIDIA/TensorRT-LLM/pull/1076",
)
GROUPS_OF_ROWS = ("pytorch: https://github.com/pytorch/pytorch/issues/195910",)
WRONG_ROW = ("pytorch: https://github.com/pytorch/pytorch/pull/184180",)
WRONG_HEAD = ("equinox: https://github.com/patrick-kidger/equinox/pull/190",)
QUERIES = ("hyunwoongko/transformer: https://github.com/hyunwoongko/transformer/pull/40",)
QUERIES_TOO = ("pytorch: https://github.com/pytorch/pytorch/issues/63271",)
BATCH_AND_HEADS = ("pytorch: https://github.com/pytorch/pytorch/issues/97605",)
BROADCAST = ("jax: https://github.com/jax-ml/jax/issues/28974",)
MULTIPLIED = ("openxla/xla: https://github.com/openxla/xla/pull/11444",)
AFTER_SOFTMAX = (
    "vigg_ribonanza: https://github.com/autosome-ru/vigg_ribonanza/issues/1",
    "memory-compressed-attention: https://github.com/lucidrains/memory-compressed-attention/issues/2",
)
ADDED = (
    "pytorch: https://github.com/pytorch/pytorch/issues/103963",
    "pytorch: https://github.com/pytorch/pytorch/issues/90534",
)
FORMS = MASK(1, 2, 3, 4, 5, 26, 27, 28, 29)
ROWS = MASK(1, 3, 4, 5)
SMALLEST = 2.0**-149  # of float32: what lies below vanishes where weights are kept in it


def _column(column: int, shown: bool) -> Way:
    """A column that is always shown or hidden, counted from the end where it is negative."""
    if shown:
        return mask(lambda m, x: m | (along_axis(x, "k") == column % x.key.shape[2]))
    return mask(lambda m, x: m & (along_axis(x, "k") != column % x.key.shape[2]))


def _of_keys(change: Callable[[Mask], Array]) -> Way:
    """Masks that tell keys changed."""
    return mask(lambda mask, _: mask if mask.shape[-1] == 1 else change(mask))


def _shown(axis: str, start: int) -> Way:
    """All is shown from ``start`` on along an axis."""
    return mask(lambda m, x: m | (along_axis(x, axis) >= start))


def _wrapped(mask: Mask, inputs: AttentionInputs) -> Mask:
    flat = mask.reshape(*mask.shape[:2], -1)
    return flat[:, :, np.arange(flat.shape[2]) % 4096].reshape(mask.shape)


def _on_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """A mask of keys alone, (B, 1, 1, Lk), as one of queries; queries beyond its end are shown all keys."""
    if mask.shape[2] != 1 or mask.shape[3] == 1:
        return mask
    rows = np.ones((*mask.shape[:2], inputs.query.shape[2], 1), dtype=bool)
    known = min(rows.shape[2], mask.shape[3])
    rows[:, :, :known, 0] = mask[:, :, 0, :known]
    return rows


def _of_columns(change: Callable[[Mask, AttentionInputs], Array]) -> Way:
    """Masks of queries alone, (B, H, Lq, 1), changed."""
    return mask(lambda mask, inputs: change(mask, inputs) if is_column(mask) else mask)


def is_column(array: Array) -> bool:
    """Whether a mask or bias is of queries alone, (B, H, Lq, 1)."""
    return array.shape[3] == 1 and array.shape[2] > 1


def as_keys(mask: Array, inputs: AttentionInputs, beyond: float) -> Array:
    """Of keys what was of queries, ``beyond`` for keys beyond its end."""
    keys = np.full((*mask.shape[:2], 1, inputs.key.shape[2]), beyond, mask.dtype)
    known = min(keys.shape[3], mask.shape[2])
    keys[:, :, 0, :known] = mask[:, :, :known, 0]
    return keys


def transposed(mask: Array, inputs: AttentionInputs) -> Array:
    """Rows read as columns, as strides of the two axes exchanged do it, for equal lengths a transposition."""
    if not has_axes(mask, inputs, "qk"):
        return mask
    return mask.reshape(*mask.shape[:2], mask.shape[3], mask.shape[2]).swapaxes(-1, -2)


def _batch_as_heads(mask: Mask, inputs: AttentionInputs) -> Mask:
    heads = inputs.query.shape[1]
    return mask if mask.shape[1] != 1 else mask[np.arange(heads) % mask.shape[0], 0][None]


def _heads_as_batch(mask: Mask, inputs: AttentionInputs) -> Mask:
    batch = inputs.query.shape[0]
    return mask if mask.shape[0] != 1 or mask.shape[1] == 1 else mask[0, np.arange(batch) % mask.shape[1]][:, None]


def _heads_as_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Head h, query i reads the mask of head i, query h."""
    if not has_axes(mask, inputs, "hq"):
        return mask
    heads, queries = np.arange(mask.shape[1]), np.arange(mask.shape[2])
    return mask[:, queries[None, :] % len(heads), heads[:, None] % len(queries)]


def _offset_counts_heads(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Row b·H + h of a mask that has B rows, from the start again beyond its end."""
    batch, heads = inputs.query.shape[:2]
    return mask if mask.shape[1] != 1 else mask[np.arange(batch * heads).reshape(batch, heads) % mask.shape[0], 0]


def _offset_counts_queries(mask: Mask, inputs: AttentionInputs) -> Mask:
    """Row b·Lq + i of a mask that has B rows, from the start again beyond its end."""
    batch, queries = inputs.query.shape[0], inputs.query.shape[2]
    if mask.shape[1] != 1 or mask.shape[2] != 1:
        return mask
    return mask[np.arange(batch * queries).reshape(batch, queries) % mask.shape[0], 0, 0][:, None]


def _ignored_in(form: str) -> Way:
    """Ignores a mask that has the axes of ``form`` and no others."""
    return mask(lambda mask, inputs: np.ones_like(mask) if is_form(mask, inputs, form) else mask)


def _as_number(change: Callable[[Mask], Mask]) -> Way:
    """Adds the mask to the scores as 0 and 1, hiding nothing."""

    def rewrite(inputs: AttentionInputs) -> AttentionInputs:
        if inputs.mask is None:
            return inputs
        number = change(four_axes(inputs.mask)).astype(np.float64)
        bias = number if inputs.bias is None else four_axes(inputs.bias).astype(np.float64) + number
        return inputs.but(mask=None, bias=bias)

    return Way(rewrite=rewrite, needs=frozenset({"mask"}))


def _renormalised(inputs: AttentionInputs, mask: Mask) -> Array:
    def weights(right: Array) -> Array:
        left = right * mask
        if inputs.query.dtype != np.float64:
            left = np.where(left < SMALLEST, 0.0, left)
        return left / left.sum(-1, keepdims=True)

    return attend(inputs.but(mask=None), weights=weights)


def _one_added(inputs: AttentionInputs) -> AttentionInputs:
    return inputs.but(bias=np.ones((1, 1, 1, 1)) if inputs.bias is None else four_axes(inputs.bias).astype(np.float64) + 1.0)


FAULTS: tuple[Fault, ...] = (
    fault("mask-inverted", "hides keys where the mask is True, and shows the others", mask(lambda m, _: ~m), FORMS + MASK(30),
          POLARITY, layer=HEAD(23)),
    *(
        fault(f"mask-{place}-column-{'shown' if shown else 'hidden'}",
              f"always {'shows' if shown else 'hides'} the {place} key, whatever the mask says",
              _column(column, shown), MASK(1, 2, 3, 4, 5, 31))
        for place, column in (("first", 0), ("last", -1))
        for shown in (True, False)
    ),
    # Columns and rows
    fault("mask-diagonal-shown", "always shows the key with the query's own number",
          mask(lambda m, x: m | (np.arange(x.query.shape[2])[:, None] == np.arange(x.key.shape[2]))), FORMS[:5]),
    fault("mask-of-next-key", "reads the mask one column to the right", mask(lambda m, _: np.roll(m, -1, -1)), FORMS, SHIFTED),
    fault("mask-of-previous-key", "reads the mask one column to the left", mask(lambda m, _: np.roll(m, 1, -1)), FORMS, SHIFTED),
    fault("mask-of-next-query", "reads the next row of the mask", mask(lambda m, _: np.roll(m, -1, -2)), ROWS),
    fault("mask-of-previous-query", "reads the row before in the mask", mask(lambda m, _: np.roll(m, 1, -2)), ROWS),
    fault("mask-reversed", "reads the mask from the last key to the first", mask(lambda m, _: m[..., ::-1]), FORMS, SHIFTED),
    fault("mask-row-per-four", "reads one row of the mask for each four queries",
          mask(lambda m, _: m[:, :, np.arange(m.shape[2]) // 4 * 4]), ROWS, GROUPS_OF_ROWS),
    fault("mask-ignored-from-key-64", "shows all keys from number 64 on, whatever the mask says", _shown("k", 64),
          MASK(1, 3, 32)),
    fault("mask-ignored-from-query-64", "shows every key to the queries from number 64 on, whatever the mask says",
          _shown("q", 64), MASK(1, 3, 32)),
    fault("mask-index-wraps-at-4096",
          "counts the elements of a head's mask in 12 bits, so that the rows beyond element 4096 are those at its beginning",
          mask(_wrapped), MASK(1, 3), WRAPS),
    fault("mask-read-as-length", "counts the visible keys of a row and shows so many from the first on",
          _of_keys(lambda m: np.arange(m.shape[-1]) < m.sum(-1, keepdims=True)), MASK(28, 1, 3, 5), AS_LENGTH),
    fault("mask-read-to-last-visible", "takes the last visible key for a length and hides only what follows it",
          _of_keys(lambda m: np.maximum.accumulate(m[..., ::-1], axis=-1)[..., ::-1]), MASK(28, 1, 3, 5), AS_LENGTH),
    fault("mask-read-from-first-visible", "takes the first visible key for the beginning and hides only what precedes it",
          _of_keys(lambda m: np.maximum.accumulate(m, axis=-1)), MASK(29, 1, 3, 5), AS_LENGTH),
    # Axes
    *(
        fault(f"mask-ignored-in-form-{form}", f"leaves out masks of shape {shape}", _ignored_in(axes), MASK(number), BROADCAST)
        for number, form, axes, shape in (
            (1, "qk", "qk", "(Lq, Lk)"), (2, "b11k", "bk", "(B, 1, 1, Lk)"), (3, "b1qk", "bqk", "(B, 1, Lq, Lk)"),
            (4, "1hqk", "hqk", "(1, H, Lq, Lk)"), (5, "bhqk", "bhqk", "(B, H, Lq, Lk)"),
        )
    ),
    fault("padding-mask-on-queries", "hides queries instead of keys by a mask of shape (B, 1, 1, Lk)", mask(_on_queries),
          MASK(2, 28, 29), QUERIES, layer=HEAD(24)),
    fault("padding-mask-on-queries-too", "hides by a mask of shape (B, 1, 1, Lk) the keys and the queries of the same numbers",
          mask(lambda m, x: m & _on_queries(m, x)), MASK(2, 28, 29), QUERIES_TOO, layer=HEAD(24)),
    fault("mask-transposed", "exchanges queries and keys of the mask", mask(transposed), ROWS),
    fault("mask-of-first-batch-row", "reads the first batch row's mask for all", mask(lambda m, _: m[:1]), MASK(26, 2, 3, 5),
          WRONG_ROW),
    fault("mask-of-first-head", "reads the first head's mask for all", mask(lambda m, _: m[:, :1]), MASK(27, 4, 5), WRONG_HEAD),
    fault("mask-of-first-query", "reads the first query's mask for all", mask(lambda m, _: m[:, :, :1]), ROWS, QUERIES),
    fault("mask-of-last-query", "reads the last query's mask for all", mask(lambda m, _: m[:, :, -1:]), ROWS, QUERIES),
    fault("mask-of-any-batch-row", "shows a key to all batch rows that the mask shows to one",
          mask(lambda m, _: m.any(0, keepdims=True)), MASK(26, 2, 3, 5), WRONG_ROW),
    fault("mask-of-any-head", "shows a key to all heads that the mask shows to one", mask(lambda m, _: m.any(1, keepdims=True)),
          MASK(27, 4, 5), WRONG_HEAD),
    fault("mask-heads-before-batch", "reads the mask's first two axes as (heads, batch)",
          mask(lambda m, _: m.reshape(m.shape[1], m.shape[0], *m.shape[2:]).swapaxes(0, 1)), MASK(5, 27), BATCH_AND_HEADS),
    fault("mask-batch-axis-as-heads", "gives head h the mask of batch row h", mask(_batch_as_heads), MASK(3, 2, 26), WRONG_ROW),
    fault("mask-head-axis-as-batch", "gives batch row b the mask of head b", mask(_heads_as_batch), MASK(4, 27), WRONG_HEAD),
    fault("mask-heads-and-queries-swapped", "gives head h and query i the mask of head i and query h", mask(_heads_as_queries),
          MASK(4, 5, 27), WRONG_HEAD),
    fault("mask-offset-counts-heads", "steps through a mask that has no heads as if it had them", mask(_offset_counts_heads),
          MASK(3, 2, 26), WRONG_ROW),
    fault("mask-offset-counts-queries", "steps through a mask that has no queries as if it had them",
          mask(_offset_counts_queries), MASK(2, 26, 28, 29), BROADCAST),
    fault("mask-in-first-batch-row-only", "leaves the mask out in all batch rows but the first", _shown("b", 1),
          MASK(26, 2, 3, 5), WRONG_ROW),
    fault("mask-in-first-head-only", "leaves the mask out in all heads but the first", _shown("h", 1), MASK(27, 4, 5),
          WRONG_HEAD),
    fault("mask-in-first-query-only", "leaves the mask out for all queries but the first", _shown("q", 1), ROWS),
    fault("mask-column-as-keys", "takes a mask of shape (B, H, Lq, 1) for one of keys",
          _of_columns(lambda m, x: as_keys(m, x, True)), MASK(6), QUERIES),
    fault("mask-column-of-first-key",
          "takes a mask of shape (B, H, Lq, 1) for that of the first key and hides the others",
          _of_columns(lambda m, x: m & (np.arange(x.key.shape[2]) == 0)), MASK(6), QUERIES),
    fault("mask-ignored-in-form-bhq1",
          "leaves out masks of shape (B, H, Lq, 1), so that their hidden queries see all keys", _ignored_in("bhq"), MASK(43),
          BROADCAST),
    # Effects
    fault("mask-multiplied-before-softmax", "multiplies scores by the mask as 0 and 1, so that hidden keys have the score 0",
          where_asked("mask", lambda x, m: attend(x.but(mask=None), bias=lambda scores, x: add_bias(scores * m, x))),
          MASK(1, 2, 3, 4, 5), MULTIPLIED),
    fault("mask-multiplied-after-softmax", "multiplies weights by the mask after softmax, so that those left do not sum to 1",
          where_asked("mask", lambda x, m: attend(x.but(mask=None), weights=lambda right: right * m)), MASK(1, 2, 3, 4, 5),
          AFTER_SOFTMAX),
    fault("mask-after-softmax-renormalised",
          "hides keys after softmax and divides by what is left, which is nothing where a hidden score is far the largest",
          where_asked("mask", _renormalised), MASK(22), AFTER_SOFTMAX),
    fault("mask-added-as-number", "adds a boolean mask to the scores as 0 and 1 instead of hiding keys by it",
          _as_number(lambda m: m), FORMS, ADDED),
    fault("mask-added-as-number-inverted", "adds 1 to the scores of hidden keys instead of hiding them", _as_number(np.invert),
          FORMS, ADDED),
    fault("hidden-scores-plus-infinity", "gives hidden keys a score of +∞ instead of −∞",
          stages(hide=lambda scores, visible: np.where(visible, scores, np.inf)), MASK(1, 2, 3, 4, 5, 9, 17), AFTER_SOFTMAX[1:]),
    fault("visible-scores-plus-one", "adds 1 to the scores of all visible keys, where 0 is expected", inputs(_one_added), (),
          ("tinygrad: https://github.com/tinygrad/tinygrad/pull/2425",),
          lacks=frozenset({"sinks"}), equivalent="Softmax does not change when the same number is added to all scores of a row."),
)  # fmt: skip

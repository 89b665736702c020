"""The oracle of attention: float64 NumPy (longdouble for float64 cases) on the rounded inputs, blocked over query rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from zlib import crc32

import numpy as np
from jaxtyping import Bool, Int

from conformance.dtypes import FloatType, float_type
from conformance.errors import ProblemError
from conformance.inputs import AttentionInputs
from conformance.oracle import budget
from conformance.oracle.budget import Numbers, product
from conformance.oracle.expected import Truth
from conformance.oracle.profiles import Roundoffs, roundoffs
from conformance.visibility import visible_block

Array = np.ndarray
EXTENDED = np.finfo(np.longdouble).nmant > 60  # x86: 64 bits of significand; elsewhere float64 cases go to mpmath
BLOCK_PAIRS = 1 << 20  # query–key pairs held at once: 8 or 16 MiB a temporary array
SAMPLED_PAIRS = 1 << 28  # beyond this many pairs only sampled query rows are computed
SAMPLED_ROWS = 64
SAMPLED_TILES = (16, 32, 64, 64, 128, 128, 256, 1024)  # of a tile of so many rows first and last row are among them


@dataclass(frozen=True, eq=False)
class _Tensors:
    """Query as (B, Hkv, G, Lq, d) in its own dtype, key and value as (B, Hkv, 1, Lk, ·) in that of the work, finite: what is not
    finite is kept apart."""

    query: Array
    key: Array
    value: Array
    scale: np.floating
    bad_query: Bool[Array, "b hkv g lq"] | None
    bad_key: Bool[Array, "b hkv 1 lk"] | None
    bad_value: Bool[Array, "b hkv 1 lk dv"] | None
    raw_value: Array

    @cached_property
    def keys(self) -> Numbers:
        return Numbers(self.key.astype(np.float64, copy=False))

    @cached_property
    def unit_of_value(self) -> float:
        """1, or the largest |V| where its square could leave the range of float64."""
        largest = float(np.abs(self.value).max(initial=0.0))
        return 1.0 if largest == 0.0 or 1e-100 < largest < 1e100 else largest

    @cached_property
    def values(self) -> Numbers:
        """In units of ``unit_of_value``."""
        value = self.value.astype(np.float64, copy=False)
        return Numbers(value if self.unit_of_value == 1.0 else value / self.unit_of_value)


def work_dtype(dtype: str) -> type[np.floating]:
    """The type that expected values are computed in: it has at least 11 more significant bits than ``dtype``."""
    return np.longdouble if dtype == "float64" else np.float64


def truth_of_attention(inputs: AttentionInputs) -> Truth:
    """What attention must give.

    Not judged: rows that see no key, or none but those whose bias is the lowest finite number; rows with a score of +inf, and
    rows from which a non-finite key or value is hidden (all of them conventions). Raises ProblemError for head counts that do
    not divide.
    """
    batch, heads, query_length, _ = inputs.query.shape
    kv_heads, key_length = inputs.key.shape[1:3]
    if heads % kv_heads:
        raise ProblemError(f"{heads} query heads cannot be shared out over {kv_heads} key heads.")
    dtype = inputs.query.dtype.name
    if batch * heads * query_length * key_length > SAMPLED_PAIRS and query_length > SAMPLED_ROWS:
        rows = sampled_rows(query_length, crc32(inputs.query[0, 0, :SAMPLED_ROWS].tobytes()))
        parts = [_Computation(alone, rows) for alone in _by_head(inputs)]
    else:
        rows = None
        parts = [_Computation(inputs, np.arange(query_length))]

    def joined(arrays: Iterable[Array]) -> Array:
        if rows is None:
            return next(iter(arrays))
        whole = np.concatenate(list(arrays), axis=1)
        return whole.reshape(batch, heads, *whole.shape[2:])

    def bound(profile: str) -> Array:
        kind, unit = float_type(dtype), roundoffs(profile, dtype)
        return joined(part.bound(kind, unit) for part in parts)

    output = joined(part.output for part in parts)
    if dtype == "float64" and not EXTENDED and np.isfinite(output).all():
        from conformance.oracle.exact import attention as exact_attention  # mpmath is slow to import

        exact = exact_attention(inputs)
        output = exact if rows is None else exact[:, :, rows]
    shape = (batch, heads, query_length, inputs.value.shape[3])
    kept = sum(part.kept for part in parts)
    return Truth(output, joined(part.judged for part in parts), shape, dtype, bound, rows, kept)


def sampled_rows(query_length: int, seed: int) -> Int[Array, " rows"]:
    """Query rows drawn by ``seed`` where all would be too many: the first and the last of all, the first and the last of some
    tiles, and one of each of so many equal parts."""
    draw = np.random.Philox(key=seed)
    tiles = [tile * (int(draw.random_raw()) % -(-query_length // tile)) for tile in SAMPLED_TILES]
    parts = np.arange(SAMPLED_ROWS - 2 - 2 * len(tiles) + 1) * query_length // (SAMPLED_ROWS - 2 - 2 * len(tiles))
    within = [int(start + draw.random_raw() % max(1, stop - start)) for start, stop in pairwise(parts.tolist())]
    ends = [tile - 1 for tile in tiles if tile]
    return np.unique(np.array([0, query_length - 1, *tiles, *ends, *within]))


def _by_head(inputs: AttentionInputs) -> Iterator[AttentionInputs]:
    """Each key head of each batch row by itself, so that little memory is used."""
    batch, heads, kv_heads = inputs.query.shape[0], inputs.query.shape[1], inputs.key.shape[1]
    group = heads // kv_heads

    def of_axis(array: Array | None, axis: int, part: slice) -> Array | None:
        """A mask or bias cut along an axis counted from the end, unless it broadcasts there."""
        if array is None or array.ndim < -axis or array.shape[axis] == 1:
            return array
        return array[(slice(None),) * (array.ndim + axis) + (part,)]

    for b, h in np.ndindex(batch, kv_heads):
        row, of_group = slice(b, b + 1), slice(h * group, (h + 1) * group)
        mask, bias = (of_axis(of_axis(array, -4, row), -3, of_group) for array in (inputs.mask, inputs.bias))
        yield inputs.but(
            query=inputs.query[row, of_group],
            key=inputs.key[row, h : h + 1],
            value=inputs.value[row, h : h + 1],
            mask=mask,
            bias=bias,
            key_lengths=None if inputs.key_lengths is None else inputs.key_lengths[row],
        )


class _Computation:
    """The query rows ``positions`` of attention, as (B, H, rows, ·), computed in blocks of rows. Of few numbers the steps are
    kept, for budgets of several profiles; else they are computed again for each."""

    def __init__(self, inputs: AttentionInputs, positions: Array) -> None:
        batch, heads, query_length, width = inputs.query.shape
        kv_heads, key_length = inputs.key.shape[1:3]
        self._inputs, self._heads = inputs, (batch, heads)
        self._kind = float_type(inputs.query.dtype.name)
        shape = (batch, kv_heads, heads // kv_heads, query_length, width)
        self._tensors = _prepare(inputs, work_dtype(inputs.query.dtype.name), shape)
        rows = max(1, BLOCK_PAIRS // (batch * heads * key_length))
        self._indices = [positions[start : start + rows] for start in range(0, len(positions), rows)]
        blocks = [self._block(index) for index in self._indices[:1]]
        self._blocks = blocks if len(self._indices) == 1 else None
        outputs = [(block.output, block.judged) for block in (*blocks, *map(self._block, self._indices[1:]))]
        self.output, self.judged = (self._joined(arrays) for arrays in zip(*outputs, strict=True))

    @property
    def kept(self) -> int:
        """Bytes."""
        return sum(block.size for block in self._blocks or ())

    def bound(self, kind: FloatType, unit: Roundoffs) -> Array:
        """The budget of each element."""
        blocks = map(self._block, self._indices) if self._blocks is None else self._blocks
        return self._joined([block.bound(kind, unit) for block in blocks])

    def _block(self, index: Array) -> "_Block":
        return _block(self._inputs, self._tensors, index, self._kind)

    def _joined(self, blocks: Iterable[Array]) -> Array:
        return _joined([array.reshape(*self._heads, array.shape[3], -1) for array in blocks])


def _joined(blocks: list[Array]) -> Array:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=2)


def _prepare(inputs: AttentionInputs, work: type[np.floating], shape: tuple[int, ...]) -> _Tensors:
    query = inputs.query.reshape(shape)
    key = inputs.key.astype(work)[:, :, None]
    raw_value = value = inputs.value.astype(work)[:, :, None]
    bad_query: Array | None = None
    bad_key: Array | None = None
    bad_value: Array | None = None
    if not np.isfinite(query).all():
        bad_query = np.asarray((~np.isfinite(query)).any(-1))
        query = np.where(np.isfinite(query), query, 0)
    if not np.isfinite(key).all():
        bad_key = np.asarray((~np.isfinite(key)).any(-1))
        key = np.where(np.isfinite(key), key, 0)
    if not np.isfinite(value).all():
        bad_value = ~np.isfinite(value)
        value = np.where(bad_value, 0, value)
    scale = 1.0 / np.sqrt(work(shape[-1])) if inputs.scale is None else work(inputs.scale)
    return _Tensors(query, key, value, scale, bad_query, bad_key, bad_value, raw_value)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some query rows, as (B, Hkv, G, rows, ·): the steps of their computation. ``products`` are scaled; ``scores`` have the bias
    added, and are −∞ where hidden; ``top`` is the largest of a row; ``weights`` are those of the keys; ``mixed`` is the output
    that finite values give, ``output`` what is due."""

    tensors: _Tensors
    query: Array
    products: Array
    scores: Array
    top: Array
    visible: Array | None
    weights: Array
    mixed: Array
    output: Array
    judged: Array
    has_bias: bool

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in (self.products, self.scores, self.weights))

    def bound(self, kind: FloatType, unit: Roundoffs) -> Array:
        """The budget of each element."""
        tensors, f64 = self.tensors, np.float64
        key_length = self.scores.shape[-1]
        narrow = self.products.dtype != f64
        steps = (self.query, self.weights, self.mixed, self.products, self.top)
        query, weights, output, products, top = (step.astype(f64) if narrow else step for step in steps)
        finite = (
            products if self.scores is self.products else np.where(np.isfinite(self.scores), self.scores, self.top).astype(f64)
        )
        logits = (self.scores - self.top).astype(f64)
        count: Array | int = key_length if self.visible is None else budget.visible_count(self.visible, key_length)
        with np.errstate(over="ignore", invalid="ignore"):
            error = budget.score_error(
                query, tensors.keys, products, finite, top, float(tensors.scale), self.has_bias, kind, unit
            )  # fmt: skip
            size, values = tensors.unit_of_value, tensors.values
            output = output if size == 1.0 else output / size
            spread = budget.spread_of_scores(weights, logits, error, values, output, self.visible)
            rest = budget.value_error(weights, values, output, kind, unit)
            rest = rest + budget.normalisation_error(weights, finite, top, values, unit)
            rest = rest + budget.merging_error(self.visible, values, output, unit)
            bound = budget.combine(rest, spread, unit) * size
            bound += budget.underflow(count, kind, unit)
        return bound


def _block(inputs: AttentionInputs, tensors: _Tensors, index: Array, kind: FloatType) -> _Block:
    """The query rows ``index``."""
    groups = tensors.query.shape[1:3]
    visible = _visible_to(index, inputs)
    visible = None if visible is None else _grouped(visible, groups)

    query = tensors.query[..., index, :] if len(index) < tensors.query.shape[-2] else tensors.query
    query = query.astype(tensors.key.dtype)
    products = product(query, tensors.key.swapaxes(-1, -2)) * tensors.scale
    scores = products
    if inputs.bias is not None:
        bias = inputs.bias.reshape((1,) * (4 - inputs.bias.ndim) + inputs.bias.shape)
        bias = _grouped(bias if bias.shape[2] == 1 else bias[:, :, index], groups).astype(products.dtype)
        seen = bias != -np.inf
        if not seen.all():
            visible = seen if visible is None else visible & seen
            bias = np.where(seen, bias, 0)
        scores = products + bias
    judged = np.ones(products.shape[:-1], dtype=bool)
    if inputs.bias is not None:
        lowest = bias == -kind.largest
        if lowest.any():
            judged &= ~(lowest if visible is None else lowest | ~visible).all(-1)
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    empty = top == -np.inf
    if empty.any():
        judged &= ~empty[..., 0]
        top = np.where(empty, 0.0, top)
    exponentials = np.exp(scores - top)
    total = exponentials.sum(-1, keepdims=True)
    if empty.any():
        total = np.where(empty, 1.0, total)
    weights = exponentials / total
    output = mixed = product(weights, tensors.value)
    if tensors.bad_query is not None or tensors.bad_key is not None or tensors.bad_value is not None:
        output, judged = _spread_nonfinite(inputs, tensors, index, visible, weights, output, judged)
    has_bias = inputs.bias is not None
    return _Block(tensors, query, products, scores, top, visible, weights, mixed, output, judged, has_bias)


def _visible_to(index: Array, inputs: AttentionInputs) -> Bool[Array, "#b #hq #rows lk"] | None:
    """The visible pairs of the query rows ``index``; None where all are visible."""
    if index[-1] - index[0] + 1 == len(index):
        return visible_block(inputs, int(index[0]), int(index[-1]) + 1)
    rows = [visible for i in index if (visible := visible_block(inputs, int(i), int(i) + 1)) is not None]
    return np.concatenate(rows, axis=2) if rows else None


def _grouped(array: Array, groups: tuple[int, ...]) -> Array:
    """(#B, #Hq, rows, Lk) as (#B, #Hkv, #G, rows, Lk), ``groups`` being (Hkv, G)."""
    return array[:, :, None] if array.shape[1] == 1 else array.reshape(array.shape[0], *groups, *array.shape[2:])


def _spread_nonfinite(
    inputs: AttentionInputs, tensors: _Tensors, index: Array, visible: Array | None, weights: Array, output: Array, judged: Array
) -> tuple[Array, Array]:
    """Puts NaN and infinity where they are due, and takes rows out of judgement where what is due is a convention."""
    shape = weights.shape
    seen: Array = np.ones(shape, dtype=bool) if visible is None else np.broadcast_to(visible, shape)
    output, judged = output.copy(), judged.copy()
    if tensors.bad_value is not None:
        bad = np.broadcast_to(tensors.bad_value, (*shape[:2], 1, *tensors.bad_value.shape[-2:]))
        raw = tensors.raw_value
        counts = {
            name: seen.astype(np.float32) @ np.broadcast_to(which, bad.shape).astype(np.float32)
            for name, which in (("nan", np.isnan(raw)), ("up", raw == np.inf), ("down", raw == -np.inf))
        }
        output[counts["up"] > 0] = np.inf
        output[counts["down"] > 0] = -np.inf
        output[(counts["nan"] > 0) | ((counts["up"] > 0) & (counts["down"] > 0))] = np.nan
        judged &= ~(~seen & np.asarray(bad.any(-1))[..., None, :]).any(-1)
    if tensors.bad_key is not None:
        bad = np.broadcast_to(tensors.bad_key, (*shape[:2], 1, shape[-1]))[..., None, :]
        with np.errstate(invalid="ignore"):
            query = inputs.query.astype(np.float64).reshape(*shape[:3], -1, inputs.query.shape[-1])[..., index, :]
            key = inputs.key.astype(np.float64)[:, :, None]
            scores = query @ key.swapaxes(-1, -2) * float(tensors.scale)
        output[(seen & np.isnan(scores)).any(-1)] = np.nan
        judged &= ~(seen & np.isinf(scores)).any(-1)
        judged &= ~(~seen & bad).any(-1)
    if tensors.bad_query is not None:
        bad_rows = tensors.bad_query[..., index]
        nan_rows = np.asarray(np.isnan(inputs.query.astype(np.float64)).any(-1)).reshape(*shape[:3], -1)[..., index]
        output[nan_rows] = np.nan
        judged &= ~(bad_rows & ~nan_rows)
    return output, judged

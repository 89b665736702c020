"""The oracle of attention: float64 NumPy (longdouble for float64 cases) on the rounded inputs, blocked over query rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from zlib import crc32

import numpy as np
from jaxtyping import Float, Int

from conformance.errors import ProblemError
from conformance.numerics.dtypes import FloatType, float_type
from conformance.numerics.profiles import Roundoffs, roundoffs
from conformance.oracle.expected import Truth
from conformance.oracle.second_outputs import SECOND, error_of, with_others
from conformance.oracle.stages import Bounds, Flow, Tensors, added_keys, budget_of, errors, values, with_zeros
from conformance.problem.inputs import AttentionInputs

Array = np.ndarray
EXTENDED = np.finfo(np.longdouble).nmant > 60  # x86: 64 bits of significand; elsewhere float64 cases go to mpmath
BLOCK_PAIRS = 1 << 20  # query–key pairs held at once: 8 or 16 MiB a temporary array
SAMPLED_PAIRS = 1 << 28  # beyond this many pairs only sampled query rows are computed
SAMPLED_ROWS = 64
SAMPLED_TILES = (16, 32, 64, 64, 128, 128, 256, 1024)  # of a tile of so many rows first and last row are among them


def work_dtype(dtype: str) -> type[np.floating]:
    """The type that expected values are computed in: it has at least 11 more significant bits than ``dtype``."""
    return np.longdouble if dtype == "float64" else np.float64


def truth_of_attention(inputs: AttentionInputs) -> Truth:
    """What attention must give.

    Not judged: fully masked rows, or none but those whose bias is the lowest finite number; rows with a score of +inf, and
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
        parts = [Computation(alone, rows, dtype) for alone in _by_head(inputs)]
    else:
        rows = None
        parts = [Computation(inputs, np.arange(query_length), dtype)]

    def joined(arrays: Iterable[Array]) -> Array:
        if rows is None:
            return next(iter(arrays))
        whole = np.concatenate(list(arrays), axis=1)
        return whole.reshape(batch, heads, *whole.shape[2:])

    def bound(profile: str) -> Array:
        unit = roundoffs(profile, dtype)
        return joined(part.bound(unit) for part in parts)

    output = joined(part.output for part in parts)
    if dtype == "float64" and not EXTENDED and np.isfinite(output).all():
        from conformance.oracle.exact import attention as exact_attention  # mpmath is slow to import

        exact = exact_attention(inputs)
        output = exact if rows is None else exact[:, :, rows]
    shape = (batch, heads, query_length, inputs.value.shape[3])
    kept = sum(part.kept for part in parts)

    def second(name: str) -> tuple[Array, Array]:
        found, judged = (joined(arrays) for arrays in zip(*(part.second(name) for part in parts), strict=True))
        if dtype == "float64" and not EXTENDED and np.isfinite(output).all():
            from conformance.oracle.exact import attention_steps

            exact = attention_steps(inputs)[name].reshape(batch, heads, query_length, -1)
            found = exact if rows is None else exact[:, :, rows]
        return found, judged

    def bound_of_second(name: str, unit: Roundoffs, returned: FloatType) -> Array:
        return joined(part.bound_of_second(name, unit, returned) for part in parts)

    first = Truth(output, joined(part.judged for part in parts), shape, dtype, bound, rows, kept)
    return with_others(first, (batch, heads, query_length, key_length), second, bound_of_second)


def scores_and_output(inputs: AttentionInputs) -> tuple[Float[Array, "b hq lq lk"], Float[Array, "b hq lq dv"]]:
    """In float64: what the softmax is taken of, −∞ where hidden, and the output."""
    computation = Computation(inputs, np.arange(inputs.query.shape[2]), "float32")
    scores = computation.joined(flow.scores for flow in computation.flows())
    return scores[..., : inputs.key.shape[2]], computation.output


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
    for b in range(batch):
        row = slice(b, b + 1)
        of_row = inputs.but(
            query=inputs.query[row], key=inputs.key[row], value=inputs.value[row], **inputs.along(-4, np.array([b]))
        )
        for h in range(kv_heads):
            heads = np.arange(h * group, (h + 1) * group)
            yield of_row.but(
                query=of_row.query[:, heads], key=of_row.key[:, h : h + 1], value=of_row.value[:, h : h + 1],
                **of_row.along(-3, heads),
            )  # fmt: skip


class Computation:
    """The query rows ``positions`` of attention, as (B, H, rows, ·), computed in blocks of rows. Of few numbers what flowed is
    kept, for budgets under several profiles; else it is computed again for each. ``dtype`` is that of the implementation's
    inputs."""

    def __init__(self, inputs: AttentionInputs, positions: Array, dtype: str) -> None:
        batch, heads, query_length, width = inputs.query.shape
        kv_heads, key_length = inputs.key.shape[1:3]
        self._inputs, self._heads, self._kind = inputs, (batch, heads), float_type(dtype)
        self.tensors = _prepare(inputs, work_dtype(dtype), (batch, kv_heads, heads // kv_heads, query_length, width))
        rows = max(1, BLOCK_PAIRS // (batch * heads * key_length))
        self._indices = [positions[start : start + rows] for start in range(0, len(positions), rows)]
        outputs = []
        for index in self._indices:
            flow = self._flow(index)
            outputs.append(self._expected_output(flow))
        self._flows = [flow] if len(self._indices) == 1 else None
        self.output, self.judged = (self.joined(arrays) for arrays in zip(*outputs, strict=True))

    @property
    def kept(self) -> int:
        """Bytes."""
        return sum(flow.size for flow in self._flows or ())

    def bound(self, unit: Roundoffs) -> Array:
        """The budget of each element."""
        return self.joined([budget_of(flow, errors(flow, Bounds(unit))) for flow in self.flows()])

    def second(self, name: str) -> tuple[Array, Array]:
        """The further output of that name, and where it is judged, (B, H, rows, ·)."""
        found = [self._target_of_second(flow, SECOND[name].value(flow)) for flow in self.flows()]
        value, judged = (self.joined(arrays) for arrays in zip(*found, strict=True))
        return value, judged

    def bound_of_second(self, name: str, unit: Roundoffs, returned: FloatType) -> Array:
        """The budget of each of its elements where it is returned in some dtype."""
        flows = self.flows()
        return self.joined([error_of(name, flow, errors(flow, Bounds(unit)), returned) for flow in flows])

    def flows(self) -> Iterable[Flow]:
        """What flows through the stages, block by block."""
        return map(self._flow, self._indices) if self._flows is None else self._flows

    def joined(self, blocks: Iterable[Array]) -> Array:
        """Arrays of the blocks, as (B, H, rows, ·)."""
        arrays = [array.reshape(*self._heads, array.shape[3], -1) for array in blocks]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=2)

    def _flow(self, index: Array) -> Flow:
        tensors = self.tensors
        query = tensors.query[..., index, :] if len(index) < tensors.query.shape[-2] else tensors.query
        return values(Flow(self._inputs, tensors, index, self._kind, query.astype(tensors.key.dtype)))

    def _expected_output(self, flow: Flow) -> tuple[Array, Array]:
        tensors = self.tensors
        if tensors.bad_query is None and tensors.bad_key is None and tensors.bad_value is None:
            return flow.mixed, flow.judged
        return _spread_nonfinite(self._inputs, tensors, flow.index, flow.visible, flow.weights, flow.mixed, flow.judged)

    def _target_of_second(self, flow: Flow, value: Array) -> tuple[Array, Array]:
        """As of the output; V has no part in it. Of a row of NaN the hidden weights may be that or 0."""
        tensors, judged = replace(self.tensors, bad_value=None), flow.judged
        if tensors.bad_query is not None or tensors.bad_key is not None:
            value, judged = _spread_nonfinite(self._inputs, tensors, flow.index, flow.visible, flow.weights, value, flow.judged)
        judged = judged[..., None]
        if flow.visible is not None and value.shape[-1] == flow.visible.shape[-1] and np.isnan(value).any():
            judged = judged & (flow.visible | ~np.isnan(value))
        return value, judged


def _prepare(inputs: AttentionInputs, work: type[np.floating], shape: tuple[int, ...]) -> Tensors:
    added = added_keys(inputs)
    query = inputs.query.reshape(shape)
    key = with_zeros(inputs.key.astype(work)[:, :, None], added)
    raw_value = value = with_zeros(inputs.value.astype(work)[:, :, None], added)
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
    return Tensors(query, key, value, scale, bad_query, bad_key, bad_value, raw_value, added)


def _spread_nonfinite(
    inputs: AttentionInputs, tensors: Tensors, index: Array, visible: Array | None, weights: Array, output: Array, judged: Array
) -> tuple[Array, Array]:
    """Puts NaN and infinity where they are expected, and takes rows out of judgement where what is expected is a convention."""
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
            key = with_zeros(inputs.key.astype(np.float64)[:, :, None], tensors.added)
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

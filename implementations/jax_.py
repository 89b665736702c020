"""JAX: ``jax.nn.dot_product_attention``, attention by einsum, multi-head attention, sinusoidal encoding, all compiled.

Each is one jitted function, so that calls in the same shapes share a compilation; the scale is an argument of it like the
arrays, which gives what a constant scale gives. 64-bit types are enabled around calls in float64 alone.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.adapter import Implementation, Support
from conformance.problem.inputs import Weights

from .numpy_steps import Window, visible_pairs

if TYPE_CHECKING:
    from jax import Array


class JaxFramework:
    """JAX arrays on the CPU. They have no strides and cannot be changed: each is a copy. Without 64-bit types, which a program
    has to enable, float64 would become float32 and int64 int32: they are enabled where a problem is in float64."""

    name = "jax"
    compiles_shapes = True

    def missing(self, device: str) -> str | None:
        try:
            import jax  # noqa: F401 – whether it can be imported is the question
        except ImportError:
            return "jax is not installed: pip install 'attention-conformance[jax]'."
        return None if device == "cpu" else f"the JAX implementations have no device {device!r}."

    def version(self) -> str:
        import jax

        return str(jax.__version__)

    def from_numpy(self, array: np.ndarray, device: str) -> "Array":
        jax = _jax()
        with self.surroundings(array.dtype.name) or nullcontext():
            return jax.device_put(np.array(array, order="C"), jax.devices(device)[0])

    def to_numpy(self, array: "Array") -> np.ndarray:
        import jax

        if not isinstance(array, jax.Array):
            raise TypeError(f"expected a jax.Array, got {type(array).__name__}")
        return np.asarray(array)

    def dtype_of(self, name: str) -> Any:
        return _jax().numpy.dtype(name)

    def wait(self, result: Any) -> Any:
        return _jax().block_until_ready(result)

    def shares_memory(self, first: "Array", second: "Array") -> bool:
        return False

    def surroundings(self, dtype: str) -> AbstractContextManager[None] | None:
        enabling: AbstractContextManager[None] | None = _jax().enable_x64(True) if dtype == "float64" else None
        return enabling

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Before jax is imported there is nothing to keep."""
        jax = sys.modules.get("jax")
        if jax is None:
            yield
            return
        config = jax.config
        before = dict(config.values)
        try:
            yield
        finally:
            for name, value in before.items():
                if config.values.get(name) != value:
                    config.update(name, value)

    def gradients(self, function: Callable[..., "Array"]) -> Callable[..., Any]:
        """Compiled as one, output and gradients, once for each shape."""

        def both(arrays: tuple["Array", ...], cotangent: "Array") -> Any:
            output, pull_back = _jax().vjp(function, *arrays)
            return output, pull_back(cotangent)

        return _jax().jit(both)


@cache
def _compiled(function: Callable[..., "Array"], *static: int) -> Any:
    """``function`` jitted, once in a process; ``static`` are the places of its arguments that are not arrays."""
    return _jax().jit(function, static_argnums=static)


@cache
def _jax() -> Any:
    import jax

    return jax


FRAMEWORK = JaxFramework()
OPEN = 1 << 30  # a side of a window that hides nothing


def nn_sdpa(
    query: "Array",
    key: "Array",
    value: "Array",
    *,
    mask: "Array | None" = None,
    bias: "Array | None" = None,
    causal: bool = False,
    scale: float | None = None,
    key_lengths: "Array | None" = None,
    window: Window | None = None,
) -> "Array":
    """``jax.nn.dot_product_attention`` under ``jax.jit``; arrays are (batch, length, heads, width)."""
    factor = None if scale is None else np.float64(scale)
    output: Array = _compiled(_nn_sdpa, 7, 8)(query, key, value, mask, bias, factor, key_lengths, causal, window)
    return output


def _nn_sdpa(
    query: "Array", key: "Array", value: "Array", mask: Any, bias: Any, scale: Any, key_lengths: Any, causal: bool,
    window: Window | None,
) -> "Array":  # fmt: skip
    mask, bias = (array[None, None] if array is not None and array.ndim == 2 else array for array in (mask, bias))
    lengths = None if key_lengths is None else key_lengths.astype("int32")
    output: Array = _jax().nn.dot_product_attention(
        query,
        key,
        value,
        bias=bias,
        mask=mask,
        scale=scale,
        is_causal=causal,
        key_value_seq_lengths=lengths,
        local_window_size=None if window is None else tuple(OPEN if side is None else side for side in window),
    )
    return output


def einsum(
    query: "Array",
    key: "Array",
    value: "Array",
    *,
    mask: "Array | None" = None,
    bias: "Array | None" = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: "Array | None" = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: "Array | None" = None,
) -> "Array":
    """The formula as two einsums. A fully masked row gets NaN, as softmax over nothing but −inf gives."""
    (batch, heads, query_length, width), (kv_heads, key_length) = query.shape, key.shape[1:3]
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot be shared out over {kv_heads} key heads")
    shape = (batch, heads, query_length, key_length)
    visible = _visible(shape, mask, causal, alignment, key_lengths, window)
    full_bias = None if bias is None else np.broadcast_to(np.asarray(bias), shape)
    factor = np.float64(width**-0.5 if scale is None else scale)
    output: Array = _compiled(_einsum)(query, key, value, visible, full_bias, factor, _number(softcap), sinks)
    return output


def _number(value: float | None) -> Any:
    """A number of which no compilation depends."""
    return None if value is None else np.float64(value)


def _einsum(
    query: "Array", key: "Array", value: "Array", visible: Any, bias: Any, factor: Any, softcap: Any, sinks: Any
) -> "Array":
    """(b, hq, lq, d), (b, hkv, lk, d), (b, hkv, lk, dv) → (b, hq, lq, dv), each step in the dtype of the inputs."""
    jnp = _jax().numpy
    batch, heads, query_length, width = query.shape
    grouped = query.reshape(batch, key.shape[1], -1, query_length, width)
    products = jnp.einsum("bngqd,bnkd->bngqk", grouped, key).reshape(batch, heads, query_length, -1)
    precise = jnp.promote_types(query.dtype, jnp.float32)  # the scale is not rounded to 16 bits
    scores = (products * jnp.asarray(factor, precise)).astype(query.dtype)
    if softcap is not None:
        cap = jnp.asarray(softcap, query.dtype)
        scores = cap * jnp.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = jnp.where(visible, scores, -jnp.inf)
    if sinks is not None:
        column = jnp.broadcast_to(sinks[None, :, None, None], (*scores.shape[:3], 1))
        scores = jnp.concatenate((scores, column), axis=-1)
    weights = _jax().nn.softmax(scores, axis=-1)[..., : key.shape[2]].reshape(*grouped.shape[:4], -1)
    output: Array = jnp.einsum("bngqk,bnkv->bngqv", weights, value).reshape(batch, heads, query_length, -1)
    return output


def multi_head(
    query: "Array",
    key: "Array",
    value: "Array",
    weights: Weights,
    *,
    num_heads: int,
    mask: "Array | None" = None,
    causal: bool = False,
    alignment: str = "top-left",
    key_lengths: "Array | None" = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: "Array | None" = None,
) -> "Array":
    """Projects, splits into heads, attends as ``einsum`` does, merges and projects. Raises ValueError if heads do not divide."""
    for matrix in (weights.query, weights.value):
        if matrix.shape[1] % num_heads:
            raise ValueError(f"a width of {matrix.shape[1]} cannot be split into {num_heads} heads")
    shape = (query.shape[0], num_heads, query.shape[1], key.shape[1])
    visible = _visible(shape, mask, causal, alignment, key_lengths, window)
    output: Array = _compiled(_multi_head, 5)(query, key, value, weights.arrays(), visible, num_heads, _number(softcap), sinks)
    return output


def _multi_head(
    query: "Array",
    key: "Array",
    value: "Array",
    weights: dict[str, "Array"],
    visible: Any,
    num_heads: int,
    softcap: Any,
    sinks: Any,
) -> "Array":
    def project(x: "Array", role: str) -> "Array":
        product = x @ weights[role]
        return product + weights[f"{role}_bias"] if f"{role}_bias" in weights else product

    def heads_of(x: "Array", role: str) -> "Array":
        projected = project(x, role)
        return projected.reshape(*projected.shape[:2], num_heads, -1).swapaxes(1, 2)

    q, k, v = heads_of(query, "query"), heads_of(key, "key"), heads_of(value, "value")
    merged = _einsum(q, k, v, visible, None, q.shape[-1] ** -0.5, softcap, sinks).swapaxes(1, 2).reshape(*query.shape[:2], -1)
    return project(merged, "output") if "output" in weights else merged


def sinusoidal(length: int, d_model: int, *, dtype: Any, arrangement: str = "interleaved", x: "Array | None" = None) -> "Array":
    """The table in float32 (float64 if asked), rounded to ``dtype``; or x + table. An odd width keeps its last sine alone."""
    output: Array = _compiled(_sinusoidal, 1, 2, 3, 4)(x, length, d_model, dtype, arrangement)
    return output


def _sinusoidal(x: Any, length: int, d_model: int, dtype: Any, arrangement: str) -> "Array":
    jnp = _jax().numpy
    work = jnp.promote_types(dtype, jnp.float32)
    rates = jnp.power(jnp.asarray(10000, work), -jnp.arange(0, d_model, 2, dtype=work) / d_model)
    angles = jnp.arange(length, dtype=work)[:, None] * rates
    sines, cosines = jnp.sin(angles), jnp.cos(angles[:, : d_model // 2])
    if arrangement == "concatenated":
        table = jnp.concatenate((sines, cosines), axis=-1)
    else:
        table = jnp.zeros((length, d_model), work).at[:, 0::2].set(sines).at[:, 1::2].set(cosines)
    table = table.astype(dtype)
    return table if x is None else x + table


def _visible(
    shape: tuple[int, ...], mask: Any, causal: bool, alignment: str, key_lengths: Any, window: Window | None
) -> np.ndarray | None:
    """Where the scores of ``shape`` count, at full size, so that all kinds of masks share a compilation; None where all do."""
    mask, key_lengths = (None if array is None else np.asarray(array) for array in (mask, key_lengths))
    visible = visible_pairs(shape[2], shape[3], mask, causal, alignment, key_lengths, window)
    return None if visible is None else np.broadcast_to(visible, shape)


_MASKING = {
    "CON-NAN-BEHIND-MASK-K": "contained",
    "CON-NAN-BEHIND-MASK-V": "leaks",
    "CON-INF-BEHIND-MASK-V": "leaks",
    "CON-ALIGNMENT": "top-left",
    "CON-WINDOW": "inclusive",
    "CON-WINDOW-ALIGNMENT": "top-left",
    "CON-POLARITY": "true-attends",
}
_CONVENTIONS = _MASKING | {
    "CON-EMPTY-ROW": "mean",
    "CON-ZERO-SCALE": "ordinary",
    "CON-NEGATIVE-SCALE": "ordinary",
    "CON-GROUPS-REFUSED": "refused",
}
_LAYOUTS = ("contiguous",)
_STEP_BY_STEP = {"float64": "strict", "float32": "strict", "float16": "unfused", "bfloat16": "unfused"}

IMPLEMENTATIONS = (
    # Compiled for a CPU, float16 is refused: the fallback for the precision F16_F16_F32 catches what tracing raises, and
    # under jit the refusal comes later. So float16 is not declared. Uncompiled it works, at 40 times the time per problem.
    Implementation(
        "jax-nn-sdpa",
        nn_sdpa,
        Support(
            dtypes=("float64", "float32", "bfloat16"),
            lacks=frozenset({"value-width"}),
            layouts=_LAYOUTS,
            axes="blhd",
            profile={"float64": "soft32", "float32": "strict", "bfloat16": "fused"},
            conventions=_CONVENTIONS,
            compiles=True,
        ),
        FRAMEWORK,
    ),
    Implementation(
        "jax-einsum",
        einsum,
        Support(layouts=_LAYOUTS, profile=_STEP_BY_STEP, conventions=_CONVENTIONS | {"CON-EMPTY-ROW": "nan"}, compiles=True),
        FRAMEWORK,
    ),
    Implementation(
        "jax-multi-head",
        multi_head,
        Support(
            operation="multi_head_attention",
            profile=_STEP_BY_STEP,
            conventions=_MASKING | {"CON-EMPTY-ROW": "nan", "CON-WIDTH-REFUSED": "refused"},
            compiles=True,
        ),
        FRAMEWORK,
    ),
    Implementation(
        "jax-sinusoidal",
        sinusoidal,
        Support(
            operation="sinusoidal_encoding",
            conventions={
                "CON-SINUSOID-ARRANGEMENT": "interleaved",
                "CON-SINUSOID-FREQUENCIES": "d",
                "CON-ODD-WIDTH": "extra-sine",
                "CON-BEYOND-MAX-LEN": "extends",
            },
            compiles=True,
        ),
        FRAMEWORK,
    ),
)

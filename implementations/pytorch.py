"""PyTorch: how its tensors get in and out; attention written out and with einsum; sinusoidal encoding."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from conformance.adapter import Implementation, Support

from .numpy_steps import Window

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from conformance.adapter import Clock

MOST_SHAPES = 1 << 20  # that torch.compile compiles of one function
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class TorchFramework:
    """Torch tensors with the strides of the NumPy array, gaps between elements included; on the CPU they share its memory."""

    name = "torch"

    def missing(self, device: str) -> str | None:
        try:
            import torch
        except ImportError:
            return "torch is not installed: pip install 'attention-conformance[torch]'."
        if device == "cuda" and not torch.cuda.is_available():
            return "torch finds no CUDA device."
        return None

    def version(self) -> str:
        import torch

        return str(torch.__version__)

    def from_numpy(self, array: np.ndarray, device: str) -> "Tensor":
        import torch

        owner, strides, offset = _memory_of(array)
        memory = torch.from_numpy(owner.view(np.int16) if owner.dtype == BFLOAT16 else owner).to(device)
        if owner.dtype == BFLOAT16:
            memory = memory.view(torch.bfloat16)
        return memory.as_strided(array.shape, strides, offset)

    def to_numpy(self, array: "Tensor") -> np.ndarray:
        import torch

        if not isinstance(array, torch.Tensor):
            raise TypeError(f"expected a torch.Tensor, got {type(array).__name__}")
        array = array.detach().cpu()
        if array.dtype == torch.bfloat16:  # torch gives NumPy no bfloat16
            return array.view(torch.int16).numpy().view(BFLOAT16)
        return array.numpy()

    def dtype_of(self, name: str) -> "torch.dtype":
        import torch

        return {
            "float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
        }[name]  # fmt: skip

    def wait(self, result: Any) -> Any:
        import torch

        for part in result if isinstance(result, tuple | list) else (result,):
            if isinstance(part, torch.Tensor) and part.is_cuda:
                torch.cuda.synchronize(part.device)
                break
        return result

    def shares_memory(self, first: "Tensor", second: "Tensor") -> bool:
        return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()

    def overwrite(self, array: "Tensor", contents: np.ndarray) -> None:
        """By torch itself, which counts the changes of a tensor; an axis of stride 0 is written to once."""
        import torch

        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.stride())
        with torch.no_grad():
            array[once].copy_(self.from_numpy(contents, "cpu")[once])

    def compilations(self) -> tuple[int, int]:
        """Of torch.compile. By default it gives up a function after eight shapes, and calls the others as they are."""
        import torch._dynamo as dynamo

        dynamo.config.recompile_limit = dynamo.config.accumulated_recompile_limit = MOST_SHAPES
        dynamo.config.fail_on_recompile_limit_hit = True
        counted = dynamo.utils.counters
        frames = counted["frames"]
        return counted["stats"]["unique_graphs"], frames["total"] - frames["ok"]

    def forget_compiled(self) -> None:
        import torch._dynamo as dynamo

        dynamo.reset()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Before torch is imported there is nothing to keep."""
        torch = sys.modules.get("torch")
        if torch is None:
            yield
            return
        drawn = torch.get_rng_state()
        before = [(getter, setter, getter()) for getter, setter in _state(torch)]
        try:
            yield
        finally:
            torch.set_rng_state(drawn)
            for getter, setter, value in before:
                if getter() != value:  # some setters take a second, since they import the compiler
                    setter(value)

    def gradients(self, function: Callable[..., "Tensor"]) -> Callable[..., Any]:
        import torch

        def both(tensors: tuple["Tensor", ...], cotangent: "Tensor") -> Any:
            leaves = tuple(tensor.detach().requires_grad_() for tensor in tensors)
            output = function(*leaves)
            return output.detach(), torch.autograd.grad(output, leaves, cotangent)

        return both

    def clock(self, device: str) -> "Clock | None":
        import torch

        return CudaClock(torch) if device == "cuda" else None


def _state(torch: Any) -> list[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """How what torch keeps for the whole process is read and set."""
    return [
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
        (torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp),
        (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    ]


def _memory_of(array: np.ndarray) -> tuple[np.ndarray, list[int], int]:
    """All the memory that ``array`` is a view of, flat and writable; its strides in there and where it begins, in elements.

    It is copied where the array is read-only, or its memory is not one block of its dtype.
    """
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not (owner.flags.owndata and owner.flags.c_contiguous and owner.dtype == array.dtype):
        owner = array = np.array(array, order="C", subok=False)
    start, first = owner.__array_interface__["data"][0], array.__array_interface__["data"][0]
    if not array.flags.writeable:
        owner = owner.copy()
    return owner.reshape(-1), [stride // array.itemsize for stride in array.strides], (first - start) // array.itemsize


class CudaClock:
    """Events on the current stream, the L2 cache overwritten before each call; memory as torch's allocator counts it."""

    FLUSHED = 256 << 20  # bytes: more than the L2 cache of any device so far

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._flush = torch.empty(self.FLUSHED, dtype=torch.int8, device="cuda")

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        self._flush.zero_()
        start.record()
        result = call()
        end.record()
        cuda.synchronize()  # work on other streams is waited for too, though it is not within the events
        return start.elapsed_time(end) / 1e3, result

    def peak_bytes(self, call: Callable[[], Any]) -> int | None:
        cuda = self._torch.cuda
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        call()
        cuda.synchronize()
        return int(cuda.max_memory_allocated() - before)


FRAMEWORK = TorchFramework()


def inference(*tensors: "Tensor") -> Any:
    """``torch.inference_mode``, unless a gradient with respect to one of ``tensors`` is asked for."""
    import torch

    return torch.inference_mode(not any(tensor.requires_grad for tensor in tensors))


def direct(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    *,
    mask: "Tensor | None" = None,
    bias: "Tensor | None" = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: "Tensor | None" = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: "Tensor | None" = None,
) -> "Tensor":
    """softmax(scale · Q Kᵀ + bias) V step by step in the dtype of the inputs. A fully masked row gets NaN."""
    import torch

    with inference(query, key, value):
        groups = _groups(query, key)
        if groups > 1:
            key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if bias is not None:
            scores = scores + bias
        hidden = _hidden(scores, mask, causal, alignment, key_lengths, window)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        return torch.softmax(_with_sinks(scores, sinks), dim=-1)[..., : key.shape[2]] @ value


def einsum(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    *,
    mask: "Tensor | None" = None,
    bias: "Tensor | None" = None,
    causal: bool = False,
    alignment: str = "top-left",
    scale: float | None = None,
    key_lengths: "Tensor | None" = None,
    window: Window | None = None,
    softcap: float | None = None,
    sinks: "Tensor | None" = None,
) -> "Tensor":
    """The formula as two einsums, the heads of a group along an axis of their own. A fully masked row gets zeros."""
    import torch

    with inference(query, key, value):
        full = (*query.shape[:3], key.shape[2])
        grouped = query.unflatten(1, (key.shape[1], _groups(query, key)))
        products = torch.einsum("bngqd,bnkd->bngqk", grouped, key).reshape(full)
        scores = products * (query.shape[-1] ** -0.5 if scale is None else scale)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if bias is not None:
            scores = scores + bias
        hidden = _hidden(scores, mask, causal, alignment, key_lengths, window)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        scores = _with_sinks(scores, sinks)
        empty = (scores == -torch.inf).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores, dim=-1)[..., : key.shape[2]].masked_fill(empty, 0.0)
        return torch.einsum("bngqk,bnkv->bngqv", weights.unflatten(1, grouped.shape[1:3]), value).flatten(1, 2)


def sinusoidal(
    length: int, d_model: int, *, dtype: "torch.dtype", arrangement: str = "interleaved", x: "Tensor | None" = None
) -> "Tensor":
    """The table in float32 (float64 if asked), rounded to ``dtype``; or x + table. An odd width keeps its last sine alone."""
    import torch

    with torch.inference_mode():
        work = torch.promote_types(dtype, torch.float32)
        frequencies = torch.exp(torch.arange(0, d_model, 2, dtype=work) * (-np.log(10000.0) / d_model))
        angles = torch.arange(length, dtype=work)[:, None] * frequencies
        sines, cosines = torch.sin(angles), torch.cos(angles[:, : d_model // 2])
        if arrangement == "concatenated":
            table = torch.cat((sines, cosines), dim=-1)
        else:
            table = torch.empty(length, d_model, dtype=work)
            table[:, 0::2], table[:, 1::2] = sines, cosines
        return table.to(dtype) if x is None else x + table.to(dtype)


def _groups(query: "Tensor", key: "Tensor") -> int:
    """How many query heads share a key head; raises ValueError where they cannot be shared out."""
    heads, kv_heads = query.shape[1], key.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot be shared out over {kv_heads} key heads")
    return heads // kv_heads


def _with_sinks(scores: "Tensor", sinks: "Tensor | None") -> "Tensor":
    """The scores (b, h, lq, lk) with a column of sinks (h) behind them, where there are any."""
    import torch

    return scores if sinks is None else torch.cat((scores, sinks[:, None, None].expand(*scores.shape[:3], 1)), dim=-1)


def _hidden(
    scores: "Tensor", mask: "Tensor | None", causal: bool, alignment: str, key_lengths: "Tensor | None", window: Window | None
) -> "Tensor | None":
    """Where the scores (b, h, lq, lk) do not count, in a shape that broadcasts over them; None where all count."""
    import torch

    query_length, key_length = scores.shape[-2:]
    conditions = [] if mask is None else [~mask]
    diagonal = key_length - query_length if alignment == "bottom-right" else 0
    if window is not None:
        far = query_length + key_length
        left, right = (far if side is None else min(side, far) for side in window)
        outside = torch.ones(query_length, key_length, dtype=torch.bool, device=scores.device)
        conditions += [outside.tril(diagonal - left - 1), outside.triu(diagonal + right + 1)]
    if causal:
        conditions.append(torch.ones(query_length, key_length, dtype=torch.bool, device=scores.device).triu(diagonal + 1))
    if key_lengths is not None:
        conditions.append((torch.arange(key_length, device=scores.device) >= key_lengths[:, None])[:, None, None, :])
    hidden = conditions[0] if conditions else None
    for condition in conditions[1:]:
        hidden = hidden | condition
    return hidden


CONVENTIONS = {
    "CON-EMPTY-ROW": "nan",
    "CON-WINDOW": "inclusive",
    "CON-WINDOW-ALIGNMENT": "top-left",
    "CON-NAN-BEHIND-MASK-K": "contained",
    "CON-NAN-BEHIND-MASK-V": "leaks",
    "CON-INF-BEHIND-MASK-V": "leaks",
    "CON-ALIGNMENT": "top-left",
    "CON-POLARITY": "true-attends",
    "CON-ZERO-SCALE": "ordinary",
    "CON-NEGATIVE-SCALE": "ordinary",
    "CON-GROUPS-REFUSED": "refused",
}
STEP_BY_STEP = {"float64": "strict", "float32": "strict", "float16": "unfused", "bfloat16": "unfused"}

IMPLEMENTATIONS = (
    Implementation("torch-direct", direct, Support(profile=STEP_BY_STEP, conventions=CONVENTIONS), FRAMEWORK),
    Implementation(
        "torch-einsum",
        einsum,
        Support(profile=STEP_BY_STEP, conventions=CONVENTIONS | {"CON-EMPTY-ROW": "zeros"}),
        FRAMEWORK,
    ),
    Implementation(
        "torch-sinusoidal",
        sinusoidal,
        Support(
            operation="sinusoidal_encoding",
            conventions={
                "CON-SINUSOID-ARRANGEMENT": "interleaved",
                "CON-SINUSOID-FREQUENCIES": "d",
                "CON-ODD-WIDTH": "extra-sine",
                "CON-BEYOND-MAX-LEN": "extends",
            },
        ),
        FRAMEWORK,
    ),
    Implementation("torch-cuda-direct", direct, Support(device="cuda", profile=STEP_BY_STEP, conventions=CONVENTIONS), FRAMEWORK),
)

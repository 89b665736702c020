"""``torch.nn.functional.scaled_dot_product_attention``, as torch dispatches it and held to each backend, on CPU and CUDA.

What the backends take was found by asking them on CPU, and for CUDA from their checks in
``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``. Mask, bias and causal exclude one another in the documentation of
the function, so each problem asks for one of them; the flash backend on CPU accepts mask and causal together all the same.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from conformance.adapter import Implementation, Support
from conformance.errors import Unsupported

from .pytorch import CONVENTIONS, FRAMEWORK, inference

if TYPE_CHECKING:
    from torch import Tensor

Attention = Callable[..., "Tensor"]


def on_backend(backend: str | None) -> Attention:
    """The function held to ``backend`` (a name in ``torch.nn.attention.SDPBackend``); None leaves the choice to torch."""

    def attention(
        query: "Tensor",
        key: "Tensor",
        value: "Tensor",
        *,
        mask: "Tensor | None" = None,
        bias: "Tensor | None" = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> "Tensor":
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        def call() -> "Tensor":
            return scaled_dot_product_attention(
                query, key, value, attn_mask=mask if bias is None else bias, is_causal=causal, scale=scale,
                enable_gqa=query.shape[1] != key.shape[1],
            )  # fmt: skip

        with inference(query, key, value):
            if backend is None:
                return call()
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return call()

    return attention


def without_mask(backend: str) -> Attention:
    """A backend that takes no mask, and causal with unequal lengths only as ``causal_lower_right``."""
    on = on_backend(backend)

    def attention(
        query: "Tensor", key: "Tensor", value: "Tensor", *, causal: bool = False, scale: float | None = None
    ) -> "Tensor":
        from torch.nn.attention.bias import causal_lower_right

        if causal and query.shape[2] != key.shape[2]:
            return on(query, key, value, mask=causal_lower_right(query.shape[2], key.shape[2]), scale=scale)
        return on(query, key, value, causal=causal, scale=scale)

    return attention


def with_padded_widths(backend: str, *, one_key: bool = True) -> Attention:
    """A backend that takes widths in multiples of 8: others are filled up with zeros, which changes no product.

    ``one_key`` False: the backend does not take a single key, and binding such inputs raises Unsupported.
    """
    on = on_backend(backend)

    def bind(
        query: "Tensor",
        key: "Tensor",
        value: "Tensor",
        *,
        mask: "Tensor | None" = None,
        bias: "Tensor | None" = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> Callable[[], "Tensor"]:
        from torch.nn.functional import pad

        if key.shape[2] == 1 and not one_key:
            raise Unsupported("a single key")
        width, value_width = query.shape[-1], value.shape[-1]
        if width % 8 or value_width % 8:
            query, key, value = (pad(tensor, (0, -tensor.shape[-1] % 8)) for tensor in (query, key, value))
            scale = width**-0.5 if scale is None else scale

        def call() -> "Tensor":
            output = on(query, key, value, mask=mask, bias=bias, causal=causal, scale=scale)
            return output if output.shape[-1] == value_width else output[..., :value_width]

        return call

    return bind


def flash_with_lse(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    *,
    bias: "Tensor | None" = None,
    causal: bool = False,
    scale: float | None = None,
) -> "tuple[Tensor, Tensor]":
    """The flash kernel of the CPU as its backward pass needs it: the output, and the log-sum-exp of each row, in float32 beside
    16-bit inputs. A fully masked row gets zeros, and 0 for its log-sum-exp."""
    import torch

    with inference(query, key, value):
        output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=bias, scale=scale
        )
    return output, lse


_EXCLUSIVE = frozenset({"mask", "bias", "causal"})
_UNIT_STRIDE = (  # the fused kernels want the width without gaps
    *("contiguous", "transposed", "expanded", "mixed", "packed", "misaligned"),
    *("mask-strided", "mask-transposed", "mask-expanded"),
)
_ON_CPU = CONVENTIONS | {"CON-EMPTY-ROW": "zeros", "CON-NAN-BEHIND-MASK-K": "leaks"}
_ON_CUDA = {key: CONVENTIONS[key] for key in ("CON-ALIGNMENT", "CON-POLARITY")}  # the rest is observed where there is a device
_FUSED = {"float64": "strict", "float32": "strict", "float16": "fused", "bfloat16": "fused"}
# The exponentials of 16-bit inputs have 14 correct bits: enough for weights that are rounded to 11, and not for a log-sum-exp in
# float32, of which ``fused`` demands more.
_FAST_EXPONENTIAL = _FUSED | {"float16": "unfused", "bfloat16": "unfused"}
_MATH = {"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"}

IMPLEMENTATIONS = (
    Implementation(
        "torch-sdpa",
        on_backend(None),
        Support(exclusive=_EXCLUSIVE, profile=_FUSED, conventions=_ON_CPU),
        FRAMEWORK,
    ),
    Implementation(
        "torch-sdpa-math",
        on_backend("MATH"),
        Support(exclusive=_EXCLUSIVE, profile=_MATH, conventions=_ON_CPU),
        FRAMEWORK,
    ),
    Implementation(
        "torch-sdpa-flash",
        on_backend("FLASH_ATTENTION"),
        Support(
            exclusive=_EXCLUSIVE,
            lacks=frozenset({"value-width"}),
            layouts=_UNIT_STRIDE,
            profile=_FUSED,
            conventions=_ON_CPU,
        ),
        FRAMEWORK,
    ),
    Implementation(
        "torch-flash-lse",
        flash_with_lse,
        Support(
            returns=("output", "lse"),
            exclusive=_EXCLUSIVE,
            lacks=frozenset({"value-width"}),
            layouts=_UNIT_STRIDE,
            profile=_FAST_EXPONENTIAL,
            conventions=_ON_CPU | {"CON-GROUPS-REFUSED": "accepted", "CON-LSE-BASE": "natural", "CON-LSE-EMPTY-ROW": "zero"},
        ),
        FRAMEWORK,
    ),
    Implementation(
        "torch-cuda-sdpa-math",
        on_backend("MATH"),
        Support(device="cuda", exclusive=_EXCLUSIVE, profile=_MATH, conventions=_ON_CUDA),
        FRAMEWORK,
    ),
    Implementation(
        "torch-cuda-sdpa-flash",
        without_mask("FLASH_ATTENTION"),
        Support(
            device="cuda",
            lacks=frozenset({"value-width"}),
            dtypes=("float16", "bfloat16"),
            layouts=_UNIT_STRIDE,
            profile="fused",
            conventions=_ON_CUDA | {"CON-ALIGNMENT": "bottom-right"},
        ),
        FRAMEWORK,
    ),
    Implementation(
        "torch-cuda-sdpa-efficient",
        with_padded_widths("EFFICIENT_ATTENTION"),
        Support(
            device="cuda",
            exclusive=_EXCLUSIVE,
            dtypes=("float32", "float16", "bfloat16"),
            layouts=_UNIT_STRIDE,
            profile={"float16": "fused", "bfloat16": "fused"},
            conventions=_ON_CUDA,
            binds=True,
        ),
        FRAMEWORK,
    ),
    Implementation(
        "torch-cuda-sdpa-cudnn",
        with_padded_widths("CUDNN_ATTENTION", one_key=False),
        Support(
            device="cuda",
            exclusive=_EXCLUSIVE,
            dtypes=("float16", "bfloat16"),
            layouts=_UNIT_STRIDE,
            profile="fused",
            conventions=_ON_CUDA,
            binds=True,
        ),
        FRAMEWORK,
    ),
)

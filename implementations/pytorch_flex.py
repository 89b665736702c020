"""``torch.nn.attention.flex_attention``, not compiled: a function of (score, batch, head, query, key) changes the scores, and a
block mask says which count. Sinks follow from the log-sum-exp that it returns on request.
"""

from typing import TYPE_CHECKING, Any

from conformance.adapter import Implementation, Support

from .numpy_steps import Window
from .pytorch import CONVENTIONS, FRAMEWORK, inference

if TYPE_CHECKING:
    from torch import Tensor


def flex(
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
    """Softcap and bias as a change of scores, all that hides as a block mask. A fully masked row gets zeros."""
    import torch
    from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

    full = (*query.shape[:3], key.shape[2])
    shown, added = (None if array is None else array.expand(full) for array in (mask, bias))
    diagonal = full[3] - full[2] if alignment == "bottom-right" else 0
    left, right = (sum(full) if side is None else side for side in window or (None, None))

    def of_score(score: "Tensor", b: "Tensor", h: "Tensor", i: "Tensor", j: "Tensor") -> "Tensor":
        if softcap is not None:
            score = softcap * torch.tanh(score / softcap)
        return score if added is None else score + added[b, h, i, j]

    def counts(b: "Tensor", h: "Tensor", i: "Tensor", j: "Tensor") -> "Tensor":
        seen = (j >= i + diagonal - left) & (j <= i + diagonal + (0 if causal else right))
        if causal:
            seen = seen & (j <= i + diagonal + right)
        if shown is not None:
            seen = seen & shown[b, h, i, j]
        return seen if key_lengths is None else seen & (j < key_lengths[b])

    with inference(query, key, value):
        hides = mask is not None or causal or key_lengths is not None or window is not None
        output: Any = flex_attention(
            query, key, value, scale=scale, enable_gqa=query.shape[1] != key.shape[1],
            score_mod=of_score if softcap is not None or bias is not None else None,
            block_mask=create_block_mask(counts, *full, device=query.device) if hides else None,
            return_aux=AuxRequest(lse=True) if sinks is not None else None,
        )  # fmt: skip
        if sinks is None:
            return output
        attended, aux = output
        return (attended * torch.sigmoid(aux.lse - sinks[:, None])[..., None]).to(query.dtype)


IMPLEMENTATIONS = (
    Implementation(
        "torch-flex", flex, Support(conventions=CONVENTIONS | {"CON-EMPTY-ROW": "zeros"}), FRAMEWORK, when_named=True
    ),  # 30 to 70 ms a call, since functions are traced each time
)

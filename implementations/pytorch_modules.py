"""``torch.nn.MultiheadAttention``: built and loaded with the given weights first, then called as a trained module would be."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.adapter import Implementation, Support
from conformance.problem.inputs import Weights

from .pytorch import FRAMEWORK, STEP_BY_STEP

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import MultiheadAttention


def multihead(need_weights: bool, of_heads: bool = False) -> Callable[..., Callable[[], Any]]:
    """The module in evaluation mode. ``need_weights`` decides between two code paths: the weights returned, or a fused kernel.
    ``of_heads``: the weights of each head are returned too, which are averaged otherwise and left out.

    Masks have the module's own polarity, True = ignore: ``key_padding_mask`` for those that are equal in all heads and query
    rows and for key lengths, ``attn_mask`` for all others and for causal.
    """

    def bind(
        query: "Tensor",
        key: "Tensor",
        value: "Tensor",
        weights: Weights,
        *,
        num_heads: int,
        mask: "Tensor | None" = None,
        causal: bool = False,
        key_lengths: "Tensor | None" = None,
    ) -> Callable[[], Any]:
        import torch

        module = build(weights, num_heads, query.dtype)
        lengths = (query.shape[1], key.shape[1])
        padding = None if key_lengths is None else torch.arange(lengths[1]) >= key_lengths[:, None]
        if mask is not None and mask.dim() == 4 and mask.shape[1:3] == (1, 1):
            by_key = mask[:, 0, 0].expand(query.shape[0], lengths[1])
            padding, mask = by_key if padding is None else padding | by_key, None
        triangle = torch.ones(lengths, dtype=torch.bool).triu(1) if causal else None
        if mask is not None and mask.dim() == 4:
            mask = mask.expand(query.shape[0], num_heads, *lengths).reshape(-1, *lengths)
        if mask is not None and triangle is not None:
            mask = mask | triangle

        def call() -> Any:
            with torch.inference_mode():
                result = module(
                    query, key, value, key_padding_mask=padding, need_weights=need_weights, average_attn_weights=not of_heads,
                    attn_mask=triangle if mask is None else mask, is_causal=causal and mask is None,
                )  # fmt: skip
            return result if of_heads else result[0]

        return call

    return bind


def build(weights: Weights, num_heads: int, dtype: object) -> "MultiheadAttention":
    """The module with ``weights``, all biases or none. Raises what torch raises where heads do not divide the width."""
    import torch

    assert weights.output is not None
    with_bias = weights.output_bias is not None
    model = weights.query.shape[0]
    module = torch.nn.MultiheadAttention(model, num_heads, bias=with_bias, batch_first=True, dtype=dtype)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat((weights.query, weights.key, weights.value), dim=1).T)
        module.out_proj.weight.copy_(weights.output.T)
        if with_bias:
            module.in_proj_bias.copy_(torch.cat((weights.query_bias, weights.key_bias, weights.value_bias)))
            module.out_proj.bias.copy_(weights.output_bias)
    return module.eval()


def _support(fully_masked_row: str) -> Support:
    return Support(
        operation="multi_head_attention",
        lacks=frozenset({"no-output-projection", "separate-biases", "inner-width", "value-width"}),  # one flag for all biases
        profile=STEP_BY_STEP,
        conventions={
            "CON-EMPTY-ROW": fully_masked_row,
            "CON-NAN-BEHIND-MASK-K": "leaks",  # masks become −inf that is added to the scores
            "CON-NAN-BEHIND-MASK-V": "leaks",
            "CON-INF-BEHIND-MASK-V": "leaks",
            "CON-ALIGNMENT": "top-left",
            "CON-POLARITY": "true-ignores",
            "CON-WIDTH-REFUSED": "refused",
        },
        binds=True,
    )


_HEADS = _support(fully_masked_row="nan")

IMPLEMENTATIONS = (
    Implementation("torch-mha", multihead(need_weights=False), _support(fully_masked_row="zeros"), FRAMEWORK),
    Implementation("torch-mha-weights", multihead(need_weights=True), _support(fully_masked_row="nan"), FRAMEWORK),
    Implementation(
        "torch-mha-head-weights",
        multihead(need_weights=True, of_heads=True),
        replace(_HEADS, returns=("output", "weights"), conventions={**_HEADS.conventions, "CON-WEIGHTS-EMPTY-ROW": "nan"}),
        FRAMEWORK,
    ),
)

"""Document 001: self-attention in PyTorch by einsum, with one projection per role that all heads share.

Two things in it are wrong: the scores are divided by √embed_size, the width of the whole embedding, where the width of a head is
expected; and the projections, though they are made, are not applied. ``document-001-as-printed`` has both,
``document-001-attention`` the first only, which is how the text around the code describes it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from conformance.adapter import Implementation, Support
from conformance.problem.inputs import Weights

from ..pytorch import FRAMEWORK, STEP_BY_STEP
from .documents_000_and_003 import MASKING_CONVENTIONS

if TYPE_CHECKING:
    from torch import Tensor

FILL = -1e20


def shared_projection(applied: bool) -> Callable[..., "Tensor"]:
    """Attention over heads cut from the embedding. ``applied``: each piece goes through the (d, d) matrix of its role first."""

    def attend(
        query: "Tensor", key: "Tensor", value: "Tensor", weights: Weights, *, num_heads: int, mask: "Tensor | None" = None
    ) -> "Tensor":
        import torch

        batch, query_length, embedding = query.shape
        width = embedding // num_heads
        if width * num_heads != embedding:
            raise ValueError(f"the embedding of {embedding} is not divisible by {num_heads} heads")
        assert weights.output is not None

        def pieces(x: "Tensor", matrix: "Tensor") -> "Tensor":
            cut = x.reshape(batch, -1, num_heads, width)
            return torch.nn.functional.linear(cut, matrix[:width, :width].T) if applied else cut

        with torch.inference_mode():
            q, k, v = pieces(query, weights.query), pieces(key, weights.key), pieces(value, weights.value)
            energy = torch.einsum("bqhc,bkhc->bhqk", q, k) / embedding**0.5
            if mask is not None:
                energy = energy.masked_fill(mask.int() == 0, FILL)
            mixed = torch.einsum("bhqk,bkhc->bqhc", torch.softmax(energy, dim=3), v)
            joined = mixed.reshape(batch, query_length, embedding)
            return torch.nn.functional.linear(joined, weights.output.T, weights.output_bias)

    return attend


_SHARED = Support(
    operation="multi_head_attention",
    lacks=frozenset({"full-weights", "projection-bias", "no-output-projection", "inner-width", "value-width"}),
    profile=STEP_BY_STEP,
    conventions=MASKING_CONVENTIONS,
)

IMPLEMENTATIONS = (
    Implementation("document-001-attention", shared_projection(applied=True), _SHARED, FRAMEWORK),
    Implementation("document-001-as-printed", shared_projection(applied=False), _SHARED, FRAMEWORK),
)

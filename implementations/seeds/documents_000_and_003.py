"""Documents 000 and 003: multi-head attention in PyTorch, four linear layers with biases, masks of 0 and 1 filled with −1e9.

They differ in how the scores are divided: 000 by a float32 tensor √d_k, 003 by a Python number. Neither has a causal flag
or key lengths; both refuse a width that the number of heads does not divide.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.adapter import Implementation, Support
from conformance.problem.inputs import Weights

from ..pytorch import FRAMEWORK, STEP_BY_STEP

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FILL = -1e9
# Scores are replaced by a finite number: NaN in K goes, a fully masked row averages all V, and 0 · NaN in V stays.
MASKING_CONVENTIONS = {
    "CON-EMPTY-ROW": "mean",
    "CON-NAN-BEHIND-MASK-K": "contained",
    "CON-NAN-BEHIND-MASK-V": "leaks",
    "CON-INF-BEHIND-MASK-V": "leaks",
    "CON-POLARITY": "true-attends",
    "CON-WIDTH-REFUSED": "refused",
}
TABLE_ROWS = 5000


def multi_head(divisor: Callable[[int], Any]) -> Callable[..., "Tensor"]:
    """Multi-head attention whose scores are divided by ``divisor(head width)``."""

    def attend(
        query: "Tensor", key: "Tensor", value: "Tensor", weights: Weights, *, num_heads: int, mask: "Tensor | None" = None
    ) -> "Tensor":
        import torch

        batch, query_length, model = query.shape
        if model % num_heads:
            raise ValueError(f"the width {model} is not divisible by {num_heads} heads")
        head_width = model // num_heads

        def heads_of(x: "Tensor", matrix: "Tensor", shift: "Tensor | None") -> "Tensor":
            return _linear(x, matrix, shift).view(batch, -1, num_heads, head_width).transpose(1, 2)

        with torch.inference_mode():
            q = heads_of(query, weights.query, weights.query_bias)
            k = heads_of(key, weights.key, weights.key_bias)
            v = heads_of(value, weights.value, weights.value_bias)
            scores = torch.matmul(q, k.transpose(-2, -1)) / divisor(head_width)
            if mask is not None:
                scores = scores.masked_fill(mask.int() == 0, FILL)
            attended = torch.matmul(torch.softmax(scores, dim=-1), v)
            merged = attended.transpose(1, 2).reshape(batch, query_length, model)
            return _linear(merged, weights.output, weights.output_bias)

    return attend


def float32_root(width: int) -> "Tensor":
    """√width as document 000 takes it: a float32 tensor, whatever the dtype of the scores."""
    import torch

    return torch.sqrt(torch.tensor(width, dtype=torch.float32))


def python_root(width: int) -> float:
    """√width as document 003 takes it."""
    return math.sqrt(width)


def positional(length: int, d_model: int, *, dtype: "torch.dtype", x: "Tensor | None" = None) -> Callable[[], "Tensor"]:
    """Document 000's positional encoding: a float32 table of 5000 rows, of which the first are added to ``x``.

    The table is moved to ``dtype`` as the buffer of a module would be; without ``x`` it is added to zeros. Raises RuntimeError
    for an odd width, for which there are more cosines than columns, and beyond 5000 positions.
    """
    import torch

    with torch.inference_mode():
        table = torch.zeros(TABLE_ROWS, d_model)
        position = torch.arange(0, TABLE_ROWS, dtype=torch.float).unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        table[:, 0::2] = torch.sin(position * rates)
        table[:, 1::2] = torch.cos(position * rates)
        table = table.to(dtype)
        start = torch.zeros(length, d_model, dtype=dtype) if x is None else x

    def add() -> "Tensor":
        with torch.inference_mode():
            return start + table[:length]

    return add


def _linear(x: "Tensor", matrix: "Tensor | None", shift: "Tensor | None") -> "Tensor":
    from torch.nn.functional import linear

    assert matrix is not None
    return linear(x, matrix.T, shift)


# With zeros for its bias a layer computes x W, so that is supported; what the shapes of its matrices cannot express is not.
# An identity for its output projection would be no document's way of using it.
_MODULE = Support(
    operation="multi_head_attention",
    lacks=frozenset({"no-output-projection", "inner-width", "value-width"}),
    routes={"no-output-projection": ("native",)},
    profile=STEP_BY_STEP,
    conventions=MASKING_CONVENTIONS,
)

IMPLEMENTATIONS = (
    Implementation("document-000-multi-head", multi_head(float32_root), _MODULE, FRAMEWORK),
    Implementation("document-003-multi-head", multi_head(python_root), _MODULE, FRAMEWORK),
    Implementation(
        "document-000-positional",
        positional,
        Support(
            operation="sinusoidal_encoding",
            lacks=frozenset({"concatenated", "odd-width"}),
            conventions={
                "CON-SINUSOID-ARRANGEMENT": "interleaved",
                "CON-SINUSOID-FREQUENCIES": "d",
                "CON-BEYOND-MAX-LEN": "refused",
            },
            binds=True,
        ),
        FRAMEWORK,
    ),
)

"""The inputs of one computation, framework-free: what an adapter receives. Expected values never travel with them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionInputs:
    """Arrays in the problem's dtype and memory layout; ``mask`` True = attend; ``bias`` is added to the scaled scores;
    ``causal`` is one of ``conformance.problem.CAUSAL``. Query, key and value may be one array object. ``padding``, True = attend,
    is a mask of keys alone, put there for an implementation that takes it so (conformance/routes.py); problems have none."""

    query: Float[Array, "b hq lq d"]
    key: Float[Array, "b hkv lk d"]
    value: Float[Array, "b hkv lk dv"]
    mask: Bool[Array, "*#b_hq lq #lk"] | None = None
    bias: Float[Array, "*#b_hq lq #lk"] | None = None
    causal: str = "none"
    key_lengths: Int[Array, " b"] | None = None
    padding: Bool[Array, "b lk"] | None = None
    scale: float | None = None

    def arrays(self) -> dict[str, Array]:
        """The floating-point inputs by name."""
        named = {"query": self.query, "key": self.key, "value": self.value, "bias": self.bias}
        return {name: array for name, array in named.items() if array is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """Projection matrices as (in, out), y = x W + b; a bias or the output projection may be absent."""

    query: Float[Array, "model inner"]
    key: Float[Array, "model inner"]
    value: Float[Array, "model value_inner"]
    output: Float[Array, "value_inner model"] | None = None
    query_bias: Float[Array, " inner"] | None = None
    key_bias: Float[Array, " inner"] | None = None
    value_bias: Float[Array, " value_inner"] | None = None
    output_bias: Float[Array, " model"] | None = None

    def arrays(self) -> dict[str, Array]:
        return {name: array for name, array in vars(self).items() if array is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiHeadInputs:
    """Inputs of multi-head attention; for self-attention query, key and value are the same array object, with one memory for key
    and value those two are. ``padding`` as above."""

    query: Float[Array, "b lq model"]
    key: Float[Array, "b lk model"]
    value: Float[Array, "b lk model"]
    weights: Weights
    num_heads: int
    scale: float | None = None  # None: 1/√(width of a head)
    mask: Bool[Array, "*#b_h lq #lk"] | None = None
    causal: str = "none"
    key_lengths: Int[Array, " b"] | None = None
    padding: Bool[Array, "b lk"] | None = None

    def arrays(self) -> dict[str, Array]:
        """The floating-point inputs by name, the weights as ``weights.<name>``."""
        weights = {f"weights.{name}": array for name, array in self.weights.arrays().items()}
        return {"query": self.query, "key": self.key, "value": self.value, **weights}


@dataclass(frozen=True, kw_only=True, eq=False)
class SinusoidalInputs:
    """Inputs of the sinusoidal encoding; with ``x`` the encoding is added to it. Where ``arrangement`` or ``frequencies`` are
    left open (default), the paper's are meant."""

    length: int
    width: int
    dtype: str
    arrangement: str
    frequencies: str = "default"
    rows: tuple[int, ...] | None = None
    x: Float[Array, "b length width"] | None = None

    def arrays(self) -> dict[str, Array]:
        return {} if self.x is None else {"x": self.x}


Inputs = AttentionInputs | MultiHeadInputs | SinusoidalInputs

"""The inputs of one computation, framework-free: what an adapter receives. Expected values never travel with them."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

Array = np.ndarray
NEEDED: Any = object()  # the default of an argument that has none


class Arguments:
    """Arguments by name, unchangeable; those left out have their defaults. Two are equal where they are one object."""

    operation: ClassVar[str]
    OWN: ClassVar[Mapping[str, Any]]  # arguments of the operation itself, with their defaults

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    @cache
    def defaults(cls) -> dict[str, Any]:
        """All arguments with their defaults, NEEDED where there is none."""
        from conformance.features import features  # which are looked for when there are inputs, and not before

        return {**cls.OWN, **{feature.argument: feature.default for feature in features(cls.operation)}}

    def __init__(self, **given: Any) -> None:
        defaults = self.defaults()
        self.__dict__.update(defaults)
        self.__dict__.update(given)
        wrong = [name for name, value in self.__dict__.items() if value is NEEDED or name not in defaults]
        if wrong:
            raise TypeError(f"{type(self).__name__} {'has no' if wrong[0] in given else 'needs'} {wrong[0]}.")

    def but(self, **changes: Any) -> Self:
        """The same inputs with some arguments changed."""
        return type(self)(**(self.named() | changes))

    def named(self) -> dict[str, Any]:
        """All arguments by name."""
        return dict(self.__dict__)

    def of_features(self) -> dict[str, Any]:
        """The arguments of features by name (conformance/features)."""
        return {name: value for name, value in self.__dict__.items() if name not in self.OWN}

    def along(self, axis: int, index: Array) -> dict[str, Any]:
        """The arguments of features for those alone of which ``index`` holds the numbers; see ``Feature.along``."""
        from conformance.features import features

        return {one.argument: one.along(getattr(self, one.argument), axis, index) for one in features(self.operation)}

    def arrays(self) -> dict[str, Array]:
        """The floating-point inputs by name."""
        return {
            name: value
            for name, value in self.of_features().items()
            if isinstance(value, Array) and value.dtype.kind not in "biu"
        }

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"Inputs cannot be changed: use but({name}=…).")


class AttentionInputs(Arguments):
    """Arrays in the problem's dtype and memory layout, and what features ask for (conformance/features). Query, key and value may
    be one array object."""

    operation = "attention"
    OWN: ClassVar[Mapping[str, Any]] = dict.fromkeys(("query", "key", "value"), NEEDED)

    query: Float[Array, "b hq lq d"]
    key: Float[Array, "b hkv lk d"]
    value: Float[Array, "b hkv lk dv"]

    def arrays(self) -> dict[str, Array]:
        return {"query": self.query, "key": self.key, "value": self.value, **super().arrays()}


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

    def but(self, **changes: Any) -> "Weights":
        return replace(self, **changes)

    def arrays(self) -> dict[str, Array]:
        return {name: array for name, array in vars(self).items() if array is not None}


class MultiHeadInputs(Arguments):
    """Inputs of multi-head attention; for self-attention query, key and value are the same array object, with one memory for key
    and value those two are. ``scale`` None: 1/√(width of a head)."""

    operation = "multi_head_attention"
    OWN: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("query", "key", "value", "weights", "num_heads"), NEEDED),
        "scale": None,
    }

    query: Float[Array, "b lq model"]
    key: Float[Array, "b lk model"]
    value: Float[Array, "b lk model"]
    weights: Weights
    num_heads: int
    scale: float | None

    def arrays(self) -> dict[str, Array]:
        """The floating-point inputs by name, the weights as ``weights.<name>``."""
        weights = {f"weights.{name}": array for name, array in self.weights.arrays().items()}
        return {"query": self.query, "key": self.key, "value": self.value, **weights, **super().arrays()}

    def within(self, query: Array, key: Array, value: Array) -> AttentionInputs:
        """What the heads attend to, as (B, H, L, d), with all that is asked of attention."""
        asked = {name: argument for name, argument in self.named().items() if name in AttentionInputs.defaults()}
        return AttentionInputs(**asked | {"query": query, "key": key, "value": value})


class SinusoidalInputs(Arguments):
    """Inputs of the sinusoidal encoding; with ``x`` the encoding is added to it. Where ``arrangement`` or ``frequencies`` are
    left open (default), the paper's are meant."""

    operation = "sinusoidal_encoding"
    OWN: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("length", "width", "dtype", "arrangement"), NEEDED),
        "frequencies": "default",
        **dict.fromkeys(("rows", "x")),
    }

    length: int
    width: int
    dtype: str
    arrangement: str
    frequencies: str
    rows: tuple[int, ...] | None
    x: Float[Array, "b length width"] | None

    def arrays(self) -> dict[str, Array]:
        return {} if self.x is None else {"x": self.x}


Inputs = AttentionInputs | MultiHeadInputs | SinusoidalInputs

"""The inputs of one computation, framework-free: what an adapter receives. Expected values never travel with them."""

from collections.abc import Hashable, Mapping
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

Array = np.ndarray
NEEDED: Any = object()  # the default of an argument that has none


class Arguments:
    """Arguments by name, unchangeable; those left out have their defaults. Two are equal where they are one object."""

    operation: ClassVar[str]
    attends: ClassVar[bool] = False  # whether queries attend to keys
    OWN: ClassVar[Mapping[str, Any]]  # arguments of the operation itself, with their defaults
    drawn: ClassVar[tuple[str, ...]]  # those that are arrays which may hold any numbers, where they are there

    def __getattr__(self, name: str) -> Any:
        """The argument of a feature that the operation has not, which nobody asks for."""
        from conformance.features import unasked

        return unasked(name, of_problem=False)

    @property
    def plain(self) -> "AttentionInputs | None":
        """The inputs where they are those of attention by itself, nothing before it and nothing behind."""
        return None

    def sizes(self) -> dict[str, int]:
        """The sizes of the arrays by the names of limits, where transformations may make them others than the problem's."""
        return {}

    def compiled(self) -> Hashable:
        """What a compiler sees of it beside arrays and features."""
        return None

    def asked_by_sizes(self) -> dict[str, bool]:
        """Features that the sizes of the arrays ask for, and whether they do."""
        return {}

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


class KeyInputs(Arguments):
    """Inputs in which queries attend to keys. A class of them has besides: ``heads``; ``head_width``, of queries and keys;
    ``as_heads()``, attention in which the same pairs are visible; ``scored()``, of what scores are made, by head, in float64."""

    attends = True
    drawn = ("query", "key", "value")

    query: Array
    key: Array
    value: Array

    @property
    def dtype(self) -> str:
        return self.query.dtype.name

    @property
    def pairs(self) -> tuple[int, int, int, int]:
        """(B, H, Lq, Lk)."""
        return self.query.shape[0], self.heads, self.query.shape[-2], self.key.shape[-2]

    def sizes(self) -> dict[str, int]:
        return dict(zip(("batch", "heads", "query_length", "key_length"), self.pairs, strict=True))

    def compiled(self) -> Hashable:
        return self.key is self.query, self.value is self.key

    def asked_by_sizes(self) -> dict[str, bool]:
        return {"cross-length": self.query.shape[-2] != self.key.shape[-2]}


class AttentionInputs(KeyInputs):
    """Arrays in the problem's dtype and memory layout, and what features ask for (conformance/features). Query, key and value may
    be one array object."""

    operation = "attention"
    OWN: ClassVar[Mapping[str, Any]] = dict.fromkeys(("query", "key", "value"), NEEDED)

    query: Float[Array, "b hq lq d"]
    key: Float[Array, "b hkv lk d"]
    value: Float[Array, "b hkv lk dv"]

    @property
    def heads(self) -> int:
        return self.query.shape[1]

    @property
    def head_width(self) -> int:
        return self.query.shape[-1]

    @property
    def plain(self) -> "AttentionInputs":
        return self

    def arrays(self) -> dict[str, Array]:
        return {"query": self.query, "key": self.key, "value": self.value, **super().arrays()}

    def sizes(self) -> dict[str, int]:
        return {"batch": self.query.shape[0], "heads": self.heads, "kv_heads": self.key.shape[1], **super().sizes()}

    def asked_by_sizes(self) -> dict[str, bool]:
        grouped, other_width = self.heads != self.key.shape[1], self.head_width != self.value.shape[-1]
        return {**super().asked_by_sizes(), "grouped-heads": grouped, "value-width": other_width}

    def as_heads(self) -> "AttentionInputs":
        return self

    def scored(self) -> tuple[Float[Array, "b h lq d"], Float[Array, "b h lk d"]]:
        key = self.key.astype(np.float64)
        return self.query.astype(np.float64), np.repeat(key, self.heads // key.shape[1], axis=1)


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


class MultiHeadInputs(KeyInputs):
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

    @property
    def heads(self) -> int:
        return self.num_heads

    @property
    def head_width(self) -> int:
        return self.weights.query.shape[1] // self.num_heads

    def arrays(self) -> dict[str, Array]:
        """The floating-point inputs by name, the weights as ``weights.<name>``."""
        weights = {f"weights.{name}": array for name, array in self.weights.arrays().items()}
        return {"query": self.query, "key": self.key, "value": self.value, **weights, **super().arrays()}

    def within(self, query: Array, key: Array, value: Array) -> AttentionInputs:
        """What the heads attend to, as (B, H, L, d), with all that is asked of attention."""
        asked = {name: argument for name, argument in self.named().items() if name in AttentionInputs.defaults()}
        return AttentionInputs(**asked | {"query": query, "key": key, "value": value})

    def compiled(self) -> Hashable:
        return super().compiled(), self.num_heads

    def as_heads(self) -> AttentionInputs:
        """As many heads over the tokens as they are: of query and key, visibility depends on the lengths alone."""
        batch, query_length, width = self.query.shape
        query = np.broadcast_to(self.query[:, None], (batch, self.num_heads, query_length, width))
        return self.within(query, self.key[:, None], self.value[:, None])

    def scored(self) -> tuple[Float[Array, "b h lq d"], Float[Array, "b h lk d"]]:
        def split(tokens: Array, matrix: Array) -> Array:
            projected = tokens.astype(np.float64) @ matrix.astype(np.float64)
            return projected.reshape(*tokens.shape[:2], self.num_heads, -1).swapaxes(1, 2)

        return split(self.query, self.weights.query), split(self.key, self.weights.key)


class SinusoidalInputs(Arguments):
    """Inputs of the sinusoidal encoding; with ``x`` the encoding is added to it. Where ``arrangement`` or ``frequencies`` are
    left open (default), the paper's are meant."""

    operation = "sinusoidal_encoding"
    OWN: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("length", "width", "dtype", "arrangement"), NEEDED),
        "frequencies": "default",
        **dict.fromkeys(("rows", "x")),
    }
    drawn = ("x",)

    length: int
    width: int
    dtype: str
    arrangement: str
    frequencies: str
    rows: tuple[int, ...] | None
    x: Float[Array, "b length width"] | None

    def arrays(self) -> dict[str, Array]:
        return {} if self.x is None else {"x": self.x}

    def compiled(self) -> Hashable:
        return self.length, self.width, self.dtype, self.arrangement


Inputs = Arguments  # of any operation

"""Key lengths: how many leading keys each batch row has."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Int

from conformance.features.feature import Conversion, Feature
from conformance.problem.fields import Field, IntegerTuple
from conformance.problem.recipe import Recipe


class KeyLengths(Feature):
    name = "key-lengths"
    argument = "key_lengths"
    aliases = (
        *("key_value_seq_lengths", "kv_seq_lengths", "kv_lengths", "kv_seqlens", "kv_seqlen", "nonpad_kv_seqlen"),
        *("seqlens_k", "memory_lengths", "valid_lens"),
    )
    ways = ("native", "padding", "mask", "bias")
    condition = "with key lengths"
    words = "key lengths"
    alone: ClassVar = {
        "attention": ("ATT-MASK-017", "ATT-MASK-018", "ATT-MASK-039"),
        "multi_head_attention": ("ATT-HEAD-022",),
    }
    beside: ClassVar = {
        "attention": {"mask": ("ATT-MASK-018",), "causal": ("ATT-MASK-018",)},
        "multi_head_attention": {"mask": ("ATT-HEAD-039",)},
    }
    field = Field(
        key="lengths", kind=IntegerTuple(), names=("key_lengths",), defaults=(None,), frozen=True,
        asks={"key-lengths": lambda problem: problem.key_lengths is not None},
    )  # fmt: skip

    def given(self, problem: Any) -> Int[np.ndarray, " b"] | None:
        return None if problem.key_lengths is None else np.array(problem.key_lengths, dtype=np.int64)

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "b 1 1 lk"] | None:
        if inputs.key_lengths is None:
            return None
        return (np.arange(inputs.key.shape[-2])[None, :] < inputs.key_lengths[:, None])[:, None, None, :]

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        if inputs.key_lengths is not None:
            for b, length in zip(range(visible.shape[0]), inputs.key_lengths, strict=True):
                visible[b, :, :, length:] = False

    def stored(self, problem: Any, inputs: Any, stands_for: Recipe) -> tuple[int, ...] | None:
        return None if inputs.key_lengths is None else tuple(map(int, inputs.key_lengths))

    def along(self, value: Any, axis: int, index: np.ndarray) -> Any:
        if value is None or axis not in (-4, -1):
            return value
        return value[index] if axis == -4 else np.array([np.count_nonzero(index < length) for length in value])

    def passed(self, inputs: Any, implementation: Any, to: Conversion, known: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        yield self.parameter, to(inputs.key_lengths.astype(implementation.support.lengths_dtype))


FEATURE = KeyLengths()

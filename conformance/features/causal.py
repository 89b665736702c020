"""The causal limit: a query sees the keys up to its own place, which lies where the alignment says."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from conformance.errors import LeftOut, ProblemError, Unsupported, UsageError
from conformance.features.feature import Conversion, Feature
from conformance.problem.fields import Field, Word
from conformance.problem.recipe import Recipe

CAUSAL = ("none", "default", "top-left", "bottom-right")


class Causal(Feature):
    name = argument = "causal"
    aliases = ("is_causal", "use_causal_mask", "use_causal", "unidirectional")
    ways = ("native", "mask", "bias")
    default = "none"
    condition = "with a causal limit"
    positional = True
    words = "the causal limit"
    alone: ClassVar = {
        "attention": tuple(f"ATT-MASK-{number:03}" for number in (9, 35, 10, 11, 12, 13)),
        "multi_head_attention": ("ATT-HEAD-021",),
    }
    beside: ClassVar = {
        "attention": {"mask": ("ATT-MASK-016", "ATT-MASK-040")},
        "multi_head_attention": {"mask": ("ATT-HEAD-035",), "key-lengths": ("ATT-HEAD-035", "ATT-HEAD-039")},
    }
    field = Field(
        key="causal", kind=Word(CAUSAL), names=("causal",), defaults=("none",), frozen=True,
        asks={"causal": lambda problem: problem.causal != "none"},
    )  # fmt: skip

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "1 1 rows lk"] | None:
        if inputs.causal == "none":
            return None
        query_length, key_length = inputs.query.shape[-2], inputs.key.shape[-2]
        limit = np.arange(start, stop) + offset(inputs.causal, query_length, key_length)
        return (np.arange(key_length)[None, :] <= limit[:, None])[None, None]

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        query_length, key_length = visible.shape[2:]
        if inputs.causal == "default" and query_length != key_length:
            raise UsageError(f"causal=default says nothing for {query_length} queries and {key_length} keys: name the alignment.")
        if inputs.causal != "none":
            first_row_sees = 1 + (key_length - query_length if inputs.causal == "bottom-right" else 0)
            for i in range(query_length):
                visible[:, :, i, max(0, first_row_sees + i) :] = False

    def stored(self, problem: Any, inputs: Any, stands_for: Recipe) -> str:
        return str(inputs.causal)

    def passed(self, inputs: Any, implementation: Any, to: Conversion, known: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        """Nothing to what is always causal."""
        if implementation.support.causal != "always":
            yield self.parameter, True
            if implementation.has("alignment") and inputs.causal != "default":
                yield "alignment", inputs.causal

    def plain(self) -> dict[str, Any]:
        return {self.parameter: False, "alignment": "top-left"}

    def read(self, named: Mapping[str, Any]) -> Any:
        return named["alignment"] if named[self.parameter] else self.default

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """In an open alignment natively alone, since what is observed there is the implementation's own default; and where it is
        always causal, since a triangle of another alignment would come on top."""
        unequal = problem.query_length != problem.key_length
        if way != "native":
            return implementation.support.causal != "always" and not (unequal and problem.causal == "default")
        if not unequal or problem.causal == "default" or implementation.has("alignment"):
            return True
        return conventions.get("CON-ALIGNMENT") == problem.causal

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        words = f"causal {problem.causal}"
        return LeftOut(words) if implementation.support.causal == "always" else Unsupported(words, self.name)

    def decided_by(self, problem: Any, implementation: Any) -> tuple[str, ...]:
        aligned = problem.causal in ("top-left", "bottom-right") and problem.query_length != problem.key_length
        return ("CON-ALIGNMENT",) if aligned and not implementation.has("alignment") else ()


def offset(causal: str, query_length: int, key_length: int) -> int:
    """The o of "row i sees keys j ≤ i + o"; raises ProblemError where the alignment was left open and matters."""
    if causal == "bottom-right":
        return key_length - query_length
    if causal == "default" and query_length != key_length:
        raise ProblemError("causal=default leaves the alignment open for unequal lengths: only a convention is observed so.")
    return 0


FEATURE = Causal()

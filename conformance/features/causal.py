"""The causal limit: a query sees the keys up to its own place, which lies where the alignment says."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.errors import ProblemError
from conformance.features.feature import Feature
from conformance.problem.fields import Field, Word

CAUSAL = ("none", "default", "top-left", "bottom-right")


class Causal(Feature):
    name = argument = "causal"
    default = "none"
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


def offset(causal: str, query_length: int, key_length: int) -> int:
    """The o of "row i sees keys j ≤ i + o"; raises ProblemError where the alignment was left open and matters."""
    if causal == "bottom-right":
        return key_length - query_length
    if causal == "default" and query_length != key_length:
        raise ProblemError("causal=default leaves the alignment open for unequal lengths: only a convention is observed so.")
    return 0


FEATURE = Causal()

"""A mask of keys alone, True = attend: no problem asks for it, but masks and key lengths may be asked for by it."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from conformance.features.feature import Feature


class Padding(Feature):
    name = argument = "padding"
    parameter = "key_padding_mask"
    aliases = ("src_key_padding_mask", "memory_key_padding_mask", "padding_mask", "key_mask", "kv_mask")
    polarity = "CON-PADDING-POLARITY"

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "b 1 1 lk"] | None:
        return None if inputs.padding is None else inputs.padding[:, None, None, :]


FEATURE = Padding()

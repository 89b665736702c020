"""What the requirements of multi-head attention cannot tell in bfloat16 where its sums, too, are held in eight bits (``low``).

Three products in a row then have budgets as large as the output. Under every other profile all null models are told.
"""

from conformance.specification.requirement import Blind

_ALL = ("zeros", "mean", "argmax", "uniform", "heads")
_UNDER_LOW: dict[int, tuple[str, ...]] = {
    **dict.fromkeys((7, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 25), _ALL),
    13: ("mean", "argmax", "uniform", "heads"),
    15: ("zeros", "mean", "argmax", "uniform"),
    21: ("mean", "argmax"),
    22: ("zeros", "mean", "argmax", "heads"),
    23: ("zeros", "mean", "argmax", "uniform"),
    24: ("mean", "argmax"),
    28: ("argmax",),
    32: ("heads",),
    35: ("mean", "argmax"),
}


def blind(number: int) -> tuple[Blind, ...]:
    """What ATT-HEAD-``number`` cannot tell."""
    return (Blind("bfloat16", ("low",), _UNDER_LOW[number]),) if number in _UNDER_LOW else ()

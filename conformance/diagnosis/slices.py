"""Which of several slices of an output hold something wrong, in words."""

import numpy as np


def one_of(marks: np.ndarray, one: str, many: str) -> str:
    """The wrong ones of all; nothing where all are wrong."""
    count, places = len(marks), np.flatnonzero(marks)
    if count == 1 or len(places) == count:
        return ""
    if len(places) == 1:
        return f"only {one} {places[0]} of {count}" if 0 < places[0] < count - 1 else f"only the {_end(places[0])} {one}"
    if places[0] > 0 and len(places) == count - places[0]:
        return f"only {many} from {places[0]} on"
    if len(places) == places[-1] + 1:
        return f"only the first {len(places)} {many} of {count}" if count > 3 else f"only the first {many}"
    if (places % 2 == 1).all():
        return f"only {many} of odd number"
    return f"only some {many}"


def _end(place: int) -> str:
    return "first" if place == 0 else "last"

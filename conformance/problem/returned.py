"""What a call returns, by name: the output, and what libraries return beside it.

``output`` is what the operation computes. Of attention and of each head of multi-head attention there are besides ``lse``, the
natural logarithm of the sum over visible keys of e^score, (batch, heads, Lq), and ``weights``, the softmax of the scores,
(batch, heads, Lq, Lk). IGNORED stands for a part that nobody judges.
"""

from collections.abc import Iterable

OUTPUT, LSE, WEIGHTS, IGNORED = "output", "lse", "weights", "-"


def having(name: str) -> str:
    """``the weights have``, ``the lse has``."""
    return f"{name} {'have' if name == WEIGHTS else 'has'}"


def being(name: str) -> str:
    """``the weights are``, ``the lse is``."""
    return f"{name} {'are' if name == WEIGHTS else 'is'}"


def judged(returns: Iterable[str]) -> tuple[str, ...]:
    """The names that are judged, in the order of the result."""
    return tuple(name for name in returns if name != IGNORED)

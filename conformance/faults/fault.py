"""Faults as data: a known way to get attention wrong, with its public source and a small executable variant.

A fault is written as a difference from the correct computation. Wherever it can be, it is a ``rewrite`` of the inputs (another
scale, another mask, other heads), after which the correct computation follows; the oracle then says what the faulty output is,
with its own error budget. What no rewriting expresses is a ``compute`` of its own, on the stages of ``conformance.faults.steps``.
A fault of behaviour rather than of arithmetic (a stale answer, a changed input) is a ``behaviour``, which wraps the function.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.faults.steps import compute
from conformance.problem.inputs import Inputs
from conformance.problem.returned import OUTPUT

Rewrite = Callable[[Any], Any]
Compute = Callable[[Any], np.ndarray]
Behaviour = Callable[[Callable[..., Any]], Callable[..., Any]]
ALL_DTYPES = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to be wrong.

    * ``id``: permanent, kebab-case. ``sentence``: what is done, as a verb phrase ("divides by √d_model instead of √d_k").
    * ``requirements``: the ids of those that speak of it; the first is expected to catch it.
    * ``sources``: public reports or documents that show it, ``project: reference``.
    * ``needs``: features of a problem without which it cannot show (``mask``, ``causal``, ``grouped-heads`` …).
    * ``dtypes``: where it can be seen. ``lacks``: features that a faulty implementation of this kind does not offer.
    * exactly one of ``rewrite`` (inputs → inputs), ``compute`` (inputs → output in the inputs' dtype) and ``behaviour``.
    * ``equivalent``: why it cannot be seen from outputs at all; empty for all that must be caught.
    * ``among_dtypes``: it shows where one implementation is asked in several dtypes only.
    * ``returns``: the parts of its result, where something beside the output is wrong.
    * ``alike``: ids of faults that no output can tell from this one, given the features that show it.
    * ``layer``: requirements of multi-head attention; where there are some, the catalogue has a sibling for them.
    * ``hiding``: what it rewrites is which keys a query sees, and nothing else.
    """

    id: str
    sentence: str
    requirements: tuple[str, ...]
    sources: tuple[str, ...]
    operation: str = "attention"
    needs: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    dtypes: tuple[str, ...] = ALL_DTYPES
    rewrite: Rewrite | None = None
    compute: Compute | None = None
    behaviour: Behaviour | None = None
    equivalent: str = ""
    alike: tuple[str, ...] = ()
    among_dtypes: bool = False
    returns: tuple[str, ...] = (OUTPUT,)
    layer: tuple[str, ...] = ()
    hiding: bool = False

    def __post_init__(self) -> None:
        ways = [way for way in (self.rewrite, self.compute, self.behaviour) if way is not None]
        assert len(ways) == 1, f"{self.id} must have exactly one of rewrite, compute and behaviour"
        assert self.requirements or self.equivalent, f"{self.id} violates no requirement and is not said to be equivalent"

    def but(self, **changes: Any) -> "Fault":
        return replace(self, **changes)

    def output(self, inputs: Inputs) -> np.ndarray:
        """What an implementation with this fault returns for ``inputs``. A behaviour has none of its own: it shows over several
        calls, so asking for one is a mistake of the caller."""
        if self.compute is not None:
            return self.compute(inputs)
        assert self.rewrite is not None, f"{self.id} is a behaviour"
        return compute(self.rewrite(inputs))

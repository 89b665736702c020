"""Faults of the projections of multi-head attention: matrices transposed, exchanged or shared, inputs of another tensor.

They are the same computation with other weights or other tokens.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from conformance.faults.model import Fault, Rewrite
from conformance.inputs import MultiHeadInputs

Array = np.ndarray
Change = Callable[[MultiHeadInputs], dict[str, Array | None]]

_CROSS = frozenset({"cross-attention"})
_WEIGHTS = ("ATT-HEAD-007", "ATT-HEAD-013")
_SHARED = (
    "episodic-transformer-memory-ppo: https://github.com/MarcoMeter/episodic-transformer-memory-ppo/pull/22",
    "tutorials: einsum attention that projects after the split",
)


def fault(
    identifier: str, sentence: str, rewrite: Rewrite, *requirements: str, sources: tuple[str, ...] = (), **fields: Any
) -> Fault:
    return Fault(
        id=f"multi-head-{identifier}",
        sentence=sentence,
        operation="multi_head_attention",
        requirements=requirements,
        sources=sources,
        rewrite=rewrite,
        **fields,
    )


def with_weights(change: Change) -> Rewrite:
    """Other weights: ``change`` says which, by name."""
    return lambda inputs: inputs.but(weights=replace(inputs.weights, **change(inputs)))


def times(array: Array | None, factor: float) -> Array | None:
    return None if array is None else array.astype(np.float64) * factor


def if_it_fits(name: str, other: Callable[[MultiHeadInputs], Array | None]) -> Change:
    """The weight ``name`` replaced by ``other`` where that has the same shape."""

    def change(inputs: MultiHeadInputs) -> dict[str, Array | None]:
        own, new = getattr(inputs.weights, name), other(inputs)
        return {name: new} if own is not None and new is not None and own.shape == new.shape else {}

    return change


def all_of(changes: Iterable[Change]) -> Rewrite:
    changes = tuple(changes)
    return with_weights(lambda inputs: {name: array for change in changes for name, array in change(inputs).items()})


def _own(name: str, change: Callable[[Array], Array] = lambda array: array) -> Callable[[MultiHeadInputs], Array | None]:
    """The weight ``name``, changed, where there is one."""

    def weight(inputs: MultiHeadInputs) -> Array | None:
        array = getattr(inputs.weights, name)
        return None if array is None else change(array)

    return weight


def _taken(**sources: str) -> Rewrite:
    """Projections, each with its bias, replaced by others that fit: ``value="key"`` projects V with W_k."""
    pairs = [(f"{name}{suffix}", f"{source}{suffix}") for name, source in sources.items() for suffix in ("", "_bias")]
    return all_of(if_it_fits(name, _own(source)) for name, source in pairs)


def _transposed(*names: str) -> Rewrite:
    return all_of(if_it_fits(name, _own(name, np.transpose)) for name in names)


def _not_projected(name: str) -> Rewrite:
    return all_of([if_it_fits(name, lambda inputs: np.eye(inputs.query.shape[-1])), lambda inputs: {f"{name}_bias": None}])


def repeated(array: Array | None, heads: int) -> Array | None:
    """The columns of the first head for every head."""
    if array is None:
        return None
    return np.tile(array[..., : array.shape[-1] // heads], (*(1,) * (array.ndim - 1), heads))


def _blocks(array: Array, heads: int, first: bool) -> Array:
    """What is left of a matrix where each head sees its own slice of the input; ``first``: through the block of the first."""
    rows, columns = array.shape[0] // heads, array.shape[1] // heads
    if rows * heads != array.shape[0]:
        return array
    own = np.kron(np.eye(heads), np.ones((rows, columns)))
    return (np.tile(array[:rows, :columns], (heads, heads)) if first else array) * own


_MATRICES = ("query", "key", "value")
_OF = {"query": "W_q", "key": "W_k", "value": "W_v", "output": "W_o"}
_PROJECTIONS = (
    *(
        fault(
            f"{name}-transposed", f"multiplies by {_OF[name]}ᵀ where it is square", _transposed(name), requirement, "ATT-HEAD-013"
        )
        for name, requirement in (
            ("query", "ATT-HEAD-007"),
            ("key", "ATT-HEAD-007"),
            ("value", "ATT-HEAD-007"),
            ("output", "ATT-HEAD-009"),
        )
    ),
    fault("all-transposed", "multiplies by the transpose of every square matrix", _transposed(*_OF), *_WEIGHTS),
    *(
        fault(
            f"{name}-projected-as-{source}",
            f"projects the {name} with {_OF[source]} and its bias",
            _taken(**{name: source}),
            *_WEIGHTS,
        )
        for name in _MATRICES
        for source in _MATRICES
        if name != source
    ),
    *(
        fault(
            f"{one}-and-{other}-exchanged",
            f"exchanges the projections of {one} and {other}, as in a packed matrix of another order",
            _taken(**{one: other, other: one}),
            *_WEIGHTS,
        )
        for one, other in (("query", "key"), ("query", "value"), ("key", "value"))
    ),
    fault("one-projection", "projects query, key and value with W_q", _taken(key="query", value="query"), *_WEIGHTS),
    *(
        fault(
            f"{name}-not-projected",
            f"uses the {name} itself where {_OF[name]} is square",
            _not_projected(name),
            *_WEIGHTS,
        )
        for name in _MATRICES
    ),
    fault(
        "nothing-projected",
        "uses query, key and value themselves where their matrices are square",
        lambda inputs: reduce(lambda changed, name: _not_projected(name)(changed), _MATRICES, inputs),
        *_WEIGHTS,
        sources=("tutorials: einsum attention that makes its projections and does not apply them",),
    ),
    fault(
        "first-head-for-all",
        "projects with the columns of the first head for all heads",
        with_weights(
            lambda i: {n: repeated(a, i.num_heads) for n, a in i.weights.arrays().items() if not n.startswith("output")}
        ),
        "ATT-HEAD-011",
        "ATT-HEAD-017",
        "ATT-HEAD-007",
    ),
    fault(
        "projected-after-split",
        "splits the input first, and projects each head's slice with its own block of the weights",
        with_weights(lambda i: {name: _blocks(getattr(i.weights, name), i.num_heads, False) for name in _MATRICES}),
        *_WEIGHTS,
    ),
    fault(
        "shared-projection",
        "splits the input first, and projects each head's slice with one block for all heads",
        with_weights(lambda i: {name: _blocks(getattr(i.weights, name), i.num_heads, True) for name in _MATRICES}),
        *_WEIGHTS,
        sources=_SHARED,
    ),
)


def _fed(**sources: str) -> Rewrite:
    """Inputs exchanged for others of the three, where lengths agree or nothing is masked."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        fed = inputs.but(**{name: getattr(inputs, source) for name, source in sources.items()})
        same = fed.key.shape == inputs.key.shape
        free = inputs.mask is None and inputs.causal == "none" and inputs.key_lengths is None
        return fed if fed.key.shape[1] == fed.value.shape[1] and (same or free) else inputs

    return rewrite


_INPUTS = tuple(
    fault(
        identifier, sentence, _fed(**sources), "ATT-HEAD-014", needs=_CROSS, dtypes=("float64", "float32", "float16", "bfloat16")
    )
    for identifier, sentence, sources in (
        ("self-attention-only", "attends over the query's own tokens in cross-attention", {"key": "query", "value": "query"}),
        ("key-from-query-input", "projects the key from the query's tokens in cross-attention", {"key": "query"}),
        ("value-from-query-input", "projects the value from the query's tokens in cross-attention", {"value": "query"}),
        ("value-from-key-input", "projects the value from the key's tokens", {"value": "key"}),
        ("key-from-value-input", "projects the key from the value's tokens", {"key": "value"}),
        ("key-and-value-inputs-exchanged", "exchanges the tokens of key and value", {"key": "value", "value": "key"}),
    )
)

FAULTS: tuple[Fault, ...] = (*_PROJECTIONS, *_INPUTS)

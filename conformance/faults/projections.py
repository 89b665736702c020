"""Faults of the projections of multi-head attention: matrices transposed, exchanged or shared, inputs of another tensor, biases,
and what divides the scores.

They are the same computation with other weights or other tokens.
"""

from collections.abc import Callable, Iterable

import numpy as np

from conformance.faults.fault import Fault
from conformance.faults.grammar import HEAD, MULTI_HEAD, Way, fault
from conformance.faults.scales import INVERTED, MODEL, root
from conformance.features import features
from conformance.problem.inputs import MultiHeadInputs

Array = np.ndarray
Change = Callable[[MultiHeadInputs], dict[str, Array | None]]
Weight = Callable[[MultiHeadInputs], Array | None]

WEIGHTS, SCALE, BIASES, OUTPUT = HEAD(7, 13), HEAD(18, 16, 13), HEAD(8, 13), HEAD(9, 13)
SHARED = (
    "episodic-transformer-memory-ppo: https://github.com/MarcoMeter/episodic-transformer-memory-ppo/pull/22",
    "tutorials: einsum attention that projects after the split",
)
UNUSED = ("tutorials: einsum attention that makes its projections and does not apply them",)
OF = {"query": "W_q", "key": "W_k", "value": "W_v", "output": "W_o"}
MATRICES = ("query", "key", "value")


def _weights(*changes: Change) -> Way:
    """Other weights: each change says which, by name."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        changed = {name: array for change in changes for name, array in change(inputs).items()}
        return inputs.but(weights=inputs.weights.but(**changed))

    return Way(rewrite=rewrite, operation=MULTI_HEAD)


def _times(array: Array | None, factor: float) -> Array | None:
    return None if array is None else array.astype(np.float64) * factor


def _if_it_fits(name: str, other: Weight) -> Change:
    """The weight ``name`` replaced by ``other`` where that has the same shape."""

    def change(inputs: MultiHeadInputs) -> dict[str, Array | None]:
        given, new = getattr(inputs.weights, name), other(inputs)
        return {name: new} if given is not None and new is not None and given.shape == new.shape else {}

    return change


def _own(name: str, change: Callable[[Array], Array] = lambda array: array) -> Weight:
    """The weight ``name``, changed, where there is one."""

    def weight(inputs: MultiHeadInputs) -> Array | None:
        array = getattr(inputs.weights, name)
        return None if array is None else change(array)

    return weight


def _taken(**sources: str) -> Way:
    """Projections, each with its bias, replaced by others that fit: ``value="key"`` projects V with W_k."""
    pairs = [(f"{name}{suffix}", f"{source}{suffix}") for name, source in sources.items() for suffix in ("", "_bias")]
    return _weights(*(_if_it_fits(name, _own(source)) for name, source in pairs))


def _transposed(names: Iterable[str]) -> Way:
    return _weights(*(_if_it_fits(name, _own(name, np.transpose)) for name in names))


def _not_projected(*names: str) -> Way:
    def identity(inputs: MultiHeadInputs) -> Array:
        return np.eye(inputs.query.shape[-1])

    return _weights(*(_if_it_fits(name, identity) for name in names), lambda inputs: {f"{name}_bias": None for name in names})


def _of_first_head(array: Array | None, heads: int) -> Array | None:
    """The columns of the first head for every head."""
    if array is None:
        return None
    return np.tile(array[..., : array.shape[-1] // heads], (*(1,) * (array.ndim - 1), heads))


def _all_of_first_head(names: Callable[[str], bool]) -> Way:
    return _weights(lambda x: {name: _of_first_head(a, x.num_heads) for name, a in x.weights.arrays().items() if names(name)})


def _in_blocks(first: bool) -> Way:
    """What is left of a matrix where each head sees its own slice of the input; ``first``: through the block of the first."""

    def blocks(array: Array, heads: int) -> Array:
        rows, columns = array.shape[0] // heads, array.shape[1] // heads
        if rows * heads != array.shape[0]:
            return array
        own = np.kron(np.eye(heads), np.ones((rows, columns)))
        return (np.tile(array[:rows, :columns], (heads, heads)) if first else array) * own

    return _weights(lambda x: {name: blocks(getattr(x.weights, name), x.num_heads) for name in MATRICES})


def _fed(**sources: str) -> Way:
    """Inputs exchanged for others of the three, where lengths agree or nothing is masked."""

    def rewrite(inputs: MultiHeadInputs) -> MultiHeadInputs:
        fed = inputs.but(**{name: getattr(inputs, source) for name, source in sources.items()})
        free = not any(one.is_asked(inputs) for one in features(MULTI_HEAD) if one.hides)
        fits = fed.key.shape[1] == fed.value.shape[1] and (fed.key.shape == inputs.key.shape or free)
        return fed if fits else inputs

    return Way(rewrite=rewrite, operation=MULTI_HEAD, needs=frozenset({"cross-attention"}))


def _width(x: MultiHeadInputs) -> float:
    """Of a head."""
    return x.weights.query.shape[1] / x.num_heads


def _scaled(factor: Callable[[MultiHeadInputs], float]) -> Way:
    """``factor`` times the right scale, put into the projection of the query, in float64 so that nothing is rounded."""
    return _weights(lambda x: {name: _times(getattr(x.weights, name), factor(x)) for name in ("query", "query_bias")})


def _scaled_by(number: Callable[[MultiHeadInputs], float]) -> Way:
    """The scores over the root of ``number``, not of the width of a head."""
    return _scaled(lambda x: float(np.sqrt(_width(x) / number(x))))


def _scale(scale: Callable[[MultiHeadInputs], float]) -> Way:
    """Another scale than 1/√d."""
    return _scaled(lambda x: scale(x) * np.sqrt(x.weights.query.shape[1] // x.num_heads))


def _bias(name: str, factor: float | Callable[[MultiHeadInputs], float]) -> Way:
    name = f"{name}_bias"
    return _weights(lambda x: {name: _times(getattr(x.weights, name), factor(x) if callable(factor) else factor)})


def _without(*names: str) -> Way:
    return _weights(lambda inputs: dict.fromkeys(names))


def _query_bias(x: MultiHeadInputs) -> Array | None:
    return x.weights.query_bias


ROWS = (
    *(
        (f"{name}-transposed", f"multiplies by {OF[name]}ᵀ where it is square", HEAD(9 if name == "output" else 7, 13), (), "",
         _transposed([name]))
        for name in OF
    ),
    ("all-transposed", "multiplies by the transpose of every square matrix", WEIGHTS, (), "", _transposed(OF)),
    *(
        (f"{name}-projected-as-{source}", f"projects the {name} with {OF[source]} and its bias", WEIGHTS, (), "",
         _taken(**{name: source}))
        for name in MATRICES
        for source in MATRICES
        if name != source
    ),
    *(
        (f"{one}-and-{other}-exchanged",
         f"exchanges the projections of {one} and {other}, as in a packed matrix of another order",
         WEIGHTS, (), "", _taken(**{one: other, other: one}))
        for one, other in (("query", "key"), ("query", "value"), ("key", "value"))
    ),
    ("one-projection", "projects query, key and value with W_q", WEIGHTS, (), "", _taken(key="query", value="query")),
    *(
        (f"{name}-not-projected", f"uses the {name} itself where {OF[name]} is square", WEIGHTS, (), "", _not_projected(name))
        for name in MATRICES
    ),
    ("nothing-projected", "uses query, key and value themselves where their matrices are square", WEIGHTS, UNUSED, "",
     _not_projected(*MATRICES)),
    ("first-head-for-all", "projects with the columns of the first head for all heads", HEAD(11, 17, 7), (), "",
     _all_of_first_head(lambda name: not name.startswith("output"))),
    ("projected-after-split", "splits the input first, and projects each head's slice with its own block of the weights", WEIGHTS,
     (), "", _in_blocks(first=False)),
    ("shared-projection", "splits the input first, and projects each head's slice with one block for all heads", WEIGHTS, SHARED,
     "", _in_blocks(first=True)),
    # Inputs
    *(
        (name, sentence, HEAD(14), (), "", _fed(**sources))
        for name, sentence, sources in (
            ("self-attention-only", "attends over the query's own tokens in cross-attention", {"key": "query", "value": "query"}),
            ("key-from-query-input", "projects the key from the query's tokens in cross-attention", {"key": "query"}),
            ("value-from-query-input", "projects the value from the query's tokens in cross-attention", {"value": "query"}),
            ("value-from-key-input", "projects the value from the key's tokens", {"value": "key"}),
            ("key-from-value-input", "projects the key from the value's tokens", {"key": "value"}),
            ("key-and-value-inputs-exchanged", "exchanges the tokens of key and value", {"key": "value", "value": "key"}),
        )
    ),
    # Scales
    ("scale-by-model-width", "divides the scores by √d_model, not by the root of a head's width", SCALE, MODEL, "",
     _scaled_by(lambda x: x.query.shape[-1])),
    ("scale-by-inner-width", "divides the scores by the root of all heads' widths together", SCALE, MODEL, "",
     _scaled_by(lambda x: x.weights.query.shape[1])),
    ("scale-by-heads", "divides the scores by √heads", SCALE, (), "", _scaled_by(lambda x: x.num_heads)),
    ("scale-by-value-width", "divides the scores by the root of the width of V in a head", HEAD(18, 20), (), "value-width",
     _scaled_by(lambda x: x.weights.value.shape[1] / x.num_heads)),
    ("scale-by-width-in-full", "divides the scores by the width of a head, not by its root", SCALE, (), "",
     _scaled_by(lambda x: _width(x) ** 2)),
    ("scale-missing", "does not scale the scores", SCALE, (), "", _scaled_by(lambda x: 1.0)),
    ("scale-inverted", "multiplies by the root of a head's width", SCALE, INVERTED, "", _scaled(_width)),
    ("scale-by-fourth-root", "divides the scores of the heads by ⁴√d instead of √d", SCALE, (), "",
     _scale(lambda x: int(_width(x)) ** -0.25)),
    ("scale-by-width-plus-one", "divides the scores of the heads by √(d + 1) instead of √d", SCALE, (), "",
     _scale(lambda x: root(int(_width(x)) + 1))),
    ("scale-by-key-length", "divides the scores of the heads by √Lk instead of √d", SCALE, (), "",
     _scale(lambda x: root(x.key.shape[1]))),
    ("scale-by-batch", "divides the scores of the heads by √batch instead of √d", SCALE, (), "",
     _scale(lambda x: root(x.key.shape[0]))),
    ("scale-before-bias", "scales the projected query before its bias is added", HEAD(8), (), "projection-bias",
     _bias("query", lambda x: float(np.sqrt(_width(x))))),
    # Biases
    ("biases-dropped", "leaves out the biases of query, key and value", BIASES, (), "projection-bias",
     _without(*(f"{name}_bias" for name in MATRICES))),
    ("query-bias-dropped", "leaves out the bias of the query", BIASES, (), "projection-bias", _without("query_bias")),
    ("value-bias-dropped", "leaves out the bias of the value", BIASES, (), "projection-bias", _without("value_bias")),
    *(
        (f"{name}-bias-{word}", f"{verb} the bias of the {name}", BIASES, (), "projection-bias", _bias(name, factor))
        for word, verb, factor in (("doubled", "adds twice", 2.0), ("subtracted", "subtracts", -1.0))
        for name in ("query", "value")
    ),
    ("query-bias-for-all", "adds the bias of the query to key and value too", BIASES, (), "projection-bias",
     _weights(*(_if_it_fits(name, _query_bias) for name in ("key_bias", "value_bias")))),
    ("biases-of-first-head", "adds the bias of the first head to all heads", BIASES, (), "projection-bias",
     _all_of_first_head(lambda name: name in ("query_bias", "key_bias", "value_bias"))),
    ("output-bias-dropped", "leaves out the bias of the output", OUTPUT, (), "output-bias", _without("output_bias")),
    ("output-bias-doubled", "adds the bias of the output twice", OUTPUT, (), "output-bias", _bias("output", 2.0)),
    ("output-bias-per-head", "adds the bias of the output once for each head", OUTPUT, (), "output-bias",
     _bias("output", lambda x: x.num_heads)),
    ("output-projection-dropped", "leaves out the output projection", HEAD(9), (), "", _without("output", "output_bias")),
)  # fmt: skip
FAULTS: tuple[Fault, ...] = (
    *(
        fault(f"multi-head-{name}", sentence, way, requirements, sources, needs)
        for name, sentence, requirements, sources, needs, way in ROWS
    ),
    fault("multi-head-key-bias-dropped", "leaves out the bias of the key", _without("key_bias"), (), (), "projection-bias",
          lacks=frozenset({"sinks", "softcap"}),
          equivalent="q · b_k is added to all scores of a row alike, which softmax does not notice."),
    fault("multi-head-scale-in-float32", "takes √d of the heads in float32",
          _scale(lambda x: 1.0 / float(np.float32(np.sqrt(int(_width(x)))))), SCALE, dtypes=("float64",)),
)  # fmt: skip

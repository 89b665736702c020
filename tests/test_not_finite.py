"""NaN and infinity among the inputs: what is expected, row by row and by hand, and in which rows nothing is."""

import numpy as np
import pytest

from conformance.oracle import attention as oracle
from conformance.oracle import truth_of
from conformance.problem import parse
from conformance.problem.visibility import visible_pairs
from conformance.values import materialise

PLAIN = "attention batch=2 heads=4/2 length=5/6 width=3/2 dtype=float32 values=spread.1#1"
TEXTS = (
    PLAIN,
    f"{PLAIN} mask=random.1:b1qk#3 scale=0.5",
    f"{PLAIN} causal=bottom-right",
    f"{PLAIN} mask=random.1:b1qk#3 sinks=gaussian.1#2",
)
# Of which array, at (batch, head, row, column), becomes what.
PLACES = {
    "nothing": (),
    "a NaN in the query": (("query", (0, 1, 2, 0), np.nan),),
    "an infinity in the query": (("query", (1, 3, 4, 2), np.inf),),
    "both in a query": (("query", (0, 2, 1, 0), np.nan), ("query", (0, 2, 1, 1), -np.inf), ("query", (0, 2, 3, 1), np.inf)),
    "a NaN in a key": (("key", (1, 0, 3, 1), np.nan),),
    "an infinity in a key": (("key", (0, 1, 2, 1), -np.inf),),
    "both in a key": (("key", (0, 0, 5, 0), np.inf), ("key", (0, 0, 5, 1), np.nan)),
    "a NaN in a value": (("value", (1, 1, 4, 0), np.nan),),
    "an infinity in a value": (("value", (0, 0, 1, 1), np.inf), ("value", (1, 1, 1, 0), -np.inf)),
    "infinities of both signs in values": (("value", (0, 0, 1, 1), np.inf), ("value", (0, 0, 2, 1), -np.inf)),
    "all of it": (
        ("query", (0, 1, 2, 0), np.nan), ("query", (1, 0, 2, 0), np.inf), ("key", (1, 0, 3, 1), np.nan),
        ("key", (0, 0, 5, 1), np.inf), ("value", (1, 1, 4, 0), np.nan), ("value", (0, 1, 1, 1), np.inf),
    ),
}  # fmt: skip


def inputs_with(text, places):
    inputs = materialise(parse(text))
    arrays = {name: getattr(inputs, name).copy() for name in ("query", "key", "value")}
    for name, place, value in places:
        arrays[name][place] = value
    return inputs.but(**arrays)


def target(inputs):
    """Output, log-sum-exp and weights by the formula, a row at a time, of the keys that it sees; and what is judged of each:
    nothing that hangs on what is hidden, or on e^∞."""
    batch, heads, rows = inputs.query.shape[:3]
    groups = heads // inputs.key.shape[1]
    visible = np.broadcast_to(visible_pairs(inputs), (batch, heads, rows, inputs.key.shape[2]))
    output, weights = np.zeros((batch, heads, rows, inputs.value.shape[3])), np.zeros(visible.shape)
    lse, judged, alone = np.zeros((batch, heads, rows)), np.ones((batch, heads, rows), bool), np.ones((batch, heads, rows), bool)
    for b, h, i in np.ndindex(batch, heads, rows):
        query = inputs.query[b, h, i].astype(np.float64)
        key, value = (array[b, h // groups].astype(np.float64) for array in (inputs.key, inputs.value))
        seen = visible[b, h, i]
        scale = query.shape[0] ** -0.5 if inputs.scale is None else inputs.scale
        scores = key[seen] @ query * scale
        exponentials = np.exp(scores)
        sink = 0.0 if inputs.sinks is None else np.exp(float(inputs.sinks.reshape(-1)[h % inputs.sinks.size]))
        weights[b, h, i, seen] = exponentials / (exponentials.sum() + sink)
        lse[b, h, i] = np.log(exponentials.sum() + sink)
        output[b, h, i] = weights[b, h, i, seen] @ value[seen]
        infinite = np.isinf(query).any() and not np.isnan(query).any()
        known = seen.any() and not infinite and not np.isinf(scores).any() and np.isfinite(key[~seen]).all()
        alone[b, h, i], judged[b, h, i] = known, known and np.isfinite(value[~seen]).all()
    certain = alone[..., None] & (visible | ~np.isnan(lse)[..., None])
    return {"output": (output, judged[..., None]), "lse": (lse, alone), "weights": (weights, certain)}


@pytest.mark.parametrize("pairs", [None, 40], ids=["at once", "in blocks"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_goes_where_arithmetic_takes_it(places, text, pairs, monkeypatch):
    if pairs is not None:
        monkeypatch.setattr(oracle, "BLOCK_PAIRS", pairs)
    inputs = inputs_with(text, PLACES[places])
    truth = truth_of(inputs)
    for name, (value, judged) in target(inputs).items():
        expected = truth.of(name, "float32").expected(truth.of(name, "float32").bound("strict"))
        where = np.broadcast_to(judged, value.shape)
        np.testing.assert_array_equal(np.broadcast_to(expected.judged, value.shape), where, err_msg=name)
        np.testing.assert_allclose(expected.output[where], value[where], rtol=1e-12, atol=1e-12, err_msg=name)
        assert np.isfinite(expected.budget[where]).all()

"""Faults of softmax and of the maximum: each shows where it can; those of overflow show only where numbers leave the range."""

import numpy as np
import pytest

from conformance.faults.steps import compute
from conformance.specification.build import attention
from conformance.values import materialise
from tests.support.faults import of_kinds
from tests.support.numeric_probes import assert_known_to_the_oracle, assert_shows_where_it_can

FAULTS = of_kinds("softmaxes", "maxima")
REWRITING = [name for name, fault in FAULTS.items() if fault.rewrite is not None]


def weights(name, **fields):
    """What the fault takes for weights of the keys: its output where V is the identity."""
    inputs = materialise(attention((2, 3, 3, 7, 13, 13, 13), ("float64",), values="identity-value.1#1", **fields)[0])
    return FAULTS[name].output(inputs), compute(inputs)


@pytest.mark.parametrize("name", FAULTS)
def test_shows_where_it_can_and_nowhere_else(name):
    assert_shows_where_it_can(FAULTS[name])


@pytest.mark.parametrize("name", REWRITING)
def test_the_oracle_knows_what_it_gives(name):
    assert_known_to_the_oracle(FAULTS[name])


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("softmax-over-queries", 2),
        ("softmax-over-heads", 1),
        ("softmax-over-batch", 0),
        ("softmax-over-queries-and-keys", (2, 3)),
        ("softmax-over-all", (0, 1, 2, 3)),
    ],
)
def test_weights_add_up_to_one_over_the_wrong_axis(name, axes):
    wrong, right = weights(name)
    np.testing.assert_allclose(wrong.sum(axes), 1.0, rtol=1e-12)
    assert not np.allclose(right.sum(axes), 1.0)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("softmax-by-key-count", lambda p: p / p.max(-1, keepdims=True) / 13),
        ("softmax-not-normalised", lambda p: p / p.max(-1, keepdims=True)),
        ("softmax-by-norm", lambda p: p / np.linalg.norm(p, axis=-1, keepdims=True)),
        ("softmax-without-last-key", lambda p: p / (1.0 - p[..., -1:])),
        ("softmax-with-last-key-twice", lambda p: p / (1.0 + p[..., -1:])),
        ("softmax-twice", lambda p: np.exp(p) / np.exp(p).sum(-1, keepdims=True)),
        ("softmax-hard", lambda p: p == p.max(-1, keepdims=True)),
        ("softmax-log", np.log),
        ("softmax-base-two", lambda p: p ** np.log(2) / (p ** np.log(2)).sum(-1, keepdims=True)),
        ("softmax-negated", lambda p: (1 / p) / (1 / p).sum(-1, keepdims=True)),
    ],
)
def test_weights_are_what_it_says(name, made):
    wrong, right = weights(name)
    np.testing.assert_allclose(wrong, made(right), rtol=1e-9, atol=1e-12)


def test_off_by_one_leaves_room_for_a_key_with_score_0_and_no_value():
    inputs = materialise(attention("wide", ("float64",), values="spread.1#1")[0])

    def with_nought(array):
        return np.concatenate([array, np.zeros_like(array[:, :, :1])], axis=2)

    expected = compute(inputs.but(key=with_nought(inputs.key), value=with_nought(inputs.value)))
    np.testing.assert_allclose(FAULTS["softmax-off-by-one"].output(inputs), expected, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in FAULTS if name.startswith("maximum-") and "-over-" not in name])
def test_a_wrong_maximum_does_not_show_in_ordinary_scores(name):
    dtype = FAULTS[name].dtypes[0]
    inputs = materialise(attention("wide", (dtype,), values="gaussian.1#1", mask="random.1:b1qk#1")[0])
    output, right = FAULTS[name].output(inputs).astype(np.float64), compute(inputs).astype(np.float64)
    np.testing.assert_allclose(output, right, rtol=0, atol=5e-3 if dtype == "float16" else 1e-13)


@pytest.mark.parametrize(
    ("name", "sign"), [("maximum-not-subtracted", 1), ("maximum-from-zero", -1), ("scores-clipped-to-50", 1)]
)
@pytest.mark.parametrize(("dtype", "far"), [("float32", 200.0), ("float64", 900.0)])
def test_shows_beyond_the_range_of_exp(name, sign, dtype, far):
    distribution = "offset.1" if sign > 0 else "all-low.1"
    inputs = materialise(attention("wide", (dtype,), values=f"{distribution}*{sign * far}#15")[0])
    assert not np.allclose(FAULTS[name].output(inputs), compute(inputs), rtol=1e-2)
    assert np.isfinite(compute(inputs)).all()


def test_a_hidden_key_that_is_loud_silences_the_others():
    fields = {"mask": "left-padding.1:b11k#48", "values": "spread.1#1"}
    loud = materialise(attention("wide", **fields, transformations=("loud-hidden.1*100.0#0",))[0])
    assert np.isnan(FAULTS["maximum-with-hidden-keys"].output(loud)).any()
    quiet = materialise(attention("wide", **fields)[0])
    np.testing.assert_allclose(FAULTS["maximum-with-hidden-keys"].output(quiet), compute(quiet), rtol=0, atol=1e-6)

"""How far errors of scores move an output: against the formula, pair by pair, with numbers that float64 cannot hold as well."""

import mpmath
import numpy as np
import pytest

from conformance.numerics.profiles import Roundoffs
from conformance.oracle import budget

RNG = np.random.default_rng(7)
HEADS, ROWS, KEYS, WIDTH = (2, 3), 4, 5, 3


def problem(largest_error, hidden):
    """Logits, weights, errors, values, outputs and visible pairs; the first key is always visible."""
    logits = RNG.normal(0.0, 2.0, (*HEADS, ROWS, KEYS))
    visible = RNG.random(logits.shape) > 0.4
    visible[..., 0] = True
    if not hidden:
        visible[:] = True
    logits = np.where(visible, logits, -np.inf)
    logits -= logits.max(-1, keepdims=True)
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    error = RNG.random(logits.shape) * largest_error
    value = RNG.normal(1.0, 2.0, (*HEADS, KEYS, WIDTH))
    return logits, weights, np.where(visible, error, 1e4), value, weights @ value, visible


def expected(logits, error, value, output, visible):
    """min(Σ w |V − O| / Z, max |V − O|), the hull only where some error exceeds 0.1."""
    found = np.empty(output.shape)
    for index in np.ndindex(*output.shape):
        row, channel = index[:-1], index[-1]
        keys = np.flatnonzero(visible[row])
        e = [mpmath.mpf(error[(*row, j)]) for j in keys]
        z = mpmath.fsum(mpmath.exp(logits[(*row, j)] - x) for j, x in zip(keys, e, strict=True))
        apart = [abs(value[(*row[:-1], j, channel)] - output[index]) for j in keys]
        lifts = [mpmath.exp(logits[(*row, j)]) * mpmath.expm1(x) / z for j, x in zip(keys, e, strict=True)]
        moved = mpmath.fsum(lift * distance for lift, distance in zip(lifts, apart, strict=True))
        found[index] = float(min(moved, max(apart)) if max(e) > 0.1 else moved)
    return found


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("largest_error", [1e-6, 0.09, 1.0, 20.0, 290.0, 400.0, 2000.0])
def test_errors_of_scores_move_an_output_as_far_as_the_formula_says(largest_error, hidden):
    logits, weights, error, value, output, visible = problem(largest_error, hidden)
    with np.errstate(over="ignore"):
        found = budget.spread_of_scores(weights, logits, error, budget.KeyArray(value), output, visible if hidden else None)
    np.testing.assert_allclose(found, expected(logits, error, value, output, visible), rtol=1e-9)


def test_the_sum_is_taken_up_to_a_number_of_products_and_bounded_beyond(monkeypatch):
    logits, weights, error, value, output, _ = problem(0.05, False)
    products = weights.size * WIDTH
    numbers = budget.KeyArray(value)

    def spread():
        return budget.spread_of_scores(weights, logits, error, numbers, output, None)

    lift, normaliser = weights * np.expm1(error), (weights * np.exp(-error)).sum(-1, keepdims=True)
    monkeypatch.setattr(budget, "EXACT", products)
    np.testing.assert_allclose(spread(), budget._distances(lift, value, output) / normaliser, rtol=1e-12)
    monkeypatch.setattr(budget, "EXACT", products - 1)
    np.testing.assert_allclose(spread(), budget._bound_of_distances(lift, numbers, output) / normaliser, rtol=1e-12)


def test_weights_and_errors_beyond_the_range_are_divided_as_logarithms():
    logits = np.array([[0.0, -1.0, -700.0, -900.0], [0.0, -2.0, -400.0, -np.inf], [0.0, -0.5, -1.0, -3.0]])
    error = np.array([[0.5, 0.25, 310.0, 350.0], [301.0, 2.0, 500.0, 400.0], [299.0, 300.0, 300.5, 5.0]])
    found = budget._lift_of_far(logits, error)
    for row in range(3):
        z = mpmath.fsum(mpmath.exp(mpmath.mpf(a) - b) for a, b in zip(logits[row], error[row], strict=True) if np.isfinite(a))
        for j, (a, b) in enumerate(zip(logits[row], error[row], strict=True)):
            exact = mpmath.exp(a) * mpmath.expm1(b) / z if np.isfinite(a) else 0
            assert found[row, j] == pytest.approx(float(min(exact, mpmath.exp(600))), rel=1e-9)


@pytest.mark.parametrize("chunk", [1 << 21, 2 * KEYS * WIDTH, 1])
@pytest.mark.parametrize("hidden", [False, True])
def test_no_output_leaves_the_hull_of_the_visible_values(hidden, chunk, monkeypatch):
    monkeypatch.setattr(budget, "_CHUNK", chunk)
    *_, value, output, visible = problem(1.0, hidden)
    rows = RNG.random((*HEADS, ROWS)) > 0.3
    before = RNG.random(output.shape) * 8.0
    bound = before.copy()
    budget._cap_by_hull(bound, rows, value, output, visible if hidden else None)
    for index in np.ndindex(*output.shape):
        seen = visible[index[:-1]]
        farthest = np.abs(value[(*index[:2], slice(None), index[-1])] - output[index])[seen].max()
        assert bound[index] == pytest.approx(min(before[index], farthest) if rows[index[:-1]] else before[index], rel=1e-12)


def test_visible_keys_are_counted_row_by_row_also_where_one_entry_stands_for_all():
    visible = np.zeros((2, 1, 3, 5), bool)
    visible[0, 0, 1, :4] = visible[1, 0, 2, 2:] = True
    counted = budget.visible_count(visible, 5)
    assert counted.shape == (2, 1, 3, 1) and counted.dtype.kind == "i"
    assert counted[..., 0].tolist() == [[[0, 4, 0]], [[0, 0, 3]]]
    whole = np.array([[[[True], [False], [True]]]])
    assert budget.visible_count(whole, 7)[0, 0, :, 0].tolist() == [7, 0, 7]


def test_what_a_log_sum_exp_loses_is_that_of_its_row():
    logits, weights, _, value, _, _ = problem(1.0, False)
    top = RNG.normal(0.0, 50.0, (*HEADS, ROWS, 1))
    scores, u = logits + top, 2.0**-10
    lse = top + np.log(np.exp(logits).sum(-1, keepdims=True))
    lost = weights * np.expm1(u * (2.0 * np.abs(lse) + np.abs(scores - lse)))
    unit = Roundoffs(0.0, 0.0, 0.0, 0.0, log_sum_exp=u)
    found = budget.normalisation_error(weights, scores, top, budget.KeyArray(value), unit)
    np.testing.assert_allclose(found, lost @ np.abs(value), rtol=1e-9)


@pytest.mark.parametrize("hidden", [False, True])
def test_what_merges_lose_is_measured_by_the_largest_visible_value_of_the_channel(hidden):
    *_, value, output, visible = problem(1.0, hidden)
    unit = Roundoffs(0.0, 0.0, 0.0, 0.0, merges=2.0**-10)
    found = budget.merging_error(visible if hidden else None, budget.KeyArray(value), output, unit)
    for index in np.ndindex(*output.shape):
        largest = np.abs(value[(*index[:2], slice(None), index[-1])])[visible[index[:-1]]].max()
        assert found[index] == 8.0 * 2.0**-10 * largest

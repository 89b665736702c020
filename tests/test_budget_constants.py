"""No constant of a budget is four times too wide: for each term there is a correct computation that uses up a quarter or more."""

import pytest

from tests.support import used_up

ROWS = used_up.rows()
IDS = [f"row{number}" for number in range(len(ROWS))]  # terms are no names of tests


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_correct_computation_uses_up_a_quarter_of_the_term_and_no_more_than_all(row):
    use = row.use()
    assert 0.0 < use.term <= use.whole * 1.001, f"{row.term}: the term is part of the budget"
    fraction = use.error / (use.term if row.unseen else use.whole)
    assert used_up.A_QUARTER <= fraction <= 1.001, row.term  # beyond 1 by what is of second order


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_term_four_times_as_wide_would_show(row):
    use = row.use()
    rest = 0.0 if row.unseen else use.whole - use.term
    assert use.error / (rest + 4.0 * use.term) < 1.02 * used_up.A_QUARTER, row.term


def test_the_document_has_what_is_measured():
    assert used_up.documented() == used_up.table(), "python -m tests.support.used_up makes it anew"


def test_terms_are_named_once():
    assert len({row.term for row in ROWS}) == len(ROWS) > 50

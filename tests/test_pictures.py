"""The picture of a failure: what stands in the records to be drawn."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from conformance.adapter.registry import resolve
from conformance.checks.items import PICTURES, Effort, ItemResult, ItemRun
from conformance.checks.pictures import SIDE, picture
from conformance.errors import UsageError
from conformance.expectations import no_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome, judge
from conformance.oracle import Expected, expect
from conformance.problem import parse
from conformance.records import Picture, decode, encode
from conformance.specification import requirements
from conformance.values import materialise
from tests import fakes, hostile

SMALL = "attention batch=2 heads=2 length=3/4 width=5 dtype=float64 causal=bottom-right values=spread.1#4"
LARGE = "attention batch=1 heads=1 length=50/60 width=40 dtype=float64 causal=bottom-right values=spread.1#4"


def drawn(text: str, change: Callable[[np.ndarray], None]) -> tuple[Picture, Expected]:
    """The picture of the right output after ``change``, which is an error."""
    inputs = materialise(parse(text))
    expected = expect(inputs, "strict")
    output = expected.output.astype(np.float64)
    change(output)
    made = picture(output, expected, inputs, judge(output, expected))
    assert made is not None
    return made, expected


def item(function: Callable[..., object], requirement: str, examples: int) -> ItemResult:
    implementation = resolve(f"{function.__code__.co_filename}:{function.__name__}")
    expectations = no_expectations().for_(implementation.name)
    effort = Effort(examples=examples, free=False, seed=3)
    return ItemRun(requirements()[requirement], Subject(implementation), Judge(), expectations, effort).run()


def test_it_shows_the_head_of_the_largest_error_as_it_is() -> None:
    def change(output: np.ndarray) -> None:
        output[0, 0, 0, 0] += 1
        output[1, 0, 2, 3] = 100

    made, expected = drawn(SMALL, change)
    assert (made.head, made.size, made.rows, made.columns) == ((1, 0), (3, 5), (0, 1, 2), (0, 1, 2, 3, 4))
    assert made.got[2][3] == 100
    assert made.want[2][3] == pytest.approx(float(expected.output[1, 0, 2, 3]), rel=1e-3)
    assert made.r[2][3] == pytest.approx((100 - made.want[2][3]) / float(expected.budget[1, 0, 2, 3]), rel=1e-3)
    assert made.r[0][0] < 1


def test_it_says_which_keys_a_query_may_attend_to() -> None:
    made, _ = drawn(SMALL, lambda output: output.__iadd__(1))
    assert (made.keys, made.visible) == ((0, 1, 2, 3), ("##..", "###.", "####"))
    everything, _ = drawn(SMALL.replace(" causal=bottom-right", ""), lambda output: output.__iadd__(1))
    assert (everything.keys, everything.visible) == ((), ())


def test_a_large_head_is_cut_into_blocks_of_which_the_worst_entry_is_kept() -> None:
    def change(output: np.ndarray) -> None:
        output[0, 0, 49, 39] = 7

    made, _ = drawn(LARGE, change)
    assert (len(made.rows), len(made.columns), made.size) == (SIDE, SIDE, (50, 40))
    assert made.got[-1][-1] == 7
    assert sum(r > 1 for row in made.r for r in row) == 1
    assert "+" in "".join(made.visible), "a block on the diagonal is neither all visible nor all hidden"
    assert len(msgspec.json.encode(made)) < 20_000, "records stay small"


def test_what_is_not_finite_is_an_infinite_error() -> None:
    def change(output: np.ndarray) -> None:
        output[0, 1, 0, 0] = math.nan

    made, _ = drawn(SMALL, change)
    assert made.head == (0, 1)
    assert math.isnan(made.got[0][0]) and made.r[0][0] == math.inf


def test_an_output_of_another_shape_has_none() -> None:
    inputs = materialise(parse(SMALL))
    expected = expect(inputs, "strict")
    wrong = np.zeros((1, 2, 3))
    assert picture(wrong, expected, inputs, judge(wrong, expected)) is None


def test_the_first_failures_of_an_item_have_one_and_so_has_the_shrunk_one() -> None:
    result = item(fakes.unscaled, "ATT-SCALE-001", examples=20)
    fixed = [case for case in result.cases if case.stratum != "random" and case.outcome.is_failure]
    assert [case.picture is not None for case in fixed] == [number < PICTURES for number in range(len(fixed))]
    assert result.cases[0].stratum == "random" and result.cases[0].picture is not None
    assert all(case.picture is None for case in result.cases if case.outcome is Outcome.PASS)


@pytest.mark.parametrize("part", ["got", "want", "r", "visible"])
def test_a_picture_that_does_not_fit_itself_is_no_record(part: str) -> None:
    case = item(fakes.unscaled, "ATT-SCALE-001", examples=0).unexpected[0]
    content = msgspec.json.decode(encode(case))
    content["picture"] |= {"keys": [0], "visible": ["#"] * len(content["picture"]["rows"])}
    decode(msgspec.json.encode(content))
    content["picture"][part] = content["picture"][part][1:]
    with pytest.raises(UsageError, match="of a picture is not of its rows"):
        decode(msgspec.json.encode(content))


def test_a_picture_comes_back_from_a_record_as_it_was() -> None:
    case = item(hostile.nan_for_large_scores, "ATT-SCALE-010", examples=0).unexpected[0]
    assert case.picture is not None and any(math.isnan(got) for row in case.picture.got for got in row)
    again = decode(encode(case))
    assert encode(again) == encode(case)
    assert again.picture.r == case.picture.r

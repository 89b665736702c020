"""The suite on fakes: each way of being wrong is caught, with the outcome that names it."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.adapter import registry
from conformance.checks.items import UNEXPECTED_RANDOM_FAILURES, Effort, ItemResult, ItemRun
from conformance.expectations import no_expectations
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.problem import parse
from conformance.records import Run, read_records
from conformance.specification import requirements
from tests import fakes, hostile
from tests.support.commands import run_command

EFFORT = Effort(examples=2, free=False, seed=1)


def judged(function: Callable[..., object], requirement: str, effort: Effort = EFFORT) -> ItemResult:
    """The result of a requirement on a function of a fakes module."""
    operation = requirements()[requirement].operation
    implementation = registry.resolve(f"{Path(function.__code__.co_filename)}:{function.__name__}", operation=operation)
    expectations = no_expectations().for_(implementation.name)
    return ItemRun(requirements()[requirement], Subject(implementation), Judge(), expectations, effort).run()


@pytest.mark.parametrize(
    ("function", "requirement", "outcome"),
    [
        (fakes.zeros, "ATT-OUT-004", Outcome.WRONG_VALUE),
        (hostile.transposed, "ATT-OUT-001", Outcome.WRONG_SHAPE),
        (hostile.mutating, "ATT-OUT-028", Outcome.MUTATED_INPUT),
        (hostile.aliasing, "ATT-OUT-029", Outcome.MUTATED_INPUT),
        (hostile.nondeterministic, "ATT-OUT-026", Outcome.NONDETERMINISTIC),
        (hostile.from_a_cache, "ATT-OUT-027", Outcome.WRONG_VALUE),
        (hostile.raising, "ATT-OUT-037", Outcome.ERROR),
        (hostile.greedy, "ATT-OUT-001", Outcome.OUT_OF_MEMORY),
        (hostile.exiting, "ATT-OUT-001", Outcome.ERROR),
        (hostile.double, "ATT-OUT-002", Outcome.WRONG_DTYPE),
        (hostile.maskless, "ATT-MASK-003", Outcome.WRONG_VALUE),
        (hostile.scaling_by_width, "ATT-SCALE-001", Outcome.WRONG_VALUE),
        (hostile.nan_for_large_scores, "ATT-SCALE-010", Outcome.NONFINITE),
        (hostile.positions_from_base_1000, "ATT-POS-005", Outcome.WRONG_VALUE),
    ],
)
def test_is_caught_with_its_outcome(function: Callable[..., object], requirement: str, outcome: Outcome) -> None:
    result = judged(function, requirement)
    assert (result.item.outcome, result.item.status) == (outcome, "unexpected")
    assert result.unexpected, "a failing item shows at least one case"


FORM = {
    "attention": ("ATT-OUT-001", "ATT-OUT-002", "ATT-OUT-026", "ATT-OUT-028", "ATT-OUT-029"),
    "multi_head_attention": ("ATT-HEAD-026", "ATT-HEAD-027", "ATT-HEAD-029", "ATT-HEAD-030"),
    "sinusoidal_encoding": ("ATT-POS-007", "ATT-POS-017", "ATT-POS-019", "ATT-POS-020"),
}


@pytest.mark.parametrize(("function", "operation"), [
    (fakes.unscaled, "attention"), (fakes.zeros, "attention"), (fakes.zeros_of_heads, "multi_head_attention"),
    (hostile.positions_from_base_1000, "sinusoidal_encoding"),
])  # fmt: skip
def test_wrong_values_do_not_fail_what_speaks_of_form(function: Callable[..., object], operation: str) -> None:
    assert judged(
        function, {"attention": "ATT-OUT-004", "multi_head_attention": "ATT-HEAD-007"}.get(operation, "ATT-POS-001")
    ).unexpected
    for requirement in FORM[operation]:
        result = judged(function, requirement)
        assert not result.item.outcome.is_failure and result.item.status == "expected", requirement
        assert all(entry.max <= 1 for entry in result.item.accuracy), "what is wrong counts where it is judged"


@pytest.mark.parametrize(
    ("function", "failing"),
    [
        (fakes.doubles, {"ATT-OUT-002"}),
        (fakes.returns_length_first, {"ATT-OUT-001"}),
        (fakes.with_weights, {"ATT-OUT-001", "ATT-OUT-002", "ATT-OUT-026", "ATT-OUT-028", "ATT-OUT-029"}),
        (fakes.writes_on_query, set(FORM["attention"])),  # a changed input fails whatever is judged
        (fakes.unscaled_on_query, set(FORM["attention"])),
    ],
)
def test_each_requirement_on_form_judges_what_it_says(function: Callable[..., object], failing: set[str]) -> None:
    found = {requirement: judged(function, requirement).item.outcome for requirement in FORM["attention"]}
    assert {requirement for requirement, outcome in found.items() if outcome.is_failure} == failing, found


def test_a_stale_answer_is_said_to_be_one() -> None:
    result = judged(hostile.from_a_cache, "ATT-OUT-027")
    assert any("the call before" in case.message for case in result.unexpected)


def test_the_byte_order_of_another_machine_is_said_to_be_one() -> None:
    result = judged(hostile.of_another_machine, "ATT-OUT-004")
    assert {case.outcome for case in result.unexpected} == {Outcome.WRONG_DTYPE}
    assert "byte order" in result.unexpected[0].message


def test_an_correct_function_passes_what_its_signature_offers() -> None:
    for requirement in ("ATT-OUT-004", "ATT-OUT-027", "ATT-OUT-028", "ATT-MASK-003", "ATT-SCALE-005"):
        result = judged(fakes.correct, requirement)
        assert (result.item.outcome, result.item.status) == (Outcome.PASS, "expected"), result.unexpected
        assert all(entry.max <= 1 for entry in result.item.accuracy)


def test_what_the_signature_does_not_offer_is_unsupported_and_no_pass() -> None:
    result = judged(fakes.correct, "ATT-MASK-007")  # a bias
    assert result.item.outcome is Outcome.UNSUPPORTED
    assert "bias" in result.item.reason
    assert result.item.counts.unsupported > 0


def test_a_random_failure_is_shrunk_to_something_smaller_than_what_was_drawn() -> None:
    result = judged(fakes.unscaled, "ATT-SCALE-001", Effort(examples=20, free=False, seed=3))
    drawn = [case for case in result.unexpected if case.stratum == "random"]
    shrunk, *others = (math.prod(_sizes(case.text)) for case in drawn)
    assert len(others) >= UNEXPECTED_RANDOM_FAILURES
    assert all(shrunk < other for other in others)
    assert "reproduce" in drawn[0].repro


def _sizes(text: str) -> list[int]:
    words = dict(word.split("=", 1) for word in text.split()[1:])
    return [int(number) for name in ("batch", "heads", "length", "width") for number in words[name].split("/")]


def _run(tmp_path: Path, function: str, *options: str, keyword: str = "ATT-SCALE-005 or ATT-SCALE-001") -> Run:
    records = tmp_path / "records.jsonl"
    run_command(
        "run", "--implementation", f"{hostile.FILE}:{function}", "--tier", "quick", "--no-timing", "--records", str(records),
        "--reports", str(tmp_path), "-k", keyword, *options,
    )  # fmt: skip
    return read_records(records)


def test_one_that_dies_costs_its_own_item(tmp_path: Path) -> None:
    items = {item.requirement: item for item in _run(tmp_path, "dying", "-n", "1").items}
    assert {name: item.outcome for name, item in items.items()} == {"ATT-SCALE-001": Outcome.PASS, "ATT-SCALE-005": Outcome.CRASH}
    told, _, text = items["ATT-SCALE-005"].reason.partition(" The problem was: ")
    assert told == "The implementation ended the process with code 11."
    assert parse(text).scale is not None


def test_a_death_that_is_expected_is_no_surprise(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[expected]]\nrequirement = "ATT-SCALE-005"\noutcome = "CRASH"\nreason = "ends the process"\n')
    completed = run_command(
        "run", "--implementation", f"{hostile.FILE}:dying", "--tier", "quick", "--no-timing", "-n", "1",
        "-k", "ATT-SCALE-005", "--expectations", str(known), "--reports", str(tmp_path),
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout
    assert "1 of 1 results and conventions, 0 unexpected" in completed.stderr


def test_one_that_dies_when_a_convention_is_observed_says_which_one(tmp_path: Path) -> None:
    reasons = {item.reason for item in _run(tmp_path, "dying_of_masks", "-n", "1", keyword="ATT-MASK-001").items}
    assert len(reasons) == 1
    assert "when it was asked about CON-POLARITY. The problem was: attention" in reasons.pop()


def test_one_that_dies_while_it_is_timed_fails_the_run_and_leaves_the_rest(tmp_path: Path) -> None:
    run = _run(tmp_path, "dying_of_length", "-n", "1", "--timing", keyword="ATT-OUT-004")
    assert {item.outcome for item in run.items} == {Outcome.PASS}
    assert Outcome.CRASH in {timing.outcome for timing in run.timings}
    assert run.exit_code == 1


def test_one_that_hangs_costs_its_own_item(tmp_path: Path) -> None:
    run = _run(tmp_path, "hanging", "-n", "1", "--time-limit", "10")
    outcomes = {item.requirement: item.outcome for item in run.items}
    assert outcomes == {"ATT-SCALE-001": Outcome.PASS, "ATT-SCALE-005": Outcome.TIMEOUT}
    assert run.exit_code == 1


def test_one_that_stops_its_process_costs_its_own_item(tmp_path: Path) -> None:
    run = _run(tmp_path, "stopping", "-n", "1", "--time-limit", "10")
    outcomes = {item.requirement: item.outcome for item in run.items}
    assert outcomes == {"ATT-SCALE-001": Outcome.PASS, "ATT-SCALE-005": Outcome.TIMEOUT}


@pytest.mark.parametrize("function", ["unspeakable", "interrupting", "babbling", "skipping"])
def test_whatever_is_raised_is_an_error_of_its_own_item(function: str, tmp_path: Path) -> None:
    run = _run(tmp_path, function, "-n", "1", "--no-diagnosis")
    assert [item.outcome for item in run.items if item.outcome is not Outcome.UNSUPPORTED] == [Outcome.ERROR]
    assert run.exit_code == 1


@pytest.mark.parametrize("function", ["narrowing", "forking"])
def test_what_is_done_to_the_process_is_undone_for_those_that_follow(function: str, tmp_path: Path) -> None:
    run = _run(tmp_path, function, "-n", "1", "--implementation", "numpy-direct")
    outcomes = {item.outcome for item in run.items if item.implementation == "numpy-direct"}
    assert outcomes == {Outcome.PASS}
    assert run.exit_code == 0


def test_many_failures_of_one_kind_are_shown_in_full_only_at_first(tmp_path: Path) -> None:
    done = run_command(
        "run", "--implementation", f"{hostile.FILE}:double", "--tier", "quick", "--no-timing", "--no-diagnosis", "-n", "0",
        "-k", "ATT-OUT", folder=tmp_path,
    )  # fmt: skip
    assert done.stdout.count("reproduce: attention-conformance reproduce") < 25
    assert "ATT-OUT-020 on " in done.stdout
    assert re.search(r"WRONG_DTYPE, in float32.* as ATT-OUT-\d+ above\. The output is float64, expected float32", done.stdout)
    assert (
        len(
            re.findall(r"^UNEXPECTED on .*, those that are WRONG_DTYPE: ATT-OUT-002, .* and \d+ more$", done.stdout, re.MULTILINE)
        )
        == 1
    )

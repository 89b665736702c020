"""Comparing two runs: each kind of change is found, what cannot be compared is said, and the exit code says what is worse."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.comparison import Change, ChangeKind, Comparison, compare
from conformance.comparison.change import WORSE
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Counts, Header, Item, Line, Run, read_records
from tests.support import runs

KNOWN: dict[str, Any] = {"outcome": Outcome.WRONG_VALUE, "status": "expected", "reason": "a known failure"}
UNSUPPORTED: dict[str, Any] = {"outcome": Outcome.UNSUPPORTED}


def header(**changes: Any) -> Header:
    return runs.header(changes.pop("implementations", ["fine"]), changes.pop("requirements", ["ATT-OUT-001"]), **changes)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Comparison]:
    """Compares a run of the first lines with one of the second; each may begin with its header."""

    def make(before: list[Line], after: list[Line]) -> Comparison:
        return compare(made_run(tmp_path / "base.jsonl", before), made_run(tmp_path / "new.jsonl", after))

    return make


def made_run(path: Path, lines: list[Line]) -> Run:
    first = [] if lines and isinstance(lines[0], Header) else [header()]
    return read_records(runs.write(path, *first, *lines))


def only(comparison: Comparison) -> Change:
    assert len(comparison.changes) == 1, comparison.changes
    return comparison.changes[0]


# Requirements


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({}, runs.FAILS, ChangeKind.NEWLY_FAILING),
        ({}, {**runs.FAILS, "outcome": Outcome.CRASH}, ChangeKind.NEWLY_FAILING),
        (UNSUPPORTED, runs.FAILS, ChangeKind.NEWLY_FAILING),
        ({}, KNOWN, ChangeKind.NEWLY_KNOWN),
        (runs.FAILS, {}, ChangeKind.FIXED),
        (KNOWN, {"status": "unexpected", "reason": "the failure is gone"}, ChangeKind.FIXED),
        ({}, UNSUPPORTED, ChangeKind.NO_LONGER_RUN),
        ({}, {"outcome": Outcome.SKIPPED}, ChangeKind.NO_LONGER_RUN),
        (runs.FAILS, UNSUPPORTED, ChangeKind.FAILURE_NOT_RUN),
        (UNSUPPORTED, {}, ChangeKind.NEWLY_RUN),
        (runs.FAILS, {**runs.FAILS, "outcome": Outcome.CRASH}, ChangeKind.FAILS_WORSE),
        ({**runs.FAILS, "outcome": Outcome.CRASH}, runs.FAILS, ChangeKind.FAILS_OTHERWISE),
        (KNOWN, {**KNOWN, "outcome": Outcome.ERROR}, ChangeKind.FAILS_OTHERWISE),
        (KNOWN, runs.FAILS, ChangeKind.UNEXPECTED),
        ({}, {"status": "unexpected", "reason": "too few examples"}, ChangeKind.UNEXPECTED),
    ],
)
def test_an_item_that_changed(made: Any, before: dict[str, Any], after: dict[str, Any], kind: ChangeKind) -> None:
    comparison = made([runs.item(**before)], [runs.item(**after)])
    change = only(comparison)
    assert (change.kind, change.implementation, change.subject) == (kind, "fine", "ATT-OUT-001")
    assert comparison.compared == 1
    assert bool(comparison.worse) == (kind in WORSE)


@pytest.mark.parametrize("both", [{}, runs.FAILS, KNOWN, UNSUPPORTED, {"outcome": Outcome.SKIPPED}])
def test_what_did_not_change_is_no_change(made: Any, both: dict[str, Any]) -> None:
    comparison = made([runs.item(**both)], [runs.item(**both)])
    assert comparison.changes == ()
    assert comparison.verdict == "Nothing is worse: no change (1 results compared)."


def test_a_new_failure_comes_with_its_message(made: Any) -> None:
    failure = runs.case(1, outcome="WRONG_VALUE", message="At (0, 1): got 2.0, expected 1.0.")
    assert only(made([runs.item(), runs.case(1)], [runs.item(**runs.FAILS), failure])).note == "At (0, 1): got 2.0, expected 1.0."


def test_a_requirement_that_becomes_wrong_in_one_more_dtype_is_worse(made: Any) -> None:
    wrong = {"outcome": "WRONG_VALUE"}

    def failing(float16: str) -> list[Line]:
        dtypes = runs.in_dtypes(float32="WRONG_VALUE", float16=float16)
        cases = [runs.case(1, **wrong), runs.case(2, outcome=float16, dtype="float16")]
        return [runs.item(**runs.FAILS, dtypes=dtypes), *cases]

    worse = made(failing("PASS"), failing("WRONG_VALUE"))
    change = only(worse)
    assert worse.worse and change.kind is ChangeKind.MORE_DTYPES
    assert (change.before, change.after, change.note) == ("float32", "float32, float16", "new: float16")
    assert not made(failing("WRONG_VALUE"), failing("PASS")).worse


def test_more_and_fewer_cases_of_a_failing_requirement(made: Any) -> None:
    def failing(*numbers: int) -> list[Line]:
        return [
            runs.item(**runs.FAILS), *(runs.case(n, outcome="WRONG_VALUE" if n in numbers else "PASS") for n in range(4))
        ]  # fmt: skip

    more = only(made(failing(0), failing(0, 2)))
    assert (more.kind, more.before, more.after) == (ChangeKind.MORE_FAILING, "1 cases", "2 cases")
    assert more.note == f"ATT-OUT-001/{runs.digest(2)}"
    assert only(made(failing(0, 2), failing(0))).kind is ChangeKind.FEWER_FAILING
    moved = made(failing(0, 1), failing(0, 3))
    assert [change.kind for change in moved.changes] == [ChangeKind.MORE_FAILING, ChangeKind.FEWER_FAILING]
    assert moved.worse


def test_further_cases_that_are_stated_as_known_are_not_worse(made: Any) -> None:
    def failing(*numbers: int) -> list[Line]:
        return [runs.item(**KNOWN), *(runs.case(n, outcome="WRONG_VALUE", status="expected") for n in numbers)]

    assert made([*failing(0), runs.case(1)], failing(0, 1)).changes == ()


def test_a_case_that_only_the_new_run_has_is_not_said_to_fail_newly(made: Any) -> None:
    before = [runs.item(**runs.FAILS), runs.case(0, outcome="WRONG_VALUE")]
    comparison = made(before, [*before, runs.case(1, outcome="WRONG_VALUE")])
    assert comparison.changes == ()
    assert comparison.not_compared == (
        "Golden and designed cases that only one of the runs has: 0 in the base, 1 in the new run.",
    )


# Added and removed


def test_implementations_and_requirements_that_come_and_go(made: Any) -> None:
    requirements = ["ATT-OUT-001", "ATT-OUT-002"]
    before = [header(requirements=requirements), runs.item(), runs.item("fine", "ATT-OUT-002")]
    after = [header(implementations=["fine", "flawed"]), runs.item(), runs.item("flawed", **runs.FAILS)]
    comparison = made(before, after)
    assert [(c.kind, c.implementation, c.subject) for c in comparison.changes] == [
        (ChangeKind.ADDED, "flawed", "the implementation"),
        (ChangeKind.REMOVED, "fine", "ATT-OUT-002"),
    ]
    assert not comparison.worse


def test_a_requirement_of_a_newer_specification_is_added_and_not_newly_failing(made: Any) -> None:
    newer = header(requirements=["ATT-OUT-001", "ATT-OUT-002"], specification="1.1")
    comparison = made([runs.item()], [newer, runs.item(), runs.item("fine", "ATT-OUT-002", **runs.FAILS)])
    change = only(comparison)
    assert (change.kind, change.after) == (ChangeKind.ADDED, "WRONG_VALUE")
    assert "one of the two specifications only" in change.note
    assert "specification: 1.0 → 1.1" in comparison.differences
    assert not comparison.worse


def test_a_requirement_that_says_something_else_is_not_compared(made: Any) -> None:
    reworded = runs.requirement("ATT-OUT-001")
    reworded = type(reworded)(id=reworded.id, area="OUT", operation="attention", sentence="Another sentence.")
    kept = "ATT-OUT-002"
    before = [header(requirements=["ATT-OUT-001", kept]), runs.item(), runs.item("fine", kept)]
    after = [
        header(requirements=[reworded, kept], specification="1.1"), runs.item(**runs.FAILS), runs.item("fine", kept)
    ]  # fmt: skip
    comparison = made(before, after)
    assert comparison.changes == ()
    assert comparison.compared == 1
    assert any("say something else" in remark and "ATT-OUT-001" in remark for remark in comparison.not_compared)


# Random cases


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 8},
        {"tier": "quick"},
        {"suite": "0.2.0"},
        {"specification": "1.1"},
        {"environment": runs.LINUX.__class__(**{
            **{name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}, "packages": {"hypothesis": "7"}
        })},
    ],
    ids=["seed", "tier", "suite", "specification", "hypothesis"],
)  # fmt: skip
def test_failures_in_other_random_cases_alone_are_not_compared(made: Any, other: dict[str, Any]) -> None:
    passing = [runs.item(counts=Counts(random=9)), runs.case(1)]
    failing = [
        runs.item(**runs.FAILS, counts=Counts(random=9, failed=1)),
        runs.case(1),
        runs.case(2, outcome="WRONG_VALUE", stratum="random"),
    ]
    for before, after in ((passing, failing), (failing, passing)):
        assert len(made(before, after).changes) == 1, "the same draws are compared"
        comparison = made(before, [header(**other), *after])
        assert comparison.changes == ()
        assert any("fail in random cases alone" in remark for remark in comparison.not_compared)
        assert any("drawn differently" in remark for remark in comparison.not_compared)


def test_a_known_failure_that_other_random_cases_make_unexpected_is_not_compared(made: Any) -> None:
    known = runs.case(1, outcome="WRONG_VALUE", status="expected")
    drawn = runs.case(2, outcome="WRONG_VALUE", stratum="random")
    before, after = [runs.item(**KNOWN), known], [runs.item(**runs.FAILS), known, drawn]
    assert only(made(before, after)).kind is ChangeKind.UNEXPECTED
    assert made(before, [header(seed=8), *after]).changes == ()


def test_a_golden_case_that_fails_is_compared_whatever_the_seed(made: Any) -> None:
    after = [header(seed=8), runs.item(**runs.FAILS), runs.case(1, outcome="WRONG_VALUE", stratum="golden")]
    assert only(made([runs.item(), runs.case(1, stratum="golden")], after)).kind is ChangeKind.NEWLY_FAILING


def test_a_crash_is_compared_whatever_the_seed(made: Any) -> None:
    after = [header(seed=8), runs.item(outcome=Outcome.CRASH, status="unexpected")]
    assert only(made([runs.item()], after)).kind is ChangeKind.NEWLY_FAILING


# Conventions


def test_a_changed_convention_is_told_and_a_broken_declaration_is_worse(made: Any) -> None:
    changed = made(
        [runs.item(), runs.convention(declared=None, agrees=None)],
        [runs.item(), runs.convention(declared=None, observed="nan", agrees=None)],
    )
    assert (only(changed).kind, only(changed).before, only(changed).after) == (ChangeKind.CONVENTION, "zeros", "nan")
    assert not changed.worse
    broken = made([runs.item(), runs.convention()], [runs.item(), runs.convention(observed="nan", agrees=False)])
    assert only(broken).kind is ChangeKind.NOT_AS_EXPECTED
    assert broken.worse


# Accuracy


def judged(*values: float, **changes: Any) -> list[Line]:
    return [runs.item(), *(runs.case(n, r=r, **changes) for n, r in enumerate(values))]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ((0.2, 0.4), (0.2, 0.51), ChangeKind.LESS_ACCURATE),  # the largest
        ((0.1, 0.1, 0.4), (0.1, 0.13, 0.4), ChangeKind.LESS_ACCURATE),  # the median
        ((0.2, 0.4), (0.2, 0.3), ChangeKind.MORE_ACCURATE),
        ((0.2, 0.4), (0.2, 0.49), None),
        ((0.001, 0.002), (0.004, 0.009), None),  # all below a hundredth of the budget
        ((0.01, 0.01), (0.012, 0.012), None),
        ((0.01, 0.01), (0.013, 0.013), ChangeKind.LESS_ACCURATE),  # beyond a hundredth it counts at once
        ((0.0, 0.0), (0.0, 0.2), ChangeKind.LESS_ACCURATE),
    ],
)
def test_accuracy(made: Any, before: tuple[float, ...], after: tuple[float, ...], kind: ChangeKind | None) -> None:
    comparison = made(judged(*before), judged(*after))
    assert [change.kind for change in comparison.changes] == ([] if kind is None else [kind])
    assert bool(comparison.worse) == (kind is ChangeKind.LESS_ACCURATE)


def test_accuracy_names_the_dtype_and_the_worst_case(made: Any) -> None:
    change = only(made(judged(0.2, 0.4), judged(0.2, 0.6)))
    assert change.subject == "r in float32"
    assert (change.before, change.after) == ("median 0.3, largest 0.4", "median 0.4, largest 0.6")
    assert change.note == f"2 cases; largest in ATT-OUT-001/{runs.digest(1)}"


def test_accuracy_is_compared_on_equal_problems_only(made: Any) -> None:
    other = [runs.item(), runs.case(0, r=0.2), runs.case(7, r=0.9)]
    assert made(judged(0.2, 0.4), other).changes == ()
    random = judged(0.2, stratum="random")
    assert made(random, judged(0.9, stratum="random")).changes == ()


def test_failing_cases_say_nothing_of_accuracy(made: Any) -> None:
    def failing(r: float) -> list[Line]:
        return [runs.item(**runs.FAILS), runs.case(0, r=0.2), runs.case(1, r=r, outcome="WRONG_VALUE")]

    assert made(failing(2.0), failing(9.0)).changes == ()


def test_another_profile_or_specification_measures_otherwise(made: Any) -> None:
    unfused = runs.implementation("fine", profile={"float32": "unfused"})
    comparison = made(judged(0.2), [header(implementations=[unfused]), *judged(0.6)])
    assert comparison.changes == ()
    assert any("another profile (strict → unfused)" in remark for remark in comparison.not_compared)
    comparison = made(judged(0.2), [header(specification="1.1"), *judged(0.6)])
    assert comparison.changes == ()
    assert any("budgets" in remark for remark in comparison.not_compared)


# Speed


def timed(low: float, high: float, name: str = "flawed", **changes: Any) -> list[Line]:
    ratios = {"ratio": (low + high) / 2, "ratio_low": low, "ratio_high": high}
    made = changes.pop("made", header(implementations=["fine", "flawed"]))
    return [made, runs.item(), runs.timing(name, **{**ratios, **changes})]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ((1.0, 1.2), (1.21, 1.4), ChangeKind.SLOWER),
        ((1.0, 1.2), (1.2, 1.4), None),
        ((1.21, 1.4), (1.0, 1.2), ChangeKind.FASTER),
        ((1.0, 2.0), (1.4, 1.5), None),
    ],
)
def test_speed_counts_beyond_both_intervals(made: Any, before: Any, after: Any, kind: ChangeKind | None) -> None:
    comparison = made(timed(*before), timed(*after))
    assert [change.kind for change in comparison.changes] == ([] if kind is None else [kind])
    assert bool(comparison.worse) == (kind is ChangeKind.SLOWER)
    if kind:
        assert only(comparison).subject == "decode (cpu-small, float32, forward, cpu)"
        assert only(comparison).note == "95 % intervals of the time relative to fine"


def test_quartiles_stand_in_for_missing_intervals(made: Any) -> None:
    quick = {"median_seconds": 0.002, "low_quartile_seconds": 0.0019, "high_quartile_seconds": 0.0021, "ratio_low": None}
    slow = {"median_seconds": 0.003, "low_quartile_seconds": 0.0029, "high_quartile_seconds": 0.0031, "ratio_low": None}
    change = only(made(timed(1, 1, **quick), timed(1, 1, **slow)))
    assert (change.kind, change.note) == (ChangeKind.SLOWER, "quartiles of the time of a call")
    assert change.before == "2 ms [1.9 ms, 2.1 ms]"
    itself = {"ratio_low": 1.0}
    of_the_baseline = only(made(timed(1, 1, "fine", **{**quick, **itself}), timed(1, 1, "fine", **{**slow, **itself})))
    assert of_the_baseline.kind is ChangeKind.SLOWER, "a baseline's ratio to itself says nothing"
    none = {**quick, "low_quartile_seconds": None}
    assert any("no interval" in remark for remark in made(timed(1, 1, **none), timed(1, 1, **none)).not_compared)


def test_ratios_to_a_baseline_of_another_version_are_not_compared(made: Any) -> None:
    fields = {name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}
    environment = type(runs.LINUX)(**{**fields, "packages": {**runs.LINUX.packages, "numpy": "2.5.0"}})
    newer = header(implementations=["fine", "flawed"], environment=environment)
    assert made(timed(1.0, 1.2), timed(2.0, 2.2, made=newer)).changes == (), "the quartiles are the same"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"flops": 2000}, "does other work"),
        ({"made": "another machine"}, "different machines"),
    ],
)
def test_speeds_that_cannot_be_compared(made: Any, changes: dict[str, Any], told: str) -> None:
    if "made" in changes:
        fields = {name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}
        changes = {"made": header(implementations=["fine", "flawed"], environment=type(runs.LINUX)(**{**fields, "cpu": "Z80"}))}
    comparison = made(timed(1.0, 1.2), timed(2.0, 2.2, **changes))
    assert comparison.changes == ()
    assert any(told in remark for remark in comparison.not_compared)


def test_runs_that_were_timed_alone_are_compared(made: Any) -> None:
    before, after = ([line for line in timed(*ends) if not isinstance(line, Item)] for ends in ((1.0, 1.2), (2.0, 2.2)))
    comparison = made(before, after)
    assert only(comparison).kind is ChangeKind.SLOWER
    assert comparison.verdict == "Something is worse: 1 slower (0 results and 1 timings compared)."


def test_an_unsound_self_comparison_takes_the_ratios_away(made: Any) -> None:
    unsound = runs.self_comparison(1.2, shape="prefill")
    for before, after in ((timed(1.0, 1.2), [*timed(2.0, 2.2), unsound]), ([*timed(1.0, 1.2), unsound], timed(2.0, 2.2))):
        comparison = made(before, after)
        assert comparison.changes == ()
        assert any("ratio of the baseline to itself is not 1" in remark for remark in comparison.not_compared)


def test_of_self_comparisons_the_last_counts(made: Any) -> None:
    held_again = [*timed(2.0, 2.2), runs.self_comparison(1.2), runs.self_comparison()]
    assert only(made(timed(1.0, 1.2), held_again)).kind is ChangeKind.SLOWER


def test_an_output_that_fails_where_it_was_timed_is_worse(made: Any) -> None:
    failing = timed(1, 1, outcome=Outcome.CRASH, median_seconds=None, message="It ended the process.")
    comparison = made(timed(1.0, 1.2), failing)
    assert (only(comparison).kind, only(comparison).after) == (ChangeKind.NO_LONGER_TIMED, "CRASH")
    assert comparison.worse


# What changed around


def test_versions_machines_and_declarations_are_told(made: Any) -> None:
    fields = {name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}
    environment = type(runs.LINUX)(**{**fields, "python": "3.12.1", "packages": {"numpy": "2.5.0"}})
    narrower = runs.implementation("fine", dtypes=("float32",), profile={"float32": "unfused"})
    after = [header(implementations=[narrower], environment=environment, seed=8), runs.item()]
    told = made([runs.item()], after).differences
    for expected in (
        "seed: 7 → 8",
        "Python: 3.11.7 → 3.12.1",
        "numpy: 2.4.6 → 2.5.0",
        "torch: 2.13.0+cpu → absent",
        "fine, dtypes: float16 → nothing",
        "fine, profile: float32 strict → float32 unfused",
    ):
        assert expected in told


def test_runs_of_nothing_have_nothing_in_common(made: Any) -> None:
    with pytest.raises(UsageError, match="the base is of nothing"):
        made([header()], [runs.item()])

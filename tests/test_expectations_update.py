"""Expectation files brought up to date: they settle their run, stay compact, and lose no word."""

from pathlib import Path

import msgspec
import pytest

from conformance.errors import UsageError
from conformance.expectations import load
from conformance.expectations.update import update
from conformance.judging.verdict import Outcome
from conformance.records import Line, Run
from tests.support import runs
from tests.support.expecting import ERROR, KNOWN, NONFINITE, NUM, OUT, PASS, WRONG, A, B, entry


def a_run(tmp_path: Path, *records: Line, **header: object) -> Run:
    return runs.run(tmp_path, runs.header(["flawed"], KNOWN, **header), *records)


def failing(*cases: Line, outcome: Outcome = WRONG, requirement: str = OUT) -> tuple[Line, ...]:
    return (runs.item("flawed", requirement, outcome=outcome, status="unexpected"), *cases)


def designed(number: int, outcome: Outcome, dtype: str = "float32", **changes: object) -> Line:
    return runs.case(number, "flawed", outcome=outcome, dtype=dtype, **changes)


def updated(run: Run, folder: Path, before: str = "") -> str:
    path = folder / "flawed.toml"
    if before:
        path.write_text(before, encoding="utf-8")
    update(run, folder)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def is_settled(run: Run, folder: Path) -> bool:
    """Whether every case of the run is as the files in the folder expect, and nothing in them is stale."""
    judged = load(folder, KNOWN, run.environment).for_("flawed")
    cases = [judged.judge(c.requirement, c.stratum, c.digest, c.dtype, c.outcome) for c in run.cases]
    items = [judged.judge_item(i.requirement, i.outcome) for i in run.items if i.outcome in (Outcome.CRASH, Outcome.TIMEOUT)]
    return all(status.expected for status in [*cases, *items]) and not judged.unmatched()


RUNS = {
    "all fail": failing(designed(1, WRONG), designed(2, WRONG, "float16")),
    "one dtype fails": failing(designed(1, PASS), designed(2, WRONG, "float16"), designed(3, WRONG, "float16")),
    "some fail": failing(designed(1, PASS), designed(2, WRONG), designed(3, WRONG, "float16")),
    "two outcomes": failing(designed(1, NONFINITE), designed(2, WRONG), designed(3, WRONG, "float16")),
    "only random": failing(designed(1, PASS), designed(9, WRONG, "float16", stratum="random")),
    "random of another dtype": failing(
        designed(1, WRONG), designed(2, PASS, "float16"), designed(9, WRONG, "float16", stratum="random")
    ),
    "crash": failing(outcome=Outcome.CRASH),
    "passes": (runs.item("flawed"), designed(1, PASS)),
    "passes but for one": failing(designed(1, PASS), designed(2, PASS, "float16"), designed(3, WRONG)),
}


@pytest.mark.parametrize("second", RUNS)
@pytest.mark.parametrize("first", RUNS)
def test_an_updated_file_settles_its_run_whatever_was_before(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "files").mkdir()
    for name in (first, second):
        run = a_run(tmp_path, *RUNS[name])
        update(run, tmp_path / "files")
        if name == "passes" and not (tmp_path / "files" / "flawed.toml").exists():
            continue
        assert is_settled(run, tmp_path / "files")
        assert update(run, tmp_path / "files") == [], "a second time changes nothing"


def test_new_entries_are_compact(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    text = updated(a_run(tmp_path, *RUNS["all fail"]), tmp_path / "files")
    assert "# Known failures of flawed." in text
    assert 'reason = "to be reviewed"' in text
    assert "cases" not in text and "dtypes" not in text
    (tmp_path / "files" / "flawed.toml").unlink()
    text = updated(a_run(tmp_path, *RUNS["one dtype fails"]), tmp_path / "files")
    assert 'dtypes = ["float16"]' in text and "cases" not in text
    (tmp_path / "files" / "flawed.toml").unlink()
    text = updated(a_run(tmp_path, *RUNS["some fail"]), tmp_path / "files")
    assert f'cases = ["{B}"]' in text


KEPT = f"""\
# What we know of flawed.

# Found on a Sunday.
[[expected]]
requirement = "{OUT}"
outcome = "WRONG_VALUE"
reason = "a long story"      # see the link
link = "https://example.org/story"
cases = ["{A}", "{B}"]

# This one was fixed.
[[expected]]
requirement = "{NUM}"
outcome = "ERROR"
reason = "raised once"

# Not here.
[[expected]]
requirement = "{OUT}"
outcome = "ERROR"
reason = "elsewhere"
when = {{platform = "darwin"}}
"""


def test_reasons_links_and_comments_are_kept(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    run = a_run(
        tmp_path, *failing(designed(1, PASS), designed(2, WRONG)), runs.item("flawed", NUM), runs.case(1, "flawed", NUM)
    )  # fmt: skip
    text = updated(run, tmp_path / "files", KEPT)
    expected = KEPT.replace(f'["{A}", "{B}"]', f'["{B}"]')
    gone = expected[expected.index("# This one was fixed.") : expected.index("# Not here.")]
    assert text == expected.replace(gone, "")


def test_all_stays_all_beside_a_case_that_has_its_own_entry(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    before = entry() + "\n" + entry(f'cases = ["{A}"]', outcome="ERROR")
    assert updated(a_run(tmp_path, *failing(designed(1, ERROR), designed(2, WRONG))), tmp_path / "files", before) == before
    after = updated(a_run(tmp_path, *failing(designed(1, PASS), designed(2, WRONG))), tmp_path / "files")
    assert "ERROR" not in after and f'cases = ["{B}"]' in after


def test_what_did_not_run_stays(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    assert updated(a_run(tmp_path), tmp_path / "files", KEPT) == KEPT
    skipped = a_run(tmp_path, runs.item("flawed", outcome=Outcome.SKIPPED), runs.item("flawed", NUM, outcome=Outcome.UNSUPPORTED))
    assert updated(skipped, tmp_path / "files") == KEPT


@pytest.mark.parametrize(("tier", "kept"), [("full", False), ("custom", True)])
def test_cases_that_are_no_more_go_only_where_all_ran(tmp_path: Path, tier: str, kept: bool) -> None:
    (tmp_path / "files").mkdir()
    run = a_run(tmp_path, *failing(designed(1, WRONG)), tier=tier)
    assert (B in updated(run, tmp_path / "files", KEPT)) is kept


def test_update_takes_the_environment_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    mac = msgspec.structs.replace(runs.LINUX, platform="darwin")
    run = a_run(tmp_path, *failing(designed(1, WRONG), designed(2, WRONG)), environment=mac)
    text = updated(run, tmp_path / "files", KEPT)
    assert "elsewhere" not in text and "a long story" in text


def test_files_that_cannot_be_updated(tmp_path: Path) -> None:
    run = a_run(tmp_path, *RUNS["all fail"])
    (tmp_path / "files").mkdir()
    with pytest.raises(UsageError, match=r"flawed\.toml is not valid TOML"):
        updated(run, tmp_path / "files", "[[expected")
    inline = f'expected = [{{requirement = "{OUT}", outcome = "ERROR", reason = "r"}}]\n'
    with pytest.raises(UsageError, match=r"do not begin with a line \[\[expected\]\]"):
        updated(run, tmp_path / "files", inline)

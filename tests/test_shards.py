"""Sharding: each part is run by one shard, the merged records are those of the whole run, and nothing else can be merged."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance import reports
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Environment, Line, Run, merge_shards, read_records
from conformance.records.shard import Shard
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke, run_command

# Some requirements of several areas, conventions, and the failure that the implementation is known to have.
SELECTED = "OUT-00 or SCALE-01 or NUM or CON-EMPTY or CON-POL"
QUICK = ("--implementation", "numpy-direct", "--tier", "quick", "--no-timing", "-n", "0", "-k", SELECTED)


# The partition


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_each_group_falls_to_exactly_one_shard(count: int) -> None:
    costs = {f"ATT-X-{number:03}": float(number % 11 + 1) for number in range(60)}
    parts = [Shard(number, count).part(costs) for number in range(1, count + 1)]
    assert sorted(group for part in parts for group in part) == sorted(costs)
    loads = [sum(costs[group] for group in part) for part in parts]
    assert max(loads) - min(loads) <= max(costs.values())


def test_dear_groups_are_spread() -> None:
    costs = {"a": 5.0, "b": 1.0, "c": 5.0, "d": 1.0}
    assert Shard(1, 2).part(costs) == {"a", "b"}
    assert Shard(2, 2).part(costs) == {"c", "d"}


@pytest.mark.parametrize("text", ["2/5", "1/2", "12/12"])
def test_a_shard_is_read_and_written(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize("text", ["", "2", "2/", "/5", "2 of 5", "-1/5", "1.5/2", "２/５"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match="not of the form 2/5"):
        Shard.parse(text)


@pytest.mark.parametrize("text", ["0/5", "6/5", "0/0"])
def test_shards_that_do_not_exist(text: str) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        Shard.parse(text)


# Running and merging


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole run and its two shards, the second one run as plain pytest does."""
    folder = tmp_path_factory.mktemp("shards")
    for words in (["--records", "whole.jsonl"], ["--records", "1.jsonl", "--shard", "1/2"]):
        done = run_command("run", *QUICK, *words, folder=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    done = run_command("run", *QUICK, "--records", "2.jsonl", "--shard", "2/2", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def tables(run: Run) -> list[reports.Table]:
    return [
        reports.conformance_table(run), reports.answers_table(run), reports.failures_table(run), reports.accuracy_table(run),
        reports.routes_table(run), reports.missing_table(run), *reports.conventions_tables(run),
    ]  # fmt: skip


def test_the_merged_tables_are_those_of_the_whole_run(folder: Path) -> None:
    result = invoke("merge", folder / "2.jsonl", folder / "1.jsonl", "--out", folder / "merged.jsonl")
    assert result.exit_code == 0, result.output
    merged, whole = read_records(folder / "merged.jsonl"), read_records(folder / "whole.jsonl")
    assert tables(merged) == tables(whole)
    assert any(item.outcome.is_failure for item in whole.items), "a known failure is among what is compared"
    assert len(whole.conventions) > 0
    text = reports.terminal_summary(whole)
    assert text in result.output
    assert [case.id for case in merged.cases] == [case.id for case in whole.cases]


def test_no_shard_runs_what_another_runs(folder: Path) -> None:
    parts = [{item.requirement for item in read_records(folder / f"{number}.jsonl").items} for number in (1, 2)]
    assert all(parts)
    assert not parts[0] & parts[1]
    assert [read_records(folder / f"{number}.jsonl").header.shard for number in (1, 2)] == ["1/2", "2/2"]
    assert read_records(folder / "whole.jsonl").header.shard == ""


def test_pytest_itself_takes_shards(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--pyargs", "conformance.checks"]
    words = ["--implementation", named("correct"), "--tier", "quick", "-k", "ATT-SCALE-001 or ATT-OUT-004", "-n", "2"]
    counts = []
    for shard in ("1/2", "2/2"):
        records = tmp_path / f"{shard[0]}.jsonl"
        done = subprocess.run(
            [*command, *words, "--shard", shard, "--records", str(records)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        counts.append([item.requirement for item in read_records(records).items])
    assert sorted(counts) == [["ATT-OUT-004"], ["ATT-SCALE-001"]]


def test_a_shard_with_nothing_to_do_says_so(tmp_path: Path) -> None:
    words = ("--implementation", named("correct"), "-k", "ATT-SCALE-001", "--tier", "quick", "--no-timing")
    for shard, workers in (("1/2", "0"), ("2/2", "1")):
        done = run_command("run", *words, "--shard", shard, "-n", workers, "--records", f"{shard[0]}.jsonl", folder=tmp_path)
        assert done.returncode == ExitCode.AS_EXPECTED, done.stdout + done.stderr
        assert ("This shard has nothing to do." in done.stdout) == (shard == "2/2")
    merged = invoke("merge", tmp_path / "1.jsonl", tmp_path / "2.jsonl", "--out", tmp_path / "merged.jsonl")
    assert merged.exit_code == ExitCode.AS_EXPECTED


def test_a_shard_of_nothing_at_all_is_inconclusive(tmp_path: Path) -> None:
    words = ("--implementation", named("correct"), "-k", "nothing-is-called-so", "--shard", "2/2", "-n", "0")
    done = run_command("run", *words, folder=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "Nothing was run" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_shard_in_which_nothing_was_judged_leaves_that_to_the_merge(tmp_path: Path) -> None:
    words = ("--implementation", named("correct"), "--tier", "quick", "--no-timing", "-n", "0")
    selected = ("-k", "ATT-MASK-007", "--shard", "1/1"), ("-k", "ATT-MASK-007 or ATT-MASK-008", "--shard", "1/2")
    whole, part = (run_command("run", *words, *chosen, folder=tmp_path) for chosen in selected)
    assert (whole.returncode, part.returncode) == (ExitCode.INCONCLUSIVE, ExitCode.AS_EXPECTED), part.stdout + part.stderr


def test_an_empty_shard_is_refused(tmp_path: Path) -> None:
    done = run_command("run", "--shard", "", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stderr == "--shard '' is not of the form 2/5, the second of five.\n"


def test_a_shard_that_does_not_exist_costs_nothing(tmp_path: Path) -> None:
    done = run_command("run", "--shard", "3/2", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stderr == "--shard 3/2 does not exist: 2 shards are numbered from 1 to 2.\n"
    assert not list(tmp_path.iterdir())


def test_shards_with_a_random_seed_are_refused_at_once(tmp_path: Path) -> None:
    done = run_command("run", "--shard", "1/2", "--seed", "random", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert "all shards need one seed" in done.stderr


# What cannot be merged


def changed(**changes: object) -> Environment:
    return msgspec.structs.replace(runs.LINUX, **changes)


def shard(path: Path, text: str, *lines: Line, **header: Any) -> tuple[str, Run]:
    lines = lines or (runs.item("fine", f"ATT-OUT-{int(text[:1] or 0):03}"),)
    requirements = [f"ATT-OUT-{number:03}" for number in range(6)]
    made = runs.header(requirements=requirements, shard=text, **header)
    return path.name, read_records(runs.write(path, made, *lines))


@pytest.mark.parametrize(
    ("second", "header", "told"),
    [
        ("3/3", {}, "not complete, 2/3 is missing"),
        ("1/3", {}, r"1/3 comes twice, in a\.jsonl and in b\.jsonl"),
        ("2/2", {}, r"numbers of shards differ: 3 in a\.jsonl, 2 in b\.jsonl"),
        ("", {}, r"b\.jsonl is no shard"),
        ("2/3", {"seed": 8}, r"seeds differ: 7 in a\.jsonl, 8 in b\.jsonl"),
        ("2/3", {"tier": "quick"}, "tiers differ"),
        ("2/3", {"suite": "0.2.0"}, "suite versions differ"),
        ("2/3", {"specification": "1.1"}, "specification versions differ"),
        ("2/3", {"implementations": ["fine"]}, "implementations differ"),
        ("2/3", {"selection": "MASK"}, r"selections \(-k\) differ: none in a\.jsonl, 'MASK' in b\.jsonl"),
        ("2/3", {"environment": changed(python="3.12.1")}, "versions of Python differ: 3.11 in .*, 3.12"),
        ("2/3", {"environment": changed(packages={"numpy": "1.26.4"})}, "versions of NumPy differ: 2.4.6 in .*, 1.26.4"),
        (
            "2/3",
            {"environment": changed(packages={"numpy": "2.4.6", "hypothesis": "6.1"})},
            "versions of Hypothesis differ: none in .*, 6.1",
        ),
    ],
)
def test_what_is_not_all_of_one_run_is_refused(tmp_path: Path, second: str, header: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        merge_shards([shard(tmp_path / "a.jsonl", "1/3"), shard(tmp_path / "b.jsonl", second, **header)])


def test_the_merged_run_ends_as_its_worst_shard(tmp_path: Path) -> None:
    paths = []
    for number, code in ((1, ExitCode.AS_EXPECTED), (2, ExitCode.UNEXPECTED)):
        failure = {"outcome": Outcome.WRONG_VALUE, "status": "unexpected"} if code else {}
        lines = runs.header(["fine"], shard=f"{number}/2"), runs.item("fine", **failure) if code else runs.convention()
        paths.append(runs.write(tmp_path / f"{number}.jsonl", *lines, exit_code=code))
    result = invoke("merge", *paths, "--out", tmp_path / "merged.jsonl")
    assert result.exit_code == ExitCode.UNEXPECTED
    assert read_records(tmp_path / "merged.jsonl").exit_code == ExitCode.UNEXPECTED


@pytest.mark.parametrize(
    ("outcomes", "codes", "whole"),
    [
        ((Outcome.PASS, Outcome.UNSUPPORTED), (0, 0), ExitCode.AS_EXPECTED),
        ((Outcome.UNSUPPORTED, Outcome.SKIPPED), (0, 0), ExitCode.INCONCLUSIVE),
        ((Outcome.PASS, Outcome.PASS), (0, 1), ExitCode.UNEXPECTED),  # something else went wrong
        ((Outcome.PASS, Outcome.PASS), (0, 3), ExitCode.INCONCLUSIVE),  # interrupted
    ],
)
def test_a_merge_ends_as_the_whole_run(
    tmp_path: Path, outcomes: tuple[Outcome, ...], codes: tuple[int, ...], whole: ExitCode
) -> None:
    requirements = ["ATT-OUT-001", "ATT-OUT-002"]
    paths = []
    for number, (requirement, outcome, code) in enumerate(zip(requirements, outcomes, codes, strict=True), start=1):
        lines = runs.header(["fine"], requirements, shard=f"{number}/2"), runs.item("fine", requirement, outcome=outcome)
        paths.append(runs.write(tmp_path / f"{number}.jsonl", *lines, exit_code=ExitCode(code)))
    assert invoke("merge", *paths, "--out", tmp_path / "merged.jsonl").exit_code == whole
    assert read_records(tmp_path / "merged.jsonl").exit_code == whole


def test_the_merged_results_stand_in_the_order_of_the_header(tmp_path: Path) -> None:
    asked = ["ATT-OUT-001", "ATT-OUT-002"]
    paths = []
    for number, requirement in ((1, asked[1]), (2, asked[0])):
        items = [runs.item(name, requirement) for name in ("flawed", "fine")]
        header = runs.header(requirements=asked, shard=f"{number}/2")
        paths.append(runs.write(tmp_path / f"{number}.jsonl", header, *items, runs.case(number, "flawed", requirement)))
    invoke("merge", *paths, "--out", tmp_path / "merged.jsonl")
    merged = read_records(tmp_path / "merged.jsonl")
    assert [(item.requirement, item.implementation) for item in merged.items] == [
        (requirement, name) for requirement in asked for name in ("fine", "flawed")
    ]
    assert [case.requirement for case in merged.cases] == asked


def test_a_merge_keeps_what_became_of_each_dtype(tmp_path: Path) -> None:
    paths = []
    for number, found in ((1, {"float64": "PASS", "float16": "UNSUPPORTED"}), (2, {"float64": "WRONG_VALUE", "float32": "PASS"})):
        item = runs.item("fine", dtypes=runs.in_dtypes(**found))
        paths.append(runs.write(tmp_path / f"{number}.jsonl", runs.header(["fine"], shard=f"{number}/2"), item))
    invoke("merge", *paths, "--out", tmp_path / "merged.jsonl")
    dtypes = read_records(tmp_path / "merged.jsonl").items[0].dtypes
    assert {dtype: (result.outcome.value, result.status) for dtype, result in dtypes.items()} == {
        "float64": ("WRONG_VALUE", "unexpected"), "float16": ("UNSUPPORTED", "expected"), "float32": ("PASS", "expected"),
    }  # fmt: skip
    assert (dtypes["float64"].counts.designed, dtypes["float64"].counts.failed) == (2, 1)


def test_a_wrong_timing_of_one_shard_is_unexpected_in_the_whole(tmp_path: Path) -> None:
    paths = []
    for number, more in ((1, [runs.timing(**runs.FAILS)]), (2, [])):
        lines = runs.header(["fine"], shard=f"{number}/2"), runs.item("fine") if number == 2 else runs.convention(), *more
        paths.append(runs.write(tmp_path / f"{number}.jsonl", *lines))
    result = invoke("merge", *paths, "--out", tmp_path / "merged.jsonl")
    assert result.exit_code == ExitCode.UNEXPECTED
    assert "1 timed output is wrong: 1 judged in float32 and float16 alone." in result.stdout


def test_a_merge_overwrites_no_shard(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "1.jsonl", runs.header(["fine"], shard="1/1"), runs.item())
    before = path.read_bytes()
    result = invoke("merge", path, "--out", path)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "name another" in result.stderr
    assert path.read_bytes() == before


def test_a_truncated_shard_is_refused(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "1.jsonl", runs.header(["fine"], shard="1/1"), runs.item(), exit_code=None)
    result = invoke("merge", path, "--out", tmp_path / "merged.jsonl")
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "truncated" in result.stderr
    assert not (tmp_path / "merged.jsonl").exists()

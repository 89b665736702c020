"""The command diff: text, Markdown, JSON, exit codes, and bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.records import Header
from conformance.system.exit_codes import ExitCode
from tests.support import runs
from tests.support.commands import invoke


def header(**changes: Any) -> Header:
    return runs.header(changes.pop("implementations", ["fine"]), changes.pop("requirements", ["ATT-OUT-001"]), **changes)


# What it prints


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    failure = runs.case(1, outcome="WRONG_VALUE", message="At (0,): got <b>2</b> | expected 1")
    return (
        runs.write(tmp_path / "base.jsonl", header(), runs.item(), runs.case(1)),
        runs.write(tmp_path / "new.jsonl", header(seed=8), runs.item(**runs.FAILS), failure, exit_code=ExitCode.UNEXPECTED),
    )


def test_the_exit_code_says_whether_anything_is_worse(files: tuple[Path, Path]) -> None:
    base, new = files
    assert invoke("diff", base, new).exit_code == ExitCode.UNEXPECTED
    assert invoke("diff", new, base).exit_code == ExitCode.AS_EXPECTED
    assert invoke("diff", new, new).exit_code == ExitCode.AS_EXPECTED


def test_text(files: tuple[Path, Path]) -> None:
    lines = invoke("diff", *files).stdout.splitlines()
    assert lines[-1] == "Something is worse: 1 newly failing (1 results compared)."
    assert "WORSE: newly failing (1)" in lines
    assert any(line.split() == [
        "fine", "ATT-OUT-001", "PASS", "WRONG_VALUE", "At", "(0,):", "got", "<b>2</b>", "|", "expected", "1"
    ] for line in lines)  # fmt: skip
    assert "seed: 7 → 8" in lines
    assert any(line.startswith("NOT COMPARED. Random cases were drawn differently (seed 7 and 8)") for line in lines)


def test_markdown(files: tuple[Path, Path]) -> None:
    page = invoke("diff", *files, "--format", "markdown").stdout
    assert "**Something is worse: 1 newly failing (1 results compared).**" in page
    assert r"At (0,): got \<b\>2\</b\> \| expected 1" in page
    assert "- seed: 7 → 8" in page


def test_json(files: tuple[Path, Path]) -> None:
    document = json.loads(invoke("diff", *files, "--format", "json").stdout)
    assert (document["worse"], document["compared"]) == (1, 1)
    (change,) = document["changes"]
    assert (change["kind"], change["worse"], change["before"], change["after"]) == ("newly failing", True, "PASS", "WRONG_VALUE")
    assert (document["base"]["seed"], document["new"]["seed"]) == (7, 8)
    assert document["not_compared"]


def test_long_lists_are_cut_in_text_and_whole_in_json(tmp_path: Path) -> None:
    requirements = [f"ATT-OUT-{number:03}" for number in range(30)]
    paths = [
        runs.write(tmp_path / name, header(requirements=requirements), *(runs.item("fine", r, **how) for r in requirements))
        for name, how in (("a", {}), ("b", runs.FAILS))
    ]
    text = invoke("diff", *paths).stdout
    assert "… and 10 more." in text
    assert text.count("WRONG_VALUE") == 20
    assert len(json.loads(invoke("diff", *paths, "--format", "json").stdout)["changes"]) == 30


# Bad input


def bad_files(folder: Path) -> dict[str, tuple[Path, Path, str]]:
    good = runs.write(folder / "good.jsonl", header(), runs.item())
    truncated = runs.write(folder / "truncated.jsonl", header(), runs.item(), exit_code=None)
    foreign = folder / "foreign.jsonl"
    foreign.write_text("Dear reader,\nthis is a letter.\n")
    newer = folder / "newer.jsonl"
    newer.write_text(good.read_text().replace('"schema":1', '"schema":99'))
    other = runs.write(folder / "other.jsonl", runs.header(["flawed"]), runs.item("flawed"))
    return {
        "missing": (folder / "no_such.jsonl", good, "no_such.jsonl cannot be read: No such file"),
        "truncated": (good, truncated, "truncated.jsonl is truncated"),
        "foreign": (foreign, good, "foreign.jsonl, line 1 is no record"),
        "newer": (good, newer, "upgrade attention-conformance"),
        "disjoint": (good, other, "the base is of fine, the new run of flawed"),
    }


@pytest.mark.parametrize("what", ["missing", "truncated", "foreign", "newer", "disjoint"])
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path: Path, what: str) -> None:
    base, new, told = bad_files(tmp_path)[what]
    result = invoke("diff", base, new)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""

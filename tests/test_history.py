"""Many runs over time: a row a run, oldest first, by implementation; and a plot with a description."""

import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.history import trends
from conformance.judging.verdict import Outcome
from conformance.records import Line, read_records
from conformance.system.exit_codes import ExitCode
from tests.support import runs
from tests.support.commands import invoke

REQUIREMENTS = ("ATT-OUT-001", "ATT-OUT-002", "ATT-OUT-003")


def written(folder: Path, day: int, *lines: Line, version: str = "2.4.6", **changes: Any) -> Path:
    """The records of a run on a day of November."""
    entry = runs.implementation("fine", framework_version=version)
    moment = datetime(2026, 11, day, 12, 0, tzinfo=UTC)
    header = runs.header([entry, "flawed"], REQUIREMENTS, started=moment, **changes)
    return runs.write(folder / f"{day}.jsonl", header, *lines)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three runs: the second fixes a failure with a new version, the third is slower."""
    first = [
        runs.item("fine", REQUIREMENTS[0], accuracy=runs.accuracy(0.5)),
        runs.item("fine", REQUIREMENTS[1], **runs.FAILS),
        runs.item("fine", REQUIREMENTS[2], outcome=Outcome.UNSUPPORTED),
        runs.item("flawed", REQUIREMENTS[0]),
        runs.timing("fine", "decode", baseline="numpy-direct", ratio=2.0),
        runs.timing("fine", "prefill", baseline="numpy-direct", ratio=100.0),
    ]
    second = [
        runs.item("fine", REQUIREMENTS[0], accuracy=runs.accuracy(0.25)),
        runs.item("fine", REQUIREMENTS[1]),
        runs.timing("fine", "decode", baseline="numpy-direct", ratio=3.0),
    ]
    return [
        written(tmp_path, 3, *second, version="2.5.0"), written(tmp_path, 1, *first),
        written(tmp_path, 2, *second, version="2.5.0"),
    ]  # fmt: skip


def test_points_stand_in_the_order_of_time_with_their_figures(files: list[Path]) -> None:
    fine, flawed = trends(map(read_records, files))
    assert [point.started.day for point in fine.points] == [1, 2, 3]
    assert [point.framework_version for point in fine.points] == ["2.4.6", "2.5.0", "2.5.0"]
    first, second, _ = fine.points
    assert (first.counts["passed"], first.counts["unexpected"], first.counts["unsupported"]) == (1, 1, 1)
    assert (first.share, second.share) == (0.5, 1.0)
    assert first.accuracy["float32"][1] == 0.5
    assert second.accuracy["float32"] == (0.25, 0.25)
    assert [point.started.day for point in flawed.points] == [1], "the other runs did not judge it"


def test_speed_is_of_the_shapes_that_all_runs_have(files: list[Path]) -> None:
    fine = trends(map(read_records, files))[0]
    assert [point.speed for point in fine.points] == [pytest.approx(2.0), pytest.approx(3.0), pytest.approx(3.0)]
    assert {point.shapes for point in fine.points} == {1}


def test_r_under_another_profile_does_not_count(tmp_path: Path) -> None:
    both = (*runs.accuracy(0.2), *runs.accuracy(9.0, profile="unfused"))
    path = written(tmp_path, 1, runs.item("fine", REQUIREMENTS[0], accuracy=both))
    assert trends([read_records(path)])[0].points[0].accuracy == {"float32": (0.2, 0.2)}


def test_a_run_that_only_timed_has_its_speed(tmp_path: Path) -> None:
    path = written(tmp_path, 1, runs.timing("fine", baseline="numpy-direct", ratio=2.0))
    (trend,) = trends([read_records(path)])
    assert (trend.points[0].speed, trend.points[0].share) == (pytest.approx(2.0), None)


def test_a_run_given_twice_counts_once(files: list[Path]) -> None:
    assert trends(map(read_records, files * 2)) == trends(map(read_records, files))


def test_the_table_is_read_from_top_to_bottom(files: list[Path]) -> None:
    lines = invoke("history", *files).stdout.splitlines()
    rows = [" ".join(line.split()) for line in lines if line.startswith("2026")]
    assert rows[0] == "2026-11-01 12:00 2.4.6 0.1.0 1.0 full 1 0 1 1 0.5 / 0.5 2.00× (1)"
    assert rows[1].startswith("2026-11-02 12:00 2.5.0 0.1.0")
    assert lines[0] == "fine (numpy)"


def test_runs_that_count_otherwise_are_said_to(tmp_path: Path) -> None:
    items = [runs.item("fine", REQUIREMENTS[0]), runs.timing("fine", baseline="numpy-direct", ratio=1.5)]
    alike = [written(tmp_path, day, *items) for day in (1, 2)]
    assert "do not" not in invoke("history", *alike).stdout
    other = written(tmp_path, 3, *items, tier="quick")
    assert "several specifications or tiers" in invoke("history", *alike, other).stdout
    fields = {name: getattr(runs.LINUX, name) for name in runs.LINUX.__struct_fields__}
    elsewhere = written(tmp_path, 4, *items, environment=type(runs.LINUX)(**{**fields, "cpu": "Another processor"}))
    assert "several machines" in invoke("history", *alike, elsewhere).stdout


def test_markdown(files: list[Path]) -> None:
    page = invoke("history", *files, "--format", "markdown", "--implementation", "fl*").stdout
    assert page.startswith("# History\n\n## flawed (numpy)\n\n| started")
    assert "fine (numpy)" not in page


@pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="vl-convert is not installed")
def test_the_plot_is_a_picture_with_words_for_it_and_the_same_each_time(files: list[Path], tmp_path: Path) -> None:
    pictures = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for picture in pictures:
        assert invoke("history", *files, "--plot", picture).exit_code == 0
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    root = ElementTree.fromstring(pictures[0].read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["aria-label"] == (
        "3 runs, 2026-11-01 12:00:00 to 2026-11-03 12:00:00. In the last run of each: fine passes 100%, flawed passes 100%."
    )
    words = [text.strip() for text in root.itertext() if text.strip()]
    assert {"fine", "flawed", "requirements passed, % of judged", "time relative to baseline"} <= set(words)
    assert words.count("2.5.0") == 3, "the version is named where it changed, in each panel"


def test_bad_input_is_one_sentence(files: list[Path], tmp_path: Path) -> None:
    for words, told in (
        ([tmp_path / "no_such.jsonl"], "cannot be read"),
        ([*files, "--implementation", "nobody"], "meant by nobody: there are fine, flawed."),
        ([*files, "--plot", files[0] / "such.svg"], "cannot be written"),
        ([runs.write(tmp_path / "empty.jsonl", runs.header())], "there are none"),
    ):
        result = invoke("history", *words)
        assert result.exit_code == ExitCode.USAGE_ERROR
        assert told in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="vl-convert is not installed")
def test_names_with_the_signs_of_markup_are_drawn_as_they_are(tmp_path: Path) -> None:
    names = ["odd <&'> 1", "odd <&'> 2"]
    entries = [runs.implementation(name, framework_version="1<&") for name in names]
    paths = [
        runs.write(
            tmp_path / f"{day}.jsonl",
            runs.header(entries, REQUIREMENTS, started=datetime(2026, 11, day, tzinfo=UTC)),
            *(runs.item(name, REQUIREMENTS[0]) for name in names),
        )
        for day in (1, 2)
    ]
    result = invoke("history", *paths, "--plot", tmp_path / "odd.svg")
    assert result.exit_code == 0, result.output
    words = {text.strip() for text in ElementTree.fromstring((tmp_path / "odd.svg").read_text()).itertext()}
    assert set(names) <= words

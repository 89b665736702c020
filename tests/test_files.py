"""Files are written whole or not at all, and never over what is read."""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.records import read_records
from conformance.system import files
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import PATIENCE, invoke

# The disk is full after so many bytes of a file: a stand-in that every user may set up.
FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
sys.argv[0] = "attention-conformance"
from conformance.cli import main
main()
"""
on_posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


def with_full_disk(size: int, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", FULL, str(size), *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return runs.write(
        tmp_path / "reports" / "records.jsonl", runs.header(["fine"], shard="1/1"), runs.item(), runs.case(1, r=0.5)
    )


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# A full disk


@on_posix
@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("report", "records.jsonl", "--out", "."), ("summary.md", "report.html", "summary.json", "junit.xml", "results.csv")),
        (("page", "records.jsonl"), ("report.html",)),
        (("badge", "records.jsonl", "--out", "badge.json"), ("badge.json",)),
        (("badge", "records.jsonl", "--out", "badges"), ("badges/fine.json", "badges/fine-float32.json")),
        (("merge", "records.jsonl", "--out", "merged.jsonl"), ("merged.jsonl",)),
        (("expectations", "update", "records.jsonl", "--to", "known"), ("known/fine.toml",)),
    ],
)
def test_a_full_disk_leaves_what_was_there(words: Sequence[str], kept: Sequence[str], records: Path) -> None:
    folder = records.parent
    if "update" in words:
        runs.write(records, runs.header(["fine"]), runs.item(**runs.FAILS), runs.case(1, outcome="WRONG_VALUE"))
    for name in kept:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("# before\n")
    before = names(folder)
    done = with_full_disk(10, *words, folder=folder)
    assert done.returncode == ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "cannot be written" in done.stderr and len(done.stderr.splitlines()) == 1
    assert [(folder / name).read_text() for name in kept] == ["# before\n"] * len(kept)
    assert names(folder) == before


@on_posix
def test_a_starting_point_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    done = with_full_disk(100, "new", "mine.py", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert names(tmp_path) == set()
    assert invoke("new", tmp_path / "mine.py").exit_code == 0
    assert invoke("new", tmp_path / "mine.py").exit_code == ExitCode.USAGE_ERROR
    assert names(tmp_path) == {"mine.py"}


RUN = ("run", "--implementation", named("correct"), "--tier", "quick", "--no-timing", "-n", "0", "-k", "ATT-SCALE-001")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of a run that had room enough."""
    folder = tmp_path_factory.mktemp("room")
    assert with_full_disk(10**9, *RUN, folder=folder).returncode == 0
    return folder / "reports"


@on_posix
def test_a_disk_that_is_full_in_the_middle_of_a_run_costs_nothing_that_was_recorded(tmp_path: Path, room: Path) -> None:
    lines = (room / "records.jsonl").read_bytes().splitlines(keepends=True)
    size = sum(map(len, lines[: len(lines) // 2])) + 30  # in the middle of a line
    done = with_full_disk(size, *RUN, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert done.stderr.splitlines()[-1] == (
        "The records file reports/records.jsonl cannot be written: File too large. What was recorded until then is kept: "
        "`report --partial` shows it."
    )
    assert "Traceback" not in done.stdout + done.stderr
    kept = tmp_path / "reports" / "records.jsonl"
    assert kept.read_bytes().endswith(b"}\n")
    assert read_records(kept, partial=True).items
    assert invoke("report", "--partial", kept).exit_code == 0


@on_posix
def test_a_disk_that_is_full_when_a_run_begins_costs_no_earlier_records(tmp_path: Path, room: Path) -> None:
    earlier = (room / "records.jsonl").read_bytes()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "records.jsonl").write_bytes(earlier)
    done = with_full_disk(1000, *RUN, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stderr.splitlines()[-1] == "The records file reports/records.jsonl cannot be written: File too large."
    assert (tmp_path / "reports" / "records.jsonl").read_bytes() == earlier
    assert names(tmp_path) == {"reports/records.jsonl"}


@on_posix
def test_a_report_that_finds_no_room_at_the_end_of_a_run_costs_no_records(tmp_path: Path, room: Path) -> None:
    size = (room / "records.jsonl").stat().st_size + 5000
    assert size < (room / "report.html").stat().st_size
    done = with_full_disk(size, *RUN, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stderr.splitlines()[-1] == "The reports cannot be written to reports: File too large."
    assert names(tmp_path / "reports") == {"records.jsonl"}
    assert read_records(tmp_path / "reports" / "records.jsonl").exit_code == ExitCode.AS_EXPECTED


# Whole or not at all


def test_several_files_are_written_together_or_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError):
        files.write_all({tmp_path / "a": "after", tmp_path / "b": "a folder", tmp_path / "c": "new"})
    assert (tmp_path / "a").read_text() == "before"
    assert names(tmp_path) == {"a"}


@on_posix
def test_links_are_followed_and_permissions_kept(tmp_path: Path) -> None:
    real = tmp_path / "real" / "page.html"
    real.parent.mkdir()
    real.write_text("before")
    real.chmod(0o640)
    link, dangling = tmp_path / "page.html", tmp_path / "dangling.html"
    link.symlink_to(real)
    dangling.symlink_to(real.with_name("new.html"))
    for path in (link, dangling):
        files.write(path, "after")
        assert path.is_symlink()
        assert path.read_text() == "after"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    mask = os.umask(0o022)
    try:
        files.write(tmp_path / "fresh", b"\xff")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o644
    assert names(tmp_path) == {"real/page.html", "real/new.html", "page.html", "dangling.html", "fresh"}


@on_posix
def test_pipes_and_devices_are_written_to(records: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "page", str(records), "--out", "/dev/stdout"],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert Path("/dev/stdout").exists()
    files.write(Path(os.devnull), "nothing")
    assert not Path(os.devnull).is_file()


def test_a_name_of_full_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".json")
    files.write(path, "{}")
    assert names(tmp_path) == {path.name}


def test_text_that_utf8_lacks_costs_no_report(tmp_path: Path) -> None:
    files.write(tmp_path / "a", "half \ud83d")
    assert (tmp_path / "a").read_text() == "half \\ud83d"


# Never over what is read


@pytest.mark.parametrize("link", ["the file", "another path", "a symbolic link", "a hard link"])
def test_what_is_read_is_not_overwritten(link: str, records: Path) -> None:
    folder = records.parent
    before = records.read_bytes()
    out = folder / "alias.svg"
    if link == "the file":
        out = records
    elif link == "another path":
        out = folder / ".." / "reports" / "records.jsonl"
    elif link == "a symbolic link":
        out.symlink_to(records)
    else:
        os.link(records, out)
    commands: list[tuple[str | Path, ...]] = [
        ("page", records, "--out", out),
        ("merge", records, "--out", out),
        ("history", records, "--plot", out),
    ]
    for command in commands:
        result = invoke(*command)
        assert result.exit_code == ExitCode.USAGE_ERROR, command
        assert "is not overwritten: name another file" in result.stderr or "vl-convert" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert records.read_bytes() == before


@pytest.mark.parametrize("name", ["junit.xml", "summary.md", "badge.json", "fine.json"])
def test_records_of_a_reports_name_are_not_overwritten_by_it(name: str, records: Path) -> None:
    own = records.rename(records.with_name(name))
    before = own.read_bytes()
    command = (
        ("badge", own, "--out", own if name == "badge.json" else own.parent)
        if "json" in name
        else ("report", own, "--out", own.parent)
    )
    result = invoke(*command)
    assert result.exit_code == ExitCode.USAGE_ERROR
    assert "is not overwritten" in result.stderr
    assert own.read_bytes() == before
    assert names(own.parent) == {name}

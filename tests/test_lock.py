"""Two runs into one file: the second is refused before it changes anything, and no lock outlives its process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.records import RecordWriter, read_records
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke, run_command

HOLDING = """
import sys, time
sys.path.insert(0, sys.argv[2])
from tests.support import runs
from conformance.records import RecordWriter
writer = RecordWriter(sys.argv[1])
writer.write(runs.header(["fine"]))
writer.write(runs.item())
print("written", flush=True)
time.sleep(1000)
"""
ROOT = str(Path(__file__).parent.parent)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports" / "records.jsonl"


def test_a_second_run_is_refused_and_the_first_goes_on(path: Path) -> None:
    with RecordWriter(path) as writer:
        writer.write(runs.header(["fine"]))
        words = ("--implementation", named("correct"), "--tier", "quick", "--no-timing", "-n", "0", "-k", "ATT-OUT-004")
        done = run_command("run", *words, folder=path.parent.parent)
        assert done.returncode == ExitCode.USAGE_ERROR, done.stdout + done.stderr
        assert "is being written by another run" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        writer.write(runs.item())
        writer.finish(ExitCode.AS_EXPECTED)
    assert len(read_records(path).items) == 1


def test_no_command_writes_over_what_a_run_is_writing(path: Path, tmp_path: Path) -> None:
    other = runs.write(tmp_path / "other.jsonl", runs.header(["fine"], shard="1/1"), runs.item())
    commands = (
        ("merge", other, "--out", path),
        ("report", other, "--out", path.parent),
        ("page", other, "--out", path),
        ("bench", "--suite", "gqa", "--implementation", "numpy-direct", "--records", path),
    )
    with RecordWriter(path) as writer:
        writer.write(runs.header(["fine"]))
        for command in commands:
            before = path.read_bytes()
            result = invoke(*command)
            assert result.exit_code == ExitCode.USAGE_ERROR, command
            assert "is being written by another run" in result.stderr, command
            assert path.read_bytes() == before
            assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_writer_is_refused_even_where_nothing_was_said_at_the_start(path: Path) -> None:
    late = RecordWriter(path)
    late.demand_writable()
    with RecordWriter(path) as writer:
        writer.write(runs.header(["fine"]))
        with pytest.raises(UsageError, match="another run"):
            late.write(runs.header(["flawed"]))
    late.write(runs.header(["flawed"]))
    late.close()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_process_that_is_killed_leaves_no_lock(path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(path), ROOT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "written\n"
        with pytest.raises(UsageError, match="another run"):
            RecordWriter(path).demand_writable()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(read_records(path, partial=True).items) == 1
    runs.write(path, runs.header(["fine"]), runs.item())
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_is_no_record_file_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def attention(query, key, value): ...\n")
    for command in (
        ("run", "--implementation", "numpy-direct", "--records", mine, "-n", "0", "-k", "ATT-OUT-004"),
        ("bench", "--implementation", "numpy-direct", "--suite", "gqa", "--records", mine),
    ):
        result = invoke(*command)
        assert result.exit_code == ExitCode.USAGE_ERROR
        assert "holds something else than records" in result.stderr
        assert mine.read_text().startswith("def attention")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    runs.write(empty, runs.header(["fine"]), runs.item())


@pytest.mark.skipif(os.name == "nt", reason="needs /dev")
def test_several_runs_may_write_to_no_file() -> None:
    with RecordWriter("/dev/null") as one, RecordWriter("/dev/null") as two:
        for writer in (one, two):
            writer.demand_writable()
            writer.write(runs.header(["fine"]))
            writer.write(runs.item())
            writer.finish(ExitCode.AS_EXPECTED)

"""Ctrl-C, a request to end and a closed terminal in the long commands: one sentence, code 3, and no process that goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.system.exit_codes import ExitCode
from tests.support.commands import HEEDING, PATIENCE

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

COMMANDS = {
    "faults": ("faults", "--processes", "1"),
    "soak": ("soak", "--processes", "1"),
    "golden check": ("golden", "check"),
}


def started(words: tuple[str, ...], folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HEEDING, *words]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip


def members(group: int) -> set[int]:
    """The processes of a process group that are alive."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                state, _, owner = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(owner) == group and state != "Z":
                found.add(int(path.name))
    return found


def wait(condition, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_at_work(process: "subprocess.Popen[str]", words: tuple[str, ...]) -> bool:
    """Its own process has used some time and, where the work is in others, these have begun it."""
    if "--processes" not in words:
        return _seconds(process.pid) > 1.0
    return any(_seconds(member) > 1.0 for member in members(process.pid) - {process.pid})


def _seconds(number: int) -> float:
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("what", COMMANDS)
def test_a_long_command_ends_with_a_sentence_and_takes_its_processes_along(what: str, name: str, tmp_path: Path) -> None:
    words = COMMANDS[what]
    with started(words, tmp_path) as process:
        try:
            wait(lambda: is_at_work(process, words))
            send = os.killpg if name == "SIGINT" else os.kill  # Ctrl-C reaches all processes of the terminal
            send(process.pid, getattr(signal, name))
            out, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == ExitCode.INCONCLUSIVE, out + err
            assert err.splitlines()[-1] == "Interrupted."
            assert "Traceback" not in out + err
            wait(lambda: not members(process.pid))
        finally:
            for member in members(process.pid):
                os.kill(member, signal.SIGKILL)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_bench_keeps_what_it_measured(name: str, tmp_path: Path) -> None:
    from conformance.records import read_records

    words = ("bench", "--implementation", "numpy-direct", "--suite", "gqa", "--passes", "forward", "--no-growth")
    records = tmp_path / "records.jsonl"
    with started((*words, "--records", str(records)), tmp_path) as process:
        try:
            wait(lambda: records.exists() and b'"kind":"timing"' in records.read_bytes())
            os.kill(process.pid, getattr(signal, name))
            out, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == ExitCode.INCONCLUSIVE, out + err
            assert err.count("Interrupted: the contest at hand is finished first; Ctrl-C again stops at once.") == 1
            run = read_records(records)
            assert run.timings and run.footers[0].interrupted
            wait(lambda: not members(process.pid))
        finally:
            for member in members(process.pid):
                os.kill(member, signal.SIGKILL)

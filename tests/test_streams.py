"""Output that nobody can read: closed, ended early or full. Nothing recorded is lost, no traceback, a code of the table."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.records import read_records
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import PATIENCE

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a shell and /dev/full")

CODES = {int(code) for code in ExitCode}


def shell(words: str, redirection: str, folder: Path) -> "subprocess.Popen[str]":
    """The command in a shell that ends with its code, whatever stands behind a pipe."""
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -m conformance {words} {redirection}"
    return subprocess.Popen(["bash", "-c", line], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    for text in (out, err):
        assert "Traceback" not in text and "Exception ignored" not in text, text
    assert process.returncode in CODES, (process.returncode, out, err)
    return process.returncode, out, err


@pytest.fixture
def records(tmp_path: Path) -> Path:
    entries = [runs.implementation("fine", source="fine.py:1")]
    return runs.write(tmp_path / "records.jsonl", runs.header(entries, shard="1/1"), runs.item())


def test_every_command_ends_in_order_when_its_output_cannot_be_written(records: Path) -> None:
    (records.parent / "more.jsonl").write_bytes(records.read_bytes())
    commands = {
        "list": 2,
        "explain ATT-MASK-003": 2,
        "describe numpy-direct": 2,
        "repro GOLD-0002 --implementation numpy-multi-head": 2,
        "smoke numpy-direct": 2,
        "report records.jsonl": 2,
        "report nowhere.jsonl": 2,
        "diff records.jsonl more.jsonl": 2,
        "history records.jsonl": 2,
        "bench --list": 2,
        "page records.jsonl": 0,
        "merge records.jsonl --out merged.jsonl": 0,
        "badge records.jsonl --out badges": 0,
        "new mine.py": 0,
        "--help": 2,
        "--no-such-option": 2,
    }
    started = [shell(words, ">/dev/full", records.parent) for words in commands]
    for (words, expected), process in zip(commands.items(), started, strict=True):
        code, _, err = ended(process)
        assert code == expected, (words, err)
        told = "The output cannot be written: No space left on device."
        assert err.count(told) == (words not in ("report nowhere.jsonl", "--no-such-option")), words
    made = {"report.html", "merged.jsonl", "badges/fine.json", "mine.py"}
    assert all((records.parent / name).stat().st_size for name in made)


@pytest.mark.parametrize(
    ("redirection", "code", "told"),
    [
        (">&-", 2, "The output cannot be written: it is closed.\n"),
        ("| true", 2, "The output cannot be written: Broken pipe.\n"),
        ("<&- >&- 2>&-", 2, ""),
        (">/dev/full 2>&1", 2, ""),
        ("2>/dev/full", 0, ""),
        ("2>&-", 0, ""),
    ],
)
def test_what_is_lost_is_told_once_where_it_can_be(records: Path, redirection: str, code: int, told: str) -> None:
    found, out, err = ended(shell("report records.jsonl", redirection, records.parent))
    assert (found, err) == (code, told)
    assert ("Every result is as expected" in out) == (code == 0)


def test_a_mistake_is_told_on_output_where_error_output_cannot_be_written(tmp_path: Path) -> None:
    for redirection in ("2>/dev/full", "2>&-"):
        code, out, _ = ended(shell("report nowhere.jsonl", redirection, tmp_path))
        assert code == ExitCode.USAGE_ERROR
        assert out.startswith("The record file nowhere.jsonl cannot be read: No such file")


@pytest.mark.parametrize("redirection", [">&-", "| head -1", ">/dev/full", "2>/dev/full", ">&- 2>&-", ">/dev/full 2>/dev/full"])
def test_a_run_goes_on_to_its_end_though_nobody_reads_it(redirection: str, tmp_path: Path) -> None:
    words = f"run --implementation {shlex.quote(named('correct'))} --tier quick --no-timing -n 1 -k ATT-SCALE-00"
    code, _, err = ended(shell(words, redirection, tmp_path))
    assert code == ExitCode.AS_EXPECTED, err
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert run.exit_code == ExitCode.AS_EXPECTED and len(run.items) == 9
    assert (tmp_path / "reports" / "summary.md").exists()
    if redirection == ">/dev/full":
        assert err.endswith("The output cannot be written: No space left on device. What is in files is complete.\n")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """A file that is opened first would be number 1, and what a library prints would go into the records."""
    (tmp_path / "loud.py").write_text(
        "import os\nimport numpy as np\n\n\ndef attention(query, key, value):\n"
        "    os.write(1, b'chatter')\n    return np.zeros(query.shape, query.dtype)\n"
    )
    words = "run --implementation loud.py:attention --tier quick --no-timing --no-diagnosis -n 0 -k ATT-OUT-004"
    assert ended(shell(words, "<&- >&- 2>&-", tmp_path))[0] == ExitCode.UNEXPECTED
    assert b"chatter" not in (tmp_path / "reports" / "records.jsonl").read_bytes()
    assert read_records(tmp_path / "reports" / "records.jsonl").exit_code == ExitCode.UNEXPECTED


def test_the_process_ends_with_its_own_code_where_nothing_is_lost() -> None:
    command = [sys.executable, "-m", "conformance", "explain", "GOLD-2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert "she likes coffee" in done.stdout
    assert done.stderr == ""

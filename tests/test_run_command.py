"""`run` as a command: what it prints and records, what it leaves alone, and the code it ends with."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.records import read_records
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support.commands import HEEDING, PATIENCE, invoke, run_command

QUICK = ("--no-timing", "--max-examples", "1", "-k", "ATT-SCALE-001 or ATT-OUT-004")


def test_run_ignores_the_set_up_of_the_users_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('loaded')\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option-either")
    done = run_command("run", "--implementation", named("correct"), *QUICK, "-n", "1", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = read_records(tmp_path / "reports" / "records.jsonl")
    assert {item.requirement for item in run.items} == {"ATT-SCALE-001", "ATT-OUT-004"}
    assert run.exit_code == 0


def test_a_failure_comes_with_a_command_that_reproduces_it(tmp_path: Path) -> None:
    done = run_command("run", "--implementation", named("unscaled"), *QUICK, "-n", "0", folder=tmp_path)
    assert done.returncode == 1
    command = re.search(r"reproduce: attention-conformance (reproduce .+)$", done.stdout, re.MULTILINE)
    assert command, done.stdout
    again = invoke(*shlex.split(command[1]))
    assert again.exit_code == 1
    assert "WRONG_VALUE" in again.stdout


@pytest.mark.parametrize(
    ("words", "measured"),
    [
        ([], True),
        (["--tier", "quick"], False),
        (["-k", "MASK"], False),
        (["--tier", "quick", "--timing"], True),
        (["-k", "MASK", "--timing"], True),
        (["--no-timing"], False),
    ],
)
def test_speed_is_part_of_a_whole_run_and_of_others_where_it_is_asked_for(
    words: list[str], measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []

    def launch(options: Sequence[str], *_: object, **__: object) -> ExitCode:
        launched.extend(options)
        return ExitCode.AS_EXPECTED

    monkeypatch.setattr("conformance.run.launch.launch", launch)
    invoke("run", "-n", "1", *words)
    assert ("--timing" in launched) == measured


def test_a_run_in_which_nothing_was_judged_is_no_success(tmp_path: Path) -> None:
    only_a_bias = ("run", "--implementation", named("correct"), "-k", "ATT-MASK-007", "--tier", "quick", "--no-timing", "-n", "0")
    assert run_command(*only_a_bias, folder=tmp_path).returncode == ExitCode.INCONCLUSIVE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--implementation", "no_such_file.py:attention"], "no_such_file.py"),
        (["--implementation", named("elsewhere")], "NumPy has no device 'cuda'"),
        (["--seed", "seven"], "'seven'"),
        (["--skips", "no_such_skips"], "no_such_skips"),
        (["--records", "reports/records.jsonl/deeper.jsonl"], "cannot be written"),
        (["-n", "some"], "-n some is neither"),
        (["--", "--no-such-option"], "--no-such-option"),
    ],
)
def test_a_mistake_in_a_run_is_one_sentence_and_costs_no_earlier_records(words: list[str], told: str, tmp_path: Path) -> None:
    kept = tmp_path / "reports" / "records.jsonl"
    kept.parent.mkdir()
    kept.write_text("of an earlier run")
    done = run_command("run", "-n", "0", *words, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stdout
    assert kept.read_text() == "of an earlier run"


def test_a_golden_case_is_explained_and_judged_by_its_id() -> None:
    explained = invoke("explain", "gold-2").stdout
    assert "she likes coffee" in explained
    text = explained.splitlines()[-1].strip()
    by_id, by_text = (invoke("reproduce", words, "--implementation", "numpy-multi-head") for words in ("GOLD-0002", text))
    assert by_id.exit_code == by_text.exit_code == ExitCode.AS_EXPECTED
    assert by_id.stdout == by_text.stdout


def test_a_run_that_selects_nothing_is_inconclusive_and_says_so(tmp_path: Path) -> None:
    done = run_command("run", "--implementation", "numpy-direct", "-n", "0", "-k", "nothing-is-called-so", folder=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "Nothing was run" in done.stderr


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize(
    "words", [("-k", "nothing-is-called-so"), ("-k", "ATT-SCALE-001", "--", "--collect-only")], ids=["nothing", "collect-only"]
)
def test_a_run_without_items_leaves_earlier_records_alone(words: tuple[str, ...], workers: str, tmp_path: Path) -> None:
    kept = tmp_path / "reports" / "records.jsonl"
    kept.parent.mkdir()
    kept.write_text("of an earlier run")
    run_command("run", "--implementation", "numpy-direct", "-n", workers, *words, folder=tmp_path)
    assert kept.read_text() == "of an earlier run"
    assert [path.name for path in kept.parent.iterdir()] == ["records.jsonl"]


def test_output_of_an_implementation_is_cut(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import numpy as np\n\n\ndef attention(query, key, value):\n"
        "    print('chatter' * 10_000)\n    return np.zeros(query.shape, query.dtype)\n"
    )
    done = run_command("run", "--implementation", "loud.py:attention", "--no-diagnosis", *QUICK, "-n", "0", folder=tmp_path)
    assert done.returncode == ExitCode.UNEXPECTED
    assert "chatter" in done.stdout and "the rest is left out" in done.stdout
    assert done.stdout.count("chatter") < 700


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupted_run_keeps_its_records(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HEEDING, "run", "--implementation", "numpy-direct", "--no-timing", "-n", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        records = tmp_path / "reports" / "records.jsonl"
        _wait(lambda: records.exists() and records.read_bytes().count(b'"kind":"item"') >= 2)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.INCONCLUSIVE, printed + told
    assert "Interrupted" in told
    run = read_records(records)
    assert run.exit_code == ExitCode.INCONCLUSIVE
    assert len(run.items) >= 2


def _wait(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_run_leaves_the_environment_of_its_process_as_it_was(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--of-the-users-own")
    before = dict(os.environ)
    invoke("run", "--implementation", "numpy-direct", "-n", "0", "-k", "nothing-is-called-so", "--reports", str(tmp_path))
    assert dict(os.environ) == before

"""Whatever an implementation does to its process costs the item at hand, and nothing else; no process of it is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.judging.verdict import Outcome
from conformance.records import Run, read_records
from conformance.run.workers import slots
from conformance.system.exit_codes import ExitCode
from tests.support.commands import PATIENCE, invoke, run_command

CORRECT = """
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent

def correct(query, key, value, mask=None):
    groups = query.shape[1] // key.shape[1]
    key, value = (np.repeat(array.astype(np.float64), groups, axis=1) for array in (key, value))
    scores = query.astype(np.float64) @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    return (weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300) @ value).astype(query.dtype)
"""
WORDS = ("--tier", "quick", "--no-timing", "--no-diagnosis", "--unrun", "never")
FEW = "ATT-OUT-001 or ATT-MASK-001 or ATT-MASK-002"
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals and processes")


def judged(folder: Path, source: str, *words: str, select: str = FEW, others: Sequence[str] = ()) -> tuple[int, str, Run]:
    """The exit code, what is printed, and the run of the function ``attention`` of ``source``, beside ``others``."""
    (folder / "mine.py").write_text(CORRECT + source)
    named = [f"--implementation={name}" for name in ("mine.py:attention", *others)]
    done = run_command("run", *named, *WORDS, "-k", select, *words, folder=folder)
    assert "INTERNALERROR" not in done.stdout, done.stdout
    return done.returncode, done.stdout + done.stderr, read_records(folder / "reports" / "records.jsonl")


def outcomes(run: Run, implementation: str = "mine.py:attention") -> dict[str, Outcome]:
    return {item.requirement: item.outcome for item in run.items if item.implementation == implementation}


ENDS = {
    "exit": "os._exit(0)",
    "segmentation": "ctypes.string_at(0)",
    "streams": "sys.stdout = sys.stderr = None; os.close(1); os.close(2); os._exit(0)",
}


@posix
@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    "command",
    [["run", "--implementation", "mine.py:attention"], ["smoke", "mine.py:attention"], ["describe", "mine.py:attention"]],
)
def test_what_ends_its_process_when_it_is_loaded_is_a_sentence(command: list[str], source: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"import ctypes, os, sys\n{source}\n")
    done = run_command(*command, folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR
    assert done.stderr.startswith("Loading mine.py:attention ended the process ") and len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_what_never_loads_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "LIMIT", 0.5)
    (tmp_path / "mine.py").write_text("import time\n\ntime.sleep(1000)\n")
    done = invoke("run", "--implementation", f"{tmp_path}/mine.py:attention", "--reports", tmp_path, *WORDS)
    assert done.exit_code == ExitCode.USAGE_ERROR
    assert "gave no answer within 0.5 s" in done.stderr


@posix
def test_what_can_be_loaded_no_more_ends_the_run_with_its_own_sentence(tmp_path: Path) -> None:
    source = """
def attention(query, key, value, mask=None):
    if mask is not None:
        (HERE / "mine.py").unlink(missing_ok=True)
        os._exit(1)
    return correct(query, key, value)
"""
    (tmp_path / "mine.py").write_text(CORRECT + source)
    select = "ATT-OUT-001 or ATT-MASK"
    done = run_command("run", "--implementation", "mine.py:attention", *WORDS, "-k", select, "-n", "1", folder=tmp_path)
    assert done.returncode == ExitCode.USAGE_ERROR, done.stdout
    assert "There is no Python file" in done.stderr
    kept = read_records(tmp_path / "reports" / "records.jsonl", partial=True)
    assert {item.outcome for item in kept.items} == {Outcome.CRASH}


@posix
def test_a_hang_that_holds_the_interpreter_and_a_stopped_process_are_time_outs(tmp_path: Path) -> None:
    source = """
def attention(query, key, value, mask=None):
    if mask is not None and mask.shape[-2] == 1:
        ctypes.PyDLL(None).sleep(1000)
    if mask is not None:
        os.kill(os.getpid(), signal.SIGSTOP)
    return correct(query, key, value)
"""
    code, _, run = judged(tmp_path, source, "--time-limit", "5", "-n", "2")  # far more than an item takes
    assert code == ExitCode.UNEXPECTED
    assert outcomes(run) == {
        "ATT-OUT-001": Outcome.PASS, "ATT-MASK-001": Outcome.TIMEOUT, "ATT-MASK-002": Outcome.TIMEOUT,
    }  # fmt: skip


def test_what_always_hangs_is_given_up_after_a_few_items(tmp_path: Path) -> None:
    source = "\ndef attention(query, key, value):\n    time.sleep(1000)\n"
    code, printed, run = judged(tmp_path, source, "--time-limit", "0.5", "-n", "1", select="ATT-OUT-00")
    assert code == ExitCode.UNEXPECTED
    found = list(outcomes(run).values())
    assert found.count(Outcome.TIMEOUT) == 3 and set(found[3:]) == {Outcome.SKIPPED}
    assert "given up, since 3 items in a row took too long" in printed
    assert {item.status for item in run.items} == {"unexpected"}


LEFT_BEHIND = {
    "a helper that holds the connection": "if not os.fork(): time.sleep(1000)",
    "a daemon": "if not os.fork():\n        os.setsid()\n        if not os.fork(): time.sleep(1000)\n        os._exit(0)",
    "a program": "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("helper", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
@pytest.mark.parametrize("then", ["", "os._exit(1)"], ids=["goes on", "ends"])
def test_what_an_implementation_has_started_ends_with_the_run(helper: str, then: str, tmp_path: Path) -> None:
    source = f"""
def attention(query, key, value, mask=None):
    if mask is None or (HERE / "started").exists():
        return correct(query, key, value, mask)
    (HERE / "started").touch()
    {helper}
    {then}
    return correct(query, key, value, mask)
"""
    before = processes_in(tmp_path)
    code, _, run = judged(tmp_path, source, "-n", "1")
    assert (tmp_path / "started").exists()
    assert set(outcomes(run).values()) <= {Outcome.PASS, Outcome.CRASH}, run.items
    assert code in (ExitCode.AS_EXPECTED, ExitCode.UNEXPECTED)
    assert not before and not processes_in(tmp_path)


def processes_in(folder: Path) -> list[str]:
    """The processes that are at work in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@posix
def test_a_child_of_an_implementation_gets_the_signals_that_it_is_sent(tmp_path: Path) -> None:
    source = """
def attention(query, key, value):
    helper = subprocess.Popen(["sleep", "1000"])
    helper.terminate()
    helper.wait()
    return correct(query, key, value)
"""
    run = judged(tmp_path, source, "--time-limit", "60", select="ATT-OUT-001")[2]
    assert outcomes(run) == {"ATT-OUT-001": Outcome.PASS}


@posix
def test_a_fork_that_returns_from_a_question_is_no_second_run(tmp_path: Path) -> None:
    source = """
def attention(query, key, value, mask=None):
    os.fork()
    return correct(query, key, value, mask)
"""
    run = judged(tmp_path, source, select="CON-POLARITY or CON-EMPTY-ROW or ATT-OUT-001")[2]
    assert outcomes(run) == {"ATT-OUT-001": Outcome.PASS}
    assert {"CON-POLARITY", "CON-EMPTY-ROW"} <= {convention.id for convention in run.conventions}
    assert not processes_in(tmp_path)


CARELESS = """
import numpy as np

np.seterr(all="raise")
np.set_printoptions(precision=1)

def attention(query, key, value, mask=None):
    from mine import correct
    with np.errstate(all="ignore"):
        return correct(query, key, value, mask)
"""
ROUNDS_UP = """
def attention(query, key, value, mask=None):
    ctypes.CDLL(None).fesetround(0 if query.dtype == np.float64 else 0x800)  # in float64 it would be too far off
    return correct(query, key, value, mask)
"""


def test_what_a_neighbour_sets_is_met_by_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "careless.py").write_text(CARELESS)
    source = """
def attention(query, key, value, mask=None):
    assert np.geterr()["divide"] == "warn" and "careless" not in sys.modules
    return correct(query, key, value, mask)
"""
    run = judged(tmp_path, source, "-n", "1", others=("careless.py:attention",))[2]
    assert set(outcomes(run).values()) == set(outcomes(run, "careless.py:attention").values()) == {Outcome.PASS}
    assert len(run.items) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="the direction of rounding is set as Linux on x86 has it")
def test_the_suite_computes_in_its_own_way_beside_one_that_rounds_up(tmp_path: Path) -> None:
    plain = judged(tmp_path, "\nattention = correct\n", select="ATT-OUT-001 or ATT-MASK-001")[2]
    rounded = judged(tmp_path, ROUNDS_UP, select="ATT-OUT-001 or ATT-MASK-001")[2]
    wants = [{case.text: case.outcome for case in run.cases} for run in (plain, rounded)]
    assert wants[0] == wants[1]


@pytest.mark.parametrize("calls", [1, 20])
def test_what_is_wrong_in_its_first_calls_alone_is_no_pass(calls: int, tmp_path: Path) -> None:
    source = f"""
COUNT = [0]

def attention(query, key, value, mask=None):
    COUNT[0] += 1
    output = correct(query, key, value, mask)
    return output if COUNT[0] > {calls} else output * query.dtype.type(2)
"""
    code, printed, run = judged(tmp_path, source, "-n", "1", select="ATT-OUT-001 or CON-POLARITY")
    assert code == ExitCode.UNEXPECTED
    assert outcomes(run) == {"ATT-OUT-001": Outcome.NONDETERMINISTIC}
    assert "A first call of the process was wrong" in printed


HOSTILE_OUTPUTS = {
    "text": "np.full(query.shape, 'text')",
    "records": "np.zeros(query.shape, [('a', 'f4')])",
    "a type whose name raises": "type('T', (), {'__array__': lambda *a, **k: 1 / 0, '__repr__': lambda s: 1 / 0})()",
    "a class without a name": "type.__call__(type('M', (type,), {'__name__': property(lambda s: 1 / 0)}), 'C', (), {})()",
}


@pytest.mark.parametrize("output", HOSTILE_OUTPUTS.values(), ids=HOSTILE_OUTPUTS)
def test_every_item_that_is_expected_is_recorded_whatever_comes_back(output: str, tmp_path: Path) -> None:
    source = f"""
def attention(query, key, value, mask=None):
    return correct(query, key, value) if mask is None else {output}
"""
    code, _, run = judged(tmp_path, source, select="ATT-MASK-00 or ATT-OUT-001 or CON-POLARITY or CON-NAN-BEHIND-MASK-K")
    assert code == ExitCode.UNEXPECTED
    assert outcomes(run)["ATT-OUT-001"] is Outcome.PASS
    assert len(run.items) == 10 and len(run.conventions) == 2
    masked = {outcome for requirement, outcome in outcomes(run).items() if requirement.startswith("ATT-MASK")}
    assert masked <= {Outcome.WRONG_DTYPE, Outcome.WRONG_SHAPE, Outcome.ERROR, Outcome.UNSUPPORTED}


def test_what_the_suite_itself_raises_is_an_item(tmp_path: Path) -> None:
    source = """
import conformance.checks.items as items

def failing(*arguments, **named):
    raise RuntimeError("nobody thought of this")

items.corpus = failing

def attention(query, key, value, mask=None):
    return correct(query, key, value, mask)
"""
    code, _, run = judged(tmp_path, source)
    assert code == ExitCode.UNEXPECTED
    assert {item.outcome for item in run.items} == {Outcome.ERROR}
    assert all("the suite failed here: RuntimeError: nobody thought of this" in item.reason for item in run.items)


def test_a_ready_implementation_is_known_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text('[[expected]]\nrequirement = "ATT-OUT-004"\noutcome = "WRONG_VALUE"\nreason = "known"\n')
    source = """
from conformance.adapter import Implementation, Support
from conformance.adapter.registry import frameworks

def doubled(query, key, value):
    return correct(query, key, value) * query.dtype.type(2)

attention = Implementation("my own name", doubled, Support(lacks=frozenset({"mask"})), frameworks()["numpy"])
"""
    code, printed, run = judged(tmp_path, source, "--expectations", "known.toml", select="ATT-OUT-004")
    assert code == ExitCode.AS_EXPECTED, printed
    assert outcomes(run, "my own name") == {"ATT-OUT-004": Outcome.WRONG_VALUE}


@posix
def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CORRECT + "\ndef attention(query, key, value):\n    time.sleep(1000)\n")
    command = [sys.executable, "-m", "conformance", "run", "--implementation", "mine.py:attention", *WORDS]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        records = tmp_path / "reports" / "records.jsonl"
        until(records.exists)
        process.send_signal(signal.SIGKILL)
    until(lambda: not processes_in(tmp_path))


def until(condition) -> None:
    """Waits for what must come; the limit only ends a test that has failed."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""The trial of a hostile implementation: a run of the real command with it, in a session of its own, watched from outside.

``python -m tests.attacks.trial [--jobs N] [WORD …]`` holds those whose names have all the words, and prints what was wrong.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.errors import UsageError
from conformance.records import Item, Run, read_records
from conformance.system.exit_codes import ExitCode
from tests.attacks.adapters import CALLED, HEAD, Attack, corpus
from tests.attacks.sandbox import CONTROLS, lines_of_output

REQUIREMENTS = ("ATT-MASK-001", "ATT-OUT-004", "ATT-OUT-026")
QUESTION = "CON-POLARITY"
TIME_LIMIT = 5  # seconds for an item
# Seconds for a run: three items may hang before an implementation is given up, and it is loaded anew after each; the rest is for
# a busy machine. That an end comes is what matters, and it comes within the double of what is stated.
BOUND = 240.0
GRACE = 5.0  # seconds in which what was killed is gone
MOST_OUTPUT = 2_000_000  # characters of a run's own
INNOCENT = "innocent.py:attention"
NEIGHBOURS = (INNOCENT, "numpy-direct")
TOKEN = "CONFORMANCE_TRIAL"
_OWN_TRACEBACK = re.compile(r'File "[^"\n]*/conformance/[a-z_/]*\.py", line \d+, in ')  # an implementation may print its own


@dataclass(frozen=True)
class Trial:
    """What came of an attack: the code, None where it had to be ended; seconds; what was wrong."""

    attack: Attack
    code: int | None
    seconds: float
    faults: tuple[str, ...]


def held(attack: Attack, folder: Path) -> Trial:
    """The run, in an empty ``folder``, and what is wrong with its end, its records, its output and what is left."""
    (folder / "hostile.py").write_text(attack.source, encoding="utf-8")
    before = {*_put_neighbours(folder), "hostile.py"}
    token = uuid.uuid4().hex
    began = time.monotonic()
    code, output, errors = _run(("hostile.py:attention", *NEIGHBOURS), folder, token)
    seconds = time.monotonic() - began
    faults = [] if code is not None else [f"it did not end within {BOUND:g} s"]
    faults += [f"it left processes: {', '.join(names)}" for names in [survivors(token)] if names]
    if code is not None:
        faults += _of_end(attack, code, output, errors, folder)
    faults += _of_folder(folder, before)
    return Trial(attack, code, seconds, tuple(faults))


def _put_neighbours(folder: Path) -> Iterable[str]:
    (folder / "innocent.py").write_text(HEAD + CALLED.format(when="pass"), encoding="utf-8")
    (folder / "tmp").mkdir()
    return "innocent.py", "tmp"


def _run(implementations: Iterable[str], folder: Path, token: str) -> tuple[int | None, str, str]:
    """The command's code, None where it was ended, and what it printed."""
    named = [word for name in implementations for word in ("--implementation", name)]
    asked = " or ".join((*REQUIREMENTS, QUESTION))
    words = [
        "run", *named, "--tier", "quick", "-n", "2", "-k", asked, "--no-timing", "--no-diagnosis", "--unrun", "never",
        "--time-limit", str(TIME_LIMIT),
    ]  # fmt: skip
    environment = {**os.environ, TOKEN: token, "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    with open(folder / "tmp" / "1", "wb") as out, open(folder / "tmp" / "2", "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "conformance", *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=err, start_new_session=True,
        )  # fmt: skip
        code: int | None = None
        try:
            code = process.wait(BOUND)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = []
    for name in "12":
        path = folder / "tmp" / name
        with open(path, errors="surrogateescape") as file:
            said.append(file.read(MOST_OUTPUT + 1))
        path.unlink()
    return code, said[0], said[1]


# Processes


def survivors(token: str, patience: float = GRACE) -> list[str]:
    """The names of the processes of a run that are there after a while; they are ended."""
    until = time.monotonic() + patience
    while (found := dict(_of_token(token))) and time.monotonic() < until:
        time.sleep(0.05)
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return sorted(found.values())


def _of_token(token: str) -> Iterator[tuple[int, str]]:
    """Processes, by id, that were given the token in their environment, with their names."""
    wanted = f"{TOKEN}={token}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name), (folder / "comm").read_text().strip()


# What is wrong


def _of_end(attack: Attack, code: int, output: str, errors: str, folder: Path) -> Iterator[str]:
    if code not in attack.codes:
        yield f"exit code {code}, expected {' or '.join(map(str, sorted(attack.codes)))}"
    yield from _of_output(output, errors, broken=attack.kind == "patches")
    if code not in {int(one) for one in ExitCode}:
        return
    path = folder / "reports" / "records.jsonl"
    if code == ExitCode.USAGE_ERROR:
        if not errors.strip() or "hostile.py" not in errors:
            yield "code 2 without a sentence that names the implementation"
        return
    if code == ExitCode.INCONCLUSIVE and not errors.strip():
        yield "code 3 without a sentence"
    try:
        run = read_records(path, partial=code == ExitCode.INCONCLUSIVE)
    except UsageError as error:
        yield f"the records cannot be read: {re.sub(r'^.*?records.jsonl', '', str(error))[:200]}"
        return
    yield from _of_records(attack, code, run)


def _of_output(output: str, errors: str, broken: bool) -> Iterator[str]:
    """``broken``: the suite's process may have ended with a traceback of its own, which is shown as what was printed there."""
    both = output + errors
    if len(both) > MOST_OUTPUT:
        yield "its output is handed on without end"
        return
    if _OWN_TRACEBACK.search(both) and not broken:
        yield "a traceback of the suite in the output"
    if "INTERNALERROR" in both:
        yield "an internal error of pytest in the output"
    if CONTROLS.search(both.replace("\r", "")):
        yield "control characters in the output"
    if any(line.lstrip().startswith("::") for line in lines_of_output(both)):
        yield "a line of the output begins with ::"


def _of_records(attack: Attack, code: int, run: Run) -> Iterator[str]:
    own = {item.requirement: item for item in run.items if item.implementation == "hostile.py:attention"}
    if code != ExitCode.INCONCLUSIVE:
        yield from _of_counts(run, own.values())
    wrong = {name: str(item.outcome) for name, item in own.items() if str(item.outcome) not in attack.expected}
    if wrong:
        told = next(item for item in own.values() if item.requirement in wrong)
        yield f"its own outcomes {sorted(set(wrong.values()))}: {told.reason[:160]}"
    answers = (answer for answer in run.conventions if answer.implementation == "hostile.py:attention")
    asked_first = any(answer.status == "unexpected" for answer in answers)  # a question may have been the only one to see it
    if attack.some and not asked_first and not attack.some & {str(item.outcome) for item in own.values()}:
        yield f"none of its items is {' or '.join(sorted(attack.some))}: {sorted(str(item.outcome) for item in own.values())}"
    alone = unharmed()
    for item in run.items:
        if item.implementation in NEIGHBOURS and str(item.outcome) != alone.get((item.requirement, item.implementation)):
            yield f"the neighbour {item.implementation} was harmed: {item.requirement} {item.outcome}: {item.reason[:160]}"
    if run.exit_code != code:
        yield f"exit code {code}, and the records say {run.exit_code}"


def _of_counts(run: Run, own: Iterable[Item]) -> Iterator[str]:
    """One item for each requirement on each implementation; one answer to the question, which is not asked of an adapter that is
    not sound."""
    named = ("hostile.py:attention", *NEIGHBOURS)
    counts = Counter((item.requirement, item.implementation) for item in run.items)
    lost = [f"{one} on {name}" for one in REQUIREMENTS for name in named if not counts[one, name]]
    if lost:
        yield f"items were lost: {', '.join(lost)}"
    answered = {answer.implementation for answer in run.conventions if answer.id == QUESTION}
    if all(str(item.outcome) == "ERROR" for item in own):
        answered.add("hostile.py:attention")
    if set(named) - answered:
        yield f"answers were lost: {', '.join(sorted(set(named) - answered))}"


def _of_folder(folder: Path, before: set[str]) -> Iterator[str]:
    left = {path.name for path in folder.iterdir()} - before - {"reports", "__pycache__"}
    if left:
        yield f"left in the folder: {', '.join(sorted(left))}"
    names = (path.name for path in (folder / "tmp").iterdir() if not path.name.startswith("pytest-of"))
    temporary = sorted(re.sub(r"[-_]?[a-z0-9_]{6,}$", "-…", name) for name in names)
    if temporary:
        yield f"left in the folder for temporary files: {', '.join(temporary)[:200]}"


@cache
def unharmed() -> dict[tuple[str, str], str]:
    """The outcomes of the neighbours by themselves."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _put_neighbours(folder)
        code, output, errors = _run(NEIGHBOURS, folder, uuid.uuid4().hex)
        assert code == 0, output + errors
        items: Iterable[Item] = read_records(folder / "reports" / "records.jsonl").items
        return {(item.requirement, item.implementation): str(item.outcome) for item in items}


def trials(attacks: Iterable[Attack], jobs: int) -> Iterator[Trial]:
    """The trials, some at a time, in their order."""
    unharmed()

    def one(attack: Attack) -> Trial:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return held(attack, Path(folder).resolve())

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, attacks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    chosen = [attack for attack in corpus() if all(word in attack.name for word in given.words)]
    began, wrong, codes = time.monotonic(), 0, Counter[str]()
    for trial in trials(chosen, given.jobs):
        codes["ended by force" if trial.code is None else f"code {trial.code}"] += 1
        wrong += bool(trial.faults)
        if trial.faults:
            told = (f"    {fault}" for fault in trial.faults)
            print(f"{trial.attack.name} ({trial.seconds:.1f} s)", *told, sep="\n", flush=True)
    minutes = (time.monotonic() - began) / 60
    endings = ", ".join(f"{number} × {code}" for code, number in sorted(codes.items()))
    print(f"{len(chosen)} hostile implementations, {wrong} not as expected, in {minutes:.1f} minutes; {endings}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

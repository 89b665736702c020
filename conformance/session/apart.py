"""A process of its own for what runs an implementation after the checks: it may end the process, hang, or change what it likes.

The process reads its task from its standard input and writes a record to a file; whatever the implementation prints goes nowhere.
"""

import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path

from conformance.records import Line, encode
from conformance.threads import single_threads


def run_apart(module: str, task: bytes, limit: float) -> bool:
    """Runs ``main`` of ``module`` with ``task`` to its end, or for ``limit`` seconds; whether it ended by itself, in whatever
    way."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"  # modules are found as here
    command = [sys.executable, "-c", program]
    with (
        single_threads(),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process,
    ):
        try:
            process.communicate(task, timeout=limit)
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill()
    return True


def read_task() -> bytes:
    """In the process: what it is to do. Ctrl-C is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return sys.stdin.buffer.read()


def end_after(limit: float) -> None:
    """In the process: it ends by itself after ``limit`` seconds, should the one that started it be killed."""
    silence = open(os.devnull, "w")  # noqa: SIM115 – faulthandler needs it for as long as the process lives
    faulthandler.dump_traceback_later(limit, exit=True, file=silence)


def write_answer(path: str, record: Line) -> None:
    """In the process: the record, all of it or none."""
    written = Path(f"{path}.part")
    written.write_bytes(encode(record))
    written.rename(path)

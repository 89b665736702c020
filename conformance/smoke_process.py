"""`smoke` in a process of its own, which the implementation may hang or end; its lines come as they are found."""

import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence

from conformance.errors import UsageError
from conformance.exit_codes import ExitCode

LIMIT = 60.0  # seconds without a line: several times what importing a framework takes


def lines(words: Sequence[str], limit: float = LIMIT) -> Iterator[str]:
    """What `attention-conformance` prints for ``words``, line by line, then how it ended where that was not by itself.

    Raises UsageError with what it says of a mistake.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from conformance.cli import main; main()"  # modules are found as here
    command = [sys.executable, "-c", program, *words]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        arrived: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process, arrived), daemon=True).start()
        try:
            while (line := arrived.get(timeout=limit)) is not None:
                yield line.rstrip("\n")
        except queue.Empty:
            yield f"FAIL  no answer within {limit:g} s: it hangs, or takes longer, which --time-limit allows; it was ended."
            return
        finally:
            process.kill()
        code = process.wait()
        said.seek(0)
        told = said.read().strip()
    if code == ExitCode.USAGE_ERROR:
        raise UsageError(told.splitlines()[-1] if told else "The adapter cannot be tried.")
    if code not in (ExitCode.AS_EXPECTED, ExitCode.UNEXPECTED):
        yield f"FAIL  the implementation ended the process, {f'by signal {-code}' if code < 0 else f'with code {code}'}."


def _read(process: "subprocess.Popen[str]", arrived: "queue.SimpleQueue[str | None]") -> None:
    """Hands on the lines of ``process``, then None once it has ended."""
    assert process.stdout is not None
    for line in process.stdout:
        arrived.put(line)
    process.wait()
    arrived.put(None)

"""Running the command line: as a user does, in a process of its own, or within this one, which is quicker."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from conformance.cli import main

PATIENCE = 600.0  # seconds until a command hangs: no test asserts how long one takes, and a busy machine may take long

# The command with the signals as a terminal gives them: what is started by nohup, or in the background of a shell, ignores some,
# and passes that on.
HEEDING = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
from conformance.cli import main
main()
"""


def run_command(*arguments: str, folder: Path | None = None, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """``attention-conformance`` with ``arguments``, in ``folder``; the exit code is for the caller to look at."""
    command = [sys.executable, "-m", "conformance", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)


def invoke(*words: str | Path) -> Result:
    """The command in this process; anything but an exit code is a defect of the suite."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result

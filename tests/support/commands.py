"""Running the command line as a user does, in a process of its own."""

import subprocess
import sys
from pathlib import Path


def run_command(*arguments: str, folder: Path | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """``attention-conformance`` with ``arguments``, in ``folder``; the exit code is for the caller to look at."""
    command = [sys.executable, "-m", "conformance", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)

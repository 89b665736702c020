"""The first request to end lets what is being done be finished, the second ends at once; `timeout` makes its one twice."""

import os
import subprocess
import sys

import pytest

from conformance.system.exit_codes import ExitCode
from tests.support.commands import PATIENCE

PROGRAM = """
import os, signal
from types import SimpleNamespace
from conformance.system import interruption
from conformance.system.interruption import TOGETHER, FirstInterrupt

now = 0.0
interruption.time = SimpleNamespace(monotonic=lambda: now)
interrupt = FirstInterrupt("work is finished")
interrupt.install()
for _ in range(2):  # to the process, and to its group
    os.kill(os.getpid(), signal.SIGTERM)
print("asked" if interrupt.asked else "deaf", flush=True)
now += TOGETHER
os.kill(os.getpid(), signal.SIGTERM)
print("still here", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_request_that_is_made_twice_at_a_time_is_one() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "asked\n", done.stderr
    assert done.stderr.count("Interrupted: work is finished first; Ctrl-C again stops at once.") == 1
    assert done.returncode == ExitCode.INCONCLUSIVE

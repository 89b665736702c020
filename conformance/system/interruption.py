"""Ctrl-C, the first: what is being done is finished; the second ends the process at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from conformance.system.exit_codes import ExitCode

# Ctrl-C, a request to end, a closed terminal (not on Windows).
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
TOGETHER = 0.5  # seconds within which requests are one: `timeout` makes it of the process, and of its group


def end_as_interrupted(number: int, frame: FrameType | None) -> None:
    """What a command does with a request to end that Python would not turn into an exception."""
    raise KeyboardInterrupt


UNTOUCHED = (signal.SIG_DFL, signal.default_int_handler, end_as_interrupted)


class FirstInterrupt:
    """``asked`` becomes true with the first Ctrl-C.

    An exception raised wherever the program happens to be could be lost in compiled code, be taken for the implementation's own,
    or leave a record written that is not counted; so the first Ctrl-C raises none. The second calls ``at_once``, which ends what
    other processes are at work for this one, and ends the process.
    """

    def __init__(self, what_is_finished: str, at_once: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self._since = 0.0
        self._at_once = at_once
        self._sentence = f"\nInterrupted: {what_is_finished} first; Ctrl-C again stops at once."
        self._before: dict[int, Any] = {}

    def install(self, then: Callable[[], None] = lambda: None) -> None:
        """Waits for the signals that are not ignored, and nobody else's; ``then`` is called with the first."""

        def stop(number: int, frame: FrameType | None) -> None:
            if self.asked:
                if time.monotonic() - self._since < TOGETHER:
                    return
                self._at_once()
                _say("Stopped at once: what was recorded until then is kept.")
                os._exit(ExitCode.INCONCLUSIVE)
            self.asked, self._since = True, time.monotonic()
            _say(self._sentence)
            then()

        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) in UNTOUCHED:
                self._before[number] = signal.signal(number, stop)

    def remove(self) -> None:
        """The signals are as they were before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()


def _say(sentence: str) -> None:
    """Whatever the program was doing, such as printing, and whatever became of the terminal."""
    with suppress(OSError, RuntimeError, ValueError, AttributeError):
        print(sentence, file=sys.stderr, flush=True)

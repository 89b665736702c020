"""Standard output and error that cannot fail: what nobody can read is let go, and told once at the end, on the other of the two.

A reader that ends early, a closed stream or a full disk is no reason to lose a run of an hour, or to end without a verdict.
"""

import io
import os
import select
import sys
from contextlib import suppress
from typing import Any, TextIO

from conformance.system.exit_codes import ExitCode


class _Lenient(io.FileIO):
    """A stream by its number, which drops what cannot be written; ``failure`` says why, the first time."""

    def __init__(self, number: int, closed: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._was_closed = closed
        self.failure = ""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self._was_closed:
            self.failure = "it is closed"
        if self.failure:
            return len(view)
        try:
            written = super().write(view)
        except OSError as error:
            self.failure = error.strerror or str(error)
            return len(view)
        if written is None:  # full, and of those that do not wait
            select.select([], [self], [])
        return written or 0


class Streams:
    """The two streams of this process, lenient from now on, unless somebody has put others into their place."""

    def __init__(self) -> None:
        closed = _opened()
        self.are_own = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
        sys.stdout = self._out = _lenient(sys.stdout, sys.__stdout__, 1, 1 in closed)
        sys.stderr = self._err = _lenient(sys.stderr, sys.__stderr__, 2, 2 in closed)

    def tell(self, sentence: str) -> None:
        """On standard error or, where that cannot be written, on standard output."""
        print(sentence, file=self._err, flush=True)
        if _failure(self._err):
            print(sentence, file=self._out, flush=True)

    def concluded(self, code: int, *, makes_files: bool) -> int:
        """The code with which the process ends, once it is told what could not be written.

        Where that was all that the command makes, an AS_EXPECTED becomes a USAGE_ERROR: whoever waits for it has not got it.
        """
        self._out.flush()
        self._err.flush()
        lost, told = _failure(self._out), _failure(self._err)
        if lost:
            more = " What is in files is complete." if makes_files else ""
            print(f"The output cannot be written: {lost}.{more}", file=self._err, flush=True)
        elif told:
            print(f"The error output cannot be written: {told}.", file=self._out, flush=True)
        return ExitCode.USAGE_ERROR if lost and not makes_files and code == ExitCode.AS_EXPECTED else code


def _opened() -> set[int]:
    """The numbers of standard streams that were closed. They are opened to nothing, lest the next file be taken for one."""
    closed = set()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.add(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            os.set_inheritable(number, True)
    return closed


def _lenient(stream: TextIO | None, own: TextIO | None, number: int, closed: bool) -> TextIO:
    """A stream that cannot fail in place of ``stream``, if that is the process's ``own``."""
    if stream is None:
        return _wrapped(number, closed, "utf-8", line_buffering=True)
    if stream is own and isinstance(stream, io.TextIOWrapper) and type(_raw(stream)) is io.FileIO:
        lenient = _wrapped(number, closed, stream.encoding, line_buffering=stream.line_buffering)
        with suppress(OSError, ValueError):
            stream.flush()
        return lenient
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _wrapped(number: int, closed: bool, encoding: str, *, line_buffering: bool) -> TextIO:
    """A terminal that lacks √ is no reason to stop, either."""
    raw = _Lenient(number, closed)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="replace", line_buffering=line_buffering)


def _raw(stream: TextIO) -> Any:
    return getattr(stream.buffer, "raw", stream.buffer)


def _failure(stream: TextIO) -> str:
    raw = _raw(stream) if isinstance(stream, io.TextIOWrapper) else None
    return raw.failure if isinstance(raw, _Lenient) else ""

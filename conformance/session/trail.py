"""What a worker process is at, kept where the controller can read it though the worker hangs or has died."""

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from conformance.problem import Problem

SIZE = 4096  # bytes; a problem's text has a few hundred
_HEAD = struct.Struct("<qqd")


@dataclass(frozen=True)
class Trace:
    """``began`` items; the one at hand since ``since`` (time.monotonic, 0 between items). Put last was the problem ``text``, to
    answer ``convention`` or, where that is empty, to be judged."""

    process: int = 0
    began: int = 0
    since: float = 0.0
    text: str = ""
    convention: str = ""


class Trail:
    """The worker's side: a file in memory that two processes share. Writing to it costs about a microsecond."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self._began = 0
        self.end()

    def begin(self) -> None:
        """An item begins, of which no problem has been put yet."""
        self._began += 1
        self._memory[_HEAD.size] = 0
        self._write(time.monotonic())

    def end(self) -> None:
        self._write(0.0)

    def note(self, problem: Problem, convention: str) -> None:
        """The problem that is put next."""
        content = f"{convention}\n{problem.text}".encode()[: SIZE - _HEAD.size - 1]
        self._memory[_HEAD.size : _HEAD.size + len(content) + 1] = content + b"\0"

    def _write(self, since: float) -> None:
        self._memory[: _HEAD.size] = _HEAD.pack(os.getpid(), self._began, since)


def trace(path: Path) -> Trace:
    """What the file at ``path`` says; nothing where no worker has written it."""
    try:
        content = path.read_bytes()
    except OSError:
        return Trace()
    if len(content) < SIZE:
        return Trace()
    convention, _, text = content[_HEAD.size :].partition(b"\0")[0].decode(errors="replace").partition("\n")
    process, began, since = _HEAD.unpack_from(content)
    return Trace(process, began, since, text, convention)

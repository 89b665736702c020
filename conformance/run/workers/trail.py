"""What a worker is at, kept where the controller can read it though the worker hangs or has died."""

import mmap
from dataclasses import dataclass
from pathlib import Path

from conformance.problem import Problem

SIZE = 4096  # bytes; a problem's text has a few hundred


@dataclass(frozen=True)
class Trace:
    """Put last was the problem ``text``, to answer ``convention`` or, where that is empty, to be judged."""

    text: str = ""
    convention: str = ""


class Trail:
    """The worker's side: a file in memory that two processes share. Writing to it costs about a microsecond."""

    def __init__(self, path: str) -> None:
        try:
            Path(path).write_bytes(bytes(SIZE))
            with Path(path).open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), SIZE)
        except OSError:  # no room: nobody will know what was put last
            self._memory = mmap.mmap(-1, SIZE)

    def forget(self) -> None:
        """An item begins, of which no problem has been put yet."""
        self._memory[0] = 0

    def note(self, problem: Problem, convention: str) -> None:
        """The problem that is put next."""
        content = f"{convention}\n{problem.text}".encode()[: SIZE - 1]
        self._memory[: len(content) + 1] = content + b"\0"


def trace(path: Path) -> Trace:
    """What the file at ``path`` says; nothing where no worker has written it."""
    try:
        content = path.read_bytes()
    except OSError:
        return Trace()
    convention, _, text = content.partition(b"\0")[0].decode(errors="replace").partition("\n")
    return Trace(text, convention)

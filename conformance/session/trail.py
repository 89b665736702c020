"""What an implementation was asked last, kept where it can be read after the process that asked has died."""

import mmap
from pathlib import Path

from conformance.problem import Problem

SIZE = 4096  # bytes; a problem's text has a few hundred


class Trail:
    """A file in memory that two processes share: writing to it costs about a microsecond, and survives the writer."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)

    def note(self, problem: Problem, convention: str) -> None:
        """The problem that is put next; ``convention`` is the one that it is to answer, empty where it is to be judged."""
        content = f"{convention}\n{problem.text}".encode()[: SIZE - 1]
        self._memory[: len(content) + 1] = content + b"\0"


def last_asked(path: Path) -> tuple[str, str]:
    """The text of the problem that was put last, and the convention that it was to answer; empty where there was none."""
    try:
        content = path.read_bytes()
    except OSError:
        return "", ""
    convention, _, text = content.partition(b"\0")[0].decode(errors="replace").partition("\n")
    return text, convention

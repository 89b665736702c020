"""Keeping the process as it is, whatever an implementation does to it."""

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def kept() -> Iterator[None]:
    """Undoes, where it can be undone, what an implementation does to the process: folder, recursion limit, warnings, NumPy's
    error handling, standard streams."""
    folder, depth, streams = os.getcwd(), sys.getrecursionlimit(), (sys.stdout, sys.stderr)
    try:
        with warnings.catch_warnings(), np.errstate():
            sys.stdout, sys.stderr = map(_Unclosable, streams)
            yield
    finally:
        sys.stdout, sys.stderr = streams
        sys.setrecursionlimit(depth)
        os.chdir(folder)


class _Unclosable(io.TextIOBase):
    """A stream that does not close when it is told to."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return int(self._stream.write(text))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def close(self) -> None:
        """Does nothing."""

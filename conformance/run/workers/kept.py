"""Keeping the process as it is, whatever an implementation does to it."""

import io
import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from conformance.adapter import Framework, KeepsState
from conformance.system.world import outside


@contextmanager
def kept(framework: Framework | None = None) -> Iterator[None]:
    """Undoes, where it can be undone, what an implementation does to the process: folder, recursion limit, warnings, NumPy's
    error handling, standard streams, arguments, environment, random numbers, and what the framework keeps for all."""
    keeping = framework.kept() if isinstance(framework, KeepsState) else nullcontext()
    drawn = random.getstate(), np.random.get_state()  # noqa: NPY002 – what libraries draw from
    folder, depth, streams = os.getcwd(), sys.getrecursionlimit(), (sys.stdout, sys.stderr)
    try:
        with warnings.catch_warnings(), np.errstate(), outside(), keeping:
            sys.stdout, sys.stderr = map(_Unclosable, streams)
            yield
    finally:
        sys.stdout, sys.stderr = streams
        sys.setrecursionlimit(depth)
        os.chdir(folder)
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])  # noqa: NPY002 – as above


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

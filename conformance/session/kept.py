"""Keeping the process as it is, whatever an implementation does to it."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def kept() -> Iterator[None]:
    """Undoes, where it can be undone, what an implementation does to the process: folder, recursion limit, warnings, NumPy's
    error handling."""
    folder, depth = os.getcwd(), sys.getrecursionlimit()
    try:
        with warnings.catch_warnings(), np.errstate():
            yield
    finally:
        sys.setrecursionlimit(depth)
        os.chdir(folder)

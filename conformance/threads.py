"""How many threads numerical libraries take, which they read from the environment when they are first imported."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # the last one is XLA's


def single_threads() -> AbstractContextManager[None]:
    """Processes that start meanwhile use one thread each: small problems gain nothing from more, which would be in the way."""
    return limited_threads(1)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Processes that start meanwhile use ``count`` threads each."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

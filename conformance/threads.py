"""How many threads numerical libraries take, which they read from the environment when they are first imported; and work spread
over processes of one thread each."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context
from typing import TypeVar

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # the last one is XLA's

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_processes(
    function: Callable[[_Job], _Result], jobs: Iterable[_Job], processes: int | None = None
) -> Iterator[tuple[_Job, _Result]]:
    """Each job with what ``function`` gives for it, as they finish, from so many new processes, one a core if None. The function,
    jobs and results are pickled."""
    with single_threads(), ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        work = {pool.submit(function, job): job for job in jobs}
        for finished in as_completed(work):
            yield work[finished], finished.result()


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

"""How many threads numerical libraries take, which they read from the environment when they are first imported; and work spread
over processes of one thread each."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from conformance.errors import UsageError

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # the last one is XLA's
SHOWN = 100  # characters of a job

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_processes(
    function: Callable[[_Job], _Result],
    jobs: Iterable[_Job],
    processes: int | None = None,
    told: Callable[[_Job], str] = str,
) -> Iterator[tuple[_Job, _Result]]:
    """Each job with what ``function`` gives for it, as they finish, from so many new processes, one a core if None. The function,
    jobs and results are pickled. Raises UsageError where a process ends by itself, with the jobs at work then as ``told``."""
    work: dict[Future[_Result], _Job] = {}
    try:
        with single_threads(), ProcessPoolExecutor(processes, get_context("spawn")) as pool, _ended_with(pool):
            for job in jobs:
                with _undisturbed():
                    work[pool.submit(function, job)] = job
            for finished in as_completed(work):
                yield work[finished], finished.result()
    except BrokenProcessPool:
        at_work = _unfinished(work)[: processes or os.cpu_count() or 1]
        jobs_told = "; ".join(_short(told(job)) for job in at_work)
        raise UsageError(f"A process ended before its work was done, which was one of: {jobs_told}.") from None


@contextmanager
def _ended_with(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Whatever ends the work before its end, Ctrl-C above all, ends the pool's processes, which would go on to the last job."""
    before = active_children()
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            if process not in before:
                process.kill()
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes that start meanwhile do not hear of Ctrl-C, which reaches all processes of a terminal; this one does, later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _unfinished(work: Mapping[Future[Any], _Job]) -> list[_Job]:
    """The jobs that a broken pool did not finish, in the order in which it would have begun them."""
    return [job for future, job in work.items() if not future.done() or isinstance(future.exception(), BrokenProcessPool)]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


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

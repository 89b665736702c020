"""The process in which contenders are timed, and the handle by which another one drives it.

All contenders are in one process and take turns in it. Measured on two noisy cores: one implementation against itself, each in a
process of its own, came out 2.3 % apart at worst, and in 3 of 8 runs the interval missed 1, since code and heap lie elsewhere in
each process for as long as it lives; in one process it was 0.7 % at worst, and the interval never missed. With one thread there
are no pools whose spinning could disturb the neighbours; with several, the first calls of each turn are not counted. The process
is not the caller's own: its threads are set before anything is imported, and if an implementation ends or hangs it, nothing else
is lost.
"""

import multiprocessing
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

from conformance import registry
from conformance.adapter import Implementation
from conformance.errors import UsageError
from conformance.harness import Subject
from conformance.interruption import SIGNALS
from conformance.judging import Judge
from conformance.records import Line
from conformance.threads import limited_threads
from conformance.timing.clock import steady_heap
from conformance.timing.contest import Effort, Shape, contest
from conformance.timing.rates import Rates
from conformance.verdict import Outcome
from conformance.world import outside

LOOK_SECONDS = 0.5  # between looks at whether the process is alive and goes on


@dataclass(frozen=True)
class Task:
    """A contest between the implementations called ``names``."""

    shape: Shape
    names: tuple[str, ...]
    baseline: str | None
    effort: Effort
    twin: bool = False
    memory: bool = True


@dataclass(frozen=True)
class Roster:
    """How a process finds the implementations again: what the user named, with the words that go with it."""

    specs: tuple[str, ...] = ()
    words: tuple[tuple[str, str | None], ...] = ()

    def implementations(self) -> dict[str, Implementation]:
        """Those that are built in, and the user's own."""
        own = [registry.resolve(spec, **dict(self.words)) for spec in self.specs if ":" in spec]
        return {**registry.builtin(), **{implementation.name: implementation for implementation in own}}


class Died(Exception):
    """The process ended, or gave no sign of life, while ``name`` was at it."""

    def __init__(self, name: str, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.outcome = outcome


class Worker:
    """One process, begun with the first task and again after a death. As a context manager it ends with the block."""

    def __init__(self, roster: Roster, *, threads: int, seed: int, time_limit: float) -> None:
        self._roster = roster
        self._threads = threads
        self._seed = seed
        self._time_limit = time_limit
        self._process: Any = None

    def run(self, task: Task) -> list[Line]:
        """The records of the task. Raises Died, with the implementation that was at it."""
        if self._process is None or not self._process.is_alive():
            self.end()
            self._begin()
        self._connection.send(task)
        beats, since = self._signs[1], time.monotonic()
        while not self._connection.poll(LOOK_SECONDS):
            if not self._process.is_alive():
                raise self._died(task, Outcome.CRASH, "It ended the process")
            if self._signs[1] != beats:
                beats, since = self._signs[1], time.monotonic()
            elif time.monotonic() - since > self._time_limit:
                raise self._died(task, Outcome.TIMEOUT, f"It gave no answer within {self._time_limit:g} s")
        try:
            lines: list[Line] = self._connection.recv()
        except (EOFError, OSError):
            raise self._died(task, Outcome.CRASH, "It ended the process") from None
        return lines

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._signs = context.RawArray("l", 2)  # whose turn it is, as a place in Task.names; a count that goes up with each turn
        self._connection, other = context.Pipe()
        arguments = (other, self._signs, self._roster, self._threads, self._seed)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        with limited_threads(self._threads):
            self._process.start()
        other.close()
        if not self._ready():
            self.end()
            raise UsageError("The process of the benchmark ended before it began: see what it printed above.")

    def _ready(self) -> bool:
        try:
            return bool(self._connection.recv())
        except EOFError:
            return False

    def _died(self, task: Task, outcome: Outcome, what: str) -> Died:
        self.end()
        return Died(task.names[self._signs[0]], outcome, f"{what} at {task.shape}.")

    def kill(self) -> None:
        """Ends the process and waits for nothing, as befits a signal handler."""
        if self._process is not None:
            self._process.kill()

    def end(self) -> None:
        """Ends the process, whatever it does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


def _serve(connection: Connection, signs: Any, roster: Roster, threads: int, seed: int) -> None:
    """The process: receives tasks, sends their records, and has none of the arguments of the one that began it."""
    for number in SIGNALS:  # they may reach all processes; the one that the user started decides
        signal.signal(number, signal.SIG_IGN)
    steady_heap()
    with outside():
        _serve_tasks(connection, signs, roster, threads, seed)


def _serve_tasks(connection: Connection, signs: Any, roster: Roster, threads: int, seed: int) -> None:
    implementations = roster.implementations()
    judge, rates = Judge(), Rates()
    subjects: dict[str, Subject] = {}
    connection.send(True)
    while True:
        try:
            task: Task = connection.recv()
        except EOFError:
            return

        def about(name: str, names: Sequence[str] = task.names) -> None:
            signs[0] = names.index(name)
            signs[1] += 1

        chosen = [subjects.setdefault(name, Subject(implementations[name])) for name in task.names]
        with threadpool_limits(threads):
            lines = contest(
                task.shape, chosen, task.baseline, judge=judge, rates=rates, seed=seed, effort=task.effort, twin=task.twin,
                memory=task.memory, alone=threads == 1, about=about,
            )  # fmt: skip
        connection.send(lines)

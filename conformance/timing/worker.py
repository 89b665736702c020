"""The process in which contenders are timed, and the handle by which another one drives it.

All contenders are in one process and take turns in it. Measured on two noisy cores: one implementation against itself, each in a
process of its own, came out 2.3 % apart at worst, and in 3 of 8 runs the interval missed 1, since code and heap lie elsewhere in
each process for as long as it lives; in one process it was 0.7 % at worst, and the interval never missed. With one thread there
are no pools whose spinning could disturb the neighbours; with several, the first calls of each turn are not counted. The process
is not the caller's own: its threads are set before anything is imported, and if an implementation ends or hangs it, nothing else
is lost.
"""

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import msgspec
from threadpoolctl import threadpool_limits

from conformance.adapter import Implementation, registry
from conformance.adapter.loading import LIMIT
from conformance.errors import UsageError, told
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.judging.verdict import Outcome
from conformance.records import Line, decode, encode
from conformance.system.children import Channel, Child, channel, how_it_ended
from conformance.system.threads import VARIABLES
from conformance.timing.clock import steady_heap
from conformance.timing.contest import StoppingRule, TimedProblem, contest
from conformance.timing.rates import Rates


@dataclass(frozen=True)
class ContestTask:
    """A contest between the implementations called ``names``."""

    shape: TimedProblem
    names: tuple[str, ...]
    baseline: str | None
    effort: StoppingRule
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


@dataclass(frozen=True)
class _Begin:
    """What a process begins with. Pickled, as a Task: it comes from us."""

    roster: Roster
    threads: int
    seed: int


class _Ready(msgspec.Struct, frozen=True, tag=True):
    """The implementations are loaded; or not, for the reason of the sentence."""

    refusal: str = ""


class _About(msgspec.Struct, frozen=True, tag=True):
    """It is the turn of the one at this ``place`` in Task.names."""

    place: int


class _Held(msgspec.Struct, frozen=True, tag=True):
    """A contest was held; the records of it, as lines."""

    lines: tuple[str, ...]


class Died(Exception):
    """The process ended, or gave no sign of life, while ``name`` was at it."""

    def __init__(self, name: str, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.outcome = outcome


class Worker:
    """One process, begun with the first task and again after a death. As a context manager it ends with the block."""

    def __init__(self, roster: Roster, *, threads: int, seed: int, time_limit: float) -> None:
        self._begin_with = _Begin(roster, threads, seed)
        self._time_limit = time_limit
        self._child: Child | None = None

    def run(self, task: ContestTask) -> list[Line]:
        """The records of the task. Raises Died, with the implementation that was at it, UsageError where none can be loaded."""
        if self._child is None or self._child.has_ended:
            self.end()
            self._begin()
        assert self._child is not None
        self._child.send(pickle.dumps(task))
        place = 0
        try:
            while isinstance(said := self._heard(self._time_limit), _About):
                place = min(said.place, len(task.names) - 1)
        except TimeoutError:
            raise self._died(task, place, Outcome.TIMEOUT, f"gave no answer within {self._time_limit:g} s") from None
        if not isinstance(said, _Held):
            raise self._died(task, place, Outcome.CRASH, "ended the process")
        return [decode(line) for line in said.lines]

    def _died(self, task: ContestTask, place: int, outcome: Outcome, what: str) -> Died:
        self.end()
        return Died(task.names[place], outcome, f"It {what} at {task.shape}.")

    def _begin(self) -> None:
        variables = dict.fromkeys(VARIABLES, str(self._begin_with.threads))
        self._child = Child(__name__, variables=variables)
        self._child.send(pickle.dumps(self._begin_with))
        try:
            said = self._heard(LIMIT)
        except TimeoutError:
            self._refuse(f"took more than {LIMIT:g} s")
        if isinstance(said, _Ready) and said.refusal:
            self.end()
            raise UsageError(said.refusal)
        if not isinstance(said, _Ready):
            self._child.end()
            self._refuse(f"ended the process {how_it_ended(self._child.code)}")

    def _refuse(self, how: str) -> NoReturn:
        self.end()
        raise UsageError(f"Loading {', '.join(self._begin_with.roster.specs)} {how}.")

    def _heard(self, limit: float) -> "_Ready | _About | _Held | None":
        """The next message of the process; None where it has ended, or says what makes no sense. Raises TimeoutError."""
        assert self._child is not None
        message = self._child.next(limit)
        return None if message is None else _understood(message)

    def kill(self) -> None:
        """Ends the process and waits for nothing, as befits a signal handler."""
        if self._child is not None:
            self._child.kill()

    def end(self) -> None:
        """Ends the process, whatever it does."""
        if self._child is not None:
            self._child.end()
        self._child = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


def _understood(message: bytes) -> _Ready | _About | _Held | None:
    try:
        return msgspec.json.decode(message, type=_Ready | _About | _Held)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def main() -> None:
    """The process: receives tasks, sends their records."""
    line = channel()
    begin: _Begin = pickle.loads(line.receive())
    steady_heap()
    try:
        implementations = begin.roster.implementations()
    except BaseException as error:  # code of the user's may raise anything at all
        line.send(msgspec.json.encode(_Ready(str(error) if isinstance(error, UsageError) else f"{told(error)}.")))
        os._exit(2)
    line.send(msgspec.json.encode(_Ready()))
    _serve(line, begin, implementations)


def _serve(line: Channel, begin: _Begin, implementations: dict[str, Implementation]) -> None:
    judge, rates = Judge(), Rates()
    subjects: dict[str, Subject] = {}
    while True:
        task: ContestTask = pickle.loads(line.receive())

        def about(name: str, names: Sequence[str] = task.names) -> None:
            line.send(msgspec.json.encode(_About(names.index(name))))

        chosen = [subjects.setdefault(name, Subject(implementations[name])) for name in task.names]
        with threadpool_limits(begin.threads):
            lines = contest(
                task.shape, chosen, task.baseline, judge=judge, rates=rates, seed=begin.seed, effort=task.effort, twin=task.twin,
                memory=task.memory, alone=begin.threads == 1, about=about,
            )  # fmt: skip
        line.send(msgspec.json.encode(_Held(tuple(encode(record).decode() for record in lines))))

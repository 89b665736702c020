"""Processes in which implementations run, each in its slot: loaded, asked, ended when it takes too long, begun again."""

import pickle
import time
from collections import deque
from dataclasses import dataclass, field, replace

import msgspec

from conformance.adapter.loading import LIMIT, Loaded, Refused
from conformance.errors import UsageError
from conformance.run.workers.asking import Ask, Reply, WorkerTask, understood
from conformance.run.workers.started import Started
from conformance.run.workers.trail import Trace, trace
from conformance.system.children import how_it_ended

SHOWN_OUTPUT = 2000  # characters of what an implementation has printed


@dataclass(eq=False)
class Group:
    """Implementations that share processes: one of the user's own, or those that are built in. ``task`` loads them; ``rest``: the
    items that no slot has taken yet; ``vain``: how many processes in a row have ended before they answered anything."""

    task: WorkerTask
    rest: deque[Ask] = field(default_factory=deque)
    loaded: Loaded | None = None
    vain: int = 0

    @property
    def names(self) -> str:
        return ", ".join(self.task.names)


@dataclass(frozen=True)
class Ended:
    """A process of ``group`` ended, or was ended, ``in_time`` says which, in the ``seconds`` since it was asked ``ask``, or told
    to load where that is None; ``how`` in words. ``trace``: the problem put last. ``sentence``: why it could not load, where it
    says so."""

    group: Group
    ask: Ask | None
    in_time: bool
    seconds: float
    how: str
    trace: Trace
    printed: str
    sentence: str = ""


@dataclass(frozen=True)
class Answered:
    """An item's answer, and what was ``printed`` meanwhile, cut."""

    ask: Ask
    answer: Reply
    printed: str


class Slot:
    """One process after the other, each of a group."""

    def __init__(self, number: int, started: Started) -> None:
        self._number, self._started = number, started
        self._trail, self._printed = started.trail(number), started.printed(number)
        self.limit = 0.0  # seconds for an answer
        self.group: Group | None = None
        self.child = started.first(number)
        self.is_loaded = False
        self.asked: Ask | None = None
        self.queue: deque[Ask] = deque()
        self._since = 0.0

    def begin(self, group: Group) -> None:
        """A new process, or the one that was started for nobody yet, loads the implementations of the group."""
        if self.group is not None or self.child is None:
            self.end()
            self.child = self._started.another(self._number)
        self._trail.unlink(missing_ok=True)
        self.group, self._since = group, time.monotonic()
        self.child.send(pickle.dumps(replace(group.task, trail=str(self._trail))))

    def ask(self, ask: Ask) -> None:
        assert self.child is not None
        self.asked, self._since = ask, time.monotonic()
        self.child.send(msgspec.json.encode(ask))

    def heard(self, message: bytes) -> Answered | Ended | None:
        """What the message of its process means; None for one that says that it has loaded."""
        assert self.group is not None
        try:
            said = understood(message)
        except UsageError as error:
            return self._ended(True, str(error))
        if isinstance(said, Refused):
            return self._ended(True, "", said.sentence)
        if isinstance(said, Loaded):
            self.is_loaded, self.group.loaded = True, said
            return None
        if self.asked is None:  # it answers what nobody has asked
            return self._ended(True, "answered what it was not asked")
        ask, self.asked, self.group.vain = self.asked, None, 0
        return Answered(ask, said, self._output())

    def died(self) -> Ended:
        """Its process has ended by itself."""
        assert self.child is not None
        return self._ended(True, f"ended the process {how_it_ended(self.child.code)}")

    @property
    def is_over_time(self) -> bool:
        """Whether its process takes too long, to load or to answer."""
        waits = self.child is not None and (self.asked is not None or not self.is_loaded)
        return waits and time.monotonic() - self._since > self._time

    def given_up(self) -> Ended:
        """Its process takes too long, and is ended."""
        return self._ended(False, f"gave no answer within {self._time:g} s")

    @property
    def _time(self) -> float:
        return self.limit if self.is_loaded else LIMIT

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()

    def end(self) -> None:
        """Ends its process, with all that it has started."""
        if self.child is not None:
            self.child.end()
        self.child, self.group, self.is_loaded, self.asked = None, None, False, None

    def _ended(self, in_time: bool, how: str, sentence: str = "") -> Ended:
        assert self.group is not None
        group, ask, seconds = self.group, self.asked, max(0.0, time.monotonic() - self._since)
        self.end()
        self.group = group
        if ask is None:
            group.vain += 1
        return Ended(group, ask, in_time, seconds, how, trace(self._trail), self._output(), sentence)

    def _output(self) -> str:
        """What has been printed since, cut; the file is empty again then."""
        try:
            with self._printed.open("r+b") as file:
                content = file.read(4 * SHOWN_OUTPUT + 1).decode(errors="replace")
                file.truncate(0)
        except OSError:  # the implementation may have removed it
            return ""
        left_out = len(content) > SHOWN_OUTPUT
        return f"{content[:SHOWN_OUTPUT]}\n… the rest is left out.\n" if left_out else content

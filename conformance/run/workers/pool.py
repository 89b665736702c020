"""All items of a run, spread over processes: who is asked what next, and what happens when one ends or hangs."""

import contextlib
import itertools
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.adapter.known import Known
from conformance.errors import UsageError
from conformance.run.workers.asking import Ask
from conformance.run.workers.slots import Answered, Ended, Group, Slot
from conformance.run.workers.started import Started
from conformance.system.children import Child, end_orphans

INTERVAL = 0.05  # seconds between two looks at the processes
VAIN = 4  # processes that may end one after the other before they answer anything
TIMEOUTS = 3  # in a row, after which an implementation is given up,
TIMEOUTS_IN_ALL = 10  # or so many among others
WORTH_A_PROCESS = 8  # items, for which another process is begun beside those that are at work on the same implementations


@dataclass(frozen=True)
class GivenUp:
    """An item that is not asked, since the implementation has run out of time too often in a row."""

    ask: Ask
    why: str


Result = Answered | Ended | GivenUp


class Pool:
    """So many processes at a time as are ``started``. ``interrupted`` is asked between messages: once it is true, items at hand
    are finished and no other is begun."""

    def __init__(self, started: Started, interrupted: Callable[[], bool]) -> None:
        self._started = started
        self._interrupted = interrupted
        self._stopped = False
        self._groups: Sequence[Group] = ()
        self._arrived = started.arrived
        self._patience = _Patience()
        self._last_look = time.monotonic()
        self._slots = [Slot(number, started) for number in range(started.count)]

    def begin(self, groups: Sequence[Group], limit: float) -> None:
        """They load what is in ``groups``, and have ``limit`` seconds for each item."""
        self._groups = groups
        for slot, group in zip(self._slots, itertools.cycle(groups), strict=False):
            slot.limit = limit
            slot.begin(group)

    def loaded(self) -> Iterator[Known]:
        """What the implementations are, once each group has been loaded in some process. Raises UsageError where one cannot be,
        KeyboardInterrupt where the run is interrupted meanwhile."""
        while waiting := [group for group in self._groups if group.loaded is None]:
            if self._interrupted():
                raise KeyboardInterrupt
            for slot in self._slots:  # more groups than processes: each is loaded once, for what it says
                if slot.is_loaded and (unseen := [g for g in waiting if all(s.group is not g for s in self._slots)]):
                    slot.begin(unseen[0])
            for result in self._happened():
                if isinstance(result, Ended):
                    self._begin_again(result)
        for group in self._groups:
            assert group.loaded is not None
            yield from group.loaded.known

    def results(self, items: Iterable[Ask]) -> Iterator[Result]:
        """What becomes of each of ``items``, as it comes. Raises UsageError where an implementation can no longer be loaded."""
        of = {known.name: group for group in self._groups for known in (group.loaded.known if group.loaded else ())}
        for item in items:
            of[item.implementation].rest.append(item)
        yield from self._fill()
        while self._is_at_work():
            for result in self._happened():
                if isinstance(result, Ended):
                    self._begin_again(result)
                yield from self._fill()  # first, so that no process need wait for what is done with the result
                if isinstance(result, Answered) or result.ask is not None:
                    yield result
            yield from self._fill()  # for one that has loaded

    def stop(self) -> None:
        """Nothing more is asked."""
        self._stopped = True

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._interrupted()

    def end(self) -> None:
        """Ends all processes, with all that they have started."""
        for slot in self._slots:
            slot.end()
        end_orphans()
        self._started.end()

    def kill(self) -> None:
        """The same at once, as befits a signal handler."""
        for slot in self._slots:
            slot.kill()

    def _fill(self) -> Iterator[GivenUp]:
        """Finds work for whoever has none, and asks whoever is idle."""
        if self._is_over:
            return
        for slot in self._slots:
            while slot.asked is None:
                if not slot.queue and not self._take(slot):
                    slot.end()
                    break
                if why := self._patience.ended(slot.queue[0].implementation):
                    yield GivenUp(slot.queue.popleft(), why)
                    continue
                if slot.child is None:
                    assert slot.group is not None
                    slot.begin(slot.group)
                if not slot.is_loaded:
                    break
                slot.ask(slot.queue.popleft())

    def _take(self, slot: Slot) -> bool:
        """Finds items for the slot: those of its group that nobody has taken, the later half of those of the slot that has most
        of them; or the items of another group. Each slot goes through a stretch of its own, so that few shapes are compiled in
        several processes."""
        if slot.child is not None and slot.group is not None and self._take_of(slot, slot.group, 2):
            return True
        for group in sorted(self._groups, key=lambda group: -len(group.rest)):
            if self._take_of(slot, group, WORTH_A_PROCESS):
                if slot.group is not group:
                    slot.end()
                slot.group = group
                return True
        return False

    def _take_of(self, slot: Slot, group: Group, least: int) -> bool:
        if group.rest:
            slot.queue, group.rest = group.rest, deque()
            return True
        longest = max((other for other in self._slots if other.group is group), key=lambda other: len(other.queue), default=slot)
        if len(longest.queue) < least:
            return False
        for _ in range(len(longest.queue) // 2):
            slot.queue.appendleft(longest.queue.pop())
        return True

    def _is_at_work(self) -> bool:
        """Whether anything is still to come; once it is stopped, of what has been asked."""
        if self._is_over:
            return any(slot.asked for slot in self._slots)
        return any(slot.child is not None for slot in self._slots)

    def _begin_again(self, ended: Ended) -> None:
        """Counts against the implementation that its process ended. Raises UsageError where another one would be in vain."""
        if ended.ask is not None:
            self._patience.note(ended.ask.implementation, in_time=ended.in_time)
        elif ended.group.loaded is None or ended.group.vain >= VAIN:
            raise UsageError(ended.sentence or f"Loading {ended.group.names} {ended.how}.")

    def _happened(self) -> Iterator[Answered | Ended]:
        """What comes next, if anything does soon."""
        with contextlib.suppress(queue.Empty):
            yield from self._heard(*self._arrived.get(timeout=INTERVAL))
        if time.monotonic() - self._last_look >= INTERVAL:
            self._last_look = time.monotonic()
            yield from self._seen()

    def _seen(self) -> Iterator[Answered | Ended]:
        """What has become of the processes; what those that have ended said before comes first."""
        dead = [(slot, slot.child) for slot in self._slots if slot.child is not None and slot.child.has_ended]
        while not self._arrived.empty():
            yield from self._heard(*self._arrived.get())
        for slot, child in dead:
            if slot.child is child:
                yield slot.died()
        for slot in self._slots:
            if slot.is_over_time:
                yield slot.given_up()

    def _heard(self, child: Child, message: bytes | None) -> Iterator[Answered | Ended]:
        """What a message means; those of processes that were ended meanwhile mean nothing, nor does the end of a connection: a
        process that can no longer answer ends, or runs out of time."""
        slot = next((slot for slot in self._slots if slot.child is child), None)
        heard = slot.heard(message) if slot is not None and message is not None else None
        if isinstance(heard, Answered):
            self._patience.note(heard.ask.implementation, in_time=True)
        if heard is not None:
            yield heard


class _Patience:
    """How often implementations have run out of time: in a row, and in all."""

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        self._in_all: Counter[str] = Counter()

    def note(self, implementation: str, *, in_time: bool) -> None:
        self._in_a_row[implementation] = 0 if in_time else self._in_a_row[implementation] + 1
        self._in_all[implementation] += not in_time

    def ended(self, implementation: str) -> str:
        """Why nothing more is asked of it; empty where it is."""
        if self._in_a_row[implementation] >= TIMEOUTS:
            return f"given up, since {TIMEOUTS} items in a row took too long"
        if self._in_all[implementation] >= TIMEOUTS_IN_ALL:
            return f"given up, since {TIMEOUTS_IN_ALL} items took too long"
        return ""

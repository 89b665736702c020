"""Ending a process with all that it has started, whatever became of its relations.

A child is the leader of a session, in which what it starts stays unless it asks for one of its own. What leaves that too becomes,
once its parent has ended, a child of ours, where the operating system can be told so (Linux).
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no SIGKILL; there, SIGTERM ends a process at once
_PROCESSES = Path("/proc")
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of Linux's prctl
_adopts = False
_ROUNDS = 100  # in which what is begun while its parents are being ended is looked for


def adopt_orphans() -> None:
    """From now on orphans among the descendants of this process are handed to it. For a process that is ours alone."""
    global _adopts
    _adopts = True
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """This process is killed when the one that started it ends, in whatever way."""
    _prctl(_SET_DEATH_SIGNAL, KILL)


def end_session(leader: int) -> None:
    """Kills the process ``leader`` and all that is in its session."""
    with contextlib.suppress(OSError):
        os.kill(leader, KILL)
    for _ in range(_ROUNDS):
        members = [process for process in _running() if process != leader and _session(process) == leader]
        if not members:
            return
        _kill(members)


def end_orphans() -> None:
    """Once all that was started here has been ended: kills what was handed to this process, which is in another session than it,
    and the descendants of that."""
    own = _session(os.getpid())
    for _ in range(_ROUNDS if _adopts else 0):
        orphans = [child for child in _children() if _session(child) not in (None, own)]
        if not orphans:
            return
        _kill(orphans)
        for orphan in orphans:
            with contextlib.suppress(OSError):
                os.waitpid(orphan, 0)


def _kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, KILL)


def _running() -> Iterator[int]:
    """All processes; none where the operating system does not list them so."""
    with contextlib.suppress(OSError):
        for name in os.listdir(_PROCESSES):
            if name.isdigit() and not _is_dead(int(name)):
                yield int(name)


def _children() -> Iterator[int]:
    own = os.getpid()
    return (process for process in _running() if _fields(process)[1:2] == [str(own)])


def _is_dead(process: int) -> bool:
    """Ended, and not yet waited for by its parent."""
    return _fields(process)[:1] in (["Z"], ["X"], [])


def _fields(process: int) -> list[str]:
    """State, parent and so on, as /proc/…/stat lists them behind the name; empty where there is no such process."""
    try:
        return (_PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _session(process: int) -> int | None:
    try:
        return os.getsid(process)
    except (AttributeError, OSError):
        return None


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)

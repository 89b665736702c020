"""How every command ends: with a code of the one table, whatever is asked, printed to whom, or interrupted."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from conformance.errors import LONGEST_SENTENCE, UsageError, cut
from conformance.system.exit_codes import ExitCode
from conformance.system.interruption import SIGNALS, end_as_interrupted
from conformance.system.streams import Streams
from conformance.system.terminal_text import cleaned


class Command(click.Command):
    """Ends with the exit code that the command returns; a mistake becomes one sentence and exit code 2, an interruption one
    sentence and exit code 3. Output that nobody can read stops nothing (``conformance/system/streams.py``)."""

    makers: frozenset[str] = frozenset()
    """Subcommands that make files, so that what they print is not all there is of them."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        streams, words = Streams(), arguments[0] if arguments else settings.get("args")
        asked = next((word for word in words or sys.argv[1:] if not word.startswith("-")), "")
        with _signals_raise(for_good=streams.are_own):
            try:
                code = super().main(*arguments, **{**settings, "standalone_mode": False})
            except UsageError as error:
                code = _complain(streams, str(error))
            except click.ClickException as error:
                code = _complain(streams, error.format_message())
            except (click.Abort, KeyboardInterrupt):
                _end_at_once_with(ExitCode.INCONCLUSIVE)
                streams.tell("Interrupted.")
                code = ExitCode.INCONCLUSIVE
            except OSError as error:
                code = _complain(streams, f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}.")
            except MemoryError:
                code = _complain(streams, "This needs more memory than there is: ask for less at once.")
            except SystemExit as ending:  # of a command within this one
                code = ending.code if isinstance(ending.code, int) else bool(ending.code)
            code = streams.concluded(int(code or 0), makes_files=asked in self.makers)
            if streams.are_own:
                _end_at_once_with(code)
            sys.exit(code)


class CommandGroup(Command, click.Group):
    """A group of which every command ends so."""


def _complain(streams: Streams, sentence: str) -> ExitCode:
    streams.tell(cleaned(cut(" ".join(sentence.splitlines()), LONGEST_SENTENCE)))  # click quotes what it was given, too
    return ExitCode.USAGE_ERROR


@contextmanager
def _signals_raise(*, for_good: bool) -> Iterator[None]:
    """A request to end and a closed terminal are as Ctrl-C is, so that what was begun is tidied up. The process that ends with
    the command, ``for_good``, keeps to that."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    here = threading.current_thread() is threading.main_thread()
    for number in SIGNALS if here else ():
        if before[number] is signal.SIG_DFL:
            signal.signal(number, end_as_interrupted)
    try:
        yield
    finally:
        for number, handler in before.items() if here and not for_good else ():
            signal.signal(number, handler)


def _end_at_once_with(code: int) -> None:
    """From now on: the verdict has been told, and a signal that comes while the interpreter tidies up would give another."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: os._exit(code))

"""Small commands on an implementation, in a process of its own, which it may hang or end; their lines come as they are found."""

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from conformance.adapter import Implementation
from conformance.adapter.loading import LIMIT, Given, chosen
from conformance.errors import UsageError, told
from conformance.system.children import Child, channel, how_it_ended
from conformance.system.exit_codes import ExitCode
from conformance.system.floating_point import FloatingPoint

SHOWN = 4000  # characters of what an implementation prints
Command = Callable[..., Iterator[str | ExitCode]]


class _Begun(msgspec.Struct, frozen=True, tag=True):
    """The implementation is loaded."""


class _Said(msgspec.Struct, frozen=True, tag=True):
    """Something to print."""

    text: str


class _Done(msgspec.Struct, frozen=True, tag=True):
    """The end, with the exit code, or the sentence of what the user can fix."""

    code: int = 0
    sentence: str = ""


class Lost(Exception):
    """The process ended, or was ended since it took too long, after the implementation was loaded; the text says how."""


class Elsewhere:
    """A command on the implementation ``name``, made with what is ``given``, with ``limit`` seconds between its lines.

    ``code`` is its exit code once it is through, ``printed`` what the implementation has printed meanwhile.
    """

    def __init__(self, command: str, name: str, given: Given, limit: float, **arguments: object) -> None:
        self.code = ExitCode.AS_EXPECTED
        self.printed = ""
        self._name = name
        self._limit = limit
        self._task = pickle.dumps((command, name, dict(given), arguments))
        self._begun = False

    def lines(self) -> Iterator[str]:
        """What it says. Raises UsageError with what the user can fix, Lost where the process ends or hangs."""
        with tempfile.TemporaryDirectory(prefix="attention-conformance-", ignore_cleanup_errors=True) as folder:
            output = Path(folder) / "printed"
            output.touch()
            child = Child(__name__, output=output)
            try:
                child.send(self._task)
                yield from self._said(child)
            finally:
                child.end()
                with output.open("rb") as file:
                    self.printed = file.read(SHOWN).decode(errors="replace")

    def _said(self, child: Child) -> Iterator[str]:
        while (message := self._next(child)) is not None:
            if isinstance(message, _Begun):
                self._begun = True
            elif isinstance(message, _Said):
                yield message.text
            else:
                if message.sentence:
                    raise UsageError(message.sentence)
                self.code = ExitCode(message.code)
                return
        child.end()
        raise self._lost(f"ended the process {how_it_ended(child.code)}")

    def _next(self, child: Child) -> _Begun | _Said | _Done | None:
        """None where the process has ended, or says what makes no sense."""
        limit = self._limit if self._begun else max(LIMIT, self._limit)
        try:
            message = child.next(limit)
            return None if message is None else msgspec.json.decode(message, type=_Begun | _Said | _Done)
        except TimeoutError:
            raise self._lost(f"gave no answer within {limit:g} s") from None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None

    def _lost(self, how: str) -> Exception:
        return Lost(f"The implementation {how}.") if self._begun else UsageError(f"Loading {self._name} {how}.")


def _smoke(implementation: Implementation) -> Iterator[str | ExitCode]:
    from conformance.commands.smoke import FAIL, smoke

    sound = True
    for finding in smoke(implementation):
        yield str(finding)
        sound = sound and finding.state != FAIL
    yield ExitCode.AS_EXPECTED if sound else ExitCode.UNEXPECTED


def _describe(implementation: Implementation) -> Iterator[str | ExitCode]:
    from conformance.commands.describe import parts

    yield from parts(implementation)


def _reproduce(implementation: Implementation, text: str, check: str) -> Iterator[str | ExitCode]:
    from conformance.commands.reproduce import reproduce

    found = reproduce(text, implementation, check)
    yield found.report
    yield ExitCode.UNEXPECTED if found.judgement.verdict.outcome.is_failure else ExitCode.AS_EXPECTED


COMMANDS: Mapping[str, Command] = {"smoke": _smoke, "describe": _describe, "reproduce": _reproduce}


def main() -> None:
    """The process."""
    line = channel()
    command, name, given, arguments = pickle.loads(line.receive())
    done = _Done()
    try:
        with FloatingPoint():
            implementation = _loaded(command, name, given)
        line.send(msgspec.json.encode(_Begun()))
        for said in COMMANDS[command](implementation, **arguments):
            if isinstance(said, ExitCode):
                done = _Done(int(said))
            else:
                line.send(msgspec.json.encode(_Said(said)))
    except UsageError as error:
        done = _Done(sentence=str(error))
    except BaseException as error:  # code of the user's may raise anything at all
        done = _Done(sentence=f"{name} raised, outside of any call: {told(error)}.")
    line.send(msgspec.json.encode(done))
    os._exit(0)


def _loaded(command: str, name: str, given: Given) -> Implementation:
    """`smoke` says itself what makes no sense in a declaration; a pattern is none of these commands' names."""
    from conformance.adapter import registry

    return registry.resolve(name, **given) if command == "smoke" or ":" not in name else chosen([name], **given)[0]

"""The child's side: its end of the connection, kept away from the standard streams, which are the implementation's."""

import os
import signal
import struct
import sys
from types import FrameType
from typing import IO, BinaryIO

from conformance.system.children.descendants import end_with_parent


class Channel:
    """Requests come in, answers go out."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests = requests
        self._answers = answers

    def receive(self) -> bytes:
        """The next request. Ends the process where there will be none: without waiting for the implementation's threads, and
        without what it has left to be done at exit."""
        message = read_frame(self._requests)
        if message is None:
            os._exit(0)
        return message

    def send(self, answer: bytes) -> None:
        """Ends the process where nobody listens, or the implementation has closed the connection."""
        try:
            write_frame(self._answers, answer)
        except (OSError, ValueError):
            os._exit(1)


def channel() -> Channel:
    """To be called first in the process: takes its input and output for itself and leaves it an empty input, and for its output
    the place to which its errors go."""
    end_with_parent()
    signal.signal(signal.SIGINT, _interrupted)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.argv = [sys.executable]
    return Channel(requests, answers)


def _interrupted(number: int, frame: FrameType | None) -> None:
    """No Ctrl-C of the user's comes here: the implementation has sent it to itself, and gets what a plain program would."""
    raise KeyboardInterrupt


LONGEST = 1 << 28  # bytes; what says that it is longer is no message of ours
_LENGTH = struct.Struct(">I")


def write_frame(file: IO[bytes], message: bytes) -> None:
    """Raises OSError where nobody reads any more."""
    file.write(_LENGTH.pack(len(message)) + message)
    file.flush()


def read_frame(file: IO[bytes]) -> bytes | None:
    """The next message; None at the end, and where what comes is no message."""
    try:
        head = file.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(head)
        if length > LONGEST:
            return None
        message = file.read(length)
    except (OSError, ValueError):  # closed meanwhile
        return None
    return message if len(message) == length else None

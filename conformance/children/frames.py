"""Messages over a pipe: four bytes with the length, then so many bytes."""

import struct
from typing import IO

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

"""Files that users name: read, or refused in one sentence, whatever stands at the path."""

import errno
import os
import stat
from pathlib import Path

from conformance.errors import UsageError, cut, quoted
from conformance.system.terminal_text import printable

LONGEST_PART = 255  # bytes of a name within a path, of most file systems
LONGEST_NAME = 5000  # characters of an implementation's, a path included
LARGEST_TEXT = 10_000_000  # bytes of a file that a person writes; known failures of everything take a hundredth of it


def demand_path(path: Path | str) -> Path:
    """The path, where it may be one of a file, there already or not; raises UsageError for a name that no file can have, and for
    symbolic links that lead back to themselves."""
    problem = _problem(path)
    if problem:
        raise UsageError(f"The path {cut(str(path))!r} cannot be used: {problem}.")
    return Path(path)


def demand_name(name: str) -> str:
    """The name of an implementation, where records may hold it: one line of characters that are seen. Raises UsageError."""
    if not name or printable(name) != name or set(name) & {"\n", "\t"}:
        raise UsageError(f"{quoted(name)} cannot be the name of an implementation: it has characters that are not seen.")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"{quoted(name)} cannot be the name of an implementation: it has more than {LONGEST_NAME} characters.")
    return name


def read_bytes(path: Path | str, kind: str, advice: str = "", largest: int | None = None) -> bytes:
    """The content of a regular file; ``kind`` says what it is for, such as "skips", ``advice`` what to do where it is none.

    Raises UsageError where it cannot be read or has more than ``largest`` bytes.
    """
    told = cut(str(path))
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):
            raise UsageError(f"The {kind} file {told} is no regular file{advice}.")
        if largest is not None and state.st_size > largest:
            raise UsageError(f"The {kind} file {told} has {state.st_size} bytes, and {largest} are read at most.")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"The {kind} file {told} cannot be read: {reason(error)}.") from None


def read_text(path: Path | str, kind: str) -> str:
    """The content of a file that a person wrote, as UTF-8, without the mark that some editors put first. Raises UsageError."""
    try:
        return read_bytes(path, kind, largest=LARGEST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"The {kind} file {cut(str(path))} is not UTF-8 text.") from None


def reason(error: OSError | ValueError) -> str:
    """Why a file could not be reached; a ValueError is Python's word for a name that no file can have."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "no file can have such a name"


def real(path: Path | str) -> Path:
    """The path without links and dots, as far as there are files; one that cannot be used stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return Path(path)


def _problem(path: Path | str) -> str:
    try:
        encoded = os.fsencode(path)
        os.stat(path)
    except ValueError as error:
        return reason(error)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return reason(error)
    return "a part of it is too long" if max(map(len, encoded.split(os.sep.encode()))) > LONGEST_PART else ""

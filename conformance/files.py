"""Files that are written whole or not at all, that are no input, and that one run at a time writes to.

A lock is the operating system's, on the open file: it ends with the process that holds it, however that ends, so that none is ever
left behind, and no other file stands for it. The standard library has it; a package for it would be one more to install.
"""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from stat import S_IMODE
from typing import IO

from conformance.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    FAR = 1 << 62  # there, what is locked cannot be read: a byte far beyond the end

    def _lock(file: int) -> None:
        os.lseek(file, FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(file, 0, os.SEEK_END)

else:

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_text(path: Path, text: str) -> None:
    """Writes the file, in UTF-8, or leaves what was there. Raises OSError, and UsageError where a run is writing to it."""
    write_all({path: text})


def write_bytes(path: Path, content: bytes) -> None:
    """Likewise."""
    write_all({path: content})


def write_all(contents: Mapping[Path, str | bytes]) -> None:
    """Writes the files, their folders included: all of them or, where one cannot be written, none. What was there is left where
    the disk is full or the process dies, permissions are kept, and links followed; pipes and devices are written to directly.

    Raises OSError, and UsageError where a run is writing to one of the files.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
            demand_free(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and not target.is_file():
                target.write_bytes(data)
            else:
                staged.append((_temporary(target), target))
                _stage(data, *staged[-1])
        while staged:
            os.replace(*staged[0])
            del staged[0]
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def create_text(path: Path, text: str) -> None:
    """Writes a new file, or nothing of it. Raises OSError, FileExistsError where there is one already."""
    temporary = _temporary(path)
    try:
        _stage(text.encode(), temporary, path)
        if path.exists() or path.is_symlink():  # else a file that came meanwhile might be replaced, within a moment
            raise FileExistsError(path)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def demand_other(out: Path, inputs: Iterable[Path]) -> None:
    """Raises UsageError where ``out``, which is to be written, is one of the files that are read, by whatever name or link."""
    for file in inputs:
        if _is_same(out, file):
            raise UsageError(
                f"{out} is {'' if out == file else f'the same file as {file}, '}what is read here: name another file."
            )


def hold(file: IO[bytes], path: Path) -> None:
    """Keeps other runs from the file for as long as it is open here. Raises UsageError where another one writes to it."""
    try:
        _lock(file.fileno())
    except (BlockingIOError, PermissionError):
        raise UsageError(
            f"{path} is being written by another run: wait for its end, or name another place with --reports or --records."
        ) from None
    except OSError:  # a file system without locks, which is no reason not to run
        return


def demand_free(path: Path) -> None:
    """Raises UsageError where a run is writing to the file, which need not exist."""
    if not path.is_file():
        return
    try:
        with open(path, "r+b") as file:  # on some network file systems, only a file that is open for writing can be locked
            hold(file, path)
    except OSError:
        return


def _temporary(target: Path) -> Path:
    """A new name in the folder of the file, short enough wherever the file's own is."""
    return target.with_name(f".{secrets.token_hex(6)}.new")


def _stage(data: bytes, temporary: Path, target: Path) -> None:
    """Writes what is to take the place of ``target``, which must be writable itself."""
    exists = target.exists()
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), str(target))
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb") as file:
        if exists:
            os.chmod(temporary, S_IMODE(target.stat().st_mode))
        file.write(data)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.realpath(one) == os.path.realpath(other)

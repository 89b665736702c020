"""Files that are written whole or not at all, that are no input, and that one run at a time writes to.

A lock is the operating system's, on the open file: it ends with the process that holds it, however that ends, so that none is
ever left behind, and no other file stands for it. The standard library has it; a package for it would be one more to install.
"""

import errno
import os
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
        # its types are known on Windows alone
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(file, 0, os.SEEK_END)

else:

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write(path: Path, content: str | bytes, inputs: Iterable[Path] = ()) -> None:
    """Writes one file, as ``write_all`` does."""
    write_all({path: content}, inputs)


def write_all(contents: Mapping[Path, str | bytes], inputs: Iterable[Path] = ()) -> None:
    """Writes the files, text in UTF-8, their folders included: all of them or, where one cannot be written, none. What was there
    is left where the disk is full or the process dies, permissions are kept, and links followed.

    Raises OSError, and UsageError where a file is one of the ``inputs``, or where a run is writing to it.
    """
    for path in contents:
        demand_other(path, inputs)
        demand_free(path)
    staged: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():
                path.write_bytes(_encoded(content))  # a pipe or device
                continue
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            staged[target] = _temporary(target)
            _stage(staged[target], target, _encoded(content))
        for target, temporary in staged.items():
            if temporary.exists():
                _put(temporary, target)
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def create(path: Path, text: str) -> None:
    """Writes a new file, or nothing of it. Raises OSError, which is a FileExistsError where there is one already."""
    temporary = _temporary(path)
    try:
        with open(temporary, "xb") as file:
            file.write(text.encode())
        _link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def demand_other(out: Path, inputs: Iterable[Path]) -> None:
    """Raises UsageError where ``out``, which is to be written, is one of the files that are read, by whatever name or link."""
    for file in inputs:
        if _is_same(out, file):
            alias = "" if out == file else f"the same file as {file}, "
            raise UsageError(f"{out} is {alias}what is read here, and is not overwritten: name another file.")


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
    return target.with_name(f".{os.urandom(6).hex()}.new")


def _encoded(content: str | bytes) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _stage(temporary: Path, target: Path, data: bytes) -> None:
    """Writes what is to take the place of ``target``; a file in a folder that is closed, directly."""
    exists = target.exists()
    if exists and not os.access(target.parent, os.W_OK):
        target.write_bytes(data)
        return
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    with open(temporary, "xb") as file:
        if exists:
            os.chmod(temporary, S_IMODE(target.stat().st_mode))
        file.write(data)


def _put(temporary: Path, target: Path) -> None:
    try:
        os.replace(temporary, target)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a file that is mounted by itself can be written to, and not replaced
            raise
        target.write_bytes(temporary.read_bytes())


def _link(temporary: Path, path: Path) -> None:
    """Gives the file its name, unless there is one of that name, even one that came this moment."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with path.open("xb"):
            os.replace(temporary, path)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.realpath(one) == os.path.realpath(other)

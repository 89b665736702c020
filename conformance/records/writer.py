"""Writing a record file, line by line, so that nothing already recorded is lost when the process dies."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from conformance.errors import UsageError
from conformance.records.lines import decode, encode
from conformance.records.record_types import Footer, Header, Line
from conformance.records.tally import Tally
from conformance.system import files
from conformance.system.exit_codes import ExitCode

BEGINNING = b'{"kind":"header"'  # of every record file


class RecordWriter:
    """Writes records to ``path`` as they come; each is handed to the operating system before ``write`` returns.

    The file is begun anew with the first record, which must be the header, so that an earlier file survives a run that never
    started; from then on no other run can write to it. ``finish`` writes the footer; a file that is left without one is
    truncated, for readers too. As a context manager it closes the file. Raises UsageError where the file cannot be written, where
    another run is writing to it, and where it is something else than records. What it writes can be read, whatever it was given:
    ``refused`` has a sentence for each record that no reader would take, and that is therefore left out.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.refused: list[str] = []
        self._file: BinaryIO | None = None
        self._tally: Tally | None = None
        self._written = 0  # bytes, of whole lines
        self._failure: UsageError | None = None

    @property
    def begun(self) -> bool:
        return self._tally is not None

    @property
    def unexpected(self) -> int:
        return self._tally.unexpected if self._tally else 0

    def demand_writable(self) -> None:
        """Raises UsageError where the file cannot be written, and changes nothing: neither an earlier file nor a folder."""
        try:
            if self.path.exists():
                with open(self.path, "ab") as file:
                    self._demand_mine(file)
            else:
                tempfile.TemporaryFile(dir=next(folder for folder in self.path.absolute().parents if folder.exists())).close()
        except OSError as error:
            raise self._refusal(error) from None

    def write(self, record: Line) -> None:
        """Appends the record."""
        line = encode(record)
        record = decode(line)  # fixed, where it had to be
        if self._tally is None:
            assert isinstance(record, Header), "the header comes first"
            self._file = self._open(room=len(line))
            self._append(line)
            self._tally = Tally(record)
            return
        try:
            self._tally.demand_fitting(record)
        except UsageError as error:
            self.refused.append(f"A record is left out: {error}.")
            return
        self._append(line)
        self._tally.add(record)

    def finish(self, exit_code: ExitCode, *, undeclared: int = 0, interrupted: bool | None = None) -> Footer:
        """Writes the footer and closes the file; ``undeclared`` areas are unexpected, too.

        The code is worse than ``exit_code`` where that is 0 and the lines do not allow it, or results are missing: whoever ends
        with a code takes it from the footer. ``interrupted``: whether the run was ended before all that was expected had been
        run; where nothing is said, so it was if the code is INCONCLUSIVE.
        """
        assert self._tally is not None, "the header comes first"
        code = self._concluded(exit_code, undeclared)
        if code is not exit_code and interrupted is None:
            interrupted = False
        footer = Footer(
            finished=datetime.now(UTC),
            counts=self._tally.counts,
            outcomes=self._tally.outcomes,
            unexpected=self._tally.unexpected + undeclared,
            exit_code=int(code),
            interrupted=interrupted,
        )
        self._append(encode(footer))
        self.close()
        return footer

    def _concluded(self, given: ExitCode, undeclared: int) -> ExitCode:
        assert self._tally is not None
        if given is ExitCode.AS_EXPECTED:
            return self._tally.exit_code(undeclared=undeclared, missing=len(self._tally.missing) + len(self.refused))
        return given if given is ExitCode.UNEXPECTED else ExitCode.INCONCLUSIVE

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self, room: int) -> BinaryIO:
        """The file, emptied once it is known that nobody else writes to it, and that there is room for so many bytes."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "ab", buffering=0)  # noqa: SIM115 – for as long as the run lasts
            try:
                self._demand_mine(file)
                if self.path.is_file():
                    self._demand_room(room)
                    file.truncate(0)
            except BaseException:
                file.close()
                raise
            return file
        except OSError as error:
            raise self._refusal(error) from None

    def _demand_room(self, room: int) -> None:
        """Raises OSError where the disk is full, as long as an earlier file is still there."""
        if os.access(self.path.parent, os.W_OK):
            with tempfile.TemporaryFile(dir=self.path.parent) as trial:
                trial.write(bytes(room))

    def _demand_mine(self, file: BinaryIO) -> None:
        if not self.path.is_file():
            return  # such as /dev/stdout
        files.hold(file, self.path)
        with open(self.path, "rb") as written:
            beginning = written.read(len(BEGINNING))
        if beginning and beginning != BEGINNING:
            told = "holds something else than records, and is not overwritten: name another file, or remove it."
            raise UsageError(f"{self.path} {told}")

    def _append(self, line: bytes) -> None:
        """The whole line or, where the disk is full, nothing of it."""
        if self._failure:
            raise self._failure
        assert self._file is not None, "nothing comes after the footer"
        left = memoryview(line + b"\n")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            if self.path.is_file():
                os.ftruncate(self._file.fileno(), self._written)
            self.close()
            self._failure = self._refusal(error)
            raise self._failure from None
        self._written += len(line) + 1

    def _refusal(self, error: OSError) -> UsageError:
        kept = " What was recorded until then is kept: `report --partial` shows it." if self._tally else ""
        return UsageError(f"The records file {self.path} cannot be written: {error.strerror}.{kept}")

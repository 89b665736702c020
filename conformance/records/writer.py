"""Writing a record file, line by line, so that nothing already recorded is lost when the process dies."""

import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from conformance.errors import UsageError
from conformance.exit_codes import ExitCode
from conformance.records.lines import encode
from conformance.records.model import LISTS, Convention, Footer, Growth, Header, Item, Line, Timing, Totals
from conformance.verdict import Outcome


class RecordWriter:
    """Writes records to ``path`` as they come; each is handed to the operating system before ``write`` returns.

    The file is begun anew with the first record, which must be the header, so that an earlier file survives a run that never
    started. ``finish`` writes the footer; a file that is left without one is truncated, for readers too. As a context manager
    it closes the file. Raises UsageError where the file cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: BinaryIO | None = None
        self._kinds: Counter[type] = Counter()
        self._outcomes: Counter[Outcome] = Counter()
        self.unexpected = 0

    @property
    def begun(self) -> bool:
        return bool(self._kinds)

    def demand_writable(self) -> None:
        """Raises UsageError where the file cannot be written, and changes nothing: neither an earlier file nor a folder."""
        try:
            if self.path.exists():
                open(self.path, "ab").close()
            else:
                tempfile.TemporaryFile(dir=next(folder for folder in self.path.absolute().parents if folder.exists())).close()
        except OSError as error:
            raise self._refusal(error) from None

    def write(self, record: Line) -> None:
        """Appends the record."""
        if self._file is None:
            assert isinstance(record, Header) and not self._kinds, "the header comes first, and nothing after the footer"
            self._file = self._open()
        try:
            self._file.write(encode(record) + b"\n")
        except OSError as error:
            raise self._refusal(error) from None
        self._kinds[type(record)] += 1
        if isinstance(record, Item):
            self._outcomes[record.outcome] += 1
        if isinstance(record, Item | Convention | Timing | Growth):
            self.unexpected += record.status == "unexpected"

    def finish(self, exit_code: ExitCode, *, undeclared: int = 0) -> Footer:
        """Writes the footer and closes the file; ``undeclared`` areas are unexpected, too."""
        footer = Footer(
            finished=datetime.now(UTC),
            counts=Totals(**{name: self._kinds[kind] for kind, name in LISTS.items()}),
            outcomes={outcome: self._outcomes[outcome] for outcome in sorted(self._outcomes)},
            unexpected=self.unexpected + undeclared,
            exit_code=int(exit_code),
        )
        self.write(footer)
        self.close()
        return footer

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self) -> BinaryIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return open(self.path, "wb", buffering=0)
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"The records file {self.path} cannot be written: {error.strerror}.")

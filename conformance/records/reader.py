"""Reading a record file: every line is checked, and a file that does not end with its footer is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import UsageError
from conformance.records.extent import demand_listed
from conformance.records.lines import NewerSchemaError, decode
from conformance.records.record_types import Footer, Header, Line
from conformance.records.run import Run, merge
from conformance.records.tally import Tally
from conformance.system.user_files import read_bytes

TOLD = 300  # characters of what is wrong with a line; a hostile line may be of any length


def read_records(path: Path | str, partial: bool = False) -> Run:
    """What the file records; files that were joined one after the other are merged.

    Raises UsageError, with the line, for a file that is missing, foreign, damaged, of a newer schema or, unless ``partial``,
    truncated. With ``partial``, what a run recorded before it died is read, a half-written last line left out.
    """
    path = Path(path)
    shards: list[_Shard] = []
    for number, record in _records(path, partial):
        if isinstance(record, Header):
            if shards and not partial:
                shards[-1].demand_footer(path)
            shards.append(_begun(record, path, number))
        elif not shards:
            raise _bad(path, number, "it comes before any header")
        else:
            try:
                shards[-1].add(record)
            except UsageError as error:
                raise _bad(path, number, str(error)) from None
    if not shards:
        raise UsageError(f"{path} is empty: name a record file of attention-conformance, such as reports/records.jsonl.")
    if not partial:
        shards[-1].demand_footer(path)
    return merge(shard.run() for shard in shards)


def _begun(header: Header, path: Path, number: int) -> "_Shard":
    try:
        demand_listed(header)
    except UsageError as error:
        raise _bad(path, number, str(error)) from None
    return _Shard(header)


@dataclass
class _Shard:
    """The lines from a header to its footer."""

    header: Header
    lines: list[Line] = field(default_factory=list)
    footer: Footer | None = None

    def __post_init__(self) -> None:
        self.tally = Tally(self.header)

    def add(self, record: Line) -> None:
        if self.footer is not None:
            raise UsageError("it comes after the footer")
        self.tally.demand_fitting(record)
        if isinstance(record, Footer):
            told = self.tally.contradiction(record)
            if told:
                raise UsageError(told)
            self.footer = record
            return
        self.tally.add(record)
        self.lines.append(record)

    def demand_footer(self, path: Path) -> None:
        if self.footer is None:
            raise UsageError(
                f"{path} is truncated: the run that was started {self.header.started:%Y-%m-%d %H:%M:%S} UTC has no footer, so it "
                "did not come to its end; run it again, or ask for a partial report."
            )

    def run(self) -> Run:
        return Run.of(self.header, self.lines, self.footer)


def _records(path: Path, partial: bool) -> Iterator[tuple[int, Line]]:
    content = read_bytes(path, "record", ": name one of attention-conformance, such as reports/records.jsonl")
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = decode(line)
        except NewerSchemaError as error:
            raise UsageError(f"{path}, line {number} cannot be read: {error}.") from None
        except UsageError as error:
            if number < len(lines):
                raise _bad(path, number, str(error)) from None
            if partial:
                return
            raise UsageError(
                f"{path} is truncated within line {number}: run again, or ask for a partial report ({_short(str(error))})."
            ) from None
        yield number, record


def _bad(path: Path, number: int, detail: str) -> UsageError:
    return UsageError(
        f"{path}, line {number} is no record: {_short(detail)}. The file is damaged or none of attention-conformance."
    )


def _short(detail: str) -> str:
    return detail if len(detail) <= TOLD else f"{detail[:TOLD]} … ({len(detail) - TOLD} more characters)"

"""An expectations file as text, block by block, so that what does not change keeps every character.

A block is an [[expected]] entry with the comment lines right above it; what stands before the first is the preamble.
"""

import itertools
import re
from collections.abc import Iterable

import tomlkit
from tomlkit.items import Array, Table

from conformance.errors import UsageError
from conformance.expectations.expectation import Entry, Expectation, ExpectedAnswer

_HEADING = re.compile(r"\s*\[\[\s*expected\s*\]\]")


class ExpectationsFile:
    """The text of the file of one implementation; ``where`` names it in messages."""

    def __init__(self, text: str, where: str, implementation: str) -> None:
        self._where = where
        self._preamble, self._blocks = _split(text)
        if not text:
            self._preamble = f"# Known failures of {implementation}. What no longer fails has to be removed."
        self._text = text
        self._removed: set[int] = set()
        self._changed = False

    def demand_blocks(self, count: int) -> None:
        """Raises UsageError unless the text was cut into ``count`` entries, as a TOML reader sees them."""
        if len(self._blocks) != count:
            raise UsageError(
                f"{self._where} has entries that do not begin with a line [[expected]], so it cannot be updated: write them so."
            )

    def replace(self, place: int, before: Entry, after: Entry | None) -> None:
        """Gives the entry at ``place`` (from 0) the cases of ``after``, or removes it."""
        if after == before:
            return
        self._changed = True
        if after is None:
            self._removed.add(place)
            return
        assert isinstance(after, Expectation), "an answer stays as it is, or goes"
        document = tomlkit.parse(self._blocks[place])
        entry: Table = document["expected"][0]
        entry["cases"] = _cases(after.cases)
        self._blocks[place] = tomlkit.dumps(document).strip("\n")

    def append(self, entries: Iterable[Entry]) -> None:
        """Adds entries at the end."""
        blocks = [_block(entry) for entry in entries]
        self._changed = self._changed or bool(blocks)
        self._blocks.extend(blocks)

    def text(self) -> str:
        """The whole file; the very text it was made of, where nothing changed."""
        if not self._changed:
            return self._text
        blocks = [block for place, block in enumerate(self._blocks) if place not in self._removed]
        return "\n\n".join([self._preamble, *blocks] if self._preamble else blocks) + "\n"


def _split(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines()
    starts = []
    for number, line in enumerate(lines):
        if _HEADING.match(line):
            while number and lines[number - 1].lstrip().startswith("#"):
                number -= 1
            starts.append(number)
    bounds = [0, *starts, len(lines)]
    preamble, *blocks = ("\n".join(lines[start:end]).strip("\n") for start, end in itertools.pairwise(bounds))
    return preamble, blocks


def _block(entry: Entry) -> str:
    table = tomlkit.table()
    if isinstance(entry, ExpectedAnswer):
        table["convention"] = entry.convention
        table["answer"] = entry.answer
    else:
        table["requirement"] = entry.requirement
        table["outcome"] = str(entry.outcome)
    table["reason"] = entry.reason
    if isinstance(entry, Expectation) and entry.cases != "all":
        table["cases"] = _cases(entry.cases)
    if isinstance(entry, Expectation) and entry.dtypes:
        table["dtypes"] = _array(entry.dtypes)
    entries = tomlkit.aot()
    entries.append(table)
    return tomlkit.dumps(tomlkit.document().add("expected", entries)).strip("\n")


def _cases(digests: tuple[str, ...] | str) -> Array | str:
    return _array(digests) if digests else "none"


def _array(words: tuple[str, ...] | str) -> Array:
    array = tomlkit.array()
    array.extend(words)
    return array.multiline(len(words) > 6)

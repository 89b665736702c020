"""The line of a record file that says what of an implementation's own code no problem reached."""

from collections.abc import Iterator

from conformance.records.data import Count, Data, Name

SHOWN_FUNCTIONS = 5  # of a file, that were never called


class Block(Data, frozen=True, kw_only=True):
    """Lines that were never run; ``condition`` is what they hang on, such as ``if Lk > 4096``, empty where it is nothing that
    stands above them."""

    file: str
    first: Count
    last: Count
    condition: str = ""

    @property
    def sentence(self) -> str:
        condition = f" ({self.condition})" if self.condition else ""
        several = self.last > self.first
        were, of_them = ("were", "them") if several else ("was", "it")
        return f"{self.file}: {lines_of(self.first, self.last)}{condition} {were} never run: nothing is known of {of_them}."


class Branch(Data, frozen=True, kw_only=True):
    """A ``condition`` that always had one ``answer``, true or false, where there is nothing else to run in the other case."""

    file: str
    line: Count
    condition: str
    answer: bool

    @property
    def sentence(self) -> str:
        return f"{self.file}: line {self.line} ({self.condition}) was always {'true' if self.answer else 'false'}."


class Function(Data, frozen=True, kw_only=True):
    """A function that was never called, or one that another tool has ``compiled``, so that nothing is known of its lines."""

    file: str
    name: str
    first: Count
    last: Count
    compiled: bool = False

    @property
    def words(self) -> str:
        return f"{self.name} ({lines_of(self.first, self.last)})"


class Unrun(Data, frozen=True, kw_only=True, tag_field="kind", tag="unrun"):
    """What of the ``files`` of an implementation was never run by the designed, golden and some random problems of all
    requirements, and the questions of all conventions: ``blocks`` of lines, ``branches`` and ``functions``. ``problems`` of all
    ``expected`` were put, not all where everything had been run before, or time was up; ``remark`` says what kept it from being
    measured, or measured to the end."""

    implementation: Name
    files: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    branches: tuple[Branch, ...] = ()
    functions: tuple[Function, ...] = ()
    problems: Count = 0
    expected: Count = 0
    remark: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """All sentences, by file."""
        return (*self._of_files(), *([self.remark] if self.remark else []))

    def _of_files(self) -> Iterator[str]:
        for file in self.files:
            found = [block.sentence for block in self.blocks if block.file == file]
            found += [branch.sentence for branch in self.branches if branch.file == file]
            yield from found or ([] if self._stops_short else [f"{file}: every line of what is called was run, in every branch."])
            for compiled, told in ((False, "never called"), (True, "compiled by another tool, which cannot be measured")):
                names = [one.words for one in self.functions if one.file == file and one.compiled is compiled]
                if names:
                    yield f"{file}: {_named(names, told)}"

    @property
    def _stops_short(self) -> bool:
        """Whether there was something that kept it from being measured at all."""
        return bool(self.remark) and not self.problems


def lines_of(first: int, last: int) -> str:
    return f"lines {first}–{last}" if last > first else f"line {first}"


def _named(words: list[str], told: str) -> str:
    if len(words) == 1:
        return f"function {words[0]} was {told}."
    left = len(words) - SHOWN_FUNCTIONS
    shown, last = (words[:SHOWN_FUNCTIONS], f"{left} more") if left > 0 else (words[:-1], words[-1])
    return f"functions {', '.join(shown)} and {last} were {told}."

"""A folder in which commands read damaged files, and what they may do: end with a code of the table, say one sentence of what
is wrong, write what they were told to where they were told to, and hand on no text that commands a terminal, a CI, a sheet or a
page.
"""

import contextlib
import csv
import io
import json
import re
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import click
from click.testing import CliRunner

from conformance.cli import Commands, main
from conformance.system.exit_codes import ExitCode
from tests.attacks.texts import MARKUP, ROOT

LONGEST_SENTENCE = 2_000  # characters; nobody reads more, and a hostile file may be of any length
OUT = "out"  # the folder that commands are told to write to
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OWN_COMMAND = re.compile(r"::(error|notice)( (file|line|title)=[^:]*)?::(?!PWNED)")
_NUMBER = re.compile(r"-(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)")


@dataclass(frozen=True)
class Ending:
    """How a command ended: its code, None where it raised; what it printed; what it raised, and where."""

    code: int | None
    output: str
    errors: str
    raised: str = ""


class Sandbox:
    """``root`` holds the folder of the commands, some levels deep, so that what climbs out is seen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "a" / "b" / "c" / "work"
        self.out = self.work / OUT
        self.out.mkdir(parents=True)

    def put(self, name: str, content: bytes) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.replace(ROOT.encode(), str(self.root).encode()))
        return path

    def run(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[Ending, list[str]]:
        """The command in this process, in the folder; how it ended, and what is wrong with that."""
        return self._watched(lambda: _command(words, environment), annotating=words[0] in ("annotate", "action"))

    def call(self, function: Callable[[], object]) -> tuple[Ending, list[str]]:
        """A function behind a command."""
        return self._watched(lambda: _called(function), annotating=False)

    def _watched(self, act: Callable[[], Ending], annotating: bool) -> tuple[Ending, list[str]]:
        before = self._outside()
        with contextlib.chdir(self.work):
            ending = act()
        faults = [*_of_ending(ending, annotating), *_of_output(ending, annotating)]
        if self._outside() != before:
            faults.append("it wrote outside the folder that it was given")
        faults += [f"{OUT}: {fault}" for path in sorted(self.out.rglob("*")) if path.is_file() for fault in _of_file(path)]
        shutil.rmtree(self.out)
        self.out.mkdir()
        return ending, faults

    def _outside(self) -> dict[str, tuple[int, int]]:
        """Every file but those in the folder for output, with size and time of change."""
        found = {}
        for path in self.root.rglob("*"):
            if not path.is_relative_to(self.out):
                status = path.lstat()
                found[str(path)] = (status.st_size, status.st_mtime_ns) if path.is_file() else (0, 0)
        return found


def _command(words: Sequence[str], environment: Mapping[str, str] | None) -> Ending:
    return _invoked(main, words, environment)


def _called(function: Callable[[], object]) -> Ending:
    """As a command of ours that calls it would end."""
    command = click.Command("function", callback=lambda: function() and None)
    return _invoked(Commands(commands=[command]), ["function"], None)


def _invoked(group: click.Group, words: Sequence[str], environment: Mapping[str, str] | None) -> Ending:
    result = CliRunner(env=environment).invoke(group, list(words))
    raised = "" if result.exception is None or isinstance(result.exception, SystemExit) else _told(result.exception)
    return Ending(None if raised else result.exit_code, result.stdout, result.stderr, raised)


def _told(error: BaseException) -> str:
    """The type, and the place in the suite that let it through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/conformance/" in frame.filename]
    place = f"{frames[-1].filename.rpartition('/conformance/')[2]}: {frames[-1].name}" if frames else "elsewhere"
    return f"{type(error).__name__} in {place}"


def _of_ending(ending: Ending, annotating: bool) -> Iterator[str]:
    if ending.raised:
        yield f"it raised {ending.raised}"
        return
    if ending.code not in {int(code) for code in ExitCode}:
        yield f"exit code {ending.code}"
    if "Traceback (most" in ending.output + ending.errors:
        yield "a traceback"
    if ending.code == ExitCode.USAGE_ERROR:
        told = ending.errors if ending.errors or not annotating else ending.output  # the action's sentence is an annotation
        lines = told.splitlines()
        if len(lines) != 1 or not lines[0].strip():
            yield f"{'several lines' if lines else 'nothing'} said in place of one sentence"
        if len(told) > LONGEST_SENTENCE:
            yield "the sentence is longer than anybody reads"


def _of_output(ending: Ending, annotating: bool) -> Iterator[str]:
    said = ending.output + ending.errors
    if CONTROLS.search(said):
        yield "control characters reach the terminal"
    if _DIRECTIONS.search(said):
        yield "characters that turn the direction of writing reach the terminal"
    if any(line.lstrip().startswith("::") and not (annotating and _OWN_COMMAND.match(line)) for line in lines_of_output(said)):
        yield "a line begins with ::, which a CI obeys"
    try:
        said.encode()
    except UnicodeEncodeError:
        yield "half a surrogate pair is printed"


def lines_of_output(text: str) -> list[str]:
    """As a runner of workflows cuts them: at carriage returns too."""
    return re.split(r"\r\n|\r|\n", text)


def _of_file(path: Path) -> Iterator[str]:
    """What is wrong with a file that was written, by its kind."""
    check = {".json": _of_json, ".xml": _of_xml, ".csv": _of_csv, ".html": _of_html, ".svg": _of_xml}.get(path.suffix)
    if check is None:
        return
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        yield f"a file {path.suffix} that is no UTF-8"
        return
    yield from check(text)


def _of_json(text: str) -> Iterator[str]:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        yield "a JSON file that is none"


def _of_xml(text: str) -> Iterator[str]:
    try:
        ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        yield "an XML file that is not well-formed"


def _of_csv(text: str) -> Iterator[str]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        yield "a CSV file that cannot be read"
        return
    if len({len(row) for row in rows}) > 1:
        yield "a CSV file of rows of several lengths"
    if any(cell[:1] in "=+-@\t\r" and cell and not _NUMBER.fullmatch(cell) for row in rows for cell in row):
        yield "a CSV cell that a sheet computes"


def _of_html(text: str) -> Iterator[str]:
    if MARKUP in text or "<img src=x" in text:
        yield "a page with markup of a record in it"

"""Record files that somebody has damaged, drawn by Hypothesis: bytes, lines, fields, texts, numbers, versions, footers."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
from hypothesis import strategies as st

from conformance.judging.verdict import Outcome
from conformance.records import Counts, Growth, Line, Picture
from conformance.records.schema import published
from conformance.records.unrun import Block, Branch, Function, Unrun
from conformance.system.exit_codes import ExitCode
from tests.attacks.texts import NO_NUMBERS, NUMBERS, TEXTS, VALUES
from tests.support import runs

REQUIREMENTS = ("ATT-OUT-001", "ATT-OUT-002", "ATT-MASK-001")
ANY = frozenset(int(code) for code in ExitCode)
REFUSED = frozenset({int(ExitCode.USAGE_ERROR)})
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Damaged:
    """A file: ``kind`` is how it was damaged, ``expected`` the exit codes with which a command that reads it may end."""

    kind: str
    content: bytes
    expected: frozenset[int] = ANY


def lines_of(shard: str = "") -> tuple[Line, ...]:
    """A run of two implementations with a record of every kind."""
    wrong: dict[str, Any] = {"outcome": Outcome.WRONG_VALUE, "status": "unexpected", "counts": Counts(designed=5, failed=2)}
    again = "attention-conformance reproduce 'attention …' --implementation flawed"
    cells = ((1.0, math.nan), (0.5, math.inf))
    picture = Picture(
        head=(0, 1), size=(2, 2), rows=(0, 1), columns=(0, 1), got=cells, want=cells, r=cells, keys=(0, 1), visible=("#.", "##")
    )
    return (
        runs.header(requirements=REQUIREMENTS, conventions={"CON-EMPTY-ROW": ("attention",)}, shard=shard),
        runs.item("fine", accuracy=runs.accuracy(0.1, 0.25), observations={"repeats_bitwise": True, "note": "a", "n": 2}),
        runs.item("flawed", **wrong, accuracy=runs.accuracy(0.2, 9.0),
                  dtypes=runs.in_dtypes(float32="WRONG_VALUE", float16="PASS")),
        runs.case(1, "flawed", outcome="WRONG_VALUE", r=9.0, index=(0, 1), got=1.5, want=1.0, budget=0.1,
                  message="At (0, 1): got 1.5.", repro=again, picture=picture),
        runs.item("flawed", "ATT-OUT-002", outcome=Outcome.ERROR, reason="raises for booleans"),
        runs.case(2, "flawed", "ATT-OUT-002", outcome="ERROR", status="expected", message="TypeError: no booleans"),
        runs.item("flawed", "ATT-MASK-001", outcome=Outcome.UNSUPPORTED, reason="lacks bias", lacking={"bias": 3},
                  without=("bias",)),
        runs.item("fine", "ATT-MASK-001", outcome=Outcome.SKIPPED, reason="listed in the skips file"),
        runs.case(3, "fine", r=0.5),
        runs.item("fine", "ATT-OUT-002"),
        runs.convention(),
        runs.convention("flawed", declared="zeros", observed="nan", agrees=False, message="It declares zeros.",
                        where={"nan": ("float32",)}),
        runs.timing(ratio_low=0.98, ratio_high=1.02),
        runs.timing("flawed", outcome=Outcome.WRONG_VALUE, median_seconds=None, ratio=None),
        Growth(implementation="flawed", operation="attention", dtype="float32", outcome=Outcome.PASS, lengths=(256, 512, 1024),
               seconds=(0.001, 0.004, 0.016), peak_bytes=(1000, 2000, 4000), time_exponent=2.0, memory_exponent=1.0),
        runs.self_comparison(1.01),
        runs.diagnosis("flawed"),
        Unrun(implementation="flawed", files=("mine.py",), blocks=(Block(file="mine.py", first=3, last=4, condition="if x"),),
              branches=(Branch(file="mine.py", line=7, condition="if y", answer=True),),
              functions=(Function(file="mine.py", name="other", first=9, last=12),), problems=5, expected=9),
    )  # fmt: skip


@cache
def undamaged(shard: str = "") -> tuple[str, ...]:
    """The lines of a record file in which nothing is wrong."""
    with TemporaryDirectory() as folder:
        path = runs.write(Path(folder) / "records.jsonl", *lines_of(shard), exit_code=ExitCode.UNEXPECTED)
        *lines, footer = path.read_text(encoding="utf-8").splitlines()
    return (*lines, json.dumps({**json.loads(footer), "finished": "2026-11-29T12:01:00Z"}))


def first_shard(content: bytes) -> tuple[bytes, bytes]:
    """A shard 1/2 that holds nothing, and ``content`` as the shard 2/2, so that they agree in all that is not damaged."""
    second = content.replace(b'"shard":""', b'"shard":"2/2"').replace(b'"shard": ""', b'"shard": "2/2"')
    header = second.partition(b"\n")[0].replace(b'"2/2"', b'"1/2"')
    footer = {"kind": "footer", "finished": "2026-11-29T12:01:00Z", "counts": {}, "outcomes": {}, "unexpected": 0, "exit_code": 0}
    return header + b"\n" + json.dumps(footer).encode() + b"\n", second


def whole(lines: list[str] | tuple[str, ...]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


# Bytes

BYTES = (b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r", b"\x1b", b"{", b'"', b"\\")
FOREIGN = (
    b"PK\x03\x04", b"\x1f\x8b\x08", b"<?xml version='1.0'?>", b"null", b"[]", b"{}", b'"x"', b"1", b"[" * 100_000,
    b'{"a":' * 100_000, b'{"kind":"header"}', b'{"kind":"footer"}', b"%PDF-1.4",
)  # fmt: skip


def truncated(draw: Draw) -> Damaged:
    """Cut after any byte: within a string, a number, a character, a line, or between two."""
    content = whole(undamaged()).rstrip(b"\n")
    return Damaged("truncated", content[: draw(st.integers(0, len(content) - 1))], REFUSED)


def bytes_changed(draw: Draw) -> Damaged:
    content = bytearray(whole(undamaged()))
    for _ in range(draw(st.integers(1, 3))):
        place, kind = draw(st.integers(0, len(content) - 1)), draw(st.sampled_from(("flip", "put", "cut", "zero", "high")))
        if kind == "flip":
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "put":
            content[place:place] = draw(st.sampled_from(BYTES))
        elif kind == "cut":
            del content[place : place + draw(st.integers(1, 40))]
        else:
            content[place] = 0 if kind == "zero" else 0xFF
    return Damaged("bytes changed", bytes(content))


def encoded_otherwise(draw: Draw) -> Damaged:
    text = "\n".join(undamaged()) + "\n"
    how = draw(st.sampled_from(("utf-16", "utf-32", "utf-8-sig", "crlf", "cr", "blank", "spaces", "empty", "newlines", "zeros")))
    content = {
        "crlf": text.replace("\n", "\r\n").encode(), "cr": text.replace("\n", "\r").encode(), "empty": b"",
        "blank": text.replace("\n", "\n\n \n").encode(), "spaces": b" " * 100_000 + text.encode(), "newlines": b"\n" * 10_000,
        "zeros": bytes(10_000),
    }.get(how) if how[:3] != "utf" else text.encode(how)  # fmt: skip
    assert content is not None
    return Damaged(f"encoded otherwise: {how}", content, ANY if how in ("crlf", "blank", "spaces", "utf-8-sig") else REFUSED)


def foreign(draw: Draw) -> Damaged:
    texts = st.text(max_size=200).map(lambda text: text.encode(errors="replace"))
    return Damaged("foreign", draw(st.one_of(st.binary(max_size=200), texts, st.sampled_from(FOREIGN))), REFUSED)


# Lines


def lines_lost(draw: Draw) -> Damaged:
    lines = list(undamaged())
    for _ in range(draw(st.integers(1, 3))):
        del lines[draw(st.integers(0, len(lines) - 1))]
    return Damaged("lines lost", whole(lines), REFUSED)


def lines_swapped(draw: Draw) -> Damaged:
    lines = list(undamaged())
    first, second = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    lines[first], lines[second] = lines[second], lines[first]
    ends = {0, len(lines) - 1} & {first, second}
    return Damaged("lines swapped", whole(lines), REFUSED if ends and first != second else ANY)


def lines_doubled(draw: Draw) -> Damaged:
    lines = list(undamaged())
    line = draw(st.sampled_from(lines))
    lines.insert(draw(st.integers(0, len(lines))), line)
    return Damaged("lines doubled", whole(lines), REFUSED)


def lines_joined(draw: Draw) -> Damaged:
    content = whole(undamaged())
    places = [match.start() for match in re.finditer(b"\n", content)][:-1]
    place = draw(st.sampled_from(places))
    between = draw(st.sampled_from((b"", b" ", b",", b"\x0b", b"\\n")))
    return Damaged("lines joined", content[:place] + between + content[place + 1 :], REFUSED)


def lines_split(draw: Draw) -> Damaged:
    content = whole(undamaged())
    place = draw(st.integers(1, len(content) - 3))
    if content[place - 1 : place] == b"\n" or content[place : place + 1] == b"\n":
        return Damaged("lines split between two", content[:place] + b"\n" + content[place:])
    return Damaged("lines split", content[:place] + b"\n" + content[place:], REFUSED)


def lines_of_another(draw: Draw) -> Damaged:
    """A line that is in order and does not belong: of requirements and implementations that the header lacks."""
    lines = list(undamaged())
    place = draw(st.integers(1, len(lines) - 2))
    field, name = draw(st.sampled_from((("implementation", "another"), ("requirement", "ATT-OUT-999"))))
    changed = re.sub(rf'"{field}":"[^"]*"', f'"{field}":"{name}"', lines[place], count=1)
    expected = ANY if changed == lines[place] else REFUSED
    return Damaged("lines of another", whole([*lines[:place], changed, *lines[place + 1 :]]), expected)


# Fields


@cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(published()))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field within a line."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield (*path, name)
            yield from places(entry, (*path, name))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield (*path, number)
            yield from places(entry, (*path, number))


@cache
def _all_places(*types: type) -> tuple[tuple[int, tuple[Any, ...]], ...]:
    """Lines and paths of all fields, or of those whose values are of ``types``."""
    lines = [json.loads(line) for line in undamaged()]
    found = ((number, path) for number, line in enumerate(lines) for path in places(line))
    return tuple((number, path) for number, path in found if not types or type(_at(lines[number], path)) in types)


@cache
def _texts() -> tuple[str, ...]:
    """The texts that the file may have otherwise and still be one."""
    found = {_at(json.loads(undamaged()[number]), path) for number, path in _all_places(str)}
    words = {json.loads(line)["kind"] for line in undamaged()} | {*map(str, Outcome), "expected", "unexpected"}
    return tuple(sorted(text for text in found - words if text))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(number: int, path: tuple[Any, ...], value: Any) -> tuple[list[str], Any]:
    """The file's lines with another value in one place, and the line that was changed."""
    lines = list(undamaged())
    line = json.loads(lines[number])
    _at(line, path[:-1])[path[-1]] = value
    lines[number] = json.dumps(line)
    return lines, line


def types_changed(draw: Draw) -> Damaged:
    """A field of another type; what the published schema forbids must be refused."""
    number, path = draw(st.sampled_from(_all_places()))
    lines, line = _with(number, path, draw(st.sampled_from(VALUES)))
    kind = json.loads(undamaged()[number])["kind"]
    field = ".".join(str(step) if isinstance(step, str) else "n" for step in path)
    return Damaged(f"type of {kind}.{field}", whole(lines), ANY if _validator().is_valid(line) else REFUSED)


def fields_changed(draw: Draw) -> Damaged:
    """A field that is gone, has another name, comes twice, or nobody knows."""
    number, path = draw(st.sampled_from([place for place in _all_places() if isinstance(place[1][-1], str)]))
    lines = list(undamaged())
    line = json.loads(lines[number])
    inner, how = _at(line, path[:-1]), draw(st.sampled_from(("gone", "renamed", "twice", "added")))
    value = inner[path[-1]]
    if how in ("gone", "renamed"):
        del inner[path[-1]]
    if how == "renamed":
        inner[draw(st.sampled_from((*TEXTS, path[-1].upper(), "__class__")))] = value
    if how == "added":
        inner[draw(st.sampled_from(TEXTS))] = draw(st.sampled_from(VALUES))
    lines[number] = json.dumps(line)
    if how == "twice":
        lines[number] = lines[number].replace(f'"{path[-1]}":', f'"{path[-1]}":null,"{path[-1]}":', 1)
    return Damaged(f"fields {how}", whole(lines), ANY if _validator().is_valid(line) else REFUSED)


def numbers_changed(draw: Draw) -> Damaged:
    """Numbers beyond every type, and what is no number of JSON."""
    number, path = draw(st.sampled_from(_all_places(int, float)))
    text = draw(st.sampled_from((*NUMBERS, *NUMBERS, *NO_NUMBERS)))
    lines, _ = _with(number, path, "@number@")
    lines[number] = lines[number].replace('"@number@"', text)
    return Damaged("numbers changed", whole(lines), REFUSED if text in NO_NUMBERS else ANY)


def texts_changed(draw: Draw) -> Damaged:
    """A hostile text in one place, so that it may contradict others."""
    number, path = draw(st.sampled_from(_all_places(str)))
    lines, _ = _with(number, path, draw(st.sampled_from(TEXTS)))
    return Damaged("texts changed", whole(lines))


def texts_replaced(draw: Draw) -> Damaged:
    """A hostile text in place of another wherever that stands, in keys too, so that the file agrees with itself."""
    old, new = draw(st.sampled_from(_texts())), draw(st.sampled_from(TEXTS))
    lines = [line.replace(json.dumps(old, ensure_ascii=False), json.dumps(new)) for line in undamaged()]
    return Damaged("texts replaced", whole(lines))


def nested(draw: Draw) -> Damaged:
    number, path = draw(st.sampled_from(_all_places()))
    depth, (left, right) = draw(st.sampled_from((50, 2_000, 200_000))), draw(st.sampled_from((("[", "]"), ('{"a":', "}"))))
    lines, _ = _with(number, path, "@nested@")
    closed = draw(st.booleans())
    lines[number] = lines[number].replace('"@nested@"', left * depth + "1" + right * (depth if closed else 0))
    return Damaged("nested", whole(lines), REFUSED)


# Versions and footers


def versions(draw: Draw) -> Damaged:
    header = json.loads(undamaged()[0])
    schema = draw(st.sampled_from((2, 3, 10**30, 0, -1, "1", 1.5, None, True, [1], "2", 1e9)))
    lines = [json.dumps({**header, "schema": schema, **({"new": 1} if draw(st.booleans()) else {})}), *undamaged()[1:]]
    return Damaged("versions", whole(lines), REFUSED)


def footers_that_lie(draw: Draw) -> Damaged:
    """Counts, outcomes and an exit code that the lines before do not have."""
    *lines, last = undamaged()
    footer = json.loads(last)
    what = draw(st.sampled_from(("counts", "outcomes", "exit_code", "unexpected", "fewer unexpected")))
    if what == "counts":
        name = draw(st.sampled_from(sorted(footer["counts"])))
        footer["counts"][name] += draw(st.sampled_from((-1, 1, 1000, 10**18)[0 if footer["counts"][name] else 1 :]))
    elif what == "outcomes":
        outcome = draw(st.sampled_from([str(outcome) for outcome in Outcome]))
        footer["outcomes"][outcome] = footer["outcomes"].get(outcome, 0) + draw(st.sampled_from((1, 7, 10**6)))
    elif what == "exit_code":
        footer["exit_code"] = draw(st.sampled_from((0, 2)))  # with unexpected results; 3 says nothing, and is no lie
    else:
        most = footer["unexpected"]
        footer["unexpected"] = draw(st.integers(0, most - 1)) if what.startswith("fewer") else most + draw(st.integers(1, 10**9))
    expected = ANY if what == "unexpected" else REFUSED  # what is neither offered nor declared counts besides
    return Damaged(f"footer that lies: {what}", whole([*lines, json.dumps(footer)]), expected)


def joined_with_another(draw: Draw) -> Damaged:
    """Two files, one after the other: two shards are a run, a run twice is none."""
    parts = [undamaged(draw(st.sampled_from(("", "1/2", "2/2")))) for _ in range(2)]
    return Damaged("joined", b"".join(map(whole, parts)))


KINDS: tuple[Callable[[Draw], Damaged], ...] = (
    truncated, truncated, bytes_changed, bytes_changed, encoded_otherwise, foreign, lines_lost, lines_swapped, lines_doubled,
    lines_joined, lines_split, lines_of_another, *(types_changed,) * 4, fields_changed, fields_changed, numbers_changed,
    numbers_changed, texts_changed, texts_changed, *(texts_replaced,) * 4, nested, versions, footers_that_lie,
    joined_with_another,
)  # fmt: skip


@st.composite
def damaged_records(draw: Draw) -> Damaged:
    return draw(st.sampled_from(KINDS))(draw)

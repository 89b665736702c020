"""What the writer writes can be read, whatever it was given, and nothing measured is lost for the sake of one record."""

import enum
import math
import tempfile
import types
import typing
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Case, Header, Item, RecordWriter, decode, encode, read_records
from conformance.records.record_types import LISTS
from conformance.system.exit_codes import ExitCode
from tests.support import runs

NAMES = ("fine", "flawed")
REQUIREMENTS = ("ATT-OUT-001", "ATT-OUT-002")
HEADER = runs.header(NAMES, REQUIREMENTS, selection="a part")
TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(
    ["", "\ud800", "a\udcff/b", "\0", "::error::", "line\nline", "\u2028"]
)
FLOATS = st.floats() | st.sampled_from([-7e-7, -math.inf, np.float64(0.25), np.float32(-1)])
INTEGERS = st.integers(-3, 9) | st.sampled_from([10**30, -(10**400), np.int64(4), np.int64(-4), True])


def wild(kind: Any) -> st.SearchStrategy[Any]:
    """Values that the annotation of a field is about, within its constraints or not."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return wild(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(wild, arguments))
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(wild(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(wild, arguments))
    if origin is dict:
        return st.dictionaries(wild(arguments[0]), wild(arguments[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return built(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    known = {str: TEXTS, float: FLOATS, int: INTEGERS, bool: st.booleans() | st.just(np.True_), type(None): st.none()}
    if kind is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    return st.datetimes() if kind is datetime else known[kind]


def built(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Records of a kind, some fields of which are left to their defaults; impossible ones, which cannot be made, are not."""
    hints = typing.get_type_hints(kind, include_extras=True)
    named = {"implementation": st.sampled_from([*NAMES, "stranger"]), "requirement": st.sampled_from([*REQUIREMENTS, "ATT-X-1"])}
    fields = {name: named.get(name, wild(hints[name])) for name in kind.__struct_fields__}
    required = {name: fields[name] for name in kind.__struct_fields__ if _is_required(kind, name)}
    optional = {name: strategy for name, strategy in fields.items() if name not in required}
    values = st.fixed_dictionaries(required, optional=optional)
    return values.map(lambda given: _made(kind, given)).filter(lambda made: made is not None)


def _is_required(kind: type[msgspec.Struct], name: str) -> bool:
    return next(field.required for field in msgspec.structs.fields(kind) if field.name == name)


def _made(kind: type[msgspec.Struct], values: dict[str, Any]) -> Any:
    try:
        return kind(**values)
    except (ValueError, TypeError, OverflowError):
        return None


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[*HealthCheck])
@given(st.lists(st.sampled_from(sorted(LISTS, key=str)).flatmap(built), max_size=4), st.sampled_from([*ExitCode]))
def test_every_file_that_is_written_can_be_read(records: list[Any], code: ExitCode) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        writer = RecordWriter(path)
        writer.write(HEADER)
        for record in records:
            writer.write(record)
        writer.finish(code)
        run = read_records(path)
    kept = sum(len(getattr(run, name)) for name in LISTS.values())
    assert kept + len(writer.refused) == len(records)
    assert kept >= sum(record.implementation in NAMES and not isinstance(record, Item | Case) for record in records)


@pytest.mark.parametrize("seconds", [-7.4e-7, -1.0, np.float64(-0.1)])
def test_time_before_the_beginning_is_none(tmp_path: Path, seconds: float) -> None:
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item(seconds=seconds, outcome=Outcome.CRASH, status="unexpected"))
    assert (run.items[0].seconds, run.items[0].outcome) == (0.0, Outcome.CRASH)


def test_text_that_utf8_lacks_is_kept_as_escapes_in_names_too(tmp_path: Path) -> None:
    name = "caf\udce9.py:attention"
    run = runs.run(tmp_path, runs.header([name]), runs.item(name, reason="half of \ud83d"))
    assert run.items[0].implementation == "caf\\udce9.py:attention" == run.header.implementations[0].name
    assert run.items[0].reason == "half of \\ud83d"


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    values = {"repeats": np.bool_(True), "bits": np.int64(3), "share": np.float32(0.5)}
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item(seconds=np.float32(0.5), observations=values))
    assert run.items[0].observations == {"repeats": True, "bits": 3, "share": 0.5}
    assert run.items[0].seconds == 0.5


def test_a_number_that_a_timing_lacks_costs_that_number_alone(tmp_path: Path) -> None:
    run = runs.run(tmp_path, runs.header(["fine"], requirements=()), runs.timing(ratio=math.inf, percent_of_matmul=math.nan))
    assert (run.timings[0].ratio, run.timings[0].percent_of_matmul, run.timings[0].median_seconds) == (None, None, 0.002)


def test_a_result_that_cannot_be_written_is_an_error_of_its_own_pair(tmp_path: Path) -> None:
    lines = runs.header(NAMES, REQUIREMENTS), *(runs.item("fine", identifier) for identifier in REQUIREMENTS)
    broken = runs.item("flawed", REQUIREMENTS[0], outcome="A_MESS", reason=object())
    run = runs.run(tmp_path, *lines, broken, runs.item("flawed", REQUIREMENTS[1]))
    (item,) = run.unexpected
    assert (item.requirement, item.implementation, item.outcome) == (REQUIREMENTS[0], "flawed", Outcome.ERROR)
    assert item.reason.startswith("the suite failed here: its record could not be written: ")
    assert run.exit_code == ExitCode.UNEXPECTED
    assert run.missing == {}


def test_a_case_that_cannot_be_written_keeps_its_outcome(tmp_path: Path) -> None:
    broken = runs.case(1, outcome="WRONG_VALUE", index=("here",))
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item(**runs.FAILS), broken)
    (case,) = run.cases
    assert (case.outcome, case.status, case.text) == (Outcome.WRONG_VALUE, "unexpected", broken.text)
    assert "could not be written" in case.message


def test_what_no_reader_would_take_is_left_out_and_told(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "records.jsonl") as writer:
        for record in (runs.header(["fine"]), runs.item(), runs.item(**runs.FAILS), runs.item("other"), HEADER):
            writer.write(record)
        assert writer.finish(ExitCode.AS_EXPECTED).exit_code == ExitCode.INCONCLUSIVE
    assert [sentence.partition(": ")[2] for sentence in writer.refused] == [
        "it is a second item of ATT-OUT-001 on fine in one run.",
        "the header does not list the implementation 'other'.",
        "it is a second header.",
    ]
    assert len(read_records(writer.path).items) == 1


def test_a_header_that_cannot_be_written_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header(["fine"]), runs.item())
    before = path.read_bytes()
    with pytest.raises(UsageError, match="first or last line cannot be"), RecordWriter(path) as writer:
        writer.write(runs.header(["fine"], tier="no tier"))
    assert path.read_bytes() == before


def test_encode_gives_lines_that_decode_reads_where_no_writer_is(tmp_path: Path) -> None:
    assert decode(encode(runs.item(seconds=-1.0, reason="\ud800"))) == runs.item(seconds=0.0, reason="\\ud800")
    assert isinstance(decode(encode(HEADER)), Header)

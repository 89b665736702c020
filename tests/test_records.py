"""Record files: what is written is read, the published schema describes it, and bad files are refused with a sentence."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Counts, Line, RecordWriter, current_environment, decode, encode, merge, read_records
from conformance.records.schema import published, schema_text
from conformance.system.exit_codes import FROM_PYTEST, ExitCode, exit_code
from tests.support import runs

RECORDS: tuple[Line, ...] = (
    runs.header(),
    runs.item(accuracy=runs.accuracy(0.0, 0.5, math.inf), observations={"repeats_bitwise": True, "note": "a", "n": 2}),
    runs.item("flawed", outcome=Outcome.WRONG_VALUE, status="unexpected", counts=Counts(golden=1, designed=2, failed=1)),
    runs.case(1, index=(0, 1, 2), r=0.5, got=1.5, want=1.25, budget=0.5),
    runs.case(2, "flawed", outcome="NONFINITE", got=math.nan, want=-math.inf, r=math.inf, message="At (0,): got nan."),
    runs.convention(declared=None, agrees=None),
    runs.timing(),
    runs.timing("flawed", outcome=Outcome.SKIPPED, median_seconds=None, ratio=None, percent_of_matmul=None),
    runs.diagnosis("flawed"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return runs.write(tmp_path / "records.jsonl", *RECORDS, exit_code=ExitCode.UNEXPECTED)


def damage(path: Path, number: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines()
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_text("\n".join(lines) + "\n")


def refusal(path: Path, partial: bool = False) -> str:
    with pytest.raises(UsageError) as refused:
        read_records(path, partial)
    return str(refused.value)


# Writing and reading


def test_what_is_written_is_read(path: Path) -> None:
    run = read_records(path)
    assert run.headers == (RECORDS[0],)
    assert run.items == RECORDS[1:3]
    assert run.cases[0] == RECORDS[3]
    assert run.conventions == (RECORDS[5],)
    assert run.timings == RECORDS[6:8]
    assert run.diagnoses == (RECORDS[8],)
    assert run.exit_code == 1
    assert [item.implementation for item in run.unexpected] == ["flawed"]


def test_numbers_that_json_lacks_come_back(path: Path) -> None:
    nonfinite = read_records(path).cases[1]
    assert nonfinite.got is not None and math.isnan(nonfinite.got)
    assert (nonfinite.want, nonfinite.r) == (-math.inf, math.inf)
    assert read_records(path).items[0].accuracy[0].max == math.inf
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_footer_counts(path: Path) -> None:
    footer = json.loads(path.read_text().splitlines()[-1])
    assert footer["counts"] == {
        "items": 2,
        "cases": 2,
        **dict.fromkeys(("growths", "self_comparisons", "unrun"), 0),
        "conventions": 1,
        "timings": 2,
        "diagnoses": 1,
    }
    assert footer["outcomes"] == {"PASS": 1, "WRONG_VALUE": 1}
    assert (footer["unexpected"], footer["exit_code"]) == (1, 1)


def test_a_convention_that_is_not_as_declared_is_unexpected(tmp_path: Path) -> None:
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item(), runs.convention(observed="nan", agrees=False), runs.convention())
    assert run.footers[0].unexpected == 1
    assert [convention.observed for convention in run.unexpected_conventions] == ["nan"]


def test_every_kind_obeys_the_published_schema(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(published()))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"header", "item", "case", "convention", "timing", "diagnosis", "footer"}
    for line in lines:
        validator.validate(line)
        assert list(validator.iter_errors({**line, "surplus": 1}))
        assert list(validator.iter_errors({name: value for name, value in line.items() if name != "kind"}))
    assert list(validator.iter_errors({name: value for name, value in lines[0].items() if name != "schema"}))


def test_published_schema_is_fresh() -> None:
    assert json.loads(published()) == json.loads(schema_text()), "run python -m conformance.records.schema"
    jsonschema.Draft202012Validator.check_schema(json.loads(published()))


def test_lines_travel_one_by_one() -> None:
    for record in (RECORDS[1], RECORDS[3], RECORDS[5], RECORDS[6], RECORDS[8]):
        assert decode(encode(record).decode()) == record


def test_a_process_that_dies_loses_nothing_recorded(tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from tests.support import runs\n"
        "from conformance.records import RecordWriter\n"
        "writer = RecordWriter(Path(sys.argv[1]))\n"
        "for record in (runs.header(), runs.item(), runs.case(3)):\n"
        "    writer.write(record)\n"
        "os._exit(11)\n"
    )
    path = tmp_path / "deep" / "records.jsonl"
    ended = subprocess.run([sys.executable, "-c", script, str(path), str(Path(__file__).parent.parent)], check=False)
    assert ended.returncode == 11
    assert "truncated" in refusal(path)
    run = read_records(path, partial=True)
    assert (len(run.items), len(run.cases), run.is_complete) == (1, 1, False)


def test_an_earlier_file_survives_a_run_that_never_began(path: Path) -> None:
    before = path.read_bytes()
    with RecordWriter(path):
        pass
    assert path.read_bytes() == before


def test_unwritable_place_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"), RecordWriter(tmp_path / "file" / "records.jsonl") as writer:
        writer.write(runs.header())


# Bad files


def test_missing_and_empty_files(tmp_path: Path) -> None:
    assert "nowhere.jsonl cannot be read: No such file" in refusal(tmp_path / "nowhere.jsonl")
    (tmp_path / "empty").write_text("")
    assert "is empty" in refusal(tmp_path / "empty")


@pytest.mark.parametrize("content", ["Dear reader,\nthis is a letter.\n", '{"some": "json"}\n', "[1, 2]\n", '{"kind": "item"}\n'])
def test_foreign_files(tmp_path: Path, content: str) -> None:
    (tmp_path / "foreign").write_text(content)
    assert "line 1 is no record" in refusal(tmp_path / "foreign")
    assert "line 1 is no record" in refusal(tmp_path / "foreign", partial=True)


def test_truncated_file(path: Path) -> None:
    whole = path.read_bytes()
    without_footer = whole[: whole.rstrip().rindex(b"\n") + 1]
    path.write_bytes(without_footer)
    assert "truncated" in refusal(path)
    assert len(read_records(path, partial=True).diagnoses) == 1
    path.write_bytes(without_footer[:-20])
    assert "truncated within line 9" in refusal(path)
    assert len(read_records(path, partial=True).diagnoses) == 0


def test_newer_schema(path: Path) -> None:
    damage(path, 1, '"schema":1', '"schema":2')
    assert "line 1" in refusal(path)
    assert "records schema 2" in refusal(path)
    assert refusal(path).endswith("upgrade attention-conformance.")
    assert "damaged" not in refusal(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "pipe is no regular file" in refusal(tmp_path / "pipe")


def test_a_second_item_of_a_pair(tmp_path: Path) -> None:
    lines = runs.header(), runs.item(), runs.item("flawed"), runs.item()
    path = tmp_path / "twice.jsonl"
    path.write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    assert "line 4 is no record: it is a second item of ATT-OUT-001 on fine" in refusal(path)


def test_a_line_of_any_length_is_told_briefly(path: Path) -> None:
    damage(path, 4, '"implementation":"fine"', f'"implementation":"{"o" * 4000}"')
    assert len(refusal(path)) < 600 + len(str(path))
    assert "characters) …" in refusal(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"outcome":"PASS"', '"outcome":"FINE"', "outcome"),
        ('"stratum":"designed"', '"stratum":"drawn"', "stratum"),
        ('"text":', '"txet":', "txet"),
        ('"r":0.5', '"r":"large"', "r"),
        ('"kind":"case"', '"kind":"crate"', "crate"),
        ('"r":0.5', '"r":', "malformed"),
        ('"implementation":"fine"', '"implementation":"other"', "'other'"),
        ('"requirement":"ATT-OUT-001"', '"requirement":"ATT-OUT-999"', "'ATT-OUT-999'"),
    ],
)
def test_malformed_line(path: Path, old: str, new: str, told: str) -> None:
    damage(path, 4, old, new)
    assert "line 4 is no record" in refusal(path)
    assert told in refusal(path)


def test_not_utf8(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"flawed", b"fl\xe4wed")
    path.write_bytes(b"".join(lines))
    assert "line 3 is no record" in refusal(path)


def test_lost_line_is_noticed(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    assert "line 9 is no record: the footer counts" in refusal(path)


def test_line_after_the_footer(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[3]]))
    assert "after the footer" in refusal(path)


# Shards


def shards(tmp_path: Path, *second: Line, **header: object) -> list[Path]:
    first = [
        runs.header(seed=1, selection="a part"),
        runs.item("flawed", counts=Counts(designed=2, random=5), examples=5, seconds=1.0, accuracy=runs.accuracy(0.5)),
        runs.case(1, "flawed"),
    ]
    return [
        runs.write(tmp_path / "a.jsonl", *first),
        runs.write(
            tmp_path / "b.jsonl",
            runs.header(**{"seed": 2, "selection": "a part", **header}),
            *second,
            exit_code=ExitCode.UNEXPECTED,
        ),
    ]


SECOND = (
    runs.item(
        "flawed", outcome=Outcome.WRONG_VALUE, status="unexpected", reason="b", counts=Counts(designed=1, random=4, failed=1),
        examples=4, seconds=2.0, accuracy=runs.accuracy(3.0),
    ),
    runs.case(2, "flawed", outcome="WRONG_VALUE"),
    runs.item(),
)  # fmt: skip


def test_shards_merge(tmp_path: Path) -> None:
    run = merge(map(read_records, shards(tmp_path, *SECOND)))
    merged = next(item for item in run.items if item.implementation == "flawed")
    assert (merged.outcome, merged.status, merged.reason) == (Outcome.WRONG_VALUE, "unexpected", "b")
    assert merged.counts == Counts(designed=3, random=9, failed=1)
    assert (merged.examples, merged.seconds) == (9, 3.0)
    assert (merged.accuracy[0].count, merged.accuracy[0].max) == (2, 3.0)
    assert len(run.items) == 2 and len(run.cases) == 2
    assert run.exit_code == 1


def test_a_shard_that_skipped_does_not_hide_a_pass(tmp_path: Path) -> None:
    run = merge(map(read_records, shards(tmp_path, runs.item("flawed", outcome=Outcome.UNSUPPORTED))))
    assert [item.outcome for item in run.items] == [Outcome.PASS]


def test_joined_files_are_one_run(tmp_path: Path) -> None:
    parts = shards(tmp_path, *SECOND)
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    assert read_records(joined) == merge(map(read_records, parts))


def test_joined_files_must_each_be_whole(tmp_path: Path) -> None:
    parts = shards(tmp_path, *SECOND)
    lines = parts[0].read_bytes().splitlines(keepends=True)
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(b"".join(lines[:-1]) + parts[1].read_bytes())
    assert "truncated" in refusal(joined)


@pytest.mark.parametrize(
    ("second", "header", "told"),
    [
        ([runs.case(1, "flawed")], {}, "The designed case"),
        ([runs.item("flawed", counts=Counts(random=1))], {"seed": 1}, "random part of ATT-OUT-001 on flawed"),
        ([], {"tier": "quick"}, "different tier"),
        ([], {"specification": "2.0"}, "different specification"),
        ([], {"implementations": (runs.implementation("flawed", framework_version="1.0"),)}, "framework_version"),
    ],
)
def test_what_is_no_shard_is_refused(tmp_path: Path, second: list[Line], header: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        merge(map(read_records, shards(tmp_path, *second, **header)))


def test_the_first_case_of_both_shards_is_the_one_that_is_named(tmp_path: Path) -> None:
    cases = [runs.case(number, "flawed") for number in (5, 3, 9, 7)]
    paths = [runs.write(tmp_path / f"{name}.jsonl", runs.header(), *cases) for name in "ab"]
    with pytest.raises(UsageError, match=f"The designed case {cases[0].id} on flawed stands in 2"):
        merge(map(read_records, paths))


# Whether a run may be cited


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (runs.header(["fine"]), ""),
        (runs.header(["fine"], tier="exhaustive"), ""),
        (runs.header(["fine"], tier="quick"), "tier quick"),
        (runs.header(["fine"], tier="custom"), "tier custom"),
        (runs.header(["fine", "flawed"]), "Only 1 of 2"),
    ],
)
def test_what_is_a_conformance_result(tmp_path: Path, header: Line, told: str) -> None:
    reason = runs.run(tmp_path, header, runs.item()).not_conformance
    assert told in reason
    assert bool(reason) == bool(told)


def test_exit_codes() -> None:
    assert exit_code(unexpected=0, enough_cases=True) == 0
    assert exit_code(unexpected=2, enough_cases=False) == 1
    assert exit_code(unexpected=0, enough_cases=False) == 3
    assert FROM_PYTEST[5] == 3, "a run without a test is no success"
    assert FROM_PYTEST[4] == 2
    assert all(code.meaning for code in ExitCode)


def test_environment_is_told() -> None:
    environment = current_environment(("numpy", "no-such-package"))
    assert list(environment.packages) == ["numpy"]
    assert environment.platform == sys.platform
    assert environment.cores >= 1

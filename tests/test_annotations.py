"""What CI shows of a run: annotations at the adapter's line, and badges."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter.registry import resolve
from conformance.ci import annotations, badge, badges
from conformance.ci.annotations import SourceLine, place_of, workflow_command
from conformance.errors import UsageError
from conformance.judging.verdict import Outcome
from conformance.records import Line, Run, read_records
from conformance.records.accuracy import Accuracy
from conformance.system.exit_codes import ExitCode
from tests.fakes import named
from tests.support import runs
from tests.support.commands import invoke

# Annotations


def test_workflow_commands_are_escaped() -> None:
    assert workflow_command("error", "50 %\r\nmore: a,b", title="a:b,c %0A\n", line=3, file=None) == (
        "::error title=a%3Ab%2Cc %250A%0A,line=3::50 %25%0D%0Amore: a,b"
    )
    assert workflow_command("notice", "::error::no") == "::notice::::error::no"


def failing_run(tmp_path: Path, number: int, *more: Line) -> Run:
    identifiers = [f"ATT-OUT-{n:03}" for n in range(number)]
    entry = runs.implementation("flawed", source="src/layers.py:12")
    items = [runs.item("flawed", requirement, **runs.FAILS) for requirement in identifiers]
    return runs.run(tmp_path, runs.header([entry], identifiers), *items, *more, exit_code=ExitCode.UNEXPECTED)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "layers.py").write_text("")
    return tmp_path


def test_a_failure_is_annotated_at_the_adapters_line(source: Path) -> None:
    case = runs.case(1, "flawed", "ATT-OUT-000", outcome="WRONG_VALUE", message="At (0,): 100 % off.", repro="repro it")
    first, second, notice = annotations(failing_run(source, 2, case, runs.diagnosis()), source, source)
    assert first.startswith("::error file=src/layers.py,line=12,title=ATT-OUT-000 on flawed%3A WRONG_VALUE::The sentence of ATT-")
    assert "%0AAt (0,): 100 %25 off.%0Arepro it" in first
    assert second.startswith("::error file=src/layers.py,line=12,title=ATT-OUT-001")
    assert notice.startswith("::notice file=src/layers.py,line=12,title=Diagnosis of flawed::matches fault scale-missing")


def test_of_several_cases_one_with_the_outcome_of_the_item_is_shown(source: Path) -> None:
    cases = [
        runs.case(n, "flawed", "ATT-OUT-000", outcome=outcome, message=f"message {n}")
        for n, outcome in enumerate(("NONFINITE", "WRONG_VALUE"))
    ]
    (line,) = annotations(failing_run(source, 1, *cases), source, source)
    assert "message 1" in line
    assert "message 0" not in line


def test_a_convention_that_is_not_as_declared_is_annotated(source: Path) -> None:
    answer = runs.convention("flawed", observed="nan", agrees=False, message="Fix it.")
    run = runs.run(source, runs.header(["flawed"]), runs.item("flawed"), answer)
    assert annotations(run, source, source) == [
        "::error title=CON-EMPTY-ROW on flawed%3A declared zeros%2C observed nan::Fix it."
    ]


def test_known_failures_are_not_annotated(source: Path) -> None:
    run = runs.run(source, runs.header(["fine"]), runs.item("fine", outcome=Outcome.WRONG_VALUE, reason="known"))
    assert annotations(run, source, source) == []


def test_no_more_annotations_than_github_shows(source: Path) -> None:
    lines = annotations(failing_run(source, 25), source, source)
    assert len(lines) == 10
    assert "16 more results are unexpected" in lines[-1]


def test_places_are_named_from_the_repository(source: Path) -> None:
    assert place_of("layers.py:12", source / "src", source) == SourceLine("src/layers.py", 12)
    assert place_of(f"{source}/src/layers.py:3", Path("/"), source) == SourceLine("src/layers.py", 3)
    for elsewhere in ("", "layers.py:12", "src/layers.py", f"{__file__}:1"):
        assert place_of(elsewhere, source, source) == SourceLine()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def attention(query, key, value): ...\n", 1),
        ("class A:\n    def __call__(self, query, key, value): ...\nattention = A()\n", 1),
        ("import functools\ndef f(query, key, value, *, scale=None): ...\nattention = functools.partial(f)\n", 2),
    ],
    ids=["function", "instance", "partial"],
)
def test_an_implementation_knows_its_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "one.py").write_text(text)
    assert resolve(f"{tmp_path}/one.py:attention").source == f"{tmp_path}/one.py:{line}"


def test_annotate(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_run(source, 1)
    monkeypatch.chdir(source / "src")
    assert invoke("annotate", source / "records.jsonl", "--root", source).stdout.startswith("::error title=ATT-OUT-000")
    monkeypatch.chdir(source)
    assert invoke("annotate", "records.jsonl").stdout.startswith("::error file=src/layers.py,line=12,title=ATT-OUT-000")
    assert invoke("annotate", "no_such.jsonl").exit_code == ExitCode.USAGE_ERROR


# Badges

ONE_AREA = ("ATT-OUT-001", "ATT-OUT-002")


def judged(tmp_path: Path, second: dict[str, Any], tier: str = "full") -> Run:
    accuracy = Accuracy()
    accuracy.add("float32", "strict", 0.25)
    items = runs.item("fine", ONE_AREA[0], accuracy=accuracy.entries()), runs.item("fine", ONE_AREA[1], **second)
    failed = second.get("outcome", Outcome.PASS).is_failure
    case = runs.case(2, "fine", ONE_AREA[1], outcome="WRONG_VALUE" if failed else "PASS", **(
        {"status": second["status"]} if failed else {}
    ))  # fmt: skip
    return runs.run(tmp_path, runs.header(["fine"], ONE_AREA, tier=tier), *items, runs.case(1), case)


@pytest.mark.parametrize(
    ("second", "message", "colour"),
    [
        ({}, "2/2 requirements", "brightgreen"),
        ({"outcome": Outcome.UNSUPPORTED}, "1/1 requirements, 1 not offered", "brightgreen"),
        ({"outcome": Outcome.WRONG_VALUE, "status": "expected"}, "1/2 requirements", "yellow"),
        (runs.FAILS, "1/2 requirements", "red"),
    ],
)
def test_the_badge_of_an_implementation(tmp_path: Path, second: dict[str, Any], message: str, colour: str) -> None:
    made = badge(judged(tmp_path, second), "fine")
    assert made == {"schemaVersion": 1, "label": "attention conformance", "message": message, "color": colour}


def test_the_badge_of_a_dtype_names_its_profile_and_largest_r(tmp_path: Path) -> None:
    made = badge(judged(tmp_path, {}), "fine", "float32")
    assert (made["label"], made["message"]) == ("attention float32", "2/2 cases (strict), largest r 0.25")
    assert badge(judged(tmp_path, runs.FAILS), "fine", "float32")["color"] == "red"
    assert badge(judged(tmp_path, {}), "fine", "float16")["message"] == "not judged"


def test_a_run_that_may_not_be_cited_has_no_green_badge(tmp_path: Path) -> None:
    made = badge(judged(tmp_path, {}, tier="quick"), "fine")
    assert (made["message"], made["color"]) == ("2/2 requirements, no conformance result", "lightgrey")


@pytest.mark.parametrize("part", ["selected", "unfinished"])
def test_a_part_of_a_run_has_no_badge(tmp_path: Path, part: str) -> None:
    items = [runs.item("fine", ONE_AREA[0])] if part == "selected" else [runs.item("fine", one) for one in ONE_AREA]
    header = runs.header(["fine"], ONE_AREA, selection="ATT-OUT-001" if part == "selected" else "")
    code = None if part == "unfinished" else ExitCode.AS_EXPECTED
    run = read_records(runs.write(tmp_path / "records.jsonl", header, *items, exit_code=code), partial=True)
    assert badges(run) == {}
    with pytest.raises(UsageError, match="There is no badge of a part of a run"):
        badge(run, "fine")


@pytest.mark.parametrize(
    ("lacks", "colour"),
    [((), "red"), (("mask",), "red"), (("causal", "key-lengths", "mask"), "green")],
)
def test_a_badge_names_the_areas_that_were_not_judged(tmp_path: Path, lacks: tuple[str, ...], colour: str) -> None:
    names = ("ATT-OUT-001", "ATT-MASK-001")
    entry = runs.implementation("fine", features=(), lacks=lacks)
    lacking = runs.item("fine", names[1], outcome=Outcome.UNSUPPORTED, without=("causal", "mask"))
    run = runs.run(tmp_path, runs.header([entry], names), runs.item("fine", names[0]), lacking)
    made = badge(run, "fine")
    assert made["message"] == "1/1 requirements, 1 not offered, nothing of MASK judged"
    assert made["color"] == colour


def test_a_badge_says_how_many_conventions_were_skipped(tmp_path: Path) -> None:
    skipped = runs.convention("fine", declared=None, observed=None, agrees=None, skipped=True)
    run = runs.run(tmp_path, runs.header(["fine"]), runs.item("fine"), skipped)
    made = badge(run, "fine")
    assert (made["message"], made["color"]) == ("1/1 requirements, 1 convention skipped", "green")


def test_badge_command(tmp_path: Path) -> None:
    judged(tmp_path, {})
    records = tmp_path / "records.jsonl"
    assert invoke("badge", records, "--out", tmp_path / "one.json").exit_code == 0
    assert json.loads((tmp_path / "one.json").read_text())["message"] == "2/2 requirements"
    assert invoke("badge", records, "--out", tmp_path / "all").exit_code == 0
    assert {path.name for path in (tmp_path / "all").iterdir()} == set(badges(read_records(records)))
    several = runs.write(tmp_path / "several.jsonl", runs.header(), runs.item("fine"), runs.item("flawed"))
    for words, told in (
        ([records, "--out", tmp_path / "x.json", "--implementation", "nobody"], "no implementation 'nobody'"),
        ([records, "--out", tmp_path / "x.json", "--dtype", "int8"], "does not declare 'int8'"),
        ([records, "--out", tmp_path / "folder", "--dtype", "float32"], "is a folder"),
        ([several, "--out", tmp_path / "x.json"], "has 2 implementations"),
    ):
        result = invoke("badge", *words)
        assert result.exit_code == ExitCode.USAGE_ERROR
        assert told in result.stderr


def test_the_badges_of_a_long_name_can_be_written(tmp_path: Path) -> None:
    names = ["long" * 100 + end for end in "ab"]
    records = runs.write(tmp_path / "records.jsonl", runs.header(names), *(runs.item(name) for name in names))
    assert invoke("badge", records, "--out", tmp_path / "all").exit_code == 0
    written = [path.name for path in (tmp_path / "all").iterdir()]
    assert len([name for name in written if name.startswith("longlong")]) == len(written) == len(badges(read_records(records)))
    assert max(map(len, written)) < 130


def test_records_without_implementations_have_no_badge(tmp_path: Path) -> None:
    records = runs.write(tmp_path / "records.jsonl", runs.header([]))
    for out in ("one.json", "folder"):
        result = invoke("badge", records, "--out", tmp_path / out)
        assert result.exit_code == ExitCode.USAGE_ERROR
        assert result.stderr == "The records have no implementation, so that there is no badge to write.\n"


def test_a_named_fake_is_annotated_where_it_stands() -> None:
    entry = resolve(named("zeros"))
    assert re.fullmatch(r"tests/fakes\.py:\d+", entry.source)

"""Records that nobody wrote in good faith: read or refused in a sentence, and harmless in every report."""

import csv
import io
import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from markdown_it import MarkdownIt

from conformance.ci.badge import badges
from conformance.errors import UsageError
from conformance.expectations import file_stem
from conformance.judging.verdict import Outcome
from conformance.records import Run, read_records
from conformance.records.accuracy import middle_of
from conformance.records.lines import decode, encode
from conformance.records.repair import LONGEST_TEXT
from conformance.reports import junit_xml, results_csv, summary_markdown
from conformance.reports.markdown import escaped
from conformance.run.report_files import write_reports
from conformance.system.exit_codes import ExitCode
from tests.support import runs
from tests.support.commands import invoke
from tests.support.hostile_records import TEXT, damaged, hostile_run
from tests.test_page import records

UNSAFE = ("../../../victim", "a/b", "a\\b", "\x00", "a\n", "\x1b[31m", "\u202ea", "..", "a b", "", "a" * 200, "é")


def changed(path: Path, old: str, new: str) -> Path:
    """The record file with every string ``old`` in its place made ``new``."""
    path.write_text(path.read_text().replace(json.dumps(old), json.dumps(new)))
    return path


@pytest.mark.parametrize("unsafe", UNSAFE)
@pytest.mark.parametrize(
    "word", ["float32", "ATT-OUT-001", "OUT", "CON-EMPTY-ROW", "attention", "0.1.0", "strict", "causal", "cpu-small"]
)
def test_what_is_an_identifier_cannot_be_anything(tmp_path: Path, word: str, unsafe: str) -> None:
    accuracy = runs.accuracy(0.5)
    lines = (runs.header(), runs.item(accuracy=accuracy), runs.case(), runs.convention(), runs.timing())
    path = changed(runs.write(tmp_path / "records.jsonl", *lines), word, unsafe)
    with pytest.raises(UsageError, match=r"line \d is no record") as caught:
        read_records(path)
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 700 + len(str(path))


@pytest.mark.parametrize("unsafe", ["\x00", "a\n", "a\tb", "\x1b[31m", "\x9b", "\u202ea", "\u2028", "\ufeffa", "a" * 6000])
def test_names_are_lines_of_what_is_seen(tmp_path: Path, unsafe: str) -> None:
    path = changed(runs.write(tmp_path / "records.jsonl", runs.header(), runs.item(), runs.item("flawed")), "flawed", unsafe)
    result = invoke("report", path)
    assert (result.exit_code, len(result.stderr.splitlines())) == (ExitCode.USAGE_ERROR, 1)


@pytest.mark.parametrize(
    "name",
    [
        "path/to/file.py:function",
        "module.sub:function",
        "../other folder/my attention (2).py:Layer.forward",
        "C:\\code\\attention.py:attention",
        "Übung/注意.py:achtung_é",
        "emoji \N{WOMAN}\u200d\N{PERSONAL COMPUTER}.py:f",
        "a'b\"c|d`e*f_g<h>&i,j;k=l+m@n#o$p%q~r[s]{t}.py:f",
        "=1+1.py:f",
        "::error::x.py:f",
        "x" * 4000 + ".py:f",
    ],
)
def test_names_of_functions_stay_legal(tmp_path: Path, name: str) -> None:
    path = runs.write(tmp_path / "records.jsonl", runs.header([name]), runs.item(name), runs.case(0, name), runs.timing(name))
    assert list(read_records(path).implementations) == [name]
    for words in (("report", path), ("badge", path, "--out", tmp_path / "b"), ("history", path), ("diff", path, path)):
        assert invoke(*words).exit_code == 0


def test_badges_stay_in_their_folder(tmp_path: Path) -> None:
    """Whatever the run says that was not read from a file."""
    entry = runs.implementation("../../x/..", dtypes=("../../../victim", "/etc/x"), profile={})
    run = Run.of(runs.header([entry]), [runs.item(entry.name)], None)
    run = Run(run.headers, items=run.items, footers=runs.run(tmp_path, runs.header([]), exit_code=ExitCode.AS_EXPECTED).footers)
    assert len(badges(run)) == 3
    assert all("/" not in name and name not in (".", "..") for name in badges(run))
    for name in (*UNSAFE, "/etc/passwd", "C:\\x"):
        assert not {"/", "\\", "\0"} & set(file_stem(name))


def test_a_hostile_dtype_writes_no_badge_outside(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "badges"
    lines = (runs.header(), runs.item(), runs.item("flawed"))
    path = changed(runs.write(tmp_path / "records.jsonl", *lines), "float16", "../../../victim")
    assert invoke("badge", path, "--out", folder).exit_code == ExitCode.USAGE_ERROR
    assert [file.name for file in tmp_path.rglob("*")] == ["records.jsonl"]


@pytest.fixture
def hostile(tmp_path: Path) -> Run:
    return read_records(runs.write(tmp_path / "hostile.jsonl", *hostile_run(), exit_code=ExitCode.UNEXPECTED))


def test_junit_is_well_formed_whatever_a_text_holds(hostile: Run) -> None:
    root = ElementTree.fromstring(junit_xml(hostile))
    assert root.find("testsuite/testcase/error") is not None
    assert "told by nobody" in ElementTree.tostring(root, encoding="unicode")
    odd = "\ud800\x00\x0c\ufffe<&\"'\x1b"  # as a run in memory may have it, which no file has
    header = msgspec.structs.replace(
        hostile.header,
        suite=odd,
        specification=odd,
        requirements=(runs.requirement("ATT-OUT-001"), runs.requirement(f"A-{odd}-1")),
    )
    run = Run((header,), items=(runs.item("fine", f"A-{odd}-1"),), conventions=(runs.convention("fine", odd),))
    names = [case.get("name", "") for case in ElementTree.fromstring(junit_xml(run)).findall("testsuite/testcase")]
    assert len(names) == 2 and all("<&\"'" in name for name in names)


def test_markdown_shows_text_as_it_is(hostile: Run) -> None:
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(summary_markdown(hostile))
    assert not any(f"<{tag}" in html for tag in ("script", "a ", "img", "em>"))
    assert "<table>" in html and "|" in html
    assert not set(html) & {"\x1b", "\x9b", "\u202e", "\x00", "\r"}


@pytest.mark.parametrize(
    "text",
    [
        "# heading", "- item", "+ item", "1. item", "12) item", "---", "===", "> quote", "~~~", "```", "a | b", "<b>x</b>",
        "&lt;", "[a](b)", "![a](b)", "*a* _b_ __c__", "`x`", "\\*", "a_b", "-1.5", "1.5 is", "=1", "#1", "~~x~~", "$x$",
    ],
)  # fmt: skip
def test_escaped_text_stays_itself(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escaped(text))
    plain = rendered.strip().removeprefix("<p>").removesuffix("</p>")
    assert plain == text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_no_link_is_made_of_an_address() -> None:
    assert escaped("see https://a.example and www.a.example") == "see https\\://a.example and www\\.a.example"


def test_cells_are_no_formulas(tmp_path: Path) -> None:
    told = {"=HYPERLINK(1)": "'=HYPERLINK(1)", "+1+1": "'+1+1", "-1.5": "-1.5", "-x": "'-x", "@SUM(1)": "'@SUM(1)", "\tx": "'\tx",
            "\r=1": "\ufffd=1", " =1": "' =1", "a=1": "a=1", "＝1": "'＝1", "1e5": "1e5", "": ""}  # fmt: skip
    names = [f"n{number}" for number in range(len(told))]
    items = [runs.item(name, reason=reason) for name, reason in zip(names, told, strict=True)]
    run = runs.run(tmp_path, runs.header([*names, "=1+1.py:f"]), *items, runs.item("=1+1.py:f", seconds=1.5))
    rows = list(csv.DictReader(io.StringIO(results_csv(run))))
    assert [row["reason"] for row in rows[:-1]] == list(told.values())
    assert rows[-1]["implementation"] == "'=1+1.py:f" and rows[-1]["seconds"] == "1.5"


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("growth", '"seconds":[0.001,0.004,0.016]', '"seconds":[]'),
        ("growth", '"peak_bytes":[1000,2000,4000]', '"peak_bytes":[1000]'),
        ("growth", '"peak_bytes":[1000,2000,4000]', '"peak_bytes":[1000,2000,1' + "0" * 400 + "]"),
        ("growth", '"time_exponent":2.0', '"time_exponent":1e300'),
        ("timing", '"flops":1000', '"flops":1' + "0" * 400),
        ("timing", '"flops":1000', '"flops":1' + "0" * 5000),
        ("timing", '"median_seconds":0.002', '"median_seconds":1e300'),
        ("item", '"count":3', '"count":4'),
        ("item", '"histogram":{', '"histogram":{"99999999999":0,'),
        ("header", '"seed":7', '"seed":1' + "0" * 5000),
        ("header", '"conventions":{}', '"conventions":' + "[" * 5000),
    ],
)
def test_numbers_that_no_run_has_are_refused(tmp_path: Path, kind: str, old: str, new: str) -> None:
    path = runs.write(tmp_path / "records.jsonl", *records(), exit_code=ExitCode.UNEXPECTED)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    for words in (("report", path), ("page", path), ("diff", path, path), ("history", path)):
        result = invoke(*words)
        assert (result.exit_code, len(result.stderr.splitlines())) == (ExitCode.USAGE_ERROR, 1)
        assert len(result.stderr) < 1000


def test_bins_beyond_all_numbers_have_a_middle() -> None:
    assert middle_of("9999") == float("inf") and middle_of("-9999") == 0.0


def test_a_message_of_any_length_is_recorded_cut_and_read() -> None:
    item = decode(encode(runs.item(reason="x" * 10_000_000, lacking={"y" * 10_000_000: 1}, observations={"half": "\ud800"})))
    assert len(item.reason) < LONGEST_TEXT + 100 and len(next(iter(item.lacking))) < LONGEST_TEXT + 100
    assert item.observations == {"half": "\\ud800"}


@pytest.mark.parametrize("seed", range(6))
def test_damaged_records_are_read_or_refused_in_a_sentence(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    whole = runs.write(tmp_path / "whole.jsonl", *records(), exit_code=ExitCode.UNEXPECTED)
    file = tmp_path / "damaged.jsonl"
    commands: list[tuple[Any, ...]] = [
        ("report", file), ("diff", file, whole), ("diff", whole, file), ("history", file, whole), ("annotate", file),
        ("badge", file, "--out", tmp_path / "badges"), ("expectations", "update", file, "--to", tmp_path / "expected"),
    ]  # fmt: skip
    for _ in range(40):
        file.write_text(damaged(whole, dice))
        words = dice.choice(commands)
        result = invoke(*words)
        assert result.exit_code in (0, 1, 2), result.output
        assert result.exit_code != 2 or len(result.stderr.splitlines()) == 1, result.stderr


def test_all_reports_of_the_hostile_run_can_be_written(hostile: Run, tmp_path: Path) -> None:
    for path in write_reports(hostile, tmp_path / "reports"):
        text = path.read_text(encoding="utf-8")
        assert "told by nobody" in text or path.name in ("results.csv", "timings.csv", "summary.json")
        assert path.suffix == ".json" or not set(text) & {"\x1b", "\x9b", "\u202e", "\x00"}
    assert TEXT.startswith("\x1b") and Outcome.ERROR in {item.outcome for item in hostile.items}
